//! Speed of the machine: when a burst has been measured for long enough, and when other load makes
//! runs much slower than planned. Takes times as arguments and reads no clock.

/// Measures the rate of a burst from its first arrival on, for as long as the accuracy needs.
#[derive(Debug)]
pub(super) struct RateMeter {
    begun_ns: u64,
    enough_bytes: u64,
    arrived_ns: Option<u64>,
    /// (time, bytes) at the end of the warm-up.
    first: Option<(u64, u64)>,
    /// (time, bytes) at the last progress.
    last: (u64, u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RateMeasurement {
    Going,
    /// Bytes per second.
    Rate(f64),
    /// Nothing arrived.
    Nothing,
}

const WARM_UP_NS: u64 = 100_000_000;
/// Limits of the measurement time. The upper one applies below some fifty packets per second.
const LEAST_NS: u64 = 300_000_000;
const MOST_NS: u64 = 20_000_000_000;
/// Packets for an accuracy of some percent. They arrive in windows of up to a hundred.
const ENOUGH_PACKETS: u64 = 1_000;
const SILENCE_NS: u64 = 30_000_000_000;

impl RateMeter {
    pub fn new(now_ns: u64, payload_bytes: u32) -> Self {
        let enough_bytes = ENOUGH_PACKETS * u64::from(payload_bytes);
        Self { begun_ns: now_ns, enough_bytes, arrived_ns: None, first: None, last: (now_ns, 0) }
    }

    /// Takes the number of bytes that have arrived since the beginning.
    pub fn on_report(&mut self, now_ns: u64, bytes: u64) -> RateMeasurement {
        if bytes > self.last.1 {
            self.last = (now_ns, bytes);
        }
        if now_ns - self.last.0 >= SILENCE_NS {
            return RateMeasurement::Nothing;
        }
        if bytes > 0 {
            self.arrived_ns.get_or_insert(now_ns);
        }
        let Some(arrived_ns) = self.arrived_ns else { return RateMeasurement::Going };
        if now_ns - arrived_ns < WARM_UP_NS {
            return RateMeasurement::Going;
        }
        let (first_ns, first_bytes) = *self.first.get_or_insert((now_ns, bytes));
        let (counted_ns, counted_bytes) = (now_ns - first_ns, bytes - first_bytes);
        let is_enough = counted_ns >= LEAST_NS && counted_bytes >= self.enough_bytes;
        if is_enough || (counted_ns >= MOST_NS && counted_bytes > 0) {
            return RateMeasurement::Rate(counted_bytes as f64 / (counted_ns as f64 / 1e9));
        }
        RateMeasurement::Going
    }

    /// Returns the result if the burst ended early.
    pub fn end(&self) -> RateMeasurement {
        let (first_ns, first_bytes) = self.first.unwrap_or((self.begun_ns, 0));
        match self.last.1.saturating_sub(first_bytes) {
            0 => RateMeasurement::Nothing,
            bytes => RateMeasurement::Rate(bytes as f64 / ((self.last.0 - first_ns).max(1) as f64 / 1e9)),
        }
    }
}

/// Returns how much other load slows a busy thread, which ran `ran_ns` of `elapsed_ns`, if much.
pub(super) fn slower_than_alone(ran_ns: u64, elapsed_ns: u64) -> Option<f64> {
    let slower = elapsed_ns as f64 / ran_ns.max(1) as f64;
    (slower >= SHARED).then_some(slower)
}

/// With less than half of a core a burst carries far less than that share, and a busy machine
/// cannot be told from a slow one.
const SHARED: f64 = 2.0;

/// Describes a calibration that found other load, or a long run. `run_ps` is the virtual time of a
/// run without queues, `dilation` its factor on an idle machine.
pub(super) fn duration_notice(run_ps: u64, dilation: f64, slower: Option<f64>) -> Option<String> {
    let seconds = run_ps as f64 / 1e12 * dilation * slower.unwrap_or(1.0);
    let takes = format!("a run takes at least {} s", seconds.ceil());
    match slower {
        Some(slower) => Some(format!(
            "this machine is busy: it carries {} times fewer frames than without other load; {takes}, less once that \
             ends; results are valid",
            times(slower)
        )),
        None if seconds >= LONG_S => {
            Some(format!("virtual time is {dilation:.0} times slower, the limit of this machine: {takes}"))
        }
        None => None,
    }
}

/// Longer runs are announced.
const LONG_S: f64 = 30.0;

pub(super) fn times(slower: f64) -> String {
    if slower < 1000.0 { format!("{slower:.0}") } else { "more than 1000".into() }
}

/// Detects a run that is much slower than planned.
#[derive(Debug)]
pub(super) struct SlowdownDetector {
    /// Real over virtual time, as planned.
    dilation: f64,
    /// Real and virtual time at the start of the interval.
    since: Option<(u64, u64)>,
    reported: bool,
}

/// Real time of an interval: longer than short stalls of the machine.
const LOOK_NS: u64 = 2_000_000_000;
/// Not less, as the clock always waits now and then.
const MUCH_SLOWER: f64 = 10.0;

impl SlowdownDetector {
    pub fn new(dilation: f64) -> Self {
        Self { dilation, since: None, reported: false }
    }

    /// Takes the real and the virtual time. Returns the slow-down against the plan, once per run.
    pub fn on_report(&mut self, now_ns: u64, now_ps: u64) -> Option<f64> {
        let (since_ns, since_ps) = *self.since.get_or_insert((now_ns, now_ps));
        if self.reported || now_ns - since_ns < LOOK_NS {
            return None;
        }
        self.since = Some((now_ns, now_ps));
        let planned_ps = (now_ns - since_ns) as f64 * 1e3 / self.dilation;
        let slower = planned_ps / (now_ps - since_ps).max(1) as f64;
        self.reported = slower >= MUCH_SLOWER;
        self.reported.then_some(slower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: u32 = 3_000;
    const S: u64 = 1_000_000_000;

    /// Measures a machine that carries nothing for `delay_ns`, then `rate` packets per second,
    /// every `look_ns`. Returns the measured packets per second, and the seconds that it took.
    fn count(delay_ns: u64, rate: u64, look_ns: u64) -> (Option<f64>, f64) {
        let mut count = RateMeter::new(7, PAYLOAD);
        for look in 1.. {
            let elapsed_ns = look * look_ns;
            let packets = u128::from(elapsed_ns.saturating_sub(delay_ns)) * u128::from(rate) / u128::from(S);
            let rate = match count.on_report(7 + elapsed_ns, packets as u64 * u64::from(PAYLOAD)) {
                RateMeasurement::Going => continue,
                RateMeasurement::Rate(bytes) => Some(bytes / f64::from(PAYLOAD)),
                RateMeasurement::Nothing => None,
            };
            return (rate, elapsed_ns as f64 / 1e9);
        }
        unreachable!("the loop ends with a result");
    }

    #[test]
    fn slow_machines_are_measured_for_longer() {
        for delay_ns in [0, 2 * S, 25 * S] {
            for look_ns in [2_000_000, 100_000_000] {
                for (rate, most_s) in [(300_000, 0.6), (2_000, 0.9), (400, 3.0), (50, 21.0), (3, 21.0)] {
                    let (counted, seconds) = count(delay_ns, rate, look_ns);
                    let of = counted.expect("a measured rate") / rate as f64;
                    assert!((0.9..1.1).contains(&of), "{of} of {rate} packets/s after {delay_ns} ns");
                    assert!(seconds - delay_ns as f64 / 1e9 < most_s, "{seconds} s for {rate} packets/s");
                }
            }
        }
    }

    #[test]
    fn the_measurement_ends_on_a_machine_that_carries_nothing() {
        assert_eq!(count(u64::MAX, 1_000, 2_000_000), (None, 30.0));
        // It stops before there is enough to measure.
        let mut count = RateMeter::new(0, PAYLOAD);
        let counted = (1..).map(|second| count.on_report(second * S, u64::from(PAYLOAD)));
        let ends: Vec<RateMeasurement> = counted.take_while(|counted| *counted == RateMeasurement::Going).collect();
        assert_eq!(ends.len(), 30);
        assert_eq!(count.on_report(31 * S, u64::from(PAYLOAD)), RateMeasurement::Nothing);
    }

    #[test]
    fn a_burst_that_ends_early_gives_an_estimate_if_possible() {
        let mut count = RateMeter::new(0, PAYLOAD);
        assert_eq!(count.end(), RateMeasurement::Nothing);
        count.on_report(S, 10 * u64::from(PAYLOAD));
        assert_eq!(count.end(), RateMeasurement::Rate(10.0 * f64::from(PAYLOAD)));
    }

    #[test]
    fn a_busy_machine_is_reported() {
        for (ran_ns, slower) in [(S, None), (S * 3 / 5, None), (S / 5, Some(5.0)), (S / 50, Some(50.0))] {
            assert_eq!(slower_than_alone(ran_ns, S), slower, "{ran_ns} ns");
        }
        assert!(slower_than_alone(0, S).is_some_and(|slower| slower > 1e6));
        assert_eq!([9.96, 100.4, 5e9].map(times), ["10", "100", "more than 1000"]);
    }

    #[test]
    fn the_duration_of_a_run_is_reported_if_it_is_long_or_the_machine_busy() {
        const RUN_PS: u64 = 1_400_000_000;
        assert_eq!(duration_notice(RUN_PS, 500.0, None), None);
        let busy = duration_notice(RUN_PS, 500.0, Some(16.0)).unwrap();
        assert!(busy.contains("is busy") && busy.contains("16 times fewer") && busy.contains("least 12 s"), "{busy}");
        let slow = duration_notice(RUN_PS, 75_871.0, None).unwrap();
        assert!(
            slow.contains("75871 times slower") && slow.contains("least 107 s") && !slow.contains("busy"),
            "{slow}"
        );
    }

    #[test]
    fn a_run_that_becomes_much_slower_is_reported_once() {
        let mut pace = SlowdownDetector::new(100.0);
        let mut now_ps = 5;
        // At the planned rate, then nine times slower, then a hundred times.
        let speeds = [vec![1; 40], vec![9; 40], vec![100; 40]].concat();
        let mut told = Vec::new();
        for (step, slower) in speeds.into_iter().enumerate() {
            told.extend(pace.on_report(step as u64 * S / 10, now_ps));
            now_ps += S / 10 * 1_000 / 100 / slower;
        }
        assert_eq!(told.len(), 1);
        assert!((told[0] - 100.0).abs() < 1.0, "{told:?}");
        // Virtual time stops.
        let mut pace = SlowdownDetector::new(100.0);
        assert_eq!((pace.on_report(0, 5), pace.on_report(S, 5)), (None, None));
        assert!(pace.on_report(2 * S, 5).is_some_and(|slower| slower > 1e6));
    }
}
