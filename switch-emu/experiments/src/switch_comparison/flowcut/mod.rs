//! Flowcut's figures 8 to 14: its variants against flowlets, spraying, MP-RDMA, UGAL and Valiant (Flowcut §III-C).
//!
//! `cargo xtask results` writes them to `docs/results/switch-schemes.md`.

mod checks;
mod figures;
mod report;

use std::fmt;

use spray_core::cc::CcKind;
use spray_core::path::BalancerKind;
use spray_fabric::{Scheme, Switching};

pub use checks::{Check, Metric, Statement, Verdict};
pub use figures::{FIGURES, Figure};
pub use report::{HEADING, markdown};

use crate::results::Summary;
use crate::scenario::Scenario;
use crate::sim::{Simulation, over_cores};

/// What the paper compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// One path for each flow.
    Ecmp,
    /// A random path for each packet, chosen by switches.
    Spraying,
    /// Flowlets at the gap that does best with at most so many per cent of the packets out of order.
    Flowlet {
        /// Per cent.
        most_reordered: u32,
    },
    /// MP-RDMA's choice of paths and its congestion control.
    MpRdma,
    /// Flowcut in NICs.
    FlowcutNic,
    /// Flowcut in the switches that have hosts.
    FlowcutIngress,
    /// Flowcut in every switch.
    FlowcutSwitch,
    /// The shortest way or a detour, by queues, for each packet.
    Ugal,
    /// A detour for each packet.
    Valiant,
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ecmp => f.write_str("ECMP"),
            Self::Spraying => f.write_str("Spraying"),
            Self::Flowlet { most_reordered } => write!(f, "Flowlet, at most {most_reordered} % out of order"),
            Self::MpRdma => f.write_str("MP-RDMA"),
            Self::FlowcutNic => f.write_str("Flowcut, NIC only"),
            Self::FlowcutIngress => f.write_str("Flowcut, ingress only"),
            Self::FlowcutSwitch => f.write_str("Flowcut, full switch"),
            Self::Ugal => f.write_str("UGAL"),
            Self::Valiant => f.write_str("Valiant"),
        }
    }
}

impl Contender {
    /// Whether it is a variant of Flowcut.
    pub const fn is_flowcut(self) -> bool {
        matches!(self, Self::FlowcutNic | Self::FlowcutIngress | Self::FlowcutSwitch)
    }
}

/// Pauses that end a flowlet, in us, of which the best is taken.
pub const GAPS_US: [f64; 11] = [0.25, 0.5, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 16.0, 32.0];

/// What hosts and switches run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// At the hosts.
    pub balancer: BalancerKind,
    /// In the switches.
    pub scheme: Scheme,
    /// Congestion control.
    pub cc: CcKind,
    /// The pause that ends a flowlet, where there are flowlets.
    pub gap_us: Option<f64>,
}

impl Contender {
    /// The settings that it may have: one, or one for each gap.
    fn settings(self) -> Vec<Setting> {
        let plain =
            Setting { balancer: BalancerKind::Ecmp, scheme: Scheme::Ecmp, cc: CcKind::FixedWindow, gap_us: None };
        let switch = |scheme| vec![Setting { scheme, ..plain }];
        match self {
            Self::Ecmp => vec![plain],
            Self::Spraying => switch(Scheme::Random),
            Self::Flowlet { .. } => {
                GAPS_US.map(|gap| Setting { scheme: Scheme::LetFlow, gap_us: Some(gap), ..plain }).to_vec()
            }
            Self::MpRdma => vec![Setting { balancer: BalancerKind::Mprdma, cc: CcKind::Dctcp, ..plain }],
            Self::FlowcutNic => vec![Setting { balancer: BalancerKind::Flowcut, ..plain }],
            Self::FlowcutIngress => switch(Scheme::FlowcutIngress),
            Self::FlowcutSwitch => switch(Scheme::FlowcutSwitch),
            Self::Ugal => switch(Scheme::Ugal),
            Self::Valiant => switch(Scheme::Valiant),
        }
    }
}

impl Setting {
    fn run(&self, scenario: &Scenario, seed: u64) -> Result<Summary, String> {
        let mut scenario = scenario.clone();
        let gap_ps = self.gap_us.map_or(0, |gap| (gap * 1e6) as u64);
        scenario.network.switching = Switching { flowlet_gap_ps: gap_ps, ..Switching::all(self.scheme) };
        scenario.transport.cc = self.cc;
        let run = Simulation::new(&scenario).run(self.balancer, seed, &[]);
        run.map(|result| result.summary()).map_err(|error| format!("{}, {self:?}: {error}", scenario.name))
    }
}

/// A contender's runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which.
    pub contender: Contender,
    /// How it ran.
    pub setting: Setting,
    /// One for each seed.
    pub runs: Vec<Summary>,
}

impl Row {
    /// A figure's mean over the seeds.
    pub fn mean(&self, metric: Metric) -> f64 {
        self.runs.iter().map(|run| metric.of(run)).sum::<f64>() / self.runs.len() as f64
    }

    /// Whether every message arrived.
    pub fn is_complete(&self) -> bool {
        self.runs.iter().all(Summary::is_complete)
    }
}

impl Figure {
    /// Runs every contender with each seed, on `threads` threads; a row for each, in order.
    ///
    /// # Errors
    /// What the simulator refuses.
    pub fn run(&self, threads: usize) -> Result<Vec<Row>, String> {
        let scenario = self.scenario();
        let mut settings: Vec<Setting> = Vec::new();
        for setting in self.contenders.iter().flat_map(|contender| contender.settings()) {
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
        let seeds = self.seeds as usize;
        let one = |job: usize| settings[job / seeds].run(&scenario, job as u64 % self.seeds + 1);
        let runs = over_cores(settings.len() * seeds, threads, one)?;
        let of = |setting: &Setting| {
            let place = settings.iter().position(|other| other == setting).unwrap_or_default();
            runs[place * seeds..(place + 1) * seeds].to_vec()
        };
        Ok(self.contenders.iter().filter_map(|contender| self.best(*contender, &of)).collect())
    }

    /// The contender's run; of flowlets the best one whose gap reorders no more than it may.
    fn best(&self, contender: Contender, of: &dyn Fn(&Setting) -> Vec<Summary>) -> Option<Row> {
        let rows = contender.settings().into_iter().map(|setting| Row { contender, setting, runs: of(&setting) });
        let may = |row: &Row| match contender {
            Contender::Flowlet { most_reordered } => row.mean(Metric::Unexpected) <= f64::from(most_reordered),
            _ => true,
        };
        rows.filter(may).min_by(|a, b| a.mean(self.metric).total_cmp(&b.mean(self.metric)))
    }
}

#[cfg(test)]
mod tests;
