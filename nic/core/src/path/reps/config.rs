//! The settings of REPS: the paper's, and where published code departs from it.

mod params;

use crate::path::{BalancerKind, PathConfig};

/// The settings that only REPS uses. [`RepsConfig::paper`] is the paper; every field says what departs from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepsConfig {
    /// Entropy values that the buffer holds, 1 to 8, clamped (REPS_BUFFER_SIZE, 8 in the paper).
    pub buffer: u8,
    /// Least time spent frozen, in picoseconds (FREEZING_TIMEOUT); leaving may come 1.05 us late. At most 37 minutes.
    pub freezing_timeout_ps: u64,
    /// Without trimming, a loss after an RTT of this many thousandths of the base RTT or more is congestion (REPS
    /// appendix A, which only says "high"; the authors' artifact uses 1650). `None`: every declared loss is a failure.
    pub congestion_rtt_permille: Option<u32>,
    /// Which declared losses may be failures.
    pub failure_signal: FailureSignal,
    /// Freeze after failures; without it REPS is its core logic alone (REPS §3.1), as under `reps-no-freezing`.
    pub freezing: bool,
    /// Freeze so long after the first acknowledgement, in picoseconds, whatever happens, and stay frozen (REPS appendix A,
    /// figure 15); `None` is never.
    pub force_freezing_ps: Option<u64>,
    /// Probe the path that failed so often while frozen, in picoseconds, at least 1, and leave freezing mode when it answers
    /// (REPS §3.2); `None` probes under `reps-probing` only, every [`PROBE_RTTS`] round trips.
    pub probe_interval_ps: Option<u64>,
    /// Where it probes, let the freezing timeout end freezing mode too. In the paper probes take its place.
    pub timed_exit: bool,
    /// Packets that explore after freezing; `None` is the paper's bandwidth-delay product. Ultra Ethernet: 16.
    pub explore_packets: Option<u16>,
    /// Forget all cached entropy values on leaving freezing mode. The paper keeps them, both implementations do not.
    pub empty_on_thaw: bool,
    /// Which feedback lets freezing mode end.
    pub thaw_check: ThawCheck,
    /// The order in which entropy values are reused while frozen.
    pub frozen_walk: FrozenWalk,
}

/// Which declared losses may be failures; a trimmed packet never is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureSignal {
    /// Retransmission timeouts and gaps in selective acknowledgements.
    AnyLoss,
    /// Retransmission timeouts only, as both published implementations.
    TimeoutOnly,
}

/// Which feedback lets freezing mode end once its time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThawCheck {
    /// An unmarked acknowledgement: the paper's algorithm 1 returns before the check on a marked one.
    UnmarkedAck,
    /// Any acknowledgement or NACK, as both published implementations.
    AnyFeedback,
}

/// The order in which entropy values are reused while frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrozenWalk {
    /// Valid ones first, oldest first; when none is left, from the head around the buffer (the paper's algorithm 2).
    ValidFirst,
    /// All in the order in which they are stored, valid or not, as the authors' artifact.
    AllSlots,
}

/// Most entropy values that a buffer may hold.
pub const MAX_BUFFER: u8 = 8;

/// Round trips of the empty network between two probes of `reps-probing`, unless set: the paper names no interval. A probe then
/// costs a frozen connection less than a thousandth of its packets.
pub const PROBE_RTTS: u64 = 8;

impl RepsConfig {
    /// The paper's.
    pub const DEFAULT: Self = Self::paper();

    /// The paper's algorithm, without probes.
    pub const fn paper() -> Self {
        Self {
            buffer: MAX_BUFFER,
            freezing_timeout_ps: FREEZING_TIMEOUT_PS,
            congestion_rtt_permille: Some(1650),
            failure_signal: FailureSignal::AnyLoss,
            freezing: true,
            force_freezing_ps: None,
            probe_interval_ps: None,
            timed_exit: false,
            explore_packets: None,
            empty_on_thaw: false,
            thaw_check: ThawCheck::UnmarkedAck,
            frozen_walk: FrozenWalk::ValidFirst,
        }
    }

    /// What the authors' published simulator does.
    pub const fn artifact() -> Self {
        Self {
            failure_signal: FailureSignal::TimeoutOnly,
            empty_on_thaw: true,
            thaw_check: ThawCheck::AnyFeedback,
            frozen_walk: FrozenWalk::AllSlots,
            ..Self::paper()
        }
    }

    /// What the Ultra Ethernet simulator does; it demands a network that trims.
    pub const fn ultra_ethernet() -> Self {
        Self { explore_packets: Some(16), ..Self::artifact() }
    }

    /// The settings under the name by which the balancer was asked for.
    pub(super) fn named(config: &PathConfig) -> Self {
        let reps = config.schemes.reps;
        match config.balancer {
            BalancerKind::RepsNoFreezing => Self { freezing: false, ..reps },
            BalancerKind::RepsProbing => {
                let default_ps = config.base_rtt_ps.saturating_mul(PROBE_RTTS);
                Self { probe_interval_ps: reps.probe_interval_ps.or(Some(default_ps)), ..reps }
            }
            _ => reps,
        }
    }
}

impl Default for RepsConfig {
    fn default() -> Self {
        Self::paper()
    }
}

/// 10 ms, about as long as routing takes to exclude a dead link (REPS §3.2).
const FREEZING_TIMEOUT_PS: u64 = 10_000_000_000;
