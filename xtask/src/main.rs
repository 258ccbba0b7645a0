//! Set-up, build, demo and tests, without anything but cargo and the standard library: `cargo xtask COMMAND`.

mod ci;
mod demo;
mod ebpf;
mod kernels;
mod portable;
mod setup;
mod sh;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use sh::{Failure, Outcome};

const USAGE: &str = "cargo xtask COMMAND

  demo [ARGUMENTS]    install what is missing, build everything, run `spray demo` (as root)
  test                set-up, formatting, clippy, docs, all tests; as root also those on network namespaces
  ci                  test, then a short demo
  setup               only check what must be installed, and install it (Debian or Ubuntu, as root)
  build-ebpf          only build the XDP programs
  build               set-up, XDP programs and a release `spray`
  bench [ARGUMENTS]   the microbenchmarks, then `spray bench veth` (as root)
  fidelity            the simulator against every row of the reference, into docs/results/fidelity.md
  results             all balancers under all conditions, and what each decision costs, into docs/results/host-schemes.md
  kernels [VERSION].. boots Debian's kernels in QEMU, loads every program and runs the demo, into docs/results/kernels.md
  doc                 the documentation of all crates";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { message, code }) => {
            eprintln!("error: {message}");
            ExitCode::from(code)
        }
    }
}

fn dispatch(arguments: &[String]) -> Outcome {
    let (command, rest) = arguments.split_first().ok_or_else(|| Failure::unable(format!("which task?\n\n{USAGE}")))?;
    let takes_arguments = matches!(command.as_str(), "demo" | "bench" | "kernels");
    if let (false, Some(extra)) = (takes_arguments, rest.first()) {
        return Err(Failure::unable(format!("`{command}` takes no arguments, got `{extra}`\n\n{USAGE}")));
    }
    match command.as_str() {
        "demo" => demo::demo(rest),
        "test" => test::test(),
        "ci" => ci::ci(),
        "setup" => setup::setup(true).map(drop),
        "build-ebpf" => ebpf::build(),
        "build" => demo::build().map(|program| println!("{}", program.display())),
        "bench" => demo::bench(rest),
        "kernels" => kernels::kernels(rest),
        "fidelity" => fidelity(),
        "results" => results(),
        "doc" => test::doc(),
        "help" | "-h" | "--help" => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(Failure::unable(format!("there is no task `{other}`\n\n{USAGE}"))),
    }
}

/// Compares all balancers and measures their decisions, and writes what comes out. Takes some minutes.
fn results() -> Outcome {
    let benches = ["bench", "--package", "spray-benches", "--bench", "path", "--bench", "cc", "--", "--noplot"];
    sh::run(sh::cargo().args(benches))?;
    write("host_schemes", "host-schemes.md", &[sh::root().join("target/criterion")])
}

/// Compares the simulator with the published one and writes what comes out. Takes a minute or two.
fn fidelity() -> Outcome {
    write("fidelity", "fidelity.md", &[])
}

/// Runs an example of `spray-experiments`, which writes the document of that name; `rest` are further arguments.
fn write(example: &str, document: &str, rest: &[PathBuf]) -> Outcome {
    let file = sh::root().join("docs/results").join(document);
    let arguments = ["run", "--release", "--package", "spray-experiments", "--example", example, "--"];
    sh::run(sh::cargo().args(arguments).arg(&file).args(rest))?;
    println!("{}", file.display());
    Ok(())
}
