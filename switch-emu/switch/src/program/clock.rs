//! The clock of XDP programs, as a process reads it that may be in a time namespace.

use libbpf_rs::{Object, ProgramInput};
use spray_nic::sys::monotonic_ns;
use spray_nic::xdp;
use spray_pipeline::deployment::since_ps;

use super::ProgramError;
use super::object;

/// The kernel's monotonic clock since this was made: the time of [`SwitchProgram`](super::SwitchProgram)s that are loaded with it. A time namespace
/// shifts the process's own monotonic clock, and never the kernel's.
//= docs/specs/switch.md#SW-31 one clock
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelClock {
    /// What the kernel's clock read when this was made.
    pub(super) origin_ns: u64,
    /// What the process's clock read then.
    own_origin_ns: u64,
}

impl KernelClock {
    /// A clock that is zero now.
    ///
    /// # Errors
    /// When the kernel refuses the program that reads its clock.
    pub fn new() -> Result<Self, ProgramError> {
        let program = object::load(object::CLOCK, |_| Ok(()))?;
        let first = Sight::take(&program)?;
        let best = (1..SIGHTS).try_fold(first, |best, _| Sight::take(&program).map(|sight| best.narrower(sight)))?;
        let own_origin_ns = monotonic_ns();
        Ok(Self { origin_ns: best.kernel_ns(own_origin_ns), own_origin_ns })
    }

    /// Nanoseconds since this was made.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.own_origin_ns)
    }

    /// Picoseconds since this was made.
    #[must_use]
    pub fn now_ps(&self) -> u64 {
        since_ps(0, self.now_ns())
    }
}

/// How often both clocks are read: the reading that took the least time counts.
const SIGHTS: usize = 16;

const SECOND_NS: i64 = 1_000_000_000;

/// The kernel's clock, between two readings of the process's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sight {
    before_ns: u64,
    kernel_ns: u64,
    after_ns: u64,
}

impl Sight {
    fn take(object: &Object) -> Result<Self, ProgramError> {
        // An Ethernet frame.
        let (frame, mut out) = ([0; 64], [0; 64]);
        let input = ProgramInput { data_in: Some(&frame), data_out: Some(&mut out), ..Default::default() };
        let program = xdp::program(object, "clock")?;
        let before_ns = monotonic_ns();
        program.test_run(input).map_err(ProgramError::TestRun)?;
        let after_ns = monotonic_ns();
        let [kernel_ns, ..] = out.as_chunks().0 else { unreachable!("64 bytes") };
        Ok(Self { before_ns, kernel_ns: u64::from_ne_bytes(*kernel_ns), after_ns })
    }

    fn narrower(self, other: Self) -> Self {
        let width = |sight: &Self| sight.after_ns - sight.before_ns;
        if width(&other) < width(&self) { other } else { self }
    }

    /// What the kernel's clock reads when the process's reads `own_ns`.
    fn kernel_ns(&self, own_ns: u64) -> u64 {
        own_ns.wrapping_add_signed(self.ahead_ns())
    }

    /// How far the kernel's clock is ahead of the process's: whole seconds, as `unshare` and container runtimes set it, where these lie between what the two
    /// readings allow.
    fn ahead_ns(&self) -> i64 {
        let ahead_of = |own_ns: u64| self.kernel_ns.wrapping_sub(own_ns).cast_signed();
        let (least_ns, most_ns) = (ahead_of(self.after_ns), ahead_of(self.before_ns));
        let whole_ns = most_ns - most_ns.rem_euclid(SECOND_NS);
        if whole_ns >= least_ns { whole_ns } else { least_ns + (most_ns - least_ns) / 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = SECOND_NS as u64;

    #[test]
    fn clocks_that_may_differ_by_whole_seconds_do_and_others_differ_as_they_read() {
        let sight = |kernel_ns| Sight { before_ns: 100 * SECOND, kernel_ns, after_ns: 100 * SECOND + 2_000 };
        for (kernel_ns, expected) in [
            (100 * SECOND, 200 * SECOND),
            (100 * SECOND + 2_000, 200 * SECOND),
            (160 * SECOND + 600, 260 * SECOND),
            (18_500_100 * SECOND + 1_900, 18_500_200 * SECOND),
            (40 * SECOND + 1_000, 140 * SECOND),
            (160 * SECOND + 71_000, 260 * SECOND + 70_000),
            (40 * SECOND + 71_000, 140 * SECOND + 70_000),
        ] {
            assert_eq!(sight(kernel_ns).kernel_ns(200 * SECOND), expected, "{kernel_ns}");
        }
        let wide = Sight { after_ns: 101 * SECOND, ..sight(0) };
        assert_eq!((wide.narrower(sight(1)), sight(1).narrower(wide)), (sight(1), sight(1)));
    }
}
