//! The clock of XDP programs, read by a process that may be in a time namespace.

use libbpf_rs::{Object, ProgramInput};
use spray_nic::sys::monotonic_ns;
use spray_nic::xdp;
use spray_pipeline::deployment::elapsed_ps;

use super::ProgramError;
use super::object;

/// The kernel's monotonic clock since this was created: the time of programs loaded with it. A time
/// namespace shifts only the process's clock.
//= docs/specs/switch.md#SW-31 one clock
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelClock {
    pub(super) origin_ns: u64,
    /// The process's clock at that time.
    own_origin_ns: u64,
}

impl KernelClock {
    /// Creates a clock that is zero now.
    pub fn new() -> Result<Self, ProgramError> {
        let program = object::load(object::CLOCK, |_| Ok(()))?;
        let first = Reading::take(&program)?;
        let best =
            (1..READINGS).try_fold(first, |best, _| Reading::take(&program).map(|reading| best.shorter(reading)))?;
        let own_origin_ns = monotonic_ns();
        Ok(Self { origin_ns: best.kernel_ns(own_origin_ns), own_origin_ns })
    }

    /// Returns the nanoseconds since this was created.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.own_origin_ns)
    }

    /// Returns the picoseconds since this was created.
    #[must_use]
    pub fn now_ps(&self) -> u64 {
        elapsed_ps(0, self.now_ns())
    }
}

/// The number of readings of both clocks, of which the fastest counts.
const READINGS: usize = 16;

const SECOND_NS: i64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    before_ns: u64,
    kernel_ns: u64,
    after_ns: u64,
}

impl Reading {
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

    fn shorter(self, other: Self) -> Self {
        let width = |reading: &Self| reading.after_ns - reading.before_ns;
        if width(&other) < width(&self) { other } else { self }
    }

    fn kernel_ns(&self, own_ns: u64) -> u64 {
        own_ns.wrapping_add_signed(self.offset_ns())
    }

    /// The offset of the kernel's clock: whole seconds, as `unshare` and container runtimes set it,
    /// if the two readings allow that; else the middle of what they allow.
    fn offset_ns(&self) -> i64 {
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
    fn clock_offsets_are_whole_seconds_where_possible_or_as_measured() {
        let reading = |kernel_ns| Reading { before_ns: 100 * SECOND, kernel_ns, after_ns: 100 * SECOND + 2_000 };
        for (kernel_ns, expected) in [
            (100 * SECOND, 200 * SECOND),
            (100 * SECOND + 2_000, 200 * SECOND),
            (160 * SECOND + 600, 260 * SECOND),
            (18_500_100 * SECOND + 1_900, 18_500_200 * SECOND),
            (40 * SECOND + 1_000, 140 * SECOND),
            (160 * SECOND + 71_000, 260 * SECOND + 70_000),
            (40 * SECOND + 71_000, 140 * SECOND + 70_000),
        ] {
            assert_eq!(reading(kernel_ns).kernel_ns(200 * SECOND), expected, "{kernel_ns}");
        }
        let wide = Reading { after_ns: 101 * SECOND, ..reading(0) };
        assert_eq!((wide.shorter(reading(1)), reading(1).shorter(wide)), (reading(1), reading(1)));
    }
}
