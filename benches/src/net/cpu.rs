//! CPU time of the whole machine: the kernel's packet processing belongs to no process.

use std::time::Duration;
use std::{fs, io};

/// `/proc/stat` counts in hundredths of a second on every architecture.
const TICK: Duration = Duration::from_millis(10);
/// Columns of its first line that are work: user, nice, system, irq and softirq.
const WORK: [usize; 5] = [0, 1, 2, 5, 6];

/// How long all CPUs together have been busy since the machine started.
pub(crate) fn busy() -> io::Result<Duration> {
    let text = fs::read_to_string("/proc/stat")?;
    of(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/stat does not begin with the CPUs' time"))
}

fn of(text: &str) -> Option<Duration> {
    let columns: Vec<u32> =
        text.strip_prefix("cpu ")?.lines().next()?.split_whitespace().flat_map(str::parse).collect();
    let ticks = WORK.iter().map(|column| columns.get(*column)).sum::<Option<u32>>()?;
    Some(TICK * ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_waiting_and_stolen_time_is_not_busy() {
        let text = "cpu  1 20 300 4000 50000 600000 7000000 80000000 0 0\ncpu0 9 9 9 9 9 9 9 9 0 0\n";
        assert_eq!(of(text), Some(TICK * 7_600_321));
        assert_eq!((of("cpu 1 2"), of("intr 1")), (None, None));
        assert!(busy().expect("every Linux tells") > Duration::ZERO);
    }
}
