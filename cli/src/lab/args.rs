//! The command line of the laboratory.

#[cfg(feature = "xdp")]
mod xdp;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
#[cfg(target_os = "linux")]
use spray_benches::MAX_PAYLOAD_BYTES;
use spray_core::path::BalancerKind;
use spray_experiments::scenario;
use spray_tools::captures::Captures;
use spray_tools::metrics::Publish;

#[cfg(feature = "xdp")]
pub use self::xdp::*;
use crate::lab::runs::Part;
use crate::lab::settings::Overrides;
pub use crate::lab::sim::args::{Results, Seeds, Sim};

/// Commands that run scenarios and compare what comes out.
#[derive(Debug, Subcommand)]
pub enum Experiments {
    #[cfg(feature = "xdp")]
    /// Runs the demo: ECMP, OPS and REPS on healthy, slow and dead uplinks
    Demo(Demo),
    /// Writes a scenario to begin with
    Init(Init),
    /// Explains a scheme, a setting or a part of the model
    Explain(Explain),
    /// Runs a scenario, in the simulator or with real packets
    ///
    /// All its balancers, seeds and values of its axes; what is done in --out is not run again.
    #[command(visible_alias = "sweep")]
    Run(Sweep),
    /// Simulates a topology and a matrix with the published settings
    Sim(Box<Sim>),
    /// Writes the life of chosen flows' packets: docs/captures.md
    Trace(Box<Trace>),
    #[cfg(feature = "xdp")]
    /// Runs a scenario on both engines, and shows them side by side
    Compare(Compare),
    /// Runs a scenario with every balancer, in one table
    CompareBalancers(Run),
    /// Computes how fast a scenario could be at best, and how far each scheme of switches is from that on the simulator
    Bound(Bound),
    /// Runs the papers' figures, and compares their claims with our results
    Figures(Figures),
}

/// Commands about a deployed fabric.
#[cfg(feature = "xdp")]
#[derive(Debug, Subcommand)]
pub enum Deployment {
    /// Keeps a scenario's fabric running, for any program: docs/deployment.md
    Up(Up),
    /// Runs a scenario's switches between NICs of this machine
    ///
    /// Without a scenario it says what is up.
    Switch(Switch),
    /// Runs a shell, or a command, in a host of a deployed fabric
    Shell(Shell),
    /// Lists a deployed fabric's links, or has some fail, slow down or recover
    Link(Link),
    /// Removes a deployed fabric
    Down(Down),
}

/// Commands about this machine.
#[derive(Debug, Subcommand)]
pub enum Upkeep {
    #[cfg(feature = "xdp")]
    /// Removes what killed runs left: namespaces, links and programs
    Clean,
    /// Measures the transport or the simulator
    #[command(subcommand)]
    Bench(Bench),
}

#[derive(Debug, Args)]
pub struct Init {
    /// The file to make, of which none may exist; `-` is standard output
    #[arg(value_name = "SCENARIO.toml", default_value = "scenario.toml")]
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct Explain {
    /// What to explain: a name such as `reps`, `conga` or `queue.mark_min`; `settings`, `results` (files, measures and columns) or `schema` (the JSON
    /// Schema of scenarios); by default lists all names
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub struct Run {
    /// The scenario, as `spray init` makes one; `-` is standard input
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// The engine that runs it
    #[arg(long, value_enum, default_value_t = Engine::Xdp)]
    pub engine: Engine,
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub seeds: Seeds,
    #[command(flatten)]
    pub results: Results,
    #[command(flatten)]
    pub publish: Publish,
}

#[derive(Debug, Args)]
pub struct Sweep {
    #[command(flatten)]
    pub run: Run,
    /// Print the runs and which of them are done in --out, and run nothing
    #[arg(long)]
    pub plan: bool,
    /// Run only the I-th of N parts of the runs, so that N machines share them; the same command without it collects the results
    #[arg(long, value_name = "I/N", requires = "out", conflicts_with = "plan")]
    pub part: Option<Part>,
    #[command(flatten)]
    pub captures: Captures,
}

#[derive(Debug, Args)]
pub struct Trace {
    /// The scenario, as `spray init` makes one; `-` is standard input
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// The engine that runs it
    #[arg(long, value_enum, default_value_t = Engine::Xdp)]
    pub engine: Engine,
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub seeds: Seeds,
    /// The flows, by their numbers in the table `flows`: numbers, and ranges with both ends, as in 0..3,7
    #[arg(long, value_name = "A..B", default_value = "0", value_delimiter = ',', value_parser = flows)]
    pub flow: Vec<scenario::Seeds>,
    /// The file to write: Parquet or lines of JSON; `-` is lines of JSON on standard output
    #[arg(long, value_name = "FILE.parquet|FILE.jsonl|-")]
    pub out: PathBuf,
}

#[derive(Debug, Args)]
pub struct Figures {
    /// Only this one, as in reps/7, or one in a file of the same form; may be repeated. Without it all of them
    #[arg(long, value_name = "PAPER/NUMBER|FILE.toml")]
    pub figure: Vec<String>,
    /// Smaller runs: all figures within ten minutes on two cores
    #[arg(long)]
    pub quick: bool,
    /// Print their names and titles, and run nothing
    #[arg(long)]
    pub list: bool,
    /// Folder for the results, where runs that are done are not made again; by default in ./results/, with the time in its name
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run only the I-th of N parts of the runs, so that N machines share them; the same command without it collects the results
    #[arg(long, value_name = "I/N", requires = "out", conflicts_with_all = ["list", "markdown"])]
    pub part: Option<Part>,
    /// Most runs at the same time; by default one for each core
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Also write a document with the tables and statements: of the one figure that is named, or of all. A document of all keeps the figures that are not run; smaller runs replace none at full size
    #[arg(long, value_name = "FILE.md")]
    pub markdown: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Bound {
    /// The scenario, as `spray init` makes one; `-` is standard input
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub seeds: Seeds,
    #[command(flatten)]
    pub results: Results,
}

impl Engine {
    /// Its name, as results have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xdp => "xdp",
            Self::Sim => "sim",
        }
    }
}

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// Network namespaces and the XDP switch: real packets
    Xdp,
    /// The simulator: the same endpoints and switches under virtual time
    Sim,
}

#[derive(Debug, Subcommand)]
pub enum Bench {
    #[cfg(feature = "xdp")]
    /// One REPS connection over veth through the switch, against bare AF_XDP frames
    Veth(BenchVeth),
    /// The simulator: packet-hops a second and memory, for fabrics of growing size
    Sim(BenchSim),
    #[cfg(target_os = "linux")]
    /// Both ends of a connection over devices in memory: the cost of a packet, in parts, beside the targets
    Transport(BenchTransport),
    #[cfg(feature = "xdp")]
    /// The switch program: nanoseconds a switch by each scheme and hash, over a program that only redirects
    Switch(BenchSwitch),
}

#[derive(Debug, Args)]
pub struct BenchSim {
    /// Largest fabric: 128, 1024, 8192 or 65536 hosts; the largest needs some 5 GB
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(128..=65536))]
    pub hosts: u32,
    /// The balancer
    #[arg(long, value_name = "NAME", default_value_t = BalancerKind::Reps, value_parser = balancer)]
    pub balancer: BalancerKind,
    /// Number of threads, beside one
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: u64,
    /// Another simulator, timed beside this one: a command with `{topology}` for a .topo file and `{matrix}` for a .cm file
    #[arg(long, value_name = "COMMAND")]
    pub reference: Option<String>,
    /// Number of measurements of each fabric; those of more than 1024 hosts are run once
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=101))]
    pub repeat: u32,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
pub struct BenchTransport {
    /// Payload of a packet
    #[arg(long, value_name = "BYTES", default_value_t = 3400, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PAYLOAD_BYTES)))]
    pub payload: u32,
    /// Connections that send in turns
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,
    /// Packets for one ACK
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub ack_every: u32,
    /// Packets of each measurement
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub packets: u64,
    /// Number of measurements of each figure
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=101))]
    pub repeat: u32,
}

fn flows(text: &str) -> Result<scenario::Seeds, &'static str> {
    scenario::Seeds::parse(text).ok_or("expected N or A..B with the smaller end first, as in 0..3")
}

fn balancer(name: &str) -> Result<BalancerKind, String> {
    BalancerKind::named(name).ok_or_else(|| format!("expected one of {}", BalancerKind::names().join(", ")))
}
