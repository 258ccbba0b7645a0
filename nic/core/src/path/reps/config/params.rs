//! The settings of REPS by name.

use super::{FailureSignal, FrozenWalk, MAX_BUFFER, RepsConfig, ThawCheck};
use crate::params::{AUTO, Group, Param, Unit};

impl RepsConfig {
    /// The table of parameters, in the order of the fields.
    pub const PARAMS: &'static [Param] = &[
        param("buffer", Unit::Count, 1, MAX_BUFFER as u64, MAX_BUFFER as u64, "Entropy values that the buffer holds."),
        param("freezing", Unit::Flag, 0, 1, 1, "Freeze after failures; always off under `reps-no-freezing`."),
        param(
            "freezing_timeout_us",
            Unit::Microseconds,
            0,
            MAX_PS,
            super::FREEZING_TIMEOUT_PS,
            "Least time spent frozen.",
        ),
        param(
            "force_freezing_us",
            Unit::Microseconds,
            0,
            MAX_PS,
            AUTO,
            "Freeze for good so long after the first acknowledgement (appendix A). By itself never.",
        ),
        param(
            "congestion_rtt",
            Unit::Ratio,
            0,
            1_000_000,
            1_650,
            "Without trimming, a loss after an RTT of this many base RTTs is congestion; 0: every declared loss is a failure.",
        ),
        param(
            "failure_signal",
            Unit::Choice(&["any-loss", "timeout-only"]),
            0,
            1,
            0,
            "Which declared losses may be failures.",
        ),
        param(
            "probe_us",
            Unit::Microseconds,
            // Less would be nothing but probes.
            1_000_000,
            MAX_PS,
            AUTO,
            "Time between probes of the failed path while frozen. By itself never; under `reps-probing` eight base RTTs.",
        ),
        param("timed_exit", Unit::Flag, 0, 1, 0, "With probes, the freezing timeout ends freezing too."),
        param(
            "explore_packets",
            Unit::Count,
            0,
            65_535,
            AUTO,
            "Packets that explore after freezing. By itself one bandwidth-delay product.",
        ),
        param("empty_on_thaw", Unit::Flag, 0, 1, 0, "Forget all cached entropy values on leaving freezing mode."),
        param(
            "thaw_check",
            Unit::Choice(&["unmarked-ack", "any-feedback"]),
            0,
            1,
            0,
            "Which feedback lets freezing mode end.",
        ),
        param(
            "frozen_walk",
            Unit::Choice(&["valid-first", "all-slots"]),
            0,
            1,
            0,
            "The order in which entropy values are reused while frozen.",
        ),
    ];
}

const fn param(name: &'static str, unit: Unit, min: u64, max: u64, default: u64, about: &'static str) -> Param {
    Param { name, unit, min, max, default, about }
}

/// 37 minutes, beyond which freezing could not be told from the past.
const MAX_PS: u64 = (i32::MAX as u64) << 20;

impl Group for RepsConfig {
    fn params(&self) -> &'static [Param] {
        Self::PARAMS
    }

    fn value(&self, index: usize) -> u64 {
        match index {
            0 => self.buffer.into(),
            1 => self.freezing.into(),
            2 => self.freezing_timeout_ps,
            3 => self.force_freezing_ps.unwrap_or(AUTO),
            4 => self.congestion_rtt_permille.unwrap_or(0).into(),
            5 => (self.failure_signal == FailureSignal::TimeoutOnly).into(),
            6 => self.probe_interval_ps.unwrap_or(AUTO),
            7 => self.timed_exit.into(),
            8 => self.explore_packets.map_or(AUTO, u64::from),
            9 => self.empty_on_thaw.into(),
            10 => (self.thaw_check == ThawCheck::AnyFeedback).into(),
            11 => (self.frozen_walk == FrozenWalk::AllSlots).into(),
            _ => 0,
        }
    }

    fn set_value(&mut self, index: usize, value: u64) {
        let given = (value != AUTO).then_some(value);
        let flag = value != 0;
        match index {
            0 => self.buffer = value.min(MAX_BUFFER.into()) as u8,
            1 => self.freezing = flag,
            2 => self.freezing_timeout_ps = value,
            3 => self.force_freezing_ps = given,
            4 => self.congestion_rtt_permille = flag.then_some(value.min(u32::MAX.into()) as u32),
            5 => self.failure_signal = if flag { FailureSignal::TimeoutOnly } else { FailureSignal::AnyLoss },
            6 => self.probe_interval_ps = given,
            7 => self.timed_exit = flag,
            8 => self.explore_packets = given.map(|packets| packets.min(u16::MAX.into()) as u16),
            9 => self.empty_on_thaw = flag,
            10 => self.thaw_check = if flag { ThawCheck::AnyFeedback } else { ThawCheck::UnmarkedAck },
            11 => self.frozen_walk = if flag { FrozenWalk::AllSlots } else { FrozenWalk::ValidFirst },
            _ => {}
        }
    }
}
