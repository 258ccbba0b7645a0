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

#[cfg(feature = "xdp")]
pub use self::xdp::*;
use crate::lab::runs::Part;
use crate::lab::settings::Overrides;
pub use crate::lab::sim::args::{Results, Seeds, Sim};

#[derive(Debug, Subcommand)]
pub enum Experiments {
    #[cfg(feature = "xdp")]
    /// Run the demo: ECMP, OPS and REPS on healthy, slow and dead uplinks
    Demo(Demo),
    /// Write a first scenario
    Init(Init),
    /// Explain a scheme, a setting or a part of the model
    Explain(Explain),
    /// Check whether input files of this and other projects are read, and show what they contain
    Check(Check),
    /// Run a scenario, in the simulator or with real packets
    ///
    /// Runs all its balancers, seeds and values of its axes, except runs that are done in --out.
    #[command(visible_alias = "sweep")]
    Run(Run),
    /// Simulate a topology and a traffic matrix with the published settings
    Sim(Box<Sim>),
    /// Record the life of the packets of selected flows: docs/captures.md
    Trace(Box<Trace>),
    #[cfg(feature = "xdp")]
    /// Run a scenario on both engines, and show the results side by side
    Compare(Compare),
    /// Run the papers' figures, and compare their claims with our results
    Figures(Figures),
}

#[cfg(feature = "xdp")]
#[derive(Debug, Subcommand)]
pub enum Deployment {
    /// Keep the fabric of a scenario running, for any program: docs/deployment.md
    Up(Up),
    /// Run the switches of a scenario between NICs of this machine
    ///
    /// Without a scenario, lists what is running.
    Switch(Switch),
    /// Run a shell or a command in a host of a deployed fabric
    Shell(Shell),
    /// List the links of a deployed fabric, or change their state
    Link(Link),
    /// Remove a deployed fabric
    Down(Down),
}

#[derive(Debug, Subcommand)]
pub enum Upkeep {
    #[cfg(feature = "xdp")]
    /// Remove what killed runs left: namespaces, links and programs
    Clean,
    /// Measure the transport or the simulator
    #[command(subcommand)]
    Bench(Bench),
}

#[derive(Debug, Args)]
pub struct Init {
    /// File to create; must not exist; `-` is standard output
    #[arg(value_name = "SCENARIO.toml", default_value = "scenario.toml")]
    pub file: PathBuf,
}

#[derive(Debug, Args)]
pub struct Explain {
    /// Name to explain, such as `reps`, `conga` or `queue.mark_min`; or `settings`, `results`
    /// (files, measures and columns) or `schema` (the JSON Schema of scenarios); by default lists
    /// all names
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub struct Check {
    /// Scenarios, topologies (.topo), matrices (.cm), failure files, and distributions of sizes
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Run {
    /// Scenario file, as created by `spray init`; `-` is standard input
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Engine that runs it
    #[arg(long, value_enum, default_value_t = Engine::Xdp)]
    pub engine: Engine,
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub seeds: Seeds,
    #[command(flatten)]
    pub results: Results,
    /// Run every balancer, instead of those of the scenario
    #[arg(long, conflicts_with = "balancer")]
    pub every_balancer: bool,
    /// Print the runs and which of them are done in --out, without running any
    #[arg(long)]
    pub plan: bool,
    /// Run only the I-th of N parts of the runs, to share them among N machines; the same command
    /// without --part collects the results
    #[arg(long, value_name = "I/N", requires = "out", conflicts_with = "plan")]
    pub part: Option<Part>,
    #[command(flatten)]
    pub captures: Captures,
}

#[derive(Debug, Args)]
pub struct Trace {
    /// Scenario file, as created by `spray init`; `-` is standard input
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Engine that runs it
    #[arg(long, value_enum, default_value_t = Engine::Xdp)]
    pub engine: Engine,
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub seeds: Seeds,
    /// Flows, by their numbers in the table `flows`: numbers and inclusive ranges, as in 0..3,7
    #[arg(long, value_name = "A..B", default_value = "0", value_delimiter = ',', value_parser = flows)]
    pub flow: Vec<scenario::Seeds>,
    /// Output file: Parquet or JSON lines; `-` writes JSON lines to standard output
    #[arg(long, value_name = "FILE.parquet|FILE.jsonl|-")]
    pub out: PathBuf,
}

#[derive(Debug, Args)]
pub struct Figures {
    /// Figure to run, as in reps/7, or a file that describes one; may be repeated; by default all
    #[arg(long, value_name = "PAPER/NUMBER|FILE.toml")]
    pub figure: Vec<String>,
    /// Run a smaller version: all figures within ten minutes on two cores
    #[arg(long)]
    pub quick: bool,
    /// List names and titles, without running any
    #[arg(long)]
    pub list: bool,
    /// Folder for the results; runs that are done there are not repeated; by default in ./results/,
    /// with the time in its name
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run only the I-th of N parts of the runs, to share them among N machines; the same command
    /// without --part collects the results
    #[arg(long, value_name = "I/N", requires = "out", conflicts_with_all = ["list", "markdown"])]
    pub part: Option<Part>,
    /// Maximum number of concurrent runs; by default one per core
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Also write a document with the tables and statements of the named figure, or of all. A
    /// document of all keeps the figures that are not run; smaller runs do not replace results at
    /// full size
    #[arg(long, value_name = "FILE.md")]
    pub markdown: Option<PathBuf>,
}

impl Engine {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xdp => "xdp",
            Self::Sim => "sim",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// Network namespaces and the XDP switch: real packets
    Xdp,
    /// The simulator: the same endpoints and switches in virtual time
    Sim,
}

#[derive(Debug, Subcommand)]
pub enum Bench {
    #[cfg(feature = "xdp")]
    /// Compare one REPS connection over veth through the switch with bare AF_XDP frames
    Veth(BenchVeth),
    /// Measure the simulator: packet-hops per second and memory, for fabrics of growing size
    Sim(BenchSim),
    #[cfg(target_os = "linux")]
    /// Measure the cost of a packet at both ends of a connection over in-memory devices
    Transport(BenchTransport),
    #[cfg(feature = "xdp")]
    /// Measure the switch program: nanoseconds per switch of each scheme and hash, relative to a
    /// bare redirect
    Switch(BenchSwitch),
}

#[derive(Debug, Args)]
pub struct BenchSim {
    /// Largest fabric: 128, 1024, 8192 or 65536 hosts; the largest needs about 5 GB
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(128..=65536))]
    pub hosts: u32,
    /// Load balancer
    #[arg(long, value_name = "NAME", default_value_t = BalancerKind::Reps, value_parser = balancer)]
    pub balancer: BalancerKind,
    /// Number of threads of the multi-threaded measurement
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: u64,
    /// Number of measurements per fabric; fabrics of more than 1024 hosts are measured once
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=101))]
    pub repeat: u32,
}

#[cfg(target_os = "linux")]
#[derive(Debug, Args)]
pub struct BenchTransport {
    /// Payload of a packet, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 3400, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PAYLOAD_BYTES)))]
    pub payload: u32,
    /// Number of connections, which send in turns
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub connections: u32,
    /// Number of packets per ACK
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub ack_every: u32,
    /// Number of packets per measurement
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub packets: u64,
    /// Number of measurements per figure
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=101))]
    pub repeat: u32,
}

fn flows(text: &str) -> Result<scenario::Seeds, &'static str> {
    scenario::Seeds::parse(text).ok_or("expected N or A..B with the smaller end first, as in 0..3")
}

fn balancer(name: &str) -> Result<BalancerKind, String> {
    BalancerKind::named(name).ok_or_else(|| format!("expected one of {}", BalancerKind::names().join(", ")))
}
