//! EQDS (Olteanu et al., NSDI 2022; REPS §4.5.3; `docs/specs/eqds.md`): the receiver grants credit,
//! the first window needs none. This is the sender's part; the receiving host's is [`PullPacer`].

mod pacer;

#[cfg(test)]
mod tests;

use spray_wire::PullRequest;

pub use self::pacer::{CreditBound, PullPacer};
use super::{AckInfo, CongestionControl, LossCause, Now, OnPath, Path, Scheme, part_bytes, settings};
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
        /// Wire bytes sent before any feedback. By default one BDP, in whole packets.
        #[schemars(range(min = 0, max = 1_099_511_627_776_u64))]
        pub speculative_bytes: Option<ByteSize> = None,
        /// Wire bytes of credit requested in advance, at least four packets. By default three BDPs.
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

#[derive(Clone, Debug, Default)]
struct Totals {
    /// The last packet may overdraw the credit by less than its own bytes.
    pulled: u64,
    spent: u64,
    speculated: u64,
    speculation_end: u64,
    speculating: bool,
    /// Bytes that credit or speculation must cover: all messages, and losses other than trims.
    wanted: u64,
    /// Bytes of trimmed packets, for which the receiver grants credit without a request.
    trimmed: u64,
    requested: u64,
    has_requested: bool,
}

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
    //= docs/specs/eqds.md#EQDS-6 demand
    fn demand(&self) -> u64 {
        let free = if self.speculating { self.speculated.max(self.speculation_end) } else { self.speculated };
        self.wanted.saturating_sub(free)
    }

    /// The demand if speculation ends after the next packet, at most a packet beyond the last one.
    //= docs/specs/eqds.md#EQDS-19 one packet in advance
    fn advance(&self, packet_bytes: u64) -> u64 {
        let at_worst = self.wanted.saturating_sub(self.speculated.saturating_add(packet_bytes));
        if self.speculating { at_worst.min(self.requested.saturating_add(packet_bytes)) } else { 0 }
    }

    /// The sender's estimate of credit spent, except that for trims.
    fn spent_unasked(&self, total: u64) -> u64 {
        total.saturating_sub(self.trimmed)
    }
}

impl Eqds {
    /// Returns a due request for credit, for at most `most_bytes` beyond the credit spent.
    //= docs/specs/eqds.md#EQDS-7 announcing the demand
    //= docs/specs/eqds.md#EQDS-8 size of a request
    pub(super) fn poll_request_within(&mut self, path: &Path, most_bytes: u64, again: bool) -> Option<PullRequest> {
        if self.state.wanted == 0 {
            return None;
        }
        self.amounts.follow(path, |path| Amounts::new(&self.own, path));
        let (state, request_bytes) = (&mut self.state, self.amounts.request_bytes.min(most_bytes));
        let most = state.spent_unasked(state.spent).saturating_add(request_bytes);
        let left = state.requested.saturating_sub(state.spent_unasked(state.pulled));
        let advance = if left == 0 { state.advance(path.packet_bytes.into()) } else { 0 };
        let demand = state.demand().max(advance).min(most).max(state.requested);
        let due = !state.has_requested || (demand > state.requested && left < request_bytes / 2);
        if !due && !again {
            return None;
        }
        state.requested = demand;
        state.has_requested = true;
        Some(PullRequest { demand_bytes: demand, pulled_bytes: state.pulled })
    }
}

impl CongestionControl for Eqds {
    //= docs/specs/eqds.md#EQDS-3 end of speculation
    fn on_ack(&mut self, _now: Now<'_>, _ack: &AckInfo) {
        self.state.speculating = false;
    }

    //= docs/specs/eqds.md#EQDS-3 end of speculation
    //= docs/specs/eqds.md#EQDS-6 demand
    fn on_loss(&mut self, _now: Now<'_>, bytes: u32, cause: LossCause) {
        let state = &mut self.state;
        state.speculating = false;
        let lost = if cause.is_trim() { &mut state.trimmed } else { &mut state.wanted };
        *lost = lost.saturating_add(u64::from(bytes));
    }

    /// Like a lost packet, it uses credit.
    fn on_go_back(&mut self, bytes: u32) {
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
        let honest = credit_bytes.min(state.requested.saturating_add(sent));
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

/// More than is ever in flight, and far below overflow of sums.
const UNBOUNDED: u64 = 1 << 48;
