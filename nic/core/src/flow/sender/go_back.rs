//! Going back: everything from the lowest missing packet on is sent again (`docs/specs/go-back-n.md`).

use spray_wire::{Ack, Nack};

use super::Sender;
use crate::Time;
use crate::event::Publisher;
use crate::feedback::LossCause;
use crate::loss::Repair;

impl Sender {
    /// Takes a NACK of a receiver that keeps nothing out of order. A sender that does not go back ignores it.
    //= docs/specs/go-back-n.md#GBN-7 A sender with another ignores the NACKs
    //= docs/specs/go-back-n.md#GBN-4 going back
    pub(super) fn on_go_back(&mut self, now: Time, nack: &Nack, publisher: &mut impl Publisher) {
        if nack.psn > self.next_psn() {
            self.stats.invalid_acks += 1;
        } else if self.recovery.repair != Repair::GoBack || nack.psn < self.recovery.scoreboard.cumulative() {
            self.stats.stale_nacks += 1;
        } else {
            self.on_ack(now, &told_by(nack), publisher);
            self.go_back(now, LossCause::Missing, publisher);
        }
    }

    /// Declares lost, by this cause, the lowest packet that is not acknowledged. All others that are in flight go again with it, in
    /// their order.
    //= docs/specs/go-back-n.md#GBN-4 going back
    pub(super) fn go_back(&mut self, now: Time, cause: LossCause, publisher: &mut impl Publisher) {
        let board = &self.recovery.scoreboard;
        let first = board.cumulative();
        // Those that wait to be sent again are the highest: the sender went back and has not come so far again.
        let end = board.first_lost().map_or(board.next_psn(), |(psn, _)| psn);
        for psn in (first..end).rev() {
            self.lose(now, psn, if psn == first { cause } else { LossCause::GoneBack }, publisher);
        }
    }
}

/// What a NACK acknowledges: every packet before the expected one. It reports the one that was dropped.
//= docs/specs/go-back-n.md#GBN-3 content of a NACK
fn told_by(nack: &Nack) -> Ack {
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
