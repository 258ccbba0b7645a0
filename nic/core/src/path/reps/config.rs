//! The settings of REPS: the paper's, and where published code departs from it.

use crate::settings::settings;
use crate::units::{Micros, Ratio};

settings! {
    /// The settings of [`Reps`](super::Reps), `reps-no-freezing` and `reps-probing`.
    pub struct RepsConfig {
        /// The variant that provides the defaults.
        pub rule: RepsRule = RepsRule::Paper,
        /// Entropy values that the buffer holds (REPS_BUFFER_SIZE).
        #[schemars(range(min = 1, max = 8))]
        pub buffer: u8 = MAX_BUFFER,
        /// Freeze after failures. Off in `reps-no-freezing`: REPS's core logic (REPS §3.1).
        pub freezing: bool = true,
        /// Minimum time frozen (FREEZING_TIMEOUT). By default 10 ms, and at least 128 base RTTs and 32
        /// times the time from the loss until the failure was detected.
        #[schemars(range(min = 0, max = 2_251_799_812_u64))]
        pub freezing_timeout_us: Option<Micros> = None,
        /// Freeze for good this long after the first ACK (REPS appendix A, figure 15). Default: no.
        #[schemars(range(min = 0, max = 2_251_799_812_u64))]
        pub force_freezing_us: Option<Micros> = None,
        /// Without trimming, a loss after an RTT of at least this many base RTTs is congestion.
        /// REPS appendix A only says "high"; the authors' artifact uses 1.65. 0 makes every
        /// declared loss a failure.
        #[schemars(range(min = 0, max = 1_000))]
        pub congestion_rtt: Ratio = Ratio::permille(1_650),
        /// Which declared losses may be failures. By default any where the network trims, and those
        /// that probes confirm where it does not; timeouts only under `artifact` and
        /// `ultra-ethernet`.
        pub failure_signal: Option<FailureSignal> = None,
        /// Probe the failed path while frozen, and thaw on an answer (§3.2), as `reps-probing`.
        pub probing: bool = false,
        /// Time between probes. By default eight base RTTs: probes are then less than a thousandth
        /// of a frozen connection's packets. The paper names no interval.
        #[schemars(range(min = 1, max = 2_251_799_812_u64))]
        pub probe_us: Option<Micros> = None,
        /// With probes: whether the freezing timeout also thaws. In the paper probes replace it.
        pub timed_exit: bool = false,
        /// Packets that explore after freezing. By default a BDP; 16 under `ultra-ethernet`.
        pub explore_packets: Option<u16> = None,
        /// Whether thawing empties the buffer. By default no; yes under the other rules.
        pub empty_on_thaw: Option<bool> = None,
        /// Which feedback can thaw. By default unmarked ACKs; any under the other rules.
        pub thaw_check: Option<ThawCheck> = None,
        /// Order of reuse while frozen. By default valid ones first; all in turn under other rules.
        pub frozen_walk: Option<FrozenWalk> = None,
    }

    /// The variants of REPS.
    #[derive(Default)]
    pub enum RepsRule {
        /// The paper's algorithm.
        #[default]
        Paper,
        /// The authors' published artifact.
        Artifact,
        /// The Ultra Ethernet artifact; it requires a network that trims.
        UltraEthernet,
    }

    /// Which declared losses may be failures; a trimmed packet never is.
    pub enum FailureSignal {
        /// Retransmission timeouts and gaps in selective acknowledgements.
        AnyLoss,
        /// Retransmission timeouts only, as in the paper and both published implementations.
        TimeoutOnly,
        /// Retransmission timeouts and gaps in selective acknowledgements, if probes of the lost
        /// packet's path stay unanswered. If losses are found by timeouts alone, as `timeout-only`.
        Probes,
    }

    /// Which feedback ends freezing mode once its time is over.
    pub enum ThawCheck {
        /// An unmarked acknowledgement: the paper's algorithm 1 returns early on a marked one.
        UnmarkedAck,
        /// Any acknowledgement or NACK, as in both published implementations.
        AnyFeedback,
    }

    /// The order of reuse while frozen.
    pub enum FrozenWalk {
        /// Valid ones first, oldest first; then all from the head (the paper's algorithm 2).
        ValidFirst,
        /// All slots in their order, valid or not, as in the authors' artifact.
        AllSlots,
    }
}

impl RepsConfig {
    /// Returns these settings without freezing: `reps-no-freezing`.
    pub fn without_freezing(self) -> Self {
        Self { freezing: false, ..self }
    }

    /// Returns these settings with probes: `reps-probing`.
    //= docs/specs/reps.md#REPS-26 with probing
    pub fn with_probing(self) -> Self {
        Self { probing: true, ..self }
    }
}

/// Maximum number of entropy values in a buffer.
pub const MAX_BUFFER: u8 = 8;

/// Base round trips between two probes of a failed path, without [`RepsConfig::probe_us`].
pub const PROBE_RTTS: u64 = 8;
