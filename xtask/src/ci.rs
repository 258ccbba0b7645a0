use crate::sh::{self, Failure, Outcome};
use crate::steps::{self, Steps};
use crate::{api, demo, downstream, ebpf, fuzz, kernels, nics, portable, prove, setup, test};

/// `cargo xtask ci [--no-skips]`: every check that `cargo xtask test` omits.
pub fn ci(arguments: &[String]) -> Outcome {
    steps::timed(steps::reads_no_skips(arguments)?, run)
}

fn run(steps: &mut Steps) -> Outcome {
    steps.run("set-up", setup::setup)?;
    steps.run("clippy", lint)?;
    steps.run("documentation", test::doc)?;
    steps.run("public API of the default features", api::check)?;
    steps.run("without the feature `xdp`, and without `lab`", portable::check)?;
    steps.run("`spray-nic` from its packages, in a project outside the tree", downstream::check)?;
    steps.run("slow tests", test::slow)?;
    steps.run_where_possible("transfers while everything fails", test::chaos)?;
    steps.run_where_possible("XDP objects built anew and compared", ebpf::compare)?;
    steps.run_where_possible("a short demo", short_demo)?;
    steps.run_where_possible("another kernel", kernels::one_other)?;
    steps.run_where_possible("emulated NICs", nics::two)?;
    // Per target.
    steps.run("a minute of fuzzing", || fuzz::fuzz(&["--seconds", "8"].map(String::from)))?;
    // Optional even with `--no-skips`, as they are not part of a Rust system; the report lists
    // them.
    steps.run_where_installed("spelling", prove::spelling)?;
    steps.run_where_installed("clippy of `benches/peers`", peers)?;
    steps.run_where_installed("the codec under Miri", prove::miri_codec)?;
    // Slow to build, and its database is not available everywhere. A test checks the rest offline.
    steps.run_where_installed("advisories, and licences by their texts", prove::deny)
}

fn lint() -> Outcome {
    let all = ["clippy", "--profile", sh::QUICK, "--workspace", "--all-targets"];
    sh::run(sh::cargo().args(all).args(["--", "-D", "warnings"]))
}

/// Lints `benches/peers`, a separate workspace.
fn peers() -> Outcome {
    if sh::run(sh::cargo().args(["fetch", "--locked", "--manifest-path", demo::PEERS])).is_err() {
        return Err(Failure::unable("its crates cannot be fetched here"));
    }
    sh::run(sh::cargo().args(["clippy", "--locked", "--manifest-path", demo::PEERS, "--", "-D", "warnings"]))
}

fn short_demo() -> Outcome {
    demo::demo(&["--set", "workload.bytes=1000000"].map(String::from)).map_err(|failure| match failure.code {
        // `spray demo` also ends with 2 on wrong usage, which is no reason to skip.
        2 if sh::is_root() => Failure::failed(failure.message),
        _ => failure,
    })
}
