//! EQDS: the receiver grants credit, and the first window goes without it (Olteanu et al., NSDI 2022; REPS §4.5.3).
//!
//! This is the sender's part; [`PullPacer`] is the receiving host's. `docs/specs/eqds.md` states both.

mod pacer;

#[cfg(test)]
mod tests;

use spray_wire::PullRequest;

pub use self::pacer::{CreditBound, PullPacer};
use super::{AckInfo, CongestionControl, Scheme, part_bytes};
use crate::feedback::LossCause;
use crate::now::{Now, OnPath, Path};
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
        /// Wire bytes of credit that a sender asks for beyond what it has spent, at least four full packets. By default three bandwidth-delay products.
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
#[derive(Clone, Debug)]
pub struct Eqds {
    state: Totals,
    own: EqdsConfig,
    amounts: OnPath<Amounts>,
}

/// What a sender keeps.
#[derive(Clone, Debug, Default)]
struct Totals {
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
}

/// [`EqdsConfig`] on a path.
#[derive(Clone, Debug)]
struct Amounts {
    speculative_bytes: u64,
    request_bytes: u64,
}

impl Scheme for Eqds {
    type Config = EqdsConfig;

    const STATE_BYTES: usize = size_of::<Totals>();

    fn share(own: &EqdsConfig, count: u64) -> EqdsConfig {
        EqdsConfig {
            pull_bytes: own.pull_bytes.map(|bytes| part_bytes(bytes, count, 64)),
            speculative_bytes: own.speculative_bytes.map(|bytes| part_bytes(bytes, count, 0)),
            request_bytes: own.request_bytes.map(|bytes| part_bytes(bytes, count, 1)),
            ..*own
        }
    }

    fn make(own: &EqdsConfig, path: &Path) -> Self {
        Self { state: Totals::default(), own: *own, amounts: OnPath::new(path, |path| Amounts::new(own, path)) }
    }
}

impl Amounts {
    fn new(own: &EqdsConfig, path: &Path) -> Self {
        let (packet, bdp) = (u64::from(path.packet_bytes), path.bdp_bytes());
        let or = |asked: Option<ByteSize>, bytes: u64| asked.map_or(bytes, ByteSize::bytes);
        Self {
            speculative_bytes: or(own.speculative_bytes, bdp.div_ceil(packet).saturating_mul(packet)),
            //= docs/specs/eqds.md#EQDS-8 size of a request
            request_bytes: or(own.request_bytes, bdp.saturating_mul(3)).max(4 * packet),
        }
    }
}

impl Totals {
    /// All credit that the sender can use, without that for trims.
    //= docs/specs/eqds.md#EQDS-6 demand
    fn demand(&self) -> u64 {
        let free = if self.speculating { self.speculated.max(self.speculation_end) } else { self.speculated };
        self.wanted.saturating_sub(free)
    }

    /// All credit that the sender can use if speculation ends after the next packet: one packet's at most beyond what it has told.
    //= docs/specs/eqds.md#EQDS-19 one packet in advance
    fn advance(&self, packet_bytes: u64) -> u64 {
        let at_worst = self.wanted.saturating_sub(self.speculated.saturating_add(packet_bytes));
        if self.speculating { at_worst.min(self.told.saturating_add(packet_bytes)) } else { 0 }
    }

    /// Credit spent, without that for trims, as far as the sender can tell.
    fn spent_unasked(&self, total: u64) -> u64 {
        total.saturating_sub(self.trimmed)
    }
}

impl Eqds {
    /// Returns a request for credit if one is due: for `most_bytes` beyond the credit spent at most.
    //= docs/specs/eqds.md#EQDS-7 announcing the demand
    //= docs/specs/eqds.md#EQDS-8 size of a request
    pub(super) fn poll_request_within(&mut self, path: &Path, most_bytes: u64, again: bool) -> Option<PullRequest> {
        if self.state.wanted == 0 {
            return None;
        }
        self.amounts.follow(path, |path| Amounts::new(&self.own, path));
        let (state, request_bytes) = (&mut self.state, self.amounts.request_bytes.min(most_bytes));
        let most = state.spent_unasked(state.spent).saturating_add(request_bytes);
        let left = state.told.saturating_sub(state.spent_unasked(state.pulled));
        let advance = if left == 0 { state.advance(path.packet_bytes.into()) } else { 0 };
        let demand = state.demand().max(advance).min(most).max(state.told);
        let due = !state.has_asked || (demand > state.told && left < request_bytes / 2);
        if !due && !again {
            return None;
        }
        state.told = demand;
        state.has_asked = true;
        Some(PullRequest { demand_bytes: demand, pulled_bytes: state.pulled })
    }
}

impl CongestionControl for Eqds {
    //= docs/specs/eqds.md#EQDS-3 end of speculation
    fn on_ack(&mut self, _now: Now<'_>, _ack: &AckInfo) {
        let state = &mut self.state;
        state.speculating = false;
    }

    //= docs/specs/eqds.md#EQDS-3 end of speculation
    //= docs/specs/eqds.md#EQDS-6 demand
    fn on_loss(&mut self, _now: Now<'_>, bytes: u32, cause: LossCause) {
        let state = &mut self.state;
        state.speculating = false;
        let lost = if cause.is_trim() { &mut state.trimmed } else { &mut state.wanted };
        *lost = lost.saturating_add(u64::from(bytes));
    }

    /// It takes credit like a lost packet.
    fn on_gone_back(&mut self, bytes: u32) {
        let state = &mut self.state;
        state.speculating = false;
        state.wanted = state.wanted.saturating_add(u64::from(bytes));
    }

    //= docs/specs/eqds.md#EQDS-1 credit spent
    fn on_send(&mut self, _now: Now<'_>, bytes: u32) {
        let state = &mut self.state;
        let total = if state.pulled > state.spent { &mut state.spent } else { &mut state.speculated };
        *total = total.saturating_add(u64::from(bytes));
    }

    /// Unbounded: credit alone limits what is in flight.
    fn window_bytes(&self, _path: &Path) -> u64 {
        UNBOUNDED
    }

    fn uses_credit(&self) -> bool {
        true
    }

    //= docs/specs/eqds.md#EQDS-1 credit spent
    //= docs/specs/eqds.md#EQDS-2 speculation
    fn has_credit(&self) -> bool {
        let state = &self.state;
        state.pulled > state.spent || (state.speculating && state.speculated < state.speculation_end)
    }

    //= docs/specs/eqds.md#EQDS-2 speculation
    fn on_queued(&mut self, path: &Path, bytes: u64, idle: bool) {
        self.amounts.follow(path, |path| Amounts::new(&self.own, path));
        let (state, amounts) = (&mut self.state, &self.amounts);
        if idle {
            let left = state.pulled.saturating_sub(state.spent);
            state.wanted = state.wanted.saturating_sub(left);
            state.speculating = true;
            state.speculation_end = state.speculated.saturating_add(amounts.speculative_bytes.saturating_sub(left));
        }
        state.wanted = state.wanted.saturating_add(bytes);
    }

    fn on_pull(&mut self, path: &Path, credit_bytes: u64) -> bool {
        self.amounts.follow(path, |path| Amounts::new(&self.own, path));
        let (state, amounts) = (&mut self.state, &self.amounts);
        //= docs/specs/eqds.md#EQDS-5 totals
        let sent = state.spent.saturating_add(state.speculated);
        let honest = credit_bytes.min(state.told.saturating_add(sent));
        state.speculating = false;
        if honest <= state.pulled {
            return false;
        }
        state.pulled = honest;
        //= docs/specs/eqds.md#EQDS-9 excess credit
        let most = state.spent.saturating_add(amounts.request_bytes.saturating_mul(2));
        let over = state.pulled.saturating_sub(most);
        state.spent = state.spent.saturating_add(over);
        state.wanted = state.wanted.saturating_add(over);
        true
    }

    fn poll_request(&mut self, path: &Path, again: bool) -> Option<PullRequest> {
        self.poll_request_within(path, u64::MAX, again)
    }
}

/// More than is ever in flight, and far from where sums overflow.
const UNBOUNDED: u64 = 1 << 48;
