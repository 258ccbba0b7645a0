//! IRN (Mittal et al., SIGCOMM 2018, §3): one retransmission per recovery, two fixed timeouts.

use spray_wire::Ack;

use super::{RtoConfig, Scoreboard};
use crate::settings::settings;
use crate::units::Micros;

settings! {
    /// The settings of IRN.
    pub struct IrnConfig {
        /// Maximum packets in flight, oldest unacknowledged to newest. By default one BDP.
        #[schemars(range(min = 1, max = 65_536))]
        pub cap_packets: Option<u32> = None,
        /// NACKs of a gap that begin a recovery: 1 in the paper; more allow for reordering (§7).
        #[schemars(range(min = 1, max = 65_536))]
        pub nacks: u32 = 1,
        /// Fewer packets in flight than this use the low timeout.
        #[schemars(range(min = 0, max = 65_536))]
        pub few_packets: u32 = 3,
        /// The low timeout. By default `rto_min_us`, but at most the high one.
        #[schemars(range(min = 0.001, max = 3_600_000_000_u64))]
        pub rto_low_us: Option<Micros> = None,
        /// The high timeout, at least the low one. By default 3.2 times that (as in the paper).
        #[schemars(range(min = 0.001, max = 3_600_000_000_u64))]
        pub rto_high_us: Option<Micros> = None,
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Irn {
    settings: IrnConfig,
    rto_low_ps: u64,
    rto_high_ps: u64,
    recovery: Option<Recovery>,
    /// One more than the highest acknowledged number.
    acked_end: u64,
    /// The gap for counting NACKs, by its lowest missing number, and their count.
    gap: u64,
    nacks: u32,
}

#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// The next new number at its start. It ends when all below are acknowledged.
    end: u64,
    transmissions: u64,
    /// All numbers below are judged.
    judged: u64,
}

impl Irn {
    pub fn new(settings: &IrnConfig, rto: &RtoConfig) -> Self {
        let mut irn =
            Self { settings: *settings, rto_low_ps: 0, rto_high_ps: 0, recovery: None, acked_end: 0, gap: 0, nacks: 0 };
        irn.set_rto(rto);
        irn
    }

    //= docs/specs/irn.md#IRN-6 two timeouts
    pub fn set_rto(&mut self, rto: &RtoConfig) {
        let IrnConfig { rto_low_us, rto_high_us, .. } = self.settings;
        let most_ps = rto_high_us.map_or(u64::MAX, Micros::ps);
        self.rto_low_ps = rto_low_us.map_or(rto.min_ps.min(most_ps), Micros::ps).max(1);
        self.rto_high_ps = rto_high_us.map_or(self.rto_low_ps / 10 * 32, Micros::ps).max(self.rto_low_ps);
    }

    /// Returns the timeout when `span` numbers follow the lowest unacknowledged one.
    //= docs/specs/irn.md#IRN-6 two timeouts
    #[inline]
    pub fn timeout_ps(&self, span: u64) -> u64 {
        if span < u64::from(self.settings.few_packets) { self.rto_low_ps } else { self.rto_high_ps }
    }

    /// Takes an acknowledgement after the scoreboard did.
    //= docs/specs/irn.md#IRN-2 recoveries
    pub fn on_ack(&mut self, ack: &Ack, board: &Scoreboard) {
        let (end, cumulative) = (end(ack), board.cumulative());
        self.acked_end = self.acked_end.max(end);
        if self.recovery.is_some_and(|recovery| cumulative >= recovery.end) {
            (self.recovery, self.nacks) = (None, 0);
        }
        if self.gap != cumulative {
            (self.gap, self.nacks) = (cumulative, 0);
        }
        self.nacks = self.nacks.saturating_add(u32::from(end > cumulative));
        if end > cumulative && self.nacks >= self.settings.nacks {
            self.recover(board);
        }
    }

    //= docs/specs/irn.md#IRN-2 recoveries
    pub fn recover(&mut self, board: &Scoreboard) {
        self.recovery.get_or_insert(Recovery {
            end: board.next_psn(),
            transmissions: board.transmissions(),
            judged: board.cumulative(),
        });
    }

    /// Returns the next packet that the recovery finds lost, each once, for the caller to declare.
    //= docs/specs/irn.md#IRN-3 lost packets
    pub fn take_lost(&mut self, board: &Scoreboard) -> Option<u64> {
        let recovery = self.recovery.as_mut()?;
        let first = recovery.judged.max(board.cumulative());
        let is_lost = |psn: &u64| board.is_outstanding(*psn) && !board.is_resent_since(*psn, recovery.transmissions);
        let found = (first..self.acked_end).find(is_lost);
        recovery.judged = found.map_or(self.acked_end.max(first), |psn| psn + 1);
        found
    }
}

/// One more than the highest number that an acknowledgement covers.
fn end(ack: &Ack) -> u64 {
    let word = ack.bitmap.iter().rposition(|&bits| bits != 0);
    let bits = word.map_or(0, |word| 64 * word as u64 + 64 - u64::from(ack.bitmap[word].leading_zeros()));
    if bits == 0 { ack.cumulative } else { ack.cumulative.max(ack.sack_base.saturating_add(bits)) }
}
