//! Runs all tests, and counts them in one line.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::setup;
use crate::sh::{self, Failure, Outcome};
use crate::steps::{self, Steps};

/// The prefix that a skipped test prints; see `tests/support`.
pub const SKIPPED: &str = "SKIPPED ";

/// `cargo xtask test [--no-skips]`: set-up, formatting, all tests.
pub fn test(arguments: &[String]) -> Outcome {
    let no_skips = steps::reads_no_skips(arguments)?;
    let mut tally = Tally::default();
    let ended_well = steps::timed(false, |steps| run(steps, no_skips, &mut tally));
    tally.report();
    if !ended_well? || tally.failed > 0 {
        return Err(Failure::failed("tests failed, see above"));
    }
    steps::refuse_skips(no_skips, tally.skipped.len())
}

fn run(steps: &mut Steps, no_skips: bool, tally: &mut Tally) -> Outcome<bool> {
    steps.run("set-up", setup::setup)?;
    steps.run("what tests need", || {
        setup::for_tests(no_skips);
        Ok(())
    })?;
    steps.run("formatting", format)?;
    let binaries = steps.run("build of the tests", build)?;
    let tally = Mutex::new(tally);
    let ended_well = steps.run("tests", || side_by_side(&binaries, &tally))?;
    let documentation = || sh::run_lines(&mut cargo(&["--no-fail-fast", "--doc"]), |line| add(&tally, line));
    Ok(steps.run("tests in the documentation", documentation)? & ended_well)
}

/// Binaries with CPU-bound tests, which run at idle priority.
const COMPUTING: [&str; 11] = [
    "corpus",
    "golden",
    "plain_network",
    "routing",
    "scenarios",
    "soak",
    "spray_core",
    "spray_experiments",
    "spray_fabric",
    "spray_pipeline",
    "spray_sim",
];

fn build() -> Outcome<Vec<Binary>> {
    let mut binaries = Vec::new();
    let mut cargo = cargo(&["--no-run", "--message-format", "json-render-diagnostics"]);
    if !sh::read_lines(&mut cargo, |line| binaries.extend(Binary::built(line)))? {
        return Err(Failure::failed("the tests do not build"));
    }
    binaries.sort();
    Ok(binaries)
}

/// Runs the binaries in sequence, concurrently with those of [`COMPUTING`] at idle priority.
fn side_by_side(binaries: &[Binary], tally: &Mutex<&mut Tally>) -> Outcome<bool> {
    let (computing, others): (Vec<_>, Vec<_>) = binaries.iter().partition(|binary| binary.computes());
    let run = |binaries: Vec<&Binary>| {
        binaries.into_iter().try_fold(true, |ended_well, binary| Ok(binary.run(tally)? & ended_well))
    };
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| run(computing));
        let ended_well = run(others);
        Ok(beside.join().expect("it does not panic")? & ended_well?)
    })
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Binary {
    /// The folder of the package, its working directory.
    folder: PathBuf,
    name: String,
    executable: PathBuf,
}

impl Binary {
    /// Parses a build message of cargo; `None` unless it is for a test binary.
    fn built(message: &str) -> Option<Self> {
        let behind = |start: &str| Some(message.split_once(start)?.1);
        let string = |start: &str| Some(behind(start)?.split_once('"')?.0);
        if !behind("\"profile\":{")?.split_once('}')?.0.contains("\"test\":true") {
            return None;
        }
        Some(Self {
            folder: Path::new(string("\"manifest_path\":\"")?).parent()?.into(),
            name: behind("\"target\":{")?.split_once("\"name\":\"")?.1.split_once('"')?.0.into(),
            executable: string("\"executable\":\"")?.into(),
        })
    }

    fn computes(&self) -> bool {
        COMPUTING.contains(&self.name.as_str())
    }

    /// Returns whether all tests passed. Shows the output line by line; of [`COMPUTING`] at the
    /// end.
    fn run(&self, tally: &Mutex<&mut Tally>) -> Outcome<bool> {
        let mut command = Command::new(&self.executable);
        if self.computes() {
            command = Command::new("chrt");
            command.args(["--idle", "0"]).arg(&self.executable);
        }
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder).env("SPRAY_ALL_BUILT", "1");
        command.env("PATH", setup::path());
        let mut text = String::new();
        let ended_well = if self.computes() {
            sh::read_lines(&mut command, |line| {
                add(tally, line);
                text.extend([line, "\n"]);
            })?
        } else {
            sh::run_lines(&mut command, |line| add(tally, line))?
        };
        print!("{text}");
        if !ended_well {
            println!("{} of {} failed", self.name, self.folder.display());
        }
        Ok(ended_well)
    }
}

fn add(tally: &Mutex<&mut Tally>, line: &str) {
    tally.lock().unwrap_or_else(PoisonError::into_inner).add(line);
}

/// `cargo test` of the whole workspace with one feature resolution, so that nothing is built twice.
fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = sh::cargo();
    cargo.args(["test", "--profile", sh::QUICK, "--workspace"]).args(arguments).env("PATH", setup::path());
    cargo.env("SPRAY_ALL_BUILT", "1");
    cargo
}

/// Runs tests that take minutes: more packets, more mutations of inputs, days of virtual time.
pub fn slow() -> Outcome {
    sh::run(cargo(&["--test", "corpus"]).env("ALL_MUTATIONS", "1"))?;
    sh::run(&mut cargo(&["--test", "soak", "--", "--ignored"]))?;
    sh::run(&mut cargo(&["--lib", "--", "--ignored", "flow::tests::soak::"]))?;
    let mut cargo =
        cargo(&["--test", "scenarios", "--", "--include-ignored", "--skip", "::document", "fidelity::", "flowcut::"]);
    sh::run(cargo.env("FLOWCUT_PACKETS", "10000000"))
}

/// Runs transfers for two minutes while links, processes and the machine fail: needs root.
pub fn chaos() -> Outcome {
    let mut tally = Tally::default();
    // `golden` has no test here, but makes cargo build the program.
    let mut cargo = cargo(&["--test", "golden", "--test", "namespaces", "--", "--ignored", "chaos::what_is_reported"]);
    let ended_well = sh::run_lines(&mut cargo, |line| tally.add(line))?;
    tally.outcome(ended_well)
}

fn format() -> Outcome {
    sh::run(sh::cargo().args(["fmt", "--all", "--check"]))?;
    sh::run(sh::cargo().args(["fmt", "--all", "--check", "--manifest-path", "ebpf/Cargo.toml"]))
}

pub fn doc() -> Outcome {
    sh::run(
        sh::cargo()
            .args(["doc", "--profile", sh::QUICK, "--workspace", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// Reasons of ignored tests that run in another test, in `cargo xtask ci`, or as a measurement.
const RUN_ELSEWHERE: [&str; 4] = [
    "ignored, run in a process of its own",
    "ignored, cargo xtask ci runs it",
    "ignored, cargo xtask fidelity runs it",
    "ignored, it measures times, and prints a table",
];

#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    /// As counted by the harness, with skipped tests.
    passed: u64,
    failed: u64,
    ignored: u64,
    elsewhere: u64,
    /// As `test: reason`.
    skipped: Vec<String>,
}

impl Tally {
    /// Parses `test result: ok. 15 passed; 0 failed; 1 ignored; ...`, `SKIPPED test: why`, and
    /// `test x ... ignored, why` with a reason of [`RUN_ELSEWHERE`]; ignores other lines.
    fn add(&mut self, line: &str) {
        // The harness may have started the line with the name of a test.
        if let Some((_, skipped)) = line.split_once(SKIPPED) {
            self.skipped.push(skipped.into());
        }
        self.elsewhere += u64::from(RUN_ELSEWHERE.iter().any(|why| line.ends_with(why)));
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let fields = result.split(['.', ';']).filter_map(|field| field.trim().split_once(' '));
        for (number, what) in fields {
            let number = number.parse().unwrap_or(0);
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    fn outcome(&self, ended_well: bool) -> Outcome {
        match self.skipped.first() {
            _ if !ended_well || self.failed > 0 => Err(Failure::failed("tests failed, see above")),
            Some(why) => Err(Failure::unable(why)),
            None => Ok(()),
        }
    }

    fn report(&self) {
        self.skipped.iter().for_each(|skipped| println!("skipped {skipped}"));
        println!("{self}");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped = self.skipped.len() as u64;
        let passed = self.passed.saturating_sub(skipped);
        write!(
            f,
            "{passed} passed, {} failed, {} skipped",
            self.failed,
            self.ignored - self.elsewhere.min(self.ignored) + skipped
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Binary, Tally};

    #[test]
    fn the_output_of_cargo_about_test_binaries_is_parsed() {
        let message = |test: bool, executable: &str| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"manifest_path\":\"/w/sim/Cargo.toml\",\"target\":{{\"kind\":[\"lib\"],\
                 \"name\":\"spray_sim\",\"test\":true}},\"profile\":{{\"opt_level\":\"3\",\"test\":{test}}},\
                 \"executable\":{executable},\"fresh\":true}}"
            )
        };
        let built = Binary::built(&message(true, "\"/w/target/quick/deps/spray_sim-1\"")).unwrap();
        assert_eq!((built.folder.to_str(), built.name.as_str()), (Some("/w/sim"), "spray_sim"));
        assert_eq!(built.executable.to_str(), Some("/w/target/quick/deps/spray_sim-1"));
        assert!(built.computes());
        // The same library for linking, a program, and the end.
        assert_eq!(Binary::built(&message(true, "null")), None);
        assert_eq!(Binary::built(&message(false, "\"/w/target/quick/spray\"")), None);
        assert_eq!(Binary::built("{\"reason\":\"build-finished\",\"success\":true}"), None);
    }

    #[test]
    fn tally_adds_result_lines_only() {
        let mut tally = Tally::default();
        tally.add("test result: ok. 15 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.04s");
        tally.add("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s");
        tally.add("test that_says_9_passed ... ok");
        tally.add("test confine::child ... ignored, run in a process of its own");
        assert_eq!(tally, Tally { passed: 18, failed: 2, ignored: 1, elsewhere: 1, skipped: vec![] });
        assert_eq!(tally.to_string(), "18 passed, 2 failed, 0 skipped");
    }

    #[test]
    fn a_skipped_test_has_not_passed() {
        let mut tally = Tally::default();
        tally.add("SKIPPED tests::one: needs root");
        tally.add("test tests::two ... SKIPPED tests::two: needs root");
        tally.add("test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.04s");
        assert_eq!(tally.skipped, ["tests::one: needs root", "tests::two: needs root"]);
        assert_eq!(tally.to_string(), "1 passed, 0 failed, 2 skipped");
    }
}
