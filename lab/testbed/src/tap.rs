//! Observers of the frames of hosts and of the ports that hosts emulate. The XDP programs of other
//! ports do not report frames.

use spray_capture::{Content, FrameRecord, Observer, PortAction};
use spray_pipeline::last_port::Delivery;
use spray_pipeline::shim::{SHIM_BYTES, Shim};
use spray_wire::switch_view::{Headers, Parsed, parse};
use spray_wire::{Ecn, Ports};

use super::host_port::{HostPort, LastPort};

#[derive(Debug)]
pub(crate) struct HostTap {
    pub watch: Observer,
    /// Whether the observer needs the frames' content.
    pub parses: bool,
    pub interface: u32,
    pub lead_in_ps: u64,
}

/// The port that leads to a host, with an observer.
#[derive(Debug)]
pub(super) struct ObservedPort {
    pub port: HostPort,
    pub tap: HostTap,
}

impl HostTap {
    fn content(&self, frame: &[u8]) -> Content {
        Content::of(frame, self.parses)
    }

    fn see(&self, now_ps: u64, content: Content, outbound: bool, action: PortAction, waiting_bytes: Option<u64>) {
        let at_ps = scenario(now_ps, self.lead_in_ps);
        let record = FrameRecord { at_ps, interface: self.interface, outbound, content, action, waiting_bytes };
        self.watch.lock().observe(record, false);
    }

    /// A host sends a frame, which its own link carries or drops.
    pub fn on_sent(&self, now_ps: u64, frame: &[u8], carried: bool) {
        let dropped = (!carried).then_some("host's link");
        let action = PortAction { dropped, ..PortAction::default() };
        self.see(now_ps, self.content(frame), true, action, None);
    }

    pub fn on_received(&self, now_ps: u64, frame: &[u8]) {
        self.see(now_ps, self.content(frame), false, PortAction::default(), None);
    }
}

impl LastPort for ObservedPort {
    fn latency_ps(&self) -> u64 {
        self.port.latency_ps()
    }

    fn deliver(&mut self, frame: &mut [u8]) -> Option<Delivery> {
        let came_ps = frame.first_chunk().and_then(Shim::read).unwrap_or_default().virtual_time_ps;
        let waiting = self.port.port.queue_bytes(came_ps.saturating_add(self.port.latency_ps()))[0];
        let before = fields(inner(frame));
        let mut content = self.tap.content(inner(frame));
        let outcome = self.port.take(frame);
        let dropped = outcome.err().map(spray_pipeline::Cause::name);
        let mut action = PortAction { dropped, ..PortAction::default() };
        if let Ok(Delivery { len, .. }) = outcome {
            let frame = inner(frame.get(..len as usize).unwrap_or(frame));
            let after = fields(frame);
            action.marked = after.map(|(ecn, _)| ecn) != before.map(|(ecn, _)| ecn);
            action.trimmed = after.map(|(_, dscp)| dscp) != before.map(|(_, dscp)| dscp);
            content = self.tap.content(frame);
        }
        self.tap.see(came_ps, content, true, action, Some(waiting));
        outcome.ok()
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
