//! The part of the project that runs anywhere: the simulator and its commands, without libbpf, LLVM and root.

use crate::sh::{self, Failure, Outcome};

/// What takes Linux or a C library of its own.
const LINUX_ONLY: [&str; 8] =
    ["libbpf-rs", "libbpf-sys", "libxdp-sys", "netlink-sys", "nix", "rtnetlink", "spray-testbed", "xsk-rs"];
/// `spray` with the simulator alone.
const SPRAY: [&str; 3] = ["--package", "spray", "--no-default-features"];

/// Checks `spray` without the feature `xdp`, and that nothing of [`LINUX_ONLY`] is in it.
pub fn check() -> Outcome {
    sh::run(sh::cargo().args(["clippy", "--release"]).args(SPRAY).args(["--", "-D", "warnings"]))?;
    let tree = [&["tree", "--edges", "normal,build", "--prefix", "none"], SPRAY.as_slice()].concat();
    let cargo = sh::cargo();
    let tree = sh::capture(cargo.get_program(), &tree).ok_or_else(|| Failure::failed("`cargo tree` failed"))?;
    match linux_only(&tree).as_slice() {
        [] => Ok(()),
        found => Err(Failure::failed(format!("`spray` without the feature `xdp` still needs {}", found.join(", ")))),
    }
}

/// The crates of [`LINUX_ONLY`] in what `cargo tree` prints.
fn linux_only(tree: &str) -> Vec<&str> {
    let mut found: Vec<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    found.retain(|name| LINUX_ONLY.contains(name));
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::linux_only;

    #[test]
    fn crates_for_linux_are_found_once() {
        let tree =
            "spray v0.1.0 (/somewhere)\nxsk-rs v0.11.0\nserde v1.0.0\nlibbpf-sys v1.5.1+v1.5.1\nxsk-rs v0.11.0 (*)";
        assert_eq!(linux_only(tree), ["libbpf-sys", "xsk-rs"]);
        assert_eq!(linux_only("spray v0.1.0\nspray-sim v0.1.0"), [""; 0]);
    }
}
