//! How fast the machine is: when a burst has been counted for long enough, and when the machine has so much else to do that runs go
//! much slower than they need to.
//!
//! Neither reads a clock.

/// Counts what a burst carries, from its first arrival on: however slow the machine is, until there is enough to tell its rate.
#[derive(Debug)]
pub(super) struct Count {
    begun_ns: u64,
    enough_bytes: u64,
    arrived_ns: Option<u64>,
    /// The end of the warm-up: time and bytes.
    first: Option<(u64, u64)>,
    /// The last progress: time and bytes.
    last: (u64, u64),
}

/// The state of a count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Counted {
    /// It is too early to tell.
    Going,
    /// Bytes a second.
    Rate(f64),
    /// Nothing arrives.
    Nothing,
}

/// How much after the first arrival is left out.
const WARM_UP_NS: u64 = 100_000_000;
/// Shortest and longest count. The longest is for machines that carry less than some fifty packets a second.
const LEAST_NS: u64 = 300_000_000;
const MOST_NS: u64 = 20_000_000_000;
/// Packets that tell the rate to some percent. They come in windows of up to a hundred.
const ENOUGH_PACKETS: u64 = 1_000;
/// How long nothing may arrive.
const SILENCE_NS: u64 = 30_000_000_000;

impl Count {
    /// A count that begins now, of packets with so much payload.
    pub fn new(now_ns: u64, payload_bytes: u32) -> Self {
        let enough_bytes = ENOUGH_PACKETS * u64::from(payload_bytes);
        Self { begun_ns: now_ns, enough_bytes, arrived_ns: None, first: None, last: (now_ns, 0) }
    }

    /// Takes how many bytes have arrived since the beginning.
    pub fn on_report(&mut self, now_ns: u64, bytes: u64) -> Counted {
        if bytes > self.last.1 {
            self.last = (now_ns, bytes);
        }
        if now_ns - self.last.0 >= SILENCE_NS {
            return Counted::Nothing;
        }
        let arrived_ns = match self.arrived_ns {
            Some(arrived_ns) => arrived_ns,
            None if bytes > 0 => *self.arrived_ns.insert(now_ns),
            None => return Counted::Going,
        };
        if now_ns - arrived_ns < WARM_UP_NS {
            return Counted::Going;
        }
        let (first_ns, first_bytes) = *self.first.get_or_insert((now_ns, bytes));
        let (counted_ns, counted_bytes) = (now_ns - first_ns, bytes - first_bytes);
        let is_enough = counted_ns >= LEAST_NS && counted_bytes >= self.enough_bytes;
        if is_enough || (counted_ns >= MOST_NS && counted_bytes > 0) {
            return Counted::Rate(counted_bytes as f64 / (counted_ns as f64 / 1e9));
        }
        Counted::Going
    }

    /// What is known when the burst is over before it was enough.
    pub fn end(&self) -> Counted {
        let (first_ns, first_bytes) = self.first.unwrap_or((self.begun_ns, 0));
        match self.last.1.saturating_sub(first_bytes) {
            0 => Counted::Nothing,
            bytes => Counted::Rate(bytes as f64 / ((self.last.0 - first_ns).max(1) as f64 / 1e9)),
        }
    }
}

/// How many times slower a machine that others use is than it would be for `threads` threads alone, which never wait and have a core each: they ran for
/// `ran_ns`, added up, in `elapsed_ns`. `None` if that is not much.
pub(super) fn slower_than_alone(ran_ns: u64, elapsed_ns: u64, threads: usize) -> Option<f64> {
    let slower = elapsed_ns as f64 * threads as f64 / ran_ns.max(1) as f64;
    (slower >= SHARED).then_some(slower)
}

/// Threads that get less than half of their cores wait for each other besides: a burst then carries far less than their share of the
/// machine, and nobody could tell a busy machine from a slow one.
const SHARED: f64 = 2.0;

/// What to say of a calibration: that others use the machine, and how long a run takes if that is long. `run_ps` is the virtual time of
/// a run without queues, `dilation` how much slower than it the machine could run alone. `None` if neither is worth a line.
pub(super) fn expectation(run_ps: u64, dilation: f64, slower: Option<f64>) -> Option<String> {
    let seconds = run_ps as f64 / 1e12 * dilation * slower.unwrap_or(1.0);
    let takes = format!("a run takes some {} s or more", seconds.ceil());
    match slower {
        Some(slower) => Some(format!(
            "this machine is busy: others leave so little of it that it carries {} times fewer frames than alone; {takes}, less once they \
             are done. Results hold",
            times(slower)
        )),
        None if seconds >= LONG_S => Some(format!(
            "time runs {dilation:.0} times slower than in the fabric, as this machine carries no more: {takes}"
        )),
        None => None,
    }
}

/// A run that takes so long is announced.
const LONG_S: f64 = 30.0;

/// `slower` times, for people.
pub(super) fn times(slower: f64) -> String {
    if slower < 1000.0 { format!("{slower:.0}") } else { "more than 1000".into() }
}

/// Watches how fast the virtual time of a run goes by.
#[derive(Debug)]
pub(super) struct Pace {
    /// Real over virtual time, as planned.
    dilation: f64,
    /// Beginning of the present look: real and virtual time.
    since: Option<(u64, u64)>,
    told: bool,
}

/// Real time of a look: longer than the machine may be at something else for a moment.
const LOOK_NS: u64 = 2_000_000_000;
/// A run that is so many times slower than planned is worth a line. The clock always stands still now and then.
const MUCH_SLOWER: f64 = 10.0;

impl Pace {
    pub fn new(dilation: f64) -> Self {
        Self { dilation, since: None, told: false }
    }

    /// Takes the real and the virtual time. Returns, once a run, how many times slower than planned it goes.
    pub fn on_report(&mut self, now_ns: u64, now_ps: u64) -> Option<f64> {
        let (since_ns, since_ps) = *self.since.get_or_insert((now_ns, now_ps));
        if self.told || now_ns - since_ns < LOOK_NS {
            return None;
        }
        self.since = Some((now_ns, now_ps));
        let planned_ps = (now_ns - since_ns) as f64 * 1e3 / self.dilation;
        let slower = planned_ps / (now_ps - since_ps).max(1) as f64;
        self.told = slower >= MUCH_SLOWER;
        self.told.then_some(slower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: u32 = 3_000;
    const S: u64 = 1_000_000_000;

    /// Counts on a machine that carries nothing for `delay_ns`, then `rate` packets a second, and is looked at every `look_ns`.
    /// Returns the packets a second that come out, and the seconds that it took.
    fn count(delay_ns: u64, rate: u64, look_ns: u64) -> (Option<f64>, f64) {
        let mut count = Count::new(7, PAYLOAD);
        for look in 1.. {
            let elapsed_ns = look * look_ns;
            let packets = u128::from(elapsed_ns.saturating_sub(delay_ns)) * u128::from(rate) / u128::from(S);
            let rate = match count.on_report(7 + elapsed_ns, packets as u64 * u64::from(PAYLOAD)) {
                Counted::Going => continue,
                Counted::Rate(bytes) => Some(bytes / f64::from(PAYLOAD)),
                Counted::Nothing => None,
            };
            return (rate, elapsed_ns as f64 / 1e9);
        }
        unreachable!("the loop has no end");
    }

    #[test]
    fn slow_machines_are_counted_for_longer() {
        for delay_ns in [0, 2 * S, 25 * S] {
            for look_ns in [2_000_000, 100_000_000] {
                for (rate, most_s) in [(300_000, 0.6), (2_000, 0.9), (400, 3.0), (50, 21.0), (3, 21.0)] {
                    let (counted, seconds) = count(delay_ns, rate, look_ns);
                    let of = counted.expect("something arrived") / rate as f64;
                    assert!((0.9..1.1).contains(&of), "{of} of {rate} packets/s after {delay_ns} ns");
                    assert!(seconds - delay_ns as f64 / 1e9 < most_s, "{seconds} s for {rate} packets/s");
                }
            }
        }
    }

    #[test]
    fn a_machine_that_carries_nothing_is_given_up_on() {
        assert_eq!(count(u64::MAX, 1_000, 2_000_000), (None, 30.0));
        // It stops before there is enough, and what there was tells nothing.
        let mut count = Count::new(0, PAYLOAD);
        let counted = (1..).map(|second| count.on_report(second * S, u64::from(PAYLOAD)));
        let ends: Vec<Counted> = counted.take_while(|counted| *counted == Counted::Going).collect();
        assert_eq!(ends.len(), 30);
        assert_eq!(count.on_report(31 * S, u64::from(PAYLOAD)), Counted::Nothing);
    }

    #[test]
    fn a_burst_that_ends_early_tells_what_it_can() {
        let mut count = Count::new(0, PAYLOAD);
        assert_eq!(count.end(), Counted::Nothing);
        count.on_report(S, 10 * u64::from(PAYLOAD));
        assert_eq!(count.end(), Counted::Rate(10.0 * f64::from(PAYLOAD)));
    }

    #[test]
    fn a_machine_that_others_use_is_told_of() {
        for (ran_ns, threads, slower) in
            [(S, 1, None), (2 * S, 2, None), (S * 3 / 5, 1, None), (S / 5, 1, Some(5.0)), (S / 50, 2, Some(100.0))]
        {
            assert_eq!(slower_than_alone(ran_ns, S, threads), slower, "{ran_ns} ns of {threads}");
        }
        assert!(slower_than_alone(0, S, 1).is_some_and(|slower| slower > 1e6));
        assert_eq!([9.96, 100.4, 5e9].map(times), ["10", "100", "more than 1000"]);
    }

    #[test]
    fn how_long_a_run_takes_is_said_where_it_is_long_or_the_machine_busy() {
        const RUN_PS: u64 = 1_400_000_000;
        assert_eq!(expectation(RUN_PS, 500.0, None), None);
        let busy = expectation(RUN_PS, 500.0, Some(16.0)).unwrap();
        assert!(busy.contains("is busy") && busy.contains("16 times fewer") && busy.contains("some 12 s"), "{busy}");
        let slow = expectation(RUN_PS, 75_871.0, None).unwrap();
        assert!(slow.contains("75871 times slower") && slow.contains("some 107 s") && !slow.contains("busy"), "{slow}");
    }

    #[test]
    fn a_run_that_goes_much_slower_is_told_of_once() {
        let mut pace = Pace::new(100.0);
        let mut now_ps = 5;
        // As planned, then nine times slower, then a hundred times.
        let speeds = [vec![1; 40], vec![9; 40], vec![100; 40]].concat();
        let mut told = Vec::new();
        for (step, slower) in speeds.into_iter().enumerate() {
            told.extend(pace.on_report(step as u64 * S / 10, now_ps));
            now_ps += S / 10 * 1_000 / 100 / slower;
        }
        assert_eq!(told.len(), 1);
        assert!((told[0] - 100.0).abs() < 1.0, "{told:?}");
        // One that stands still.
        let mut pace = Pace::new(100.0);
        assert_eq!((pace.on_report(0, 5), pace.on_report(S, 5)), (None, None));
        assert!(pace.on_report(2 * S, 5).is_some_and(|slower| slower > 1e6));
    }
}
