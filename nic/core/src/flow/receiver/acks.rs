//! When an ACK is due, and what it covers. Packet path: R5 of `docs/architecture.md`.

use super::pending::{BITMAP_PACKETS, Pending};
use super::{Arrival, Receiver, Time};

impl Receiver {
    /// Counts a packet towards the next ACK, which will echo it.
    //= docs/specs/transport.md#TRN-54 when an ACK is due
    #[inline]
    pub(super) fn on_arrival(&mut self, now: Time, arrival: &Arrival, at_once: bool) {
        let pending = &mut self.pending;
        //= docs/specs/transport.md#TRN-59 further echoes
        //= docs/specs/transport.md#TRN-64 among the further echoes
        if pending.packets > 0 {
            pending.echoes.push(pending.port, pending.marked | pending.misrouted, usize::from(self.ack_echoes));
        }
        pending.port = arrival.port;
        pending.hops = arrival.hops;
        pending.marked = arrival.marked;
        pending.misrouted = arrival.misrouted;
        pending.trimmed = arrival.trimmed;
        pending.timestamp = arrival.data.timestamp;
        self.stats.marked += u64::from(arrival.marked);
        pending.packets = pending.packets.saturating_add(1);
        pending.marked_packets = pending.marked_packets.saturating_add(u8::from(arrival.marked));
        pending.due |= at_once || arrival.data.ack_now || pending.packets >= self.ack_every;
        pending.due |= self.ack_marked && arrival.marked;
        if pending.due {
            pending.deadline = None;
        } else if pending.deadline.is_none() {
            pending.deadline = Some(now.after(self.ack_delay_ps));
        }
    }

    /// Returns the start of the ACK's bitmap: the cumulative number if that covers all pending
    /// packets, else such that it ends at the latest one, but no later than the lowest one.
    #[inline]
    pub(super) fn sack_base(&self) -> u64 {
        let Pending { lowest, end, .. } = self.pending;
        if self.pending.is_covered(self.cumulative) {
            return self.cumulative;
        }
        self.cumulative.max(end.saturating_sub(BITMAP_PACKETS)).min(lowest.max(self.cumulative))
    }

    #[inline]
    pub(super) fn bitmap(&self, base: u64) -> [u64; 4] {
        if base >= self.highest {
            return [0; 4];
        }
        [0, 64, 128, 192].map(|ahead| self.received.load(base.saturating_add(ahead), self.highest))
    }

    /// Starts a new count. Another ACK is due if this one did not cover all pending packets.
    #[inline]
    pub(super) fn after_ack(&mut self, base: u64) {
        let mut covered = base.saturating_add(BITMAP_PACKETS);
        let pending = &mut self.pending;
        // The outlier was the latest packet, so those left are the last ones, except in a code.
        if !self.repair.settles_messages() {
            covered = covered.max(pending.end.saturating_sub(BITMAP_PACKETS));
        }
        pending.packets = 0;
        pending.echoes.clear();
        pending.marked_packets = 0;
        pending.marked = false;
        pending.deadline = None;
        pending.lowest = pending.lowest.max(covered).min(pending.end);
        pending.due = pending.lowest < pending.end;
    }
}
