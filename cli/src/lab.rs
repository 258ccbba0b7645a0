//! The laboratory's commands: scenarios, comparisons, figures, deployed fabrics, benchmarks.

pub mod args;
mod bench;
mod campaign;
mod check;
#[cfg(feature = "xdp")]
mod clean;
#[cfg(feature = "xdp")]
mod compare;
#[cfg(feature = "xdp")]
mod demo;
#[cfg(feature = "xdp")]
mod deployment;
#[cfg(feature = "xdp")]
pub mod doctor;
mod engines;
mod explain;
mod figures;
mod folder;
mod init;
mod progress_display;
mod run;
mod runs;
mod settings;
mod sim;
mod trace;
mod wide_tables;

use spray_tools::failure::Outcome;

use self::args::{Experiments, Upkeep};

impl Experiments {
    pub fn run(&self) -> Outcome {
        match self {
            #[cfg(feature = "xdp")]
            Self::Demo(arguments) => demo::demo(arguments),
            Self::Init(arguments) => init::init(arguments),
            Self::Explain(arguments) => explain::explain(arguments),
            Self::Check(arguments) => check::check_files(arguments),
            Self::Run(arguments) => run::run(arguments),
            Self::Sim(arguments) => sim::sim(arguments),
            Self::Trace(arguments) => trace::trace(arguments),
            #[cfg(feature = "xdp")]
            Self::Compare(arguments) => compare::compare(arguments),
            Self::Figures(arguments) => figures::figures(arguments),
        }
    }
}

#[cfg(feature = "xdp")]
impl args::Deployment {
    pub fn run(&self) -> Outcome {
        match self {
            Self::Up(arguments) => deployment::up(arguments, None),
            Self::Switch(args::Switch { up, ports, node }) => {
                let node = node.as_deref();
                deployment::up(up, Some(spray_experiments::switch::ExternalInterfaces { ports, node }))
            }
            Self::Shell(arguments) => deployment::shell(arguments),
            Self::Link(arguments) => deployment::link(arguments),
            Self::Down(arguments) => deployment::down(arguments),
        }
    }
}

impl Upkeep {
    pub fn run(&self) -> Outcome {
        match self {
            #[cfg(feature = "xdp")]
            Self::Clean => clean::clean(),
            Self::Bench(bench) => bench::bench(bench),
        }
    }
}
