//! Arrivals where nothing is stored out of order: `docs/specs/go-back-n.md`.

use super::{Arrival, DataOutcome, Receiver, Time, nack, queue};
use spray_wire::Nack;

impl Receiver {
    //= docs/specs/go-back-n.md#GBN-1 accepted packets
    pub(super) fn on_in_order(&mut self, now: Time, arrival: &Arrival) -> DataOutcome {
        let psn = arrival.data.psn;
        let is_ahead = psn > self.cumulative && psn - self.cumulative < self.window_packets;
        if is_ahead && !arrival.trimmed { DataOutcome::OutOfOrder } else { self.on_packet(now, arrival) }
    }

    /// Queues a NACK for the gap before a dropped packet, unless one was sent.
    //= docs/specs/go-back-n.md#GBN-2 one NACK for a gap
    pub(super) fn on_out_of_order(&mut self, now: Time, arrival: &Arrival) {
        let data = &arrival.data;
        self.stats.out_of_order += 1;
        self.order.on_arrival(data.psn, data.retransmit, &mut self.stats.order);
        if self.go_back.on_dropped(now, self.cumulative) {
            let gap = Nack { go_back: true, ..nack(arrival, self.cumulative, 0, false) };
            let has_room = queue(&mut self.nacks, Nack { last_port: false, ..gap });
            self.stats.nacks_dropped += u64::from(!has_room);
        }
    }
}
