//! The two halves of `spray` separately: the portable simulator, and the commands on Linux.

use crate::sh::{self, Failure, Outcome};

/// Crates that require Linux or a C library.
const LINUX_ONLY: [&str; 7] =
    ["libbpf-rs", "libbpf-sys", "netlink-sys", "nix", "rtnetlink", "spray-switch", "spray-testbed"];
const LABORATORY: [&str; 8] = [
    "parquet",
    "plotters",
    "spray-experiments",
    "spray-fabric",
    "spray-pipeline",
    "spray-sim",
    "spray-switch",
    "spray-testbed",
];

/// Checks `spray-nic`; `spray` with only `lab`, without [`LINUX_ONLY`]; with only `xdp`, without
/// [`LABORATORY`].
pub fn check() -> Outcome {
    let alone =
        ["clippy", "--profile", sh::QUICK, "--package", "spray-nic", "--package", "spray-core", "--", "-D", "warnings"];
    sh::run(sh::cargo().args(alone))?;
    check_alone("lab", &LINUX_ONLY)?;
    check_alone("xdp", &LABORATORY)
}

fn check_alone(feature: &str, unwanted: &[&str]) -> Outcome {
    let spray = ["--package", "spray", "--no-default-features", "--features", feature];
    sh::run(sh::cargo().args(["clippy", "--profile", sh::QUICK]).args(spray).args(["--", "-D", "warnings"]))?;
    let tree = [&["tree", "--edges", "normal,build", "--prefix", "none"], spray.as_slice()].concat();
    let cargo = sh::cargo();
    let tree = sh::capture(cargo.get_program(), &tree).ok_or_else(|| Failure::failed("`cargo tree` failed"))?;
    match those_in(&tree, unwanted).as_slice() {
        [] => Ok(()),
        found => {
            Err(Failure::failed(format!("`spray` with the feature `{feature}` alone still needs {}", found.join(", "))))
        }
    }
}

fn those_in<'a>(tree: &'a str, names: &[&str]) -> Vec<&'a str> {
    let mut found: Vec<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    found.retain(|name| names.contains(name));
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::{LINUX_ONLY, those_in};

    #[test]
    fn unwanted_crates_are_found_once() {
        let tree = "spray v0.1.0 (/somewhere)\nnix v0.30.1\nserde v1.0.0\nlibbpf-sys v1.5.1+v1.5.1\nnix v0.30.1 (*)";
        assert_eq!(those_in(tree, &LINUX_ONLY), ["libbpf-sys", "nix"]);
        assert_eq!(those_in("spray v0.1.0\nspray-sim v0.1.0", &LINUX_ONLY), [""; 0]);
    }
}
