//! Probes under way, and whether a frame answers one of them.

use spray_wire::{Probe, ProbeAck};

use super::{Sender, Transmit};
use crate::event::Publisher;
use crate::feedback::Ev;
use crate::path::Balancer;

/// The probes of what the balancer suspects now. They all go over one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probes {
    /// Token and time of the first and of the latest; tokens count up from 1.
    first: u64,
    first_ps: u64,
    latest: u64,
    latest_ps: u64,
    ev: Ev,
}

impl Probes {
    /// Notes a probe that goes now and returns its token. With `fresh` it is the first of a new suspect.
    fn on_sent(&mut self, now_ps: u64, ev: Ev, fresh: bool) -> u64 {
        self.latest += 1;
        self.latest_ps = now_ps;
        if fresh || ev != self.ev {
            (self.first, self.first_ps, self.ev) = (self.latest, now_ps, ev);
        }
        self.latest
    }

    /// Whether a frame echoes one of these probes: its token, its path, and a time that goes with the token.
    fn are_answered_by(&self, ack: &ProbeAck, ev: Ev) -> bool {
        let sent = (self.first.max(1)..=self.latest).contains(&ack.token) && ev == self.ev;
        let timely = match ack.token == self.latest {
            true => ack.timestamp_ps == self.latest_ps,
            false => (self.first_ps..self.latest_ps).contains(&ack.timestamp_ps),
        };
        sent && timely
    }
}

impl Sender {
    /// Takes the answer to a probe. What answers no probe of the present suspect is ignored: it says nothing of how its path is now.
    //= docs/specs/transport.md#TRN-63 answers to probes
    pub fn on_probe_ack(&mut self, now_ps: u64, ack: &ProbeAck, publisher: &mut impl Publisher) {
        if self.liveness.has_failed() || !self.balancer.has_probed() {
            return;
        }
        match ack.port.ev(self.frames.evs.into()) {
            Some(ev) if self.probes.are_answered_by(ack, ev) => {
                self.balancer.on_probe_ack(now_ps, ev, ack.marked, publisher);
            }
            _ => self.stats.stale_probe_acks += 1,
        }
    }

    /// Returns a probe if one is due.
    pub(super) fn poll_probe(&mut self, now_ps: u64) -> Option<Transmit> {
        let fresh = !self.balancer.has_probed();
        let ev = self.balancer.poll_probe(now_ps)?;
        self.stats.probes_sent += 1;
        let token = self.probes.on_sent(now_ps, ev, fresh);
        Some(Transmit::Probe { probe: Probe { token, timestamp_ps: now_ps }, ev })
    }
}
