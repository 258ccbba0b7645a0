//! Observers of the frames of hosts and of the ports that hosts emulate. The XDP programs of other
//! ports do not report frames.

use spray_capture::{Content, Shared, Sighting, Treatment};
use spray_pipeline::last_port::Delivery;
use spray_pipeline::shim::{SHIM_BYTES, Shim};
use spray_wire::switch_view::{Headers, Parsed, parse};
use spray_wire::{Ecn, Ports};

use super::host_port::{HostPort, LastPort};

#[derive(Debug)]
pub(crate) struct HostTap {
    pub watch: Shared,
    /// Whether the observer needs the frames' content.
    pub parses: bool,
    pub interface: u32,
    pub lead_in_ps: u64,
}

/// The port that leads to a host, with an observer.
#[derive(Debug)]
pub(super) struct SeenPort {
    pub port: HostPort,
    pub tap: HostTap,
}

impl HostTap {
    fn see(&self, now_ps: u64, frame: &[u8], outbound: bool, fate: Treatment, waiting_bytes: Option<u64>) {
        let content = Content::of(frame, self.parses);
        let at_ps = scenario(now_ps, self.lead_in_ps);
        let sighting = Sighting { at_ps, interface: self.interface, outbound, content, fate, waiting_bytes };
        self.watch.lock().see(sighting, false);
    }

    /// A host sends a frame, which its own link carries or drops.
    pub fn on_sent(&self, now_ps: u64, frame: &[u8], carried: bool) {
        let dropped = (!carried).then_some("host's link");
        self.see(now_ps, frame, true, Treatment { dropped, ..Treatment::default() }, None);
    }

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
            (Treatment { dropped: outcome.err().map(spray_pipeline::Cause::name), ..Treatment::default() }, whole);
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

/// The frame behind the shim.
fn inner(frame: &[u8]) -> &[u8] {
    frame.get(SHIM_BYTES..).unwrap_or_default()
}

/// ECN mark and DSCP of a frame of this protocol.
fn fields(frame: &[u8]) -> Option<(bool, u8)> {
    match parse(frame, Ports::DEFAULT) {
        Parsed::Ours(Headers { ecn, dscp, .. }) => Some((ecn == Ecn::Ce as u8, dscp)),
        _ => None,
    }
}

/// Converts virtual to scenario time.
pub(super) const fn scenario(virtual_ps: u64, lead_in_ps: u64) -> i64 {
    virtual_ps.cast_signed() - lead_in_ps.cast_signed()
}
