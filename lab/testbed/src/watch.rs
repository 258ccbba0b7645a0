//! What is seen of a run: the frames of its hosts, and those at the ports that hosts emulate.
//!
//! Other ports are in the XDP programs, which tell nobody of a frame.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use spray_capture::{Content, Shared, Sighting, Treatment};
use spray_fabric::Arrivals;
use spray_pipeline::last_port::Delivery;
use spray_pipeline::shim::{SHIM_BYTES, Shim};
use spray_wire::switch_view::{Headers, Parsed, parse};
use spray_wire::{Ecn, Ports};

use super::arrivals::Counter;
use super::emulation::LastPort;
use super::host_port::HostPort;
use super::hosts::{Running, Setup};

/// Sees the frames of a host.
#[derive(Debug)]
pub(crate) struct HostTap {
    watch: Shared,
    /// Somebody wants to know what frames say.
    parses: bool,
    interface: u32,
    lead_in_ps: u64,
}

/// The port that leads to a host, with somebody who sees what it does.
#[derive(Debug)]
struct SeenPort {
    port: HostPort,
    tap: HostTap,
}

/// How far a host may be behind the others, in ps of scenario time.
const BEHIND_PS: i64 = 100_000_000;

/// Has `arrivals` count the payload that arrives from now on, and the observer of the run see what hosts do.
pub(super) fn watched(
    hosts: Vec<Running>,
    setup: &Setup<'_>,
    arrivals: Option<&Arc<Arrivals<AtomicU64>>>,
    lead_in_ps: u64,
) -> Vec<Running> {
    let watch = setup.spec.watch.map(|watch| (watch, watch.lock().tracer().is_some()));
    let network = setup.spec.fabric.network;
    let see = |Running { host, mut endpoint, mut book }: Running| {
        let link = network.uplink(host) as u32;
        let tap = watch
            .map(|(watch, parses)| move |interface| HostTap { watch: watch.clone(), parses, interface, lead_in_ps });
        book.complete = tap.is_some();
        if let (Some(tap), Some(port)) = (&tap, setup.port_to(host)) {
            // The other direction of the host's cable.
            endpoint.device_mut().set_port(Box::new(SeenPort { port, tap: tap(link ^ 1) }));
        }
        if let Some(tap) = tap {
            endpoint.device_mut().set_tap(tap(link));
        }
        if let Some(arrivals) = arrivals {
            let due_ps = endpoint.device().due_ps();
            endpoint = endpoint.with_tap(Box::new(Counter { arrivals: Arc::clone(arrivals), due_ps }));
        }
        Running { host, endpoint, book }
    };
    hosts.into_iter().map(see).collect()
}

/// All hosts have come to `now_ps`.
pub(super) fn settle(watch: &Shared, now_ps: u64, lead_in_ps: u64) {
    watch.lock().settle(scenario(now_ps, lead_in_ps) - BEHIND_PS);
}

/// Hands on what the hosts' algorithms have reported.
pub(super) fn report(watch: &Shared, hosts: &[Running], lead_in_ps: u64) {
    let mut watch = watch.lock();
    watch.settle(i64::MAX);
    for book in hosts.iter().map(|running| &running.book) {
        for entry in &book.log {
            if let Some(first) = book.first.get(&entry.connection) {
                watch.report(scenario(entry.at.ps(), lead_in_ps), *first, &entry.event);
            }
        }
    }
}

const fn scenario(virtual_ps: u64, lead_in_ps: u64) -> i64 {
    virtual_ps.cast_signed() - lead_in_ps.cast_signed()
}

impl HostTap {
    fn see(&self, now_ps: u64, frame: &[u8], outbound: bool, fate: Treatment, waiting_bytes: Option<u64>) {
        let content = Content::of(frame, self.parses);
        let at_ps = scenario(now_ps, self.lead_in_ps);
        let sighting = Sighting { at_ps, interface: self.interface, outbound, content, fate, waiting_bytes };
        self.watch.lock().see(sighting, false);
    }

    /// The host sends a frame; its own link may lose it, else it is `carried`.
    pub fn on_sent(&self, now_ps: u64, frame: &[u8], carried: bool) {
        let dropped = (!carried).then_some("host's link");
        self.see(now_ps, frame, true, Treatment { dropped, ..Treatment::default() }, None);
    }

    /// A frame has come.
    pub fn on_received(&self, now_ps: u64, frame: &[u8]) {
        self.see(now_ps, frame, false, Treatment::default(), None);
    }
}

impl LastPort for SeenPort {
    fn latency_ps(&self) -> u64 {
        self.port.latency_ps()
    }

    fn deliver(&mut self, frame: &mut [u8]) -> Option<(u64, u32)> {
        let came_ps = frame.first_chunk().and_then(Shim::read).unwrap_or_default().virtual_time_ps;
        let waiting = self.port.queue_bytes(came_ps.saturating_add(self.port.latency_ps()))[0];
        let before = fields(inner(frame));
        let whole = Content::of(inner(frame), self.tap.parses);
        let outcome = self.port.take(frame);
        let (mut fate, mut content) =
            (Treatment { dropped: outcome.err().map(|cause| cause.name()), ..Treatment::default() }, whole);
        if let Ok(Delivery { len, .. }) = outcome {
            let frame = inner(frame.get(..len as usize).unwrap_or(frame));
            let after = fields(frame);
            fate.marked = after.map(|(ecn, _)| ecn) != before.map(|(ecn, _)| ecn);
            fate.trimmed = after.map(|(_, dscp)| dscp) != before.map(|(_, dscp)| dscp);
            content = Content::of(frame, self.tap.parses);
        }
        let at_ps = scenario(came_ps, self.tap.lead_in_ps);
        let interface = self.tap.interface;
        let waiting_bytes = Some(waiting);
        let sighting = Sighting { at_ps, interface, outbound: true, content, fate, waiting_bytes };
        self.tap.watch.lock().see(sighting, false);
        outcome.ok().map(|Delivery { due_ps, len }| (due_ps, len))
    }
}

/// What is behind the shim.
fn inner(frame: &[u8]) -> &[u8] {
    frame.get(SHIM_BYTES..).unwrap_or_default()
}

/// Mark and DSCP of a frame of ours.
fn fields(frame: &[u8]) -> Option<(bool, u8)> {
    match parse(frame, Ports::DEFAULT) {
        Parsed::Ours(Headers { ecn, dscp, .. }) => Some((ecn == Ecn::Ce as u8, dscp)),
        _ => None,
    }
}
