//! The `xdp` engine: a fabric of network namespaces on this machine. Linux only.
//!
//! Each host is a namespace with an AF_XDP socket on one end of a veth pair; the other ends are in
//! the namespace of a chassis, where the XDP program emulates the switches. [`Testbed::new`] sets
//! it up from a [`FabricSpec`], and [`Testbed::run`] runs any number of [`TestbedSpec`]s on it.
//! Dropping the testbed removes everything; [`spray_switch::clean`] removes what killed processes
//! left behind.
//!
//! Scenario time 0 is some round trips after the hosts' clocks start, so that connections are set
//! up before it. Internal virtual times, including those in the programs' tables, are later by that
//! lead-in; specs and outcomes are in scenario time.

mod calibrate;
mod collect;
mod drive;
mod emulation;
mod flows;
mod host_port;
mod hosts;
mod machine_speed;
mod rig;
mod spec;
mod tap;
#[cfg(test)]
mod tests;
mod unlimited;
mod watch;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spray_fabric::{BinScale, DeliverySeries, Progress, check_flows};
use spray_nic::device::DeviceHealth as _;
use spray_nic::sys::monotonic_ns;
use tracing::{debug_span, info_span};

pub use drive::StopOnDrop;
pub use emulation::EmulatedDevice;
pub use hosts::HostEndpoint;
pub use rig::Rig;
pub use spec::{Dilation, Losses, Report, ReportKind, Subject, TestbedOutcome, TestbedSpec};
use spray_switch::program::socket_frames;
use spray_switch::{FabricSpec, RunError};
pub use unlimited::{OPEN_QUEUE, RATE_BPS, RTO_PS, unpaced};

use self::emulation::DilatedClock;

/// Base round trips before scenario time 0, for connection setup: a handshake takes two, its first
/// retry follows after five. Virtual time, so that results do not depend on the machine's speed.
const LEAD_IN_RTTS: u64 = 40;

/// Factor by which the clock is faster than the dilation for the hosts' full rate, since links
/// rarely all send at full rate; when they do, the clock waits for the hosts. A frame still has the
/// real time of several frames to arrive in.
const HASTE: f64 = 4.0;

/// Maximum lag of a host behind the others, in ps of scenario time.
const MAX_LAG_PS: i64 = 100_000_000;

/// A fabric set up on this machine.
#[derive(Debug)]
pub struct Testbed {
    rig: Rig,
    dilation: Option<f64>,
}

impl Testbed {
    /// Sets up the hosts, links and switches of `spec`. Requires root.
    ///
    /// # Errors
    /// [`RunError`]; everything created is removed again.
    pub fn new(spec: &FabricSpec<'_>) -> Result<Self, RunError> {
        let _span = info_span!("set up").entered();
        let fabric = spec.compile(0)?;
        let rig = Rig::with_frames(spec, &fabric, socket_frames(fabric.hosts.len()))?;
        Ok(Self { rig, dilation: None })
    }

    /// Runs `spec`, which must have the testbed's network. Calls `progress` a few times per second;
    /// setting `stop` ends the run.
    ///
    /// # Errors
    /// [`RunError::Stopped`] if stopped; others if the machine fails. Incomplete flows are not an
    /// error: the outcome reports them.
    pub fn run(
        &mut self,
        spec: &TestbedSpec<'_>,
        progress: &mut dyn FnMut(Progress),
        stop: &AtomicBool,
    ) -> Result<TestbedOutcome, RunError> {
        let checked = check_flows(spec.flows, spec.triggers, spec.fabric.network.hosts.len());
        checked.map_err(|error| RunError::Unsupported(error.to_string()))?;
        let planned = self.dilation(spec, progress, stop)?;
        let dilation = match spec.dilation {
            Dilation::Given(dilation) => dilation,
            Dilation::Measured { .. } => (planned / HASTE).max(1.0),
        };
        let lead_in_ps = LEAD_IN_RTTS * spec.base_rtt_ps;
        let fabric = spec.fabric.compile(lead_in_ps)?;
        debug_span!("drain").in_scope(|| self.rig.drain())?;
        let bins = self.rig.bins(lead_in_ps, spec.sample_ps, spec.until_ps);
        debug_span!("configure").in_scope(|| self.rig.configure(&fabric, spec.fabric.packet_bytes, bins))?;
        let ports = host_port::HostPort::all(&fabric, spec.fabric.packet_bytes, bins);
        let plan = flows::Flows::new(spec, lead_in_ps);
        let links = host_port::TimedHostLink::all(&fabric, spec.fabric.network);
        let setup = hosts::Setup { spec, fabric: &fabric, ports: &ports, links: &links, plan: &plan };
        let mut hosts = setup.hosts(&mut self.rig, true)?;
        let arrived = BinScale::single(lead_in_ps, spec.sample_ps, spec.until_ps);
        let arrivals = arrived.is_on().then(|| Arc::new(DeliverySeries::new(arrived)));
        hosts = watch::attach_observers(hosts, &setup, arrivals.as_ref());
        let drops_before = self.rig.interface_drops()?;
        let devices_before = hosts.iter().map(|running| running.endpoint.device().stats()).collect::<Vec<_>>();
        let hosts = setup.connect(hosts)?;
        let goal = drive::StopCondition { plan: &plan, until_ps: lead_in_ps.saturating_add(spec.until_ps) };
        let total_bytes = spec.flows.iter().map(|flow| flow.bytes).sum();
        let mut pace = machine_speed::SlowdownDetector::new(planned);
        let outcome =
            drive::drive(hosts, DilatedClock::new(dilation, setup.step_ps()), &goal, &mut |report: &drive::Report| {
                spec.watch.inspect(|watch| watch.lock().flush(tap::scenario(report.now_ps, lead_in_ps) - MAX_LAG_PS));
                progress(Progress::Running {
                    time_us: report.now_ps.saturating_sub(lead_in_ps) as f64 / 1e6,
                    delivered_bytes: report.delivered_bytes,
                    total_bytes,
                    flows_completed: report.arrived,
                    flows_total: spec.flows.len() as u64,
                });
                if let Some(slower) = pace.on_report(monotonic_ns(), report.now_ps) {
                    progress(Progress::Notice(format!(
                        "this machine is busy: the run is {} times slower than planned; its results are valid",
                        machine_speed::times(slower)
                    )));
                }
                if stop.load(Ordering::Relaxed) { Err(RunError::Stopped) } else { Ok(ControlFlow::Continue(())) }
            })?;
        let drops = self.rig.interface_drops()?.saturating_sub(drops_before);
        let collect = collect::Collect { setup: &setup, outcome: &outcome };
        let losses = collect.losses(drops, &devices_before);
        let counted = arrivals.iter().flat_map(|arrivals| arrivals.counted());
        let delivered = spray_fabric::delivered(&arrived, counted, outcome.end_ps);
        let result = collect.outcome(&self.rig, delivered, losses)?;
        spec.watch.inspect(|watch| watch::report(watch, &outcome.hosts, lead_in_ps));
        hosts::return_devices(outcome.hosts, &mut self.rig);
        Ok(result)
    }

    /// Returns the given dilation, or one measured once per testbed.
    fn dilation(
        &mut self,
        spec: &TestbedSpec<'_>,
        progress: &mut dyn FnMut(Progress),
        stop: &AtomicBool,
    ) -> Result<f64, RunError> {
        let ideal_ps = match spec.dilation {
            Dilation::Given(dilation) => return Ok(dilation),
            Dilation::Measured { ideal_ps } => ideal_ps,
        };
        if let Some(dilation) = self.dilation {
            return Ok(dilation);
        }
        progress(Progress::Phase("measuring the frame rate of this machine".into()));
        let _span = info_span!("calibrate").entered();
        let calibrate::Calibration { frames_per_s, dilation, slower } =
            calibrate::measure(&mut self.rig, spec, ideal_ps, stop)?;
        progress(Progress::Phase(format!(
            "{frames_per_s:.0} frames per second: virtual time is {dilation:.0} times slower at the hosts' full rate"
        )));
        let notice = machine_speed::duration_notice(ideal_ps, dilation, slower);
        notice.into_iter().for_each(|text| progress(Progress::Notice(text)));
        self.dilation = Some(dilation);
        Ok(dilation)
    }
}
