//! Coverage-guided fuzzing of the targets in `fuzz/` with libFuzzer and the stable compiler.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::sh::{self, Failure, Outcome};

/// As in `spray_fuzz::TARGETS`.
const TARGETS: [&str; 10] =
    ["frame", "codec", "switch", "topology", "matrix", "failures", "sizes", "scenario", "endpoint", "messages"];
const SECONDS: u64 = 60;
/// Instrumentation of edges and comparisons; safe code needs no address sanitizer.
const FLAGS: [&str; 9] = [
    "--cfg",
    "fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Ccodegen-units=1",
];

/// `cargo xtask fuzz [TARGET] [--seconds N]`: runs one target or all. With `--into FOLDER` only
/// puts a program per target there, for continuous fuzzing (`.clusterfuzzlite`).
pub fn fuzz(arguments: &[String]) -> Outcome {
    if let [flag, folder] = arguments
        && flag == "--into"
    {
        return put_into(Path::new(folder));
    }
    let (targets, seconds) = read(arguments)?;
    let program = build()?;
    let mut failed = Vec::new();
    for target in targets {
        if !run(&program, target, seconds)? {
            failed.push(target);
        }
    }
    match failed.as_slice() {
        [] => Ok(()),
        names => Err(Failure::failed(format!("{}: see target/fuzz/found/", names.join(", ")))),
    }
}

/// Copies the program once per target; each copy runs the target in its name.
fn put_into(folder: &Path) -> Outcome {
    let program = build()?;
    TARGETS.iter().try_for_each(|target| {
        let copy = folder.join(target);
        fs::copy(&program, &copy).map(drop).map_err(|error| Failure::of_file(&copy, &error))
    })
}

fn read(arguments: &[String]) -> Outcome<(Vec<&'static str>, u64)> {
    let (mut targets, mut seconds) = (Vec::new(), SECONDS);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--seconds" {
            let number = arguments.next().and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0);
            seconds = number.ok_or_else(|| Failure::unable("`--seconds` takes an integer, at least 1"))?;
            continue;
        }
        let known = TARGETS.into_iter().find(|target| target == argument);
        targets.push(
            known.ok_or_else(|| {
                Failure::unable(format!("unknown target `{argument}`; allowed: {}", TARGETS.join(", ")))
            })?,
        );
    }
    Ok((if targets.is_empty() { TARGETS.to_vec() } else { targets }, seconds))
}

fn build() -> Outcome<std::path::PathBuf> {
    let host = sh::capture("rustc", &["-vV"]).unwrap_or_default();
    let host =
        host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or("x86_64-unknown-linux-gnu").to_owned();
    let folder = sh::root().join("target/fuzz");
    let mut cargo = sh::cargo();
    // An explicit target keeps the flags away from build scripts and macros.
    cargo.args(["build", "--profile", sh::QUICK, "--package", "spray-fuzz", "--bin", "guided", "--features", "guided"]);
    cargo.args(["--target", &host, "--target-dir"]).arg(&folder);
    // Set by OSS-Fuzz and ClusterFuzzLite, with a nightly compiler.
    let sanitizer = std::env::var("SANITIZER").ok().filter(|sanitizer| sanitizer == "address");
    let sanitizer = sanitizer.map(|sanitizer| format!("-Zsanitizer={sanitizer}"));
    let flags: Vec<&str> = FLAGS.into_iter().chain(sanitizer.as_deref()).collect();
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    sh::run(&mut cargo)?;
    Ok(folder.join(host).join(sh::QUICK).join("guided"))
}

/// Runs a target from its corpus and the inputs of earlier runs. Returns whether it passed.
fn run(program: &Path, target: &str, seconds: u64) -> Outcome<bool> {
    let root = sh::root();
    let (grown, found) = (root.join("target/fuzz/corpus").join(target), root.join("target/fuzz/found"));
    for folder in [&grown, &found] {
        fs::create_dir_all(folder).map_err(|error| Failure::of_file(folder, &error))?;
    }
    let mut command = Command::new(program);
    command.env("SPRAY_FUZZ_TARGET", target).arg(&grown).arg(root.join("fuzz/corpus").join(target));
    command.arg(format!("-max_total_time={seconds}")).arg(format!("-artifact_prefix={}/{target}-", found.display()));
    command.args(["-timeout=20", "-rss_limit_mb=4096", "-max_len=8192", "-print_final_stats=1", "-verbosity=0"]);
    println!("{target}: {seconds} s");
    let status = command.stderr(std::process::Stdio::piped()).spawn().and_then(std::process::Child::wait_with_output);
    let output = status.map_err(|error| Failure::of_file(program, &error))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let executions = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    println!("{target}: {} executions", executions.unwrap_or("an unknown number of").trim());
    if !output.status.success() {
        eprintln!("{text}");
    }
    Ok(output.status.success())
}
