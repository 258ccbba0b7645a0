//! EQDS: the receiver grants credit, and the first window goes without it (Olteanu et al., NSDI 2022; REPS §4.5.3).
//!
//! This is the sender's part; [`PullPacer`] is the receiving host's. `docs/specs/eqds.md` states both.

mod pacer;

#[cfg(test)]
mod tests;

use spray_wire::PullRequest;

pub use self::pacer::{CreditBound, PullPacer};
use super::{AckInfo, CcConfigOf, CongestionControl, Scheme, bdp_bytes, part_bytes};
use crate::feedback::LossCause;
use crate::settings::settings;
use crate::units::{ByteSize, Ratio};

settings! {
    /// The settings of [`Eqds`] and of the [`PullPacer`] that answers it.
    pub struct EqdsConfig {
        /// Share of its link's rate that a receiving host grants to all its senders together.
        #[schemars(range(min = 0.01, max = 1))]
        pub pull_rate: Ratio = Ratio::permille(990),
        /// Credit of one pull, in wire bytes. By default one full packet.
        #[schemars(range(min = 64, max = 1_048_576))]
        pub pull_bytes: Option<ByteSize> = None,
        /// Wire bytes that a sender with new data may send before it hears from the receiver. By default one
        /// bandwidth-delay product, in whole packets.
        #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
        pub speculative_bytes: Option<ByteSize> = None,
        /// Wire bytes of credit that a sender asks for beyond what it has spent. By default three bandwidth-delay products.
        #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
        pub request_bytes: Option<ByteSize> = None,
    }
}

impl EqdsConfig {
    /// Credit of one pull for a connection with full packets of `packet_bytes`.
    pub fn pull_bytes(&self, packet_bytes: u32) -> u64 {
        self.pull_bytes.map_or(packet_bytes.max(1).into(), ByteSize::bytes)
    }
}

/// The sender's part of EQDS. All totals are wire bytes since the connection began.
#[derive(Clone, Debug, Default)]
pub struct Eqds {
    /// The credit pulled, and the credit spent. The last packet may overdraw by less than its own bytes.
    pulled: u64,
    spent: u64,
    /// Bytes sent without credit, and their limit.
    speculated: u64,
    speculation_end: u64,
    speculating: bool,
    /// Bytes that credit or speculation has to cover: all messages, and losses other than trims.
    wanted: u64,
    /// Bytes lost as trimmed. The receiver grants credit for them unasked.
    trimmed: u64,
    /// The largest demand told, if any was.
    told: u64,
    has_asked: bool,
    speculative_bytes: u64,
    request_bytes: u64,
}

impl Scheme for Eqds {
    type Config = EqdsConfig;

    const STATE_BYTES: usize = size_of::<Self>() - 2 * size_of::<u64>();

    fn share(own: &EqdsConfig, count: u64) -> EqdsConfig {
        EqdsConfig {
            pull_bytes: own.pull_bytes.map(|bytes| part_bytes(bytes, count, 64)),
            speculative_bytes: own.speculative_bytes.map(|bytes| part_bytes(bytes, count, 0)),
            request_bytes: own.request_bytes.map(|bytes| part_bytes(bytes, count, 1)),
            ..*own
        }
    }

    fn make(own: &EqdsConfig, config: &CcConfigOf<impl Copy>) -> Self {
        let packet = u64::from(config.packet_bytes.max(1));
        let bdp = bdp_bytes(config.base_rtt_ps, config.link_bps);
        let or = |asked: Option<ByteSize>, bytes: u64| asked.map_or(bytes, ByteSize::bytes);
        Self {
            speculative_bytes: or(own.speculative_bytes, bdp.div_ceil(packet).saturating_mul(packet)),
            //= docs/specs/eqds.md#EQDS-8 asking for more
            request_bytes: or(own.request_bytes, bdp.saturating_mul(3)).max(4 * packet),
            ..Self::default()
        }
    }

    fn adopt(&mut self, fresh: Self, _starting: bool) {
        (self.speculative_bytes, self.request_bytes) = (fresh.speculative_bytes, fresh.request_bytes);
    }
}

impl Eqds {
    /// All credit that the sender can use, without that for trims.
    //= docs/specs/eqds.md#EQDS-6 demand
    #[inline]
    fn demand(&self) -> u64 {
        let free = if self.speculating { self.speculated.max(self.speculation_end) } else { self.speculated };
        self.wanted.saturating_sub(free)
    }

    /// Credit spent, without that for trims, as far as the sender can tell.
    #[inline]
    fn spent_unasked(&self, total: u64) -> u64 {
        total.saturating_sub(self.trimmed)
    }
}

impl CongestionControl for Eqds {
    //= docs/specs/eqds.md#EQDS-3 end of speculation
    #[inline]
    fn on_ack(&mut self, _now_ps: u64, _ack: &AckInfo) {
        self.speculating = false;
    }

    //= docs/specs/eqds.md#EQDS-3 end of speculation
    //= docs/specs/eqds.md#EQDS-6 demand
    #[inline]
    fn on_loss(&mut self, _now_ps: u64, bytes: u32, cause: LossCause) {
        self.speculating = false;
        let lost = if cause == LossCause::Trimmed { &mut self.trimmed } else { &mut self.wanted };
        *lost = lost.saturating_add(u64::from(bytes));
    }

    /// It takes credit like a lost packet.
    #[inline]
    fn on_gone_back(&mut self, bytes: u32) {
        self.speculating = false;
        self.wanted = self.wanted.saturating_add(u64::from(bytes));
    }

    //= docs/specs/eqds.md#EQDS-1 credit spent
    #[inline]
    fn on_send(&mut self, _now_ps: u64, bytes: u32) {
        let total = if self.pulled > self.spent { &mut self.spent } else { &mut self.speculated };
        *total = total.saturating_add(u64::from(bytes));
    }

    /// Unbounded: credit alone limits what is in flight.
    #[inline]
    fn window_bytes(&self) -> u64 {
        UNBOUNDED
    }

    fn uses_credit(&self) -> bool {
        true
    }

    //= docs/specs/eqds.md#EQDS-1 credit spent
    //= docs/specs/eqds.md#EQDS-2 speculation
    #[inline]
    fn has_credit(&self) -> bool {
        self.pulled > self.spent || (self.speculating && self.speculated < self.speculation_end)
    }

    //= docs/specs/eqds.md#EQDS-2 speculation
    fn on_queued(&mut self, bytes: u64, idle: bool) {
        if idle {
            let left = self.pulled.saturating_sub(self.spent);
            self.wanted = self.wanted.saturating_sub(left);
            self.speculating = true;
            self.speculation_end = self.speculated.saturating_add(self.speculative_bytes.saturating_sub(left));
        }
        self.wanted = self.wanted.saturating_add(bytes);
    }

    fn on_pull(&mut self, credit_bytes: u64) -> bool {
        //= docs/specs/eqds.md#EQDS-5 totals
        let sent = self.spent.saturating_add(self.speculated);
        let honest = credit_bytes.min(self.told.saturating_add(sent));
        self.speculating = false;
        if honest <= self.pulled {
            return false;
        }
        self.pulled = honest;
        //= docs/specs/eqds.md#EQDS-9 credit left over
        let most = self.spent.saturating_add(self.request_bytes.saturating_mul(2));
        let over = self.pulled.saturating_sub(most);
        self.spent = self.spent.saturating_add(over);
        self.wanted = self.wanted.saturating_add(over);
        true
    }

    //= docs/specs/eqds.md#EQDS-7 telling the demand
    //= docs/specs/eqds.md#EQDS-8 asking for more
    #[inline]
    fn poll_request(&mut self, again: bool) -> Option<PullRequest> {
        if self.wanted == 0 {
            return None;
        }
        let most = self.spent_unasked(self.spent).saturating_add(self.request_bytes);
        let demand = self.demand().min(most).max(self.told);
        let left = self.told.saturating_sub(self.spent_unasked(self.pulled));
        let due = !self.has_asked || (demand > self.told && left < self.request_bytes / 2);
        if !due && !again {
            return None;
        }
        self.told = demand;
        self.has_asked = true;
        Some(PullRequest { demand_bytes: demand, pulled_bytes: self.pulled })
    }
}

/// More than is ever in flight, and far from where sums overflow.
const UNBOUNDED: u64 = 1 << 48;
