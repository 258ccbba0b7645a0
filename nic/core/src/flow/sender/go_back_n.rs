//! Going back: retransmits everything from the lowest missing packet (`docs/specs/go-back-n.md`).

use spray_wire::{Ack, Nack};

use super::{Publisher, Sender, Time};
use crate::feedback::LossCause;
use crate::loss::Repair;

impl Sender {
    /// Takes a NACK of go-back-N. A sender that does not go back ignores it.
    //= docs/specs/go-back-n.md#GBN-7 A sender with another ignores the NACKs
    //= docs/specs/go-back-n.md#GBN-4 going back
    pub(super) fn on_go_back(&mut self, now: Time, nack: &Nack, publisher: &mut impl Publisher) {
        if nack.psn > self.next_psn() {
            self.stats.invalid_acks += 1;
        } else if self.recovery.repair != Repair::GoBackN || nack.psn < self.recovery.scoreboard.cumulative() {
            self.stats.stale_nacks += 1;
        } else {
            self.on_ack(now, &ack_of(nack), publisher);
            self.go_back(now, LossCause::Missing, publisher);
        }
    }

    /// Declares the lowest open packet lost for this cause, and retransmits all others in order.
    //= docs/specs/go-back-n.md#GBN-4 going back
    pub(super) fn go_back(&mut self, now: Time, cause: LossCause, publisher: &mut impl Publisher) {
        let board = &self.recovery.scoreboard;
        let first = board.cumulative();
        // Packets already waiting are the highest: the sender has not reached them again.
        let end = board.first_lost().map_or(board.next_psn(), |(psn, _)| psn);
        for psn in (first..end).rev() {
            self.declare_lost(now, psn, if psn == first { cause } else { LossCause::GoBackN }, publisher);
        }
    }
}

/// Converts a NACK to an ACK of every packet before the expected one. It reports the dropped one.
//= docs/specs/go-back-n.md#GBN-3 content of a NACK
fn ack_of(nack: &Nack) -> Ack {
    Ack {
        cumulative: nack.psn,
        sack_base: nack.psn,
        timestamp_echo: nack.timestamp_echo,
        port: nack.port,
        hops: nack.hops,
        packets: 1,
        marked_packets: nack.marked.into(),
        marked: nack.marked,
        ..Ack::default()
    }
}
