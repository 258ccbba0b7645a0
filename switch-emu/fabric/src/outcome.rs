//! What every engine says during a run, and of ports after it.

use spray_pipeline::counters::PortCounters;

/// What an engine tells while it works.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// A phase of the work begins; the text names it.
    Phase(String),
    /// Something that the user should know beside the results.
    Remark(String),
    /// Flows are running.
    Running {
        /// Scenario time.
        time_us: f64,
        /// Payload bytes delivered so far.
        delivered_bytes: u64,
        /// Payload bytes of all flows.
        total_bytes: u64,
        /// Flows whose message has arrived.
        flows_completed: u64,
        /// All flows.
        flows_total: u64,
    },
}

/// One port's figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortOutcome {
    /// The link's name.
    pub name: String,
    /// Its layer, see [`Network::layers`](crate::Network::layers).
    pub layer: String,
    /// Whether it joins two switches.
    pub uplink: bool,
    /// Its full rate.
    pub rate_bps: u64,
    /// What it counted.
    pub counters: PortCounters,
    /// Bytes at the port on average, from the start of the first flow to the end of the last.
    pub queue_mean_bytes: f64,
    /// How often priority flow control had its data pause. Only the simulator has it, as [`PortOutcome::paused_ps`].
    pub pauses: u64,
    /// How long its data paused.
    pub paused_ps: u64,
}

/// One port over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortSamples {
    /// The port's index among the outcomes.
    pub port: usize,
    /// (time, bytes waiting, bytes that have left the port so far).
    pub samples: Vec<(u64, u64, u64)>,
}

impl PortSamples {
    /// Takes a sample at `now_ps` of a port at which `came` bytes have come so far and `waiting` of them wait.
    ///
    /// The kernel's switches count a frame before its time is there. What a link of `rate_bps` cannot have carried since the sample
    /// before has yet to leave.
    //= docs/specs/switch.md#SW-24 bytes that have left
    pub fn look(&mut self, now_ps: u64, rate_bps: u64, waiting: u64, came: u64) {
        let left = came.saturating_sub(waiting);
        let (before_ps, before) = self.samples.last().map_or((0, 0), |(ps, _, left)| (*ps, *left));
        let carried = bytes_in(now_ps.saturating_sub(before_ps), rate_bps);
        self.samples.push((now_ps, waiting, left.clamp(before, before.saturating_add(carried))));
    }
}

/// Bytes that a link of `rate_bps` carries in `time_ps`.
fn bytes_in(time_ps: u64, rate_bps: u64) -> u64 {
    let bytes = u128::from(time_ps) * u128::from(rate_bps) / 8_000_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    //= docs/specs/switch.md#SW-24 bytes that have left
    fn no_link_carries_more_than_its_rate() {
        // 8 Gb/s: a byte in a nanosecond.
        let mut port = PortSamples::default();
        let looks = [
            // (ns, waiting, came)
            (0, 0, 0),
            (100, 400, 500),
            // Counted before its time: none waits yet.
            (200, 0, 900),
            (300, 0, 900),
            // A loss at random takes back what waited.
            (400, 50, 900),
            (2_000, 0, 900),
        ];
        for (ns, waiting, came) in looks {
            port.look(ns * 1_000, 8_000_000_000, waiting, came);
        }
        let left: Vec<_> = port.samples.iter().map(|(.., left)| *left).collect();
        assert_eq!(left, [0, 100, 200, 300, 400, 900]);
    }
}
