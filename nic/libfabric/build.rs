//! Prevents unloading of the library: libfabric unloads its providers when the process ends, while
//! threads of endpoints that were not closed still run.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
