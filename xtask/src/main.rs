//! Set-up, build, demo and tests, without anything but cargo and the standard library: `cargo xtask COMMAND`.

mod api;
mod ci;
mod demo;
mod dist;
mod ebpf;
mod field;
mod fuzz;
mod kernels;
mod nics;
mod outside;
mod portable;
mod programs;
mod prove;
mod setup;
mod sh;
mod steps;
mod test;
mod vm;

use std::path::Path;
use std::process::{Command, ExitCode};

use sh::{Failure, Outcome};

const USAGE: &str = "cargo xtask COMMAND

  demo [ARGUMENTS]    install what is missing, build everything, run `spray demo` (as root)
  test [--no-skips]   install what is missing, check formatting, build and run all tests; as root also those on network namespaces.
                      With --no-skips it installs what all tests need (half a gigabyte more), and a test that skips is a failure
  ci [--no-skips]     what `test` leaves out: clippy, docs, the builds without `xdp` and without `lab`, slow tests, tests of further
                      features, the XDP objects built anew and compared, a short demo, another kernel, emulated NICs
  setup               only check what must be installed, and install it (Debian or Ubuntu, as root)
  fuzz [TARGET].. [--seconds N]
                      the fuzz targets, guided by coverage, each for so long; says how many executions
  miri                the codec's and the transport's tests under Miri (a nightly with that component)
  deny                licences, sources and known vulnerabilities of all dependencies (cargo-deny)
  build-ebpf          build the XDP objects in the repository anew, after a change to a switch; installs the compiler and the linker
  build               set-up and a release `spray` with OpenTelemetry, which the demo's is without
  bench [ARGUMENTS]   the microbenchmarks, then `spray bench veth` (as root)
  fidelity            the simulator against every row of the reference, into docs/results/fidelity.md
  speed [ARGUMENTS]   `spray bench speed`: every benchmark of the command, with QUIC beside it (as root), into docs/results/speed.md
  real-network [ROUNDS [CONTENDER,... [CONDITION,... [QUEUE]]]]
                      transfers over plain Linux routers (as root); all of them go into docs/results/real-network.md
  results             the figure `ours/host-schemes` at full size, and what each decision costs, into docs/results/host-schemes.md
  search [CASES [SEED]]
                      draws scenarios, by default 500, and writes those in which `reps-plus` is furthest behind, made small, into target/search
  figures             the papers' figures at quick size into docs/results/papers.md, but for those that it has at full size
  kernels [VERSION].. boots Debian's kernels in QEMU, loads every program and runs the demo, into docs/results/kernels.md
  nics [NAME]..       `spray` on emulated NICs in QEMU (as root), into docs/results/nics.md; a NAME runs the rows that begin so
  programs [NAME]..   MPI, Prometheus, tables and whatever else people run, with `spray` (as root), into docs/results/programs.md
  field [REPORT]..    the tests that docs/results/field.md names, and how that of each report ended; a REPORT runs the rows that begin so
  dist                a static `spray` as tarball, Debian package and container image, into target/dist (as root)
  doc                 the documentation of all crates
  api                 the public names of the published crates, into nic/api.txt";

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
    let takes_arguments = matches!(
        command.as_str(),
        "demo"
            | "bench"
            | "ci"
            | "field"
            | "fuzz"
            | "kernels"
            | "nics"
            | "programs"
            | "real-network"
            | "search"
            | "speed"
            | "test"
    );
    if let (false, Some(extra)) = (takes_arguments, rest.first()) {
        return Err(Failure::unable(format!("`{command}` takes no arguments, got `{extra}`\n\n{USAGE}")));
    }
    sh::find_root()?;
    match command.as_str() {
        "demo" => demo::demo(rest),
        "test" => test::test(rest),
        "ci" => ci::ci(rest),
        "setup" => setup::setup(),
        "build-ebpf" => ebpf::build(),
        "build" => demo::build_all().map(|program| println!("{}", program.display())),
        "bench" => demo::bench(rest),
        "kernels" => kernels::kernels(rest),
        "nics" => nics::nics(rest),
        "programs" => programs::programs(rest),
        "field" => field::field(rest),
        "fuzz" => fuzz::fuzz(rest),
        "miri" => prove::miri(),
        "deny" => prove::deny(),
        "fidelity" => fidelity(),
        "speed" => demo::speed(rest),
        "results" => results(),
        "figures" => figures(),
        "real-network" => real_network(rest),
        "search" => search(rest),
        "dist" => dist::dist(),
        "doc" => test::doc(),
        "api" => api::write(),
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
    let (root, spray) = (sh::root(), demo::build()?);
    let document = root.join("docs/results/host-schemes.md");
    let mut command = Command::new(spray);
    command.args(["figures", "--figure", "ours/host-schemes", "--out"]).arg(root.join("target/figures"));
    sh::run(command.arg("--markdown").arg(&document))?;
    let costs = ["run", "--release", "--package", "spray-benches", "--example", "costs", "--"];
    let mut text = std::fs::read_to_string(&document).map_err(|error| Failure::of_file(&document, &error))?;
    let mut add = |line: &str| text.extend([line, "\n"]);
    sh::read_lines(sh::cargo().args(costs).arg(root.join("target/criterion")), &mut add)?;
    std::fs::write(&document, text).map_err(|error| Failure::of_file(&document, &error))
}

/// Runs the papers' figures at quick size, but for those that the document has at full size, and writes what comes out. Takes ten minutes.
fn figures() -> Outcome {
    let (root, spray) = (sh::root(), demo::build()?);
    let mut command = Command::new(spray);
    command.args(["figures", "--quick", "--out"]).arg(root.join("target/figures"));
    sh::run(command.arg("--markdown").arg(root.join("docs/results/papers.md")))
}

/// Compares the simulator with the published one and writes what comes out. Takes a minute or two.
fn fidelity() -> Outcome {
    let file = sh::root().join("docs/results/fidelity.md");
    let arguments = ["run", "--release", "--package", "spray-experiments", "--example", "fidelity", "--"];
    sh::run(sh::cargo().args(arguments).arg(&file))?;
    println!("{}", file.display());
    Ok(())
}

/// The argument at `place`, or what it is by default.
fn argument(arguments: &[String], place: usize, default: &str) -> String {
    arguments.get(place).map_or(default.into(), String::clone)
}

/// Looks for scenarios in which `reps-plus` is behind others. Takes some minutes for 500.
fn search(arguments: &[String]) -> Outcome {
    let mut command = sh::cargo();
    command.args(["run", "--release", "--package", "spray-experiments", "--example", "search", "--"]);
    command.arg(sh::root().join("target/search")).args([argument(arguments, 0, "500"), argument(arguments, 1, "1")]);
    sh::run(&mut command)
}

/// Transfers over plain Linux routers, and writes what comes out. Takes some minutes a round.
fn real_network(arguments: &[String]) -> Outcome {
    const CONTENDERS: &str = "ecmp,ops,reps,reps-plus,flowcut,mptcp,tcp,mptcp-kernel";
    const CONDITIONS: &str = "healthy,a spine,silent,withdrawn,1 %,jitter";
    let spray = demo::build()?;
    let rounds = argument(arguments, 0, "3");
    let (contenders, conditions) = (argument(arguments, 1, CONTENDERS), argument(arguments, 2, CONDITIONS));
    let table = transfers(&spray, &rounds, [&contenders, &conditions], &argument(arguments, 3, MARKED))?;
    if arguments.len() > 1 {
        return Ok(());
    }
    let mut unmarked = String::new();
    for (name, queue) in
        [("50 kB", "50000"), ("100 kB", "100000"), ("1 MB", "1000000"), ("250 kB, RED", "250000/60000")]
    {
        let contenders = ["reps,reps-plus,tcp,mptcp-kernel", "healthy,a spine,silent,1 %"];
        let table = transfers(&spray, &rounds, contenders, queue)?;
        unmarked += &format!("\n{name}:\n\n{table}");
    }
    let mut others = String::new();
    for (name, bytes, queue) in OTHER_NETWORKS {
        let contenders = ["reps-plus,tcp,bbr,mptcp-kernel", "healthy,a spine,silent,1 %"];
        let table = over_routers("real_network", &spray, &[bytes, OTHER_ROUNDS, contenders[0], contenders[1], queue])?;
        others += &format!("\n{name}:\n\n{table}");
    }
    let contenders = ["reps,reps-plus,flowcut,tcp,mptcp-kernel", MEDDLED];
    let meddled = transfers(&spray, &rounds, contenders, MARKED)?;
    let beside = over_routers("fairness", &spray, &[TRANSFER_BYTES, BESIDE_ROUNDS, BESIDE_QUEUES, "all"])?;
    let file = sh::root().join("docs/results/real-network.md");
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let linux = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let machine = format!(
        "There were {rounds} rounds, on Linux {}; {cpus} CPUs ran the hosts and the routers.\n\n",
        linux.trim()
    );
    let text = format!(
        "{REAL_NETWORK}{machine}{table}{UNMARKED}{unmarked}{OTHERS}{others}{MEDDLING}{meddled}{BESIDE}{beside}"
    );
    std::fs::write(&file, text).map_err(|error| Failure::failed(error.to_string()))?;
    println!("{}", file.display());
    Ok(())
}

/// Makes transfers over plain Linux routers; returns the table of their rates.
/// A queue is its bytes, and those from which it marks.
fn transfers(spray: &Path, rounds: &str, [contenders, conditions]: [&str; 2], queue: &str) -> Result<String, Failure> {
    over_routers("real_network", spray, &[TRANSFER_BYTES, rounds, contenders, conditions, queue])
}

/// Runs an example of `spray-tests` that makes transfers over plain Linux routers; returns what it prints.
fn over_routers(example: &str, spray: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let mut command = sh::cargo();
    command
        .args(["run", "--release", "--package", "spray-tests", "--example", example, "--"])
        .arg(spray)
        .args(arguments);
    let mut table = String::new();
    match sh::run_lines(&mut command, |line| table += &format!("{line}\n"))? {
        true => Ok(table),
        false => Err(Failure::failed("the transfers could not be made")),
    }
}

/// Bytes of a transfer.
const TRANSFER_BYTES: &str = "64000000";
/// Rounds of transfers beside others, which take long, and queues of the routers.
const BESIDE_ROUNDS: &str = "1";
const BESIDE_QUEUES: &str = "marked,100 kB,1 MB";
/// The queues of routers: they mark long before they are full.
const MARKED: &str = "250000:60000";

const UNMARKED: &str = "
## Networks that do not mark

The same routers, which drop what does not fit and mark nothing, by what a queue holds: 4, 8 and 80 ms at a spine's rate. With RED, frames are dropped from an average of 60 kB on. `spray send` takes a packet that was late for a marked one there (CAL-7, CAL-8).
";

/// Rounds on other networks; their names, bytes of a transfer, and the queues of routers.
const OTHER_ROUNDS: &str = "1";
const OTHER_NETWORKS: [(&str, &str, &str); 3] = [
    ("200 Mb/s a spine, 250 kB, marked", "128000000", "250000:60000@200"),
    ("200 Mb/s a spine, 1 MB, not marked", "128000000", "1000000@200"),
    ("100 Mb/s a spine, 5 ms more, 62.5 kB (1 BDP), not marked", "64000000", "62500@100+5"),
];

const OTHERS: &str = "
## Other rates and round-trip times

The same routers at other rates, some with round trips that take longer by a fixed time: a program holds what the sending host sends. A cell is of one round. `tcp` is CUBIC.
`nic/tests/plain_network.rs` asserts the shares that transfers reach on a model of such routers, for round-trip times of 0.1 to 20 ms, queues of one and five bandwidth-delay products, and
with and without marks: 93 % of what is left up to 1 ms, 90 % at 5 ms, 88 % at 20 ms.
";

/// Conditions by what middle boxes do to frames.
const MEDDLED: &str = "short,a firewall,policers,bursts,2 %,ECN,marks,one way,rerouted,a far";

const MEDDLING: &str = "
## Paths and boxes that meddle

The marking routers again. *Short frames only*: one spine silently drops frames above 1,000 bytes, as where an MTU is smaller than it says. *A
firewall* drops UDP from every fourth source port, on every spine. *Policers* drop what exceeds 100 Mb/s by more than 50 kB, in place of queueing. *Bursts of loss*: every
uplink loses everything for 2 ms of 100. *2 % twice*: so many frames are duplicated. *ECN cleared*: one spine clears DSCP and ECN, so that it never seems full. *Marks on every frame*: one always seems full. *One way back*: all ACKs
return over one spine. *Rerouted*: five times a second every five-tuple gets another spine. *A far spine*: its round trips take 10 ms more. `-`: unfinished after 30 s.

No transfer passes a box that gives datagrams other ports or addresses (NAT): checksums and seals of the headers cover both, and acknowledgements go to a fixed port.

TCP, which sends in bursts, loses most of each at a policer and waits for its timer.

";

const BESIDE: &str = "
## Beside TCP

Transfers beside eight connections of the kernel's TCP that send all the time, two over each spine. `spray send` transfers, or in its place four connections of
CUBIC, one over each spine. Rows are what a queue holds. A cell is of one round. It has the goodput of the transfer (`-`: unfinished after 30 s); the sum of the eight
during it, and before; what the connection with the least has, in fair shares; Jain's index. A fair share is the same for every connection. `spray send` is one of nine; four
of CUBIC are four of twelve. A cell is **bold** where a connection has less than half of a fair share.

Beside TCP that keeps queues full, marks and delay tell nothing, and `spray send` goes by losses (CAL-9). New connections of CUBIC take far more in
the first second: their start overflows the queues, and the older ones give way. BBR does not give way to losses. A queue of 100 kB that it keeps full loses up to one packet in four, and little passes beside it.

The second table has two transfers of `spray send` at once, 128 MB each, from two interfaces of the sending host: the rates of their packets while both go, and Jain's
index. In its second column the second one's round trips take 5 ms more, several times what the first one's take. `dctcp` adds a packet a round trip, as TCP does: who has
the longer one gets less.

The third table has what others wait for: datagrams of 64 bytes, spread over all spines, one each 2 ms during the middle half of a transfer of 128 MB. Half of them arrive
within the first figure, in ms one way, 99 % within the second; the third is the share that is lost. `tcp` loads one spine of four.

";

const REAL_NETWORK: &str = "# Over plain Linux routers

Made by `cargo xtask real-network`: two hosts, two leaves and four spines in namespaces, all of them plain Linux routers. The kernel
chooses a spine by a hash of the five-tuple and shapes every uplink to 100 Mb/s (`tbf`, 250 kB); a BPF program marks frames by a virtual
queue of that rate above 60 kB. Nothing of ours is between the hosts, and nobody tells `spray` what the path is. 64 MB a transfer, goodput in
Mb/s: the median of the rounds, which are interleaved, and the least and the most. `tcp` and `mptcp-kernel` are the kernel's (MPTCP with eight
addresses); all others are balancers of `spray send`. `-`: unfinished after 30 s.

`reps-plus`, the default, is to reach 85 % of what can be had, and under the conditions of *Paths and boxes that meddle* 60 %, and nowhere to be more than 3 %
behind the best of the others: rounds differ by so much. Where it misses that, its figure is **bold**.

";
