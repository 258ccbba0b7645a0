//! Probes and their answers.

use spray_wire::{Probe, ProbeAck};

use super::{Balancer, Publisher, Sender, Time, Transmit};
use crate::feedback::ProbeInfo;

impl Sender {
    /// Takes the answer to a probe. Answers to probes of earlier suspects are ignored.
    //= docs/specs/transport.md#TRN-63 answers to probes
    pub fn on_probe_ack(&mut self, now: Time, ack: &ProbeAck, publisher: &mut impl Publisher) {
        if self.liveness.has_failed() || !self.balancer.has_probed() {
            return;
        }
        match ack.port.ev(self.path.evs.into()) {
            Some(ev) if self.probes.are_answered_by(ack) => {
                let rtt_ps = now.since(ack.timestamp);
                //= docs/specs/transport.md#TRN-32 backoff
                self.recovery.backoff = 0;
                let marked = ack.marked || self.calibration.as_deref().is_some_and(|path| path.is_late(rtt_ps));
                self.balancer.on_probe_ack(self.path.at(now), &ProbeInfo { ev, marked, rtt_ps }, publisher);
            }
            _ => self.stats.stale_probe_acks += 1,
        }
    }

    pub(super) fn poll_probe(&mut self, now: Time) -> Option<Transmit> {
        let fresh = !self.balancer.has_probed();
        let ev = self.balancer.poll_probe(self.path.at(now))?;
        self.stats.probes_sent += 1;
        let token = self.probes.on_sent(now, fresh);
        Some(Transmit::Probe { probe: Probe { token, timestamp: now }, ev })
    }
}
