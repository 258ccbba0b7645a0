//! Every check there is, cheapest first, and one line that adds the tests up.

use std::process::{Command, Stdio};

use crate::setup::{Ready, setup};
use crate::sh::{self, Failure, Outcome};

/// The tests on real namespaces: as root, one at a time.
const PRIVILEGED: &str = "spray-tests";

/// `cargo xtask test`: set-up, formatting, clippy, docs, all tests, then those on namespaces.
pub fn test() -> Outcome {
    let ready = setup(sh::is_root())?;
    if ready.kernel_programs {
        crate::ebpf::build()?;
    }
    format()?;
    lint()?;
    doc()?;
    let mut tally = Tally::default();
    let mut ok =
        count(sh::cargo().args(["test", "--workspace", "--exclude", PRIVILEGED, "--no-fail-fast"]), &mut tally)?;
    if sh::is_root() && ready.kernel_programs {
        ok &= count(privileged().args(["--", "--test-threads=1"]), &mut tally)?;
    } else {
        tally.skipped += skip_privileged(ready)?;
    }
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.skipped);
    if ok && tally.failed == 0 { Ok(()) } else { Err(Failure::failed("there are failed tests, named above")) }
}

fn format() -> Outcome {
    sh::run(sh::cargo().args(["fmt", "--all", "--check"]))?;
    sh::run(sh::cargo().args(["fmt", "--all", "--check", "--manifest-path", "ebpf/Cargo.toml"]))
}

fn lint() -> Outcome {
    sh::run(sh::cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

/// The documentation of all members, with warnings as errors.
pub fn doc() -> Outcome {
    sh::run(sh::cargo().args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

fn privileged() -> Command {
    let mut command = sh::cargo();
    command.args(["test", "--package", PRIVILEGED, "--no-fail-fast"]);
    command
}

/// Says loudly what is not run, having at least compiled it; returns how many tests that are.
fn skip_privileged(ready: Ready) -> Outcome<u64> {
    let why = if ready.kernel_programs { "they need root" } else { "the XDP programs cannot be built here, see above" };
    let output = privileged().args(["--", "--list"]).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| Failure::unable(format!("cargo could not be run: {error}")))?;
    let listed = String::from_utf8_lossy(&output.stdout);
    let names: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    println!("\nSKIPPED: {} tests on network namespaces, because {why}:", names.len());
    names.iter().for_each(|name| println!("  skipped {name}"));
    println!(
        "Also skipped inside other tests, for the same reason: those that load programs or open AF_XDP sockets.\n"
    );
    if output.status.success() {
        Ok(names.len() as u64)
    } else {
        Err(Failure::failed("the namespace tests do not compile"))
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
}

fn count(command: &mut Command, tally: &mut Tally) -> Outcome<bool> {
    sh::run_lines(command, |line| tally.add(line))
}

impl Tally {
    /// Adds `test result: ok. 15 passed; 0 failed; 1 ignored; ...`, ignores every other line.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let fields = result.split(['.', ';']).filter_map(|field| field.trim().split_once(' '));
        for (number, what) in fields {
            let number = number.parse().unwrap_or(0);
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;

    #[test]
    fn tally_adds_result_lines_only() {
        let mut tally = Tally::default();
        tally.add("test result: ok. 15 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.04s");
        tally.add("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s");
        tally.add("test that_says_9_passed ... ok");
        assert_eq!(tally, Tally { passed: 18, failed: 2, skipped: 1 });
    }
}
