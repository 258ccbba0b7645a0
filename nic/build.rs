//! Says which steering program the library embeds: the one that `cargo xtask build-ebpf` has built in this source tree, otherwise the one
//! that comes with the crate, so that whoever uses the library needs no compiler for BPF.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let crate_root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let (root, own) = (crate_root.join(".."), crate_root.join("src/xdp/steer.o"));
    println!("cargo:rerun-if-changed={}", own.display());
    let built = root.join("target/ebpf/steer.o");
    if root.join("ebpf/src/steer.rs").is_file() {
        // A watched path that does not exist would make cargo run this script at every build.
        fs::create_dir_all(root.join("target/ebpf")).expect("target is writable");
        println!("cargo:rerun-if-changed={}", root.join("target/ebpf").display());
    }
    let path =
        built.canonicalize().inspect(|path| println!("cargo:rerun-if-changed={}", path.display())).unwrap_or(own);
    let out = Path::new(&env::var("OUT_DIR").expect("set by cargo")).join("steer.rs");
    fs::write(out, format!("const STEER: &[u8] = include_bytes!({path:?});\n")).expect("OUT_DIR is writable");
}
