//! Tasks of the project, with only cargo and the standard library: `cargo xtask COMMAND`.

mod api;
mod ci;
mod demo;
mod dist;
mod downstream;
mod ebpf;
mod fuzz;
mod kernels;
mod nics;
mod portable;
mod programs;
mod prove;
mod real_network;
mod setup;
mod sh;
mod steps;
mod test;
mod vm;

use std::process::{Command, ExitCode};

use sh::{Failure, Outcome};

const USAGE: &str = "cargo xtask COMMAND

demo [ARGUMENTS]    install missing packages, build everything, run `spray demo` (as root)
test [--no-skips]   install missing packages, check formatting, build and run all tests; as root also those on network namespaces.
                    With --no-skips install what all tests need (half a gigabyte more), and fail if a test skips
ci [--no-skips]     all other checks: clippy, docs, the builds without `xdp` and without `lab`, slow tests, tests of further
                    features, rebuilt XDP objects compared, a short demo, another kernel, emulated NICs, spelling
setup               only check required packages, and install missing ones (Debian or Ubuntu, as root)
fuzz [TARGET].. [--seconds N]
                    run coverage-guided fuzz targets, each for N seconds
miri                run tests of the codec and the transport under Miri (a nightly with that component)
deny                check licences, sources and known vulnerabilities of all dependencies (cargo-deny)
build-ebpf          rebuild the XDP objects in the repository after a change to a switch; installs the compiler and the linker
build               set up the machine and build a release `spray`
bench               run the microbenchmarks, each `spray bench`, and UDP, TCP and QUIC over veth (as root)
fidelity            compare the simulator with every row of the reference, into docs/results/fidelity.md
real-network [ROUNDS [CONTENDER,... [CONDITION,... [QUEUE]]]]
                    measure transfers over plain Linux routers (as root); a full run goes into docs/results/real-network.md
inputs FOLDER       check the input files of other projects in FOLDER/OWNER+NAME, into docs/results/inputs.md
results             run the figure `ours/host-schemes` at full size, and measure the cost of decisions, into docs/results/host-schemes.md
figures             run the papers' figures at quick size into docs/results/papers.md, except those it has at full size
kernels [VERSION].. boot Debian's kernels in QEMU, load every program and run the demo, into docs/results/kernels.md
nics [NAME]..       run `spray` on emulated NICs in QEMU (as root), into docs/results/nics.md; NAME selects rows by prefix
programs [NAME]..   run third-party programs (MPI, Prometheus and others) with `spray` (as root), into docs/results/programs.md
dist                build a static `spray` as tarball, Debian package and container image, into target/dist (as root)
doc                 build the documentation of all crates
api                 write the public names of the published crates into nic/api.txt";

fn main() -> ExitCode {
    if let Some(code) = ebpf::as_rustc() {
        return code;
    }
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
    sh::find_root()?;
    // The remaining tasks take no arguments.
    let task: fn() -> Outcome = match command.as_str() {
        "demo" => return demo::demo(rest),
        "test" => return test::test(rest),
        "ci" => return ci::ci(rest),
        "kernels" => return kernels::kernels(rest),
        "nics" => return nics::nics(rest),
        "programs" => return programs::programs(rest),
        "fuzz" => return fuzz::fuzz(rest),
        "real-network" => return real_network::real_network(rest),
        "inputs" => return inputs(rest),
        "setup" => setup::setup,
        "build-ebpf" => ebpf::build,
        "build" => || demo::build().map(|program| println!("{}", program.display())),
        "bench" => demo::bench,
        "miri" => prove::miri,
        "deny" => prove::deny,
        "fidelity" => fidelity,
        "results" => results,
        "figures" => figures,
        "dist" => dist::dist,
        "doc" => test::doc,
        "api" => api::write,
        "help" | "-h" | "--help" => {
            println!("{USAGE}");
            return Ok(());
        }
        other => return Err(Failure::unable(format!("unknown task `{other}`\n\n{USAGE}"))),
    };
    match rest.first() {
        Some(extra) => Err(Failure::unable(format!("`{command}` takes no arguments, got `{extra}`\n\n{USAGE}"))),
        None => task(),
    }
}

/// Compares all balancers, measures their decisions, and writes the document. Takes some minutes.
fn results() -> Outcome {
    let benches = ["bench", "--package", "spray-benches", "--bench", "path", "--bench", "cc", "--", "--noplot"];
    sh::run(sh::cargo().args(benches))?;
    let (root, spray) = (sh::root(), demo::build()?);
    let document = root.join("docs/results/host-schemes.md");
    let mut command = Command::new(spray);
    command.args(["figures", "--figure", "ours/host-schemes", "--out"]).arg(root.join("target/figures"));
    sh::run(command.arg("--markdown").arg(&document))?;
    let costs = ["run", "--release", "--package", "spray-benches", "--example", "costs", "--"];
    let mut text = sh::read_text(&document)?;
    let mut add = |line: &str| text.extend([line, "\n"]);
    sh::read_lines(sh::cargo().args(costs).arg(root.join("target/criterion")), &mut add)?;
    sh::write(&document, text)
}

/// Runs the papers' figures at quick size, except those the document has at full size: ten minutes.
fn figures() -> Outcome {
    let (root, spray) = (sh::root(), demo::build()?);
    let mut command = Command::new(spray);
    command.args(["figures", "--quick", "--out"]).arg(root.join("target/figures"));
    sh::run(command.arg("--markdown").arg(root.join("docs/results/papers.md")))
}

/// Compares the simulator with the published ones, which takes a minute or two.
/// `cargo xtask inputs FOLDER`: the table of `docs/results/inputs.md`.
fn inputs(arguments: &[String]) -> Outcome {
    let [folder] = arguments else { return Err(Failure::unable("which folder of repositories, each OWNER+NAME?")) };
    let example =
        ["run", "--profile", sh::QUICK, "--package", "spray-experiments", "--example", "inputs", "--", folder];
    let mut table = String::new();
    match sh::run_lines(sh::cargo().args(example), |line| table += &format!("{line}\n"))? {
        true => sh::fill("docs/results/inputs.md", "files", &table),
        false => Err(Failure::failed("the files cannot be checked")),
    }
}

fn fidelity() -> Outcome {
    let test = ["test", "--release", "--package", "spray-experiments", "--test", "scenarios", "--"];
    sh::run(sh::cargo().args(test).args(["--ignored", "--exact", "--nocapture", "fidelity::document"]))
}
