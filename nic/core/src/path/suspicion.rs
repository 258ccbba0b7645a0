//! Failure detection by probes of a lost packet's path (RPP-10 to 13; REPS-27).

use super::{AckInfo, Ev, LossInfo, Now, Path, Time};

/// A lost packet's path and the results of its probes. A failed path leaves all probes unanswered,
/// one that loses few frames answers nearly all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Suspicion {
    /// When the next step is due; [`Time::NEVER`] without a suspect.
    step_at: Time,
    /// Maximum time to an answer, in ticks.
    wait: u32,
    ev: Ev,
    /// [`LOST`] for each unanswered probe, less one for each answer.
    score: i8,
    /// Bits 0-2: whether the probes of the last three steps await answers, the latest first. Bits
    /// 3-5: probes that are to explore (`reps-plus`). [`PROBED`], [`FAILED`].
    flags: u8,
}

//= docs/specs/reps-plus.md#RPP-15 bytes of state
const _: () = assert!(size_of::<Suspicion>() == 16);

impl Suspicion {
    pub(super) const NONE: Self = Self { step_at: Time::NEVER, wait: 0, ev: Ev::new(0), score: 0, flags: 0 };

    /// Suspects the path of `ev`, which answers within `wait` ticks unless it `failed`.
    pub(super) fn of(now: Time, ev: Ev, wait: u32, failed: bool) -> Self {
        Self { step_at: now, wait, ev, score: 0, flags: if failed { FAILED } else { 0 } }
    }

    pub(super) fn suspect(&self) -> Option<Ev> {
        (self.step_at != Time::NEVER).then_some(self.ev)
    }

    pub(super) fn wait(&self) -> u32 {
        self.wait
    }

    pub(super) fn has_failed(&self) -> bool {
        self.flags & FAILED != 0
    }

    pub(super) fn has_probed(&self) -> bool {
        self.flags & PROBED != 0
    }

    /// Whether probes explore: the first one was not answered in time.
    fn explores(&self) -> bool {
        self.score > 0 || self.has_failed() || (self.flags & IN_FLIGHT).count_ones() > 1
    }

    /// Probes that are to explore.
    pub(super) fn scouts(&self) -> u8 {
        self.flags >> SCOUTS & 7
    }

    pub(super) fn raise_scouts(&mut self, count: u8) {
        self.flags = self.flags & !(7 << SCOUTS) | self.scouts().max(count.min(7)) << SCOUTS;
    }

    pub(super) fn take_scout(&mut self) -> bool {
        let is_due = self.explores() && self.scouts() > 0;
        self.flags -= u8::from(is_due) << SCOUTS;
        is_due
    }

    /// When [`Suspicion::poll`] is due.
    pub(super) fn next_at(&self) -> Time {
        if self.awaits_ack() { Time::NEVER } else { self.step_at }
    }

    /// Takes a step if one is due. Returns the suspect if a probe is to be sent.
    //= docs/specs/reps-plus.md#RPP-11 probes
    //= docs/specs/reps-plus.md#RPP-13 thawing
    pub(super) fn poll(&mut self, now: Time) -> Option<Ev> {
        if now < self.next_at() {
            return None;
        }
        let is_lost = self.flags & OVERDUE != 0;
        self.flags = self.flags & !IN_FLIGHT | self.flags << 1 & IN_FLIGHT;
        self.step_at = now.after(self.step_ps());
        if is_lost {
            self.score = self.score.saturating_add(LOST);
            if self.has_failed() {
                self.fail(now);
                return None;
            }
            if self.awaits_ack() {
                self.step_at = now;
                return None;
            }
        }
        let in_flight = (self.flags & IN_FLIGHT).count_ones() as i8;
        if self.score <= 0 && in_flight >= AT_ONCE {
            return None;
        }
        self.flags |= 1 | PROBED;
        Some(self.ev)
    }

    /// For a failed path: returns the suspect if a probe is due, and sets the time of the next one.
    pub(super) fn repeat(&mut self, now: Time, interval_ps: u64) -> Option<Ev> {
        if now < self.step_at {
            return None;
        }
        self.step_at = now.after(interval_ps);
        self.flags |= PROBED;
        Some(self.ev)
    }

    /// Whether packets must not explore: lost probes outweigh answers, or none was answered yet.
    pub(super) fn forbids_exploring(&self) -> bool {
        self.step_at != Time::NEVER && (self.score >= 0 || self.has_failed())
    }

    //= docs/specs/reps-plus.md#RPP-11 probes
    //= docs/specs/reps-plus.md#RPP-13 thawing
    pub(super) fn on_answer(&mut self) -> bool {
        let in_flight = self.flags & IN_FLIGHT;
        if in_flight != 0 {
            self.flags ^= 1 << (7 - in_flight.leading_zeros());
            self.score -= 1;
        } else if !self.has_failed() {
            // The answer to a probe that was counted as lost.
            self.score = self.score.saturating_sub(LOST + 1);
        }
        self.score <= if self.has_failed() { WORKS_AGAIN } else { WORKS }
    }

    /// Whether an ACK shows that only the probes failed: its packet was sent after an unanswered
    /// one. While a host pauses, everything is late.
    //= docs/specs/reps-plus.md#RPP-12 freezing
    pub(super) fn is_confirmed_by(&self, now: Now<'_>, ack: &AckInfo) -> bool {
        self.awaits_ack() && now.time.before(ack.rtt_ps) >= self.step_at.before(2 * self.step_ps())
    }

    /// Records that the path has failed. Its next test begins eight waits later.
    pub(super) fn fail(&mut self, now: Time) {
        self.flags = self.flags & !IN_FLIGHT | FAILED;
        self.score = 0;
        self.step_at = now.after(FAILED_WAITS * self.wait_ps());
    }

    fn awaits_ack(&self) -> bool {
        self.score >= FAILS && !self.has_failed()
    }

    fn wait_ps(&self) -> u64 {
        u64::from(self.wait) << TICK_SHIFT
    }

    fn step_ps(&self) -> u64 {
        self.wait_ps() / 3
    }
}

/// Maximum time to the answer of a probe of a lost packet's path, in ticks, rounded up.
//= docs/specs/reps-plus.md#RPP-11 probes
pub(super) fn wait_ticks(path: &Path, loss: &LossInfo) -> u32 {
    let wait_ps = loss.max_rtt_ps.saturating_add(loss.max_rtt_ps / 8).max(overdue_ps(path));
    ((wait_ps >> TICK_SHIFT) + 1).min(u32::MAX.into()) as u32
}

/// Minimum age of an overdue answer to a packet or probe.
pub(super) const fn overdue_ps(path: &Path) -> u64 {
    path.base_rtt_ps + path.base_rtt_ps / 4
}

/// A tick of 2^20 ps (1.05 us) is short against round trips of several us.
pub(super) const TICK_SHIFT: u32 = 20;

/// Weight of a lost probe against -1 of an answer. The log-likelihood ratios of a link that loses
/// 50 % of all frames to one that loses 4 % are 2.5 for a lost probe and -0.65 for an answer.
const LOST: i8 = 4;
/// Score of a failed path: five probes lost, or more if some were answered.
const FAILS: i8 = 5 * LOST;
/// Score of a working path: five answers, if no probe was lost.
const WORKS: i8 = -5;
/// Score at which a failed path works again: eight answers.
const WORKS_AGAIN: i8 = -8;
const AT_ONCE: i8 = 2;
const FAILED_WAITS: u64 = 8;

/// In [`Suspicion::flags`]: the probes of the last three steps.
const IN_FLIGHT: u8 = 7;
/// The oldest of them, sent a wait before the next step.
const OVERDUE: u8 = 4;
const SCOUTS: u8 = 3;
const PROBED: u8 = 1 << 6;
const FAILED: u8 = 1 << 7;

#[cfg(test)]
mod tests {
    use rand_core::RngCore;

    use super::*;
    use crate::rng;

    const WAIT_PS: u64 = 30 << TICK_SHIFT;

    /// Runs a test of a path that loses this share of probes in both directions. Returns whether
    /// the path fails it, the number of waits, and the number of probes.
    fn run_test(loss: f64, rng: &mut impl RngCore) -> (bool, f64, u32) {
        let mut suspicion = Suspicion::of(Time::ZERO, Ev::new(7), 30, false);
        let (mut sent, mut answers) = (0, std::collections::VecDeque::new());
        loop {
            let (step, answer) = (suspicion.next_at(), answers.front().copied().unwrap_or(Time::NEVER));
            if step == Time::NEVER {
                return (true, suspicion.step_at.ps() as f64 / WAIT_PS as f64, sent);
            }
            if answer <= step {
                answers.pop_front();
                if suspicion.on_answer() {
                    return (false, answer.ps() as f64 / WAIT_PS as f64, sent);
                }
            } else if suspicion.poll(step).is_some() {
                sent += 1;
                if f64::from(rng.next_u32()) >= loss * f64::from(u32::MAX) {
                    // Four fifths of a wait.
                    answers.push_back(step.after(WAIT_PS / 5 * 4));
                }
            }
        }
    }

    //= docs/specs/reps-plus.md#RPP-11 probes
    #[test]
    fn the_test_tells_failed_paths_from_lossy_ones() {
        let mut rng = rng::stream(3, 7);
        // Loss; maximum and minimum number of tests of 20,000 that fail; maximum number of waits of
        // those; maximum number of probes per test.
        let table = [
            (0.04, 2, 0, 9.0, 7.5),
            (0.08, 20, 0, 9.0, 9.6),
            (0.5, 20_000, 19_000, 6.0, 16.0),
            (1.0, 20_000, 20_000, 2.7, 7.0),
        ];
        for (loss, most, least, waits, probes) in table {
            let (mut failed, mut took, mut sent) = (0, 0.0, 0);
            for _ in 0..20_000 {
                let (fails, waits, probes) = run_test(loss, &mut rng);
                failed += u32::from(fails);
                took += if fails { waits } else { 0.0 };
                sent += probes;
            }
            let (took, sent) = (took / f64::from(failed.max(1)), f64::from(sent) / 20_000.0);
            std::println!("{loss}: {failed} fail after {took:.2} waits; {sent:.2} probes");
            assert!(
                (least..=most).contains(&failed) && took <= waits && sent <= probes,
                "{loss}: {failed} {took} {sent}"
            );
        }
    }
}
