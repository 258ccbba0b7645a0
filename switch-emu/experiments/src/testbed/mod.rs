//! The `xdp` engine: a fabric on this machine, in network namespaces.
//!
//! Every host is a namespace with an AF_XDP socket on one end of a veth pair; the other ends are in the namespace of a
//! chassis, where the XDP program plays the switches. [`Testbed::new`] sets it up, [`Testbed::run`] runs a scenario on
//! it as often as wanted, dropping it removes everything. [`clean`] removes what killed processes left behind.
//!
//! Scenario time 0 is [`LEAD_IN`] of real time after the hosts' clocks start: connections are set up before it. Inside,
//! all virtual times are that much later, in the programs' tables as well; results are in scenario time.

mod calibrate;
mod collect;
mod drive;
mod error;
mod hosts;
mod links;
mod netns;
mod pair;
mod registry;
mod rig;
mod sample;
#[cfg(test)]
mod tests;
mod veth;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use spray_core::path::BalancerKind;

pub use error::RunError;
pub use pair::Pair;
pub use registry::{clean, leftovers};
pub use veth::{VethBench, probe_veth_xdp};

use self::drive::{Goal, Report};
use self::rig::Rig;
use crate::results::RunResult;
use crate::scenario::{MAX_XDP_QUEUE_BYTES, Scenario, SimulationSettings};
use spray_fabric::{Compiled, compile};

/// Real time for setting up connections before scenario time 0.
pub const LEAD_IN: Duration = Duration::from_millis(150);
/// Lead-in in base round trips, where that is longer: a handshake takes two, its first retry comes after five.
const LEAD_IN_RTTS: u64 = 40;

/// How one run goes.
pub struct RunOptions<'a> {
    /// What chooses paths.
    pub balancer: BalancerKind,
    /// Root of every random choice; [`Scenario::seed`] unless the user wants another.
    pub seed: u64,
    /// Told how it goes, a few times a second.
    pub progress: &'a mut dyn FnMut(Progress),
    /// Set from elsewhere to stop the run: it then returns [`RunError::Stopped`].
    pub stop: &'a AtomicBool,
}

/// What a run tells while it goes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// Namespaces, links and programs are being made.
    SettingUp,
    /// A burst measures what the machine carries.
    Calibrating,
    /// The factor by which time runs slower, measured or given.
    Dilation {
        /// The factor.
        dilation: f64,
        /// Data frames a second that the burst got through; `None` where the scenario gave the factor.
        frames_per_s: Option<f64>,
    },
    /// Data flows.
    Running {
        /// Scenario time.
        time_us: f64,
        /// Payload bytes delivered so far.
        delivered_bytes: u64,
        /// Payload bytes of all flows.
        total_bytes: u64,
        /// Flows whose message has arrived.
        flows_completed: u64,
        /// All flows.
        flows_total: u64,
    },
    /// The payload that arrived is compared with what was sent.
    Verifying,
}

/// A fabric that stands on this machine.
#[derive(Debug)]
pub struct Testbed {
    rig: Rig,
    dilation: Option<f64>,
}

impl Testbed {
    /// Sets up the hosts, links and switches of `scenario`. Needs root.
    ///
    /// # Errors
    /// [`RunError`]; what had been made by then is removed.
    pub fn new(scenario: &Scenario) -> Result<Self, RunError> {
        if scenario.workload.triggers().is_some() {
            let message = "triggers start flows of other hosts in no time, which packets cannot; use `--engine sim`";
            return Err(RunError::Unsupported(message.into()));
        }
        check_queues(scenario)?;
        check_simulated(scenario)?;
        let fabric = compiled(scenario, scenario.seed, 0)?.fabric;
        Ok(Self { rig: Rig::new(scenario, &fabric)?, dilation: None })
    }

    /// Runs `scenario`, whose network and chassis are those that the testbed was made for.
    ///
    /// # Errors
    /// [`RunError::Stopped`] when asked to; others when the machine fails. Flows that do not complete are no error: the
    /// result says so.
    pub fn run(&mut self, scenario: &Scenario, options: &mut RunOptions<'_>) -> Result<RunResult, RunError> {
        check_queues(scenario)?;
        check_simulated(scenario)?;
        let flows = scenario.flows(options.seed);
        let dilation = self.dilation(scenario, &flows, options)?;
        let paths = scenario.paths();
        let lead_in_ps = lead_in_ps(dilation).max(LEAD_IN_RTTS * scenario.longest_rtt_ps(&paths));
        let fabric = compiled(scenario, options.seed, lead_in_ps)?.fabric;
        self.rig.drain()?;
        self.rig.configure(&fabric, scenario.packet_bytes())?;
        let flow_config = |from, to| scenario.flow_config(&paths, options.balancer, from, to);
        let setup =
            hosts::Setup { scenario, fabric: &fabric, flows: &flows, flow_config: &flow_config, seed: options.seed };
        let payloads: Vec<_> = flows.iter().map(|flow| scenario.workload.payload(flow, options.seed)).collect();
        let hosts = setup.hosts(&mut self.rig, |host| setup.emulated(host))?;
        let drops_before = self.rig.interface_drops()?;
        let devices_before = hosts::device_stats(&hosts);
        let (hosts, connections) = setup.connect(hosts, &payloads, lead_in_ps)?;
        let goal = Goal {
            flows: flows.len() as u64,
            total_bytes: flows.iter().map(|flow| flow.bytes).sum(),
            lead_in_ps,
            until_ps: lead_in_ps.saturating_add(scenario.time_limit_ps(&flows)),
        };
        let mut sampler = sample::Sampler::new(&self.rig, &fabric, scenario.sample_ps, lead_in_ps);
        let outcome =
            drive::emulated(hosts, setup.threads(), dilation, setup.step_ps(), &goal, &mut |report: &Report| {
                sampler.look(report)?;
                (options.progress)(report.progress(&goal));
                if options.stop.load(Ordering::Relaxed) { Err(RunError::Stopped) } else { Ok(()) }
            })?;
        (options.progress)(Progress::Verifying);
        let samples = sampler.finish();
        let drops = self.rig.interface_drops()?.saturating_sub(drops_before);
        let collect = collect::Collect {
            setup: &setup,
            balancer: options.balancer,
            lead_in_ps,
            payloads: &payloads,
            connections: &connections,
            outcome: &outcome,
        };
        let losses = collect.losses(drops, &devices_before);
        let result = collect.result(&self.rig, samples, losses)?;
        self.rig.take_back(outcome.hosts);
        Ok(result)
    }

    /// The scenario's dilation, or a measured one; measured once per testbed.
    fn dilation(
        &mut self,
        scenario: &Scenario,
        flows: &[crate::workload::Flow],
        options: &mut RunOptions<'_>,
    ) -> Result<f64, RunError> {
        if let Some(dilation) = scenario.emulation.dilation {
            (options.progress)(Progress::Dilation { dilation, frames_per_s: None });
            return Ok(dilation);
        }
        if let Some(dilation) = self.dilation {
            return Ok(dilation);
        }
        (options.progress)(Progress::Calibrating);
        let measured = calibrate::measure(&mut self.rig, scenario, flows, options.stop)?;
        let dilation = measured.dilation;
        (options.progress)(Progress::Dilation { dilation, frames_per_s: Some(measured.frames_per_s) });
        self.dilation = Some(dilation);
        Ok(dilation)
    }
}

/// Sets up a testbed for `scenario`, runs it once and removes it.
///
/// # Errors
/// As [`Testbed::new`] and [`Testbed::run`].
pub fn run(scenario: &Scenario, options: &mut RunOptions<'_>) -> Result<RunResult, RunError> {
    (options.progress)(Progress::SettingUp);
    Testbed::new(scenario)?.run(scenario, options)
}

/// Refuses what only the simulator can do.
fn check_simulated(scenario: &Scenario) -> Result<(), RunError> {
    //= docs/specs/erasure.md#ERA-6
    if scenario.transport.erasure {
        let message = "`erasure` in [transport] is an ideal code, which no payload can go in; use `--engine sim`";
        return Err(RunError::Unsupported(message.into()));
    }
    if scenario.simulation != SimulationSettings::default() {
        let message = "the settings in [simulation] are those of the simulator alone; use `--engine sim`";
        return Err(RunError::Unsupported(message.into()));
    }
    Ok(())
}

/// Refuses queues that the kernel's switch does not emulate.
fn check_queues(scenario: &Scenario) -> Result<(), RunError> {
    let base_rtt_ps = scenario.base_rtt_ps();
    let limit = |rate_bps| scenario.queue.config(rate_bps, base_rtt_ps, scenario.packet_bytes()).limit_bytes;
    let too_long = scenario.network.links.iter().find(|link| limit(link.rate_bps) > MAX_XDP_QUEUE_BYTES);
    too_long.map_or(Ok(()), |link| {
        let (bytes, name) = (limit(link.rate_bps), &link.name);
        let allowed = format!("allowed: at most {MAX_XDP_QUEUE_BYTES}, or `--engine sim`");
        Err(RunError::Unsupported(format!("`limit` in [queue] is {bytes} bytes at {name}; {allowed}")))
    })
}

/// [`LEAD_IN`] in virtual time.
fn lead_in_ps(dilation: f64) -> u64 {
    (LEAD_IN.as_nanos() as f64 * 1000.0 / dilation) as u64
}

/// The scenario's fabric, with everything that is timed `lead_in_ps` later.
fn compiled(scenario: &Scenario, seed: u64, lead_in_ps: u64) -> Result<Compiled, RunError> {
    let mut events = scenario.link_events.clone();
    for event in &mut events {
        event.at_ps = event.at_ps.saturating_add(lead_in_ps);
        event.until_ps = event.until_ps.map(|until| until.saturating_add(lead_in_ps));
    }
    let base_rtt_ps = scenario.base_rtt_ps();
    let queue = |rate| scenario.queue.config(rate, base_rtt_ps, scenario.packet_bytes());
    compile(&scenario.network, seed, queue, &events).map_err(|error| RunError::Unsupported(error.to_string()))
}
