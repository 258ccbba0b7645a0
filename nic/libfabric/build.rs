//! Keeps the library loaded: libfabric unloads providers at exit, while threads may still run.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
