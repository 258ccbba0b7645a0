//! Embeds the steering program when `cargo xtask build-ebpf` has built it.

use std::path::Path;
use std::{env, fs};

fn main() {
    let objects = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../target/ebpf");
    // A watched path that does not exist would make cargo run this script at every build.
    fs::create_dir_all(&objects).expect("target is writable");
    println!("cargo:rerun-if-changed={}", objects.display());
    let embedded = match objects.join("steer.o").canonicalize() {
        Ok(path) => {
            println!("cargo:rerun-if-changed={}", path.display());
            format!("Some(include_bytes!({path:?}))")
        }
        Err(_) => "None".to_owned(),
    };
    let out = Path::new(&env::var("OUT_DIR").expect("set by cargo")).join("steer.rs");
    fs::write(out, format!("const STEER: Option<&[u8]> = {embedded};\n")).expect("OUT_DIR is writable");
}
