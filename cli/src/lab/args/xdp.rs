//! Arguments of the laboratory's commands that send real packets.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use spray_experiments::switch::PortSpec;
use spray_tools::args::seconds;
use spray_tools::metrics::Publish;

use crate::lab::settings::Overrides;

#[derive(Debug, Args)]
pub struct Demo {
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Args)]
pub struct Compare {
    /// Scenario file, as created by `spray init`; `-` is standard input
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Args)]
pub struct Common {
    /// Folder for the results; by default in ./results/, named after the scenario and the time
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Random seed, overriding that of the scenario
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

#[derive(Debug, Args)]
pub struct Up {
    /// Scenario with the hosts, links and switches to set up; `-` is standard input. Without it,
    /// lists the fabrics that are running
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: Option<PathBuf>,
    /// Name of the fabric for the other commands; by default that of the scenario
    #[arg(long, value_name = "NAME")]
    pub name: Option<crate::lab::deployment::Name>,
    /// Use a container (podman or docker) or an existing network namespace as a host; may be
    /// repeated
    #[arg(long = "host", value_name = "HOST=container:NAME|NETNS|/PATH", requires = "scenario")]
    pub external_hosts: Vec<crate::lab::deployment::ExternalHost>,
    #[command(flatten)]
    pub overrides: Overrides,
    #[command(flatten)]
    pub publish: Publish,
    /// Run as the process that keeps the fabric
    #[arg(long, hide = true, requires = "scenario")]
    pub keep: bool,
}

#[derive(Debug, Args)]
pub struct Switch {
    #[command(flatten)]
    pub up: Up,
    /// Interface at which the cable of a host ends, one per host; `@NETNS` if it is in another
    /// network namespace. ADDRESS reserves an address for the host. With --node, one for each host
    /// and each switch that this switch is connected to
    #[arg(long = "port", value_name = "HOST=INTERFACE[@NETNS][,ADDRESS]", requires = "scenario")]
    pub ports: Vec<PortSpec>,
    /// Run only this switch; other machines run the others, at the far ends of its cables
    #[arg(long, value_name = "SWITCH", requires = "scenario")]
    pub node: Option<String>,
}

#[derive(Debug, Args)]
pub struct Down {
    /// Fabric to remove; by default the only one that is running, if you set it up
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub struct Shell {
    /// Host, as listed by `spray up`
    #[arg(value_name = "HOST")]
    pub host: String,
    /// Command to run instead of a shell; its exit code is returned
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<std::ffi::OsString>,
    /// Fabric; by default the only one that is running, if you set it up
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub struct Link {
    /// Links, named as in scenarios: `leaf0->spine1`, `leaf0-spine1` for both directions,
    /// `leaf*->spine*`, `spine1`; by default all
    #[arg(value_name = "LINKS")]
    pub links: Option<String>,
    /// New state, replacing the present one: `down` (routing reacts), `silent` (drops everything,
    /// routing does not react), `rate=25%` (of the nominal rate), `loss=1%`, `delay=2ms`,
    /// `jitter=1ms`, `reorder=1%`, `corrupt=1%`, `duplicate=1%`, or `up` for none of these
    #[arg(value_name = "CHANGE")]
    pub changes: Vec<crate::lab::deployment::Change>,
    /// Fabric; by default the only one that is running, if you set it up
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

#[derive(Debug, Args)]
pub struct BenchVeth {
    /// Payload bytes per packet
    #[arg(long, value_name = "N", default_value_t = 3000, value_parser = clap::value_parser!(u32).range(64..=3300))]
    pub payload: u32,
    /// Seconds per measurement
    #[arg(long, value_name = "S", default_value_t = 2.0, value_parser = seconds)]
    pub seconds: f64,
    /// Number of interleaved measurements of each kind
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=101))]
    pub repeat: u32,
    /// Restrict the measurements to these
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = PossibleValuesParser::new(crate::lab::bench::variants::VARIANTS.map(|(name, ..)| name)))]
    pub only: Vec<String>,
    /// Skip the round trips of small messages
    #[arg(long)]
    pub no_latency: bool,
}

#[derive(Debug, Args)]
pub struct BenchSwitch {
    /// Number of measurements of each kind
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=101))]
    pub repeat: u32,
}
