//! Embeds the switches' XDP programs when `cargo xtask build-ebpf` has built them.

use std::{env, fs, path::Path};

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../..");
    let objects = root.join("target/ebpf");
    // A watched path that does not exist would make cargo run this script at every build.
    fs::create_dir_all(&objects).expect("target is writable");
    println!("cargo:rerun-if-changed={}", objects.display());
    let mut code = String::new();
    for name in ["switch", "router"] {
        let path = objects.join(name).with_extension("o");
        let embedded = match path.canonicalize() {
            Ok(path) => {
                println!("cargo:rerun-if-changed={}", path.display());
                format!("Some(include_bytes!({path:?}))")
            }
            Err(_) => "None".to_owned(),
        };
        code += &format!("pub(super) const {}: Option<&[u8]> = {embedded};\n", name.to_uppercase());
    }
    let out = Path::new(&env::var("OUT_DIR").expect("set by cargo")).join("ebpf.rs");
    fs::write(out, code).expect("OUT_DIR is writable");
}
