use super::*;
use crate::config::{
    MAX_LIMIT_BYTES, MAX_RATE_BPS, MIN_RATE_BPS, MIN_RATE_PPM, OUTSIDE, PS_PER_BYTE_AT_1_BPS, PortConfig, Thresholds,
};
use crate::hash::mix;
use crate::link::{LinkChange, LinkState};
use core::cell::Cell;
use std::vec::Vec;
use std::{assert, assert_eq, println, vec};

const RATE_BPS: u64 = 100_000_000_000;
const PS_PER_BYTE: u64 = 80;
const FRAME: u32 = 3_114;

fn drain() -> Drain {
    PortConfig::new(RATE_BPS, 0, &Thresholds::NONE, OUTSIDE, FRAME).drain(0)
}

/// Returns the drain of a link at a share of its rate, and that rate.
fn slowed(line_bps: u64, rate_ppm: u32) -> (Drain, u64) {
    let mut port = PortConfig::new(line_bps, 0, &Thresholds::NONE, OUTSIDE, FRAME);
    let state = LinkState { rate_ppm, ..LinkState::UP };
    port.set(line_bps, &LinkChange { at_ps: 0, state });
    (port.drain(0), state.rate_bps(line_bps))
}

/// Sends a frame through the queue, and returns its departure time.
fn pass<W: QueueWord>(queue: &Queue<W>, drain: &Drain, t_ps: u64, bytes: u32) -> u64 {
    let position = queue.locate(t_ps, drain);
    queue.push(&position, bytes);
    t_ps + drain.delay_ps(position.backlog, bytes)
}

/// An exact reference: one `busy_until`, correct if frames arrive in order of time.
#[derive(Default)]
struct Fifo {
    busy_until_ps: u64,
}

impl Fifo {
    fn pass(&mut self, t_ps: u64, bytes: u32) -> u64 {
        self.busy_until_ps = self.busy_until_ps.max(t_ps) + u64::from(bytes) * PS_PER_BYTE;
        self.busy_until_ps
    }
}

/// Reproducible random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 += 1;
        mix(self.0) % limit
    }
}

#[derive(Clone, Copy)]
struct Arrival {
    t_ps: u64,
    bytes: u32,
    exact_ps: u64,
}

/// Returns arrivals in order of time with exact departures; `load` is in percent of the rate.
fn arrivals(seed: u64, count: usize, load: u64) -> Vec<Arrival> {
    let (mut dice, mut fifo, mut t_ps) = (Dice(seed << 32), Fifo::default(), 5_000_000_000);
    let one = |_| {
        let bytes = if dice.below(5) == 0 { 64 + dice.below(1_000) as u32 } else { FRAME };
        // Uniform between 0 and twice the mean gap.
        t_ps += dice.below(2 * u64::from(bytes) * PS_PER_BYTE * 100 / load);
        Arrival { t_ps, bytes, exact_ps: fifo.pass(t_ps, bytes) }
    };
    (0..count).map(one).collect()
}

/// Returns the order in which a fabric with a disorder of `disorder_ps` delivers the frames.
fn disorder(arrivals: &[Arrival], disorder_ps: u64, seed: u64) -> Vec<Arrival> {
    let mut dice = Dice(seed ^ 0xd150);
    let mut keyed: Vec<_> =
        arrivals.iter().map(|arrival| (arrival.t_ps + dice.below(disorder_ps.max(1)), *arrival)).collect();
    keyed.sort_by_key(|(seen_ps, arrival)| (*seen_ps, arrival.t_ps));
    keyed.into_iter().map(|(_, arrival)| arrival).collect()
}

//= docs/specs/virtual-queue.md#VQ-7 unused capacity
#[test]
fn in_order_it_is_lindley() {
    //= docs/specs/virtual-queue.md#VQ-4 backlog and departure
    // Exact within 1/128 byte of rounding per slot, at any load.
    for load in [1, 30, 80, 99, 120] {
        let (queue, drain) = (Queue::<Cell<u64>>::default(), drain());
        let mut worst_ps = 0;
        for arrival in arrivals(load, 4_000, load) {
            let left_ps = pass(&queue, &drain, arrival.t_ps, arrival.bytes);
            worst_ps = worst_ps.max(left_ps.abs_diff(arrival.exact_ps));
        }
        assert!(worst_ps <= 400, "load {load} %: {worst_ps} ps");
    }
}

/// Both classes at the maximum limit: their departure times are representable at the lowest rate
/// too.
#[test]
fn the_longest_queues_are_exact() {
    //= docs/specs/virtual-queue.md#VQ-10 the two queues of a port
    for (line_bps, rate_ppm) in [(RATE_BPS, 1_000_000), (MIN_RATE_BPS, 1_000_000), (MIN_RATE_BPS, MIN_RATE_PPM)] {
        let (drain, rate_bps) = slowed(line_bps, rate_ppm);
        let queue = Queue::<Cell<u64>>::default();
        let (mut bytes, mut left_ps) = (0, 0);
        while bytes <= 2 * u64::from(MAX_LIMIT_BYTES) {
            left_ps = pass(&queue, &drain, 5_000_000_000, FRAME) - 5_000_000_000;
            bytes += u64::from(FRAME);
        }
        let exact_ps = u128::from(bytes) * PS_PER_BYTE_AT_1_BPS / u128::from(rate_bps);
        assert_eq!(u128::from(left_ps), exact_ps, "{rate_bps} b/s");
    }
}

/// The serialisation time of a frame is exact to the picosecond, at every rate that a link can
/// have.
//= docs/specs/virtual-queue.md#VQ-3 rates without a division
#[test]
fn a_frame_takes_its_time_at_every_rate() {
    let lines = [MIN_RATE_BPS, 1_000_000_000, 400_000_000_000, 1_600_000_000_000, 7_200_000_000_000, MAX_RATE_BPS];
    for (line_bps, rate_ppm) in
        lines.into_iter().flat_map(|bps| [MIN_RATE_PPM, 333_333, 1_000_000].map(|ppm| (bps, ppm)))
    {
        let (drain, rate_bps) = slowed(line_bps, rate_ppm);
        for bytes in [64, FRAME, 9_000] {
            let exact_ps = (u128::from(bytes) * PS_PER_BYTE_AT_1_BPS / u128::from(rate_bps)) as u64;
            let off_ps = drain.delay_ps(0, bytes).abs_diff(exact_ps);
            // The time of a unit has a fraction of 19 bits, in picoseconds.
            assert!(off_ps <= 2 + exact_ps / 1_000_000_000, "{bytes} bytes at {rate_bps} b/s: {off_ps} ps off");
        }
    }
}

//= docs/specs/virtual-queue.md#VQ-5 the cursor
#[test]
fn disorder_costs_little() {
    // (load %, disorder in ns) -> bounds of the mean error, its bias, and the maximum error, in ns;
    // a full frame takes 249 ns. A part of the error is unavoidable: a frame cannot wait for one
    // that arrives later with an earlier time.
    let table = [
        ((50, 1_000), (130, 80, 1_600)),
        ((50, 20_000), (300, 230, 2_100)),
        ((90, 1_000), (290, 180, 1_700)),
        ((90, 20_000), (590, 210, 3_300)),
        ((110, 5_000), (950, 300, 5_000)),
    ];
    for ((load, disorder_ns), (mean, bias, max)) in table {
        let [slots, naive] = errors(load, disorder_ns);
        println!("load {load} %, disorder {disorder_ns} ns: slots {slots:?}, busy_until {naive:?}");
        let within = slots.mean_ns <= mean && slots.bias_ns.abs() <= bias && slots.max_ns <= max;
        assert!(within, "load {load} %, disorder {disorder_ns} ns: {slots:?}");
        assert!(slots.mean_ns < naive.mean_ns);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    mean_ns: u64,
    bias_ns: i64,
    max_ns: u64,
}

/// Returns the errors of the slots and of a plain `busy_until`, over three seeds.
fn errors(load: u64, disorder_ns: u64) -> [Errors; 2] {
    let mut sums = [Errors::default(); 2];
    let mut count = 0;
    for seed in 1..=3 {
        let (queue, drain, mut fifo) = (Queue::<Cell<u64>>::default(), drain(), Fifo::default());
        for arrival in disorder(&arrivals(seed, 4_000, load), disorder_ns * 1_000, seed) {
            let left = [pass(&queue, &drain, arrival.t_ps, arrival.bytes), fifo.pass(arrival.t_ps, arrival.bytes)];
            for (sum, left_ps) in sums.iter_mut().zip(left) {
                let error_ns = (left_ps as i64 - arrival.exact_ps as i64) / 1_000;
                sum.mean_ns += error_ns.unsigned_abs();
                sum.bias_ns += error_ns;
                sum.max_ns = sum.max_ns.max(error_ns.unsigned_abs());
            }
            count += 1;
        }
    }
    sums.map(|sum| Errors { mean_ns: sum.mean_ns / count, bias_ns: sum.bias_ns / count as i64, max_ns: sum.max_ns })
}

#[test]
fn an_idle_queue_delays_nothing() {
    let (queue, drain) = (Queue::<Cell<u64>>::default(), drain());
    for t_ps in [1_000, 900_000_000, 900_000_001, 1 << 60] {
        let position = queue.locate(t_ps, &drain);
        assert_eq!((position.backlog, position.stale), (0, false), "at {t_ps}");
    }
}

#[test]
fn a_slot_of_the_previous_round_is_empty() {
    //= docs/specs/virtual-queue.md#VQ-2 an entry with another tag is empty
    let (queue, drain) = (Queue::<Cell<u64>>::default(), drain());
    let (at_ps, number) = (1 << 40, (1 << 40) >> drain.shift);
    pass(&queue, &drain, at_ps, FRAME);
    assert_eq!(queue.ahead(number, 0), u64::from(FRAME) << UNIT_BITS);
    assert_eq!(queue.ahead(number + SPAN, 0), 0, "it has the same position");
}

#[test]
fn a_backlog_longer_than_the_ring_survives() {
    //= docs/specs/virtual-queue.md#VQ-6 the walk to a later slot
    // 2 MB at one time, then nothing for 1.5 rings: the rest remains queued.
    let (queue, drain) = (Queue::<Cell<u64>>::default(), drain());
    let start_ps = 1 << 40;
    let sent = 700 * FRAME;
    (0..700).for_each(|_| {
        pass(&queue, &drain, start_ps, FRAME);
    });
    let later_ps = start_ps + ((SPAN * 3 / 2) << drain.shift);
    let left = queue.locate(later_ps, &drain).bytes();
    let expected = u64::from(sent).saturating_sub((later_ps - start_ps) / PS_PER_BYTE);
    assert!(left.abs_diff(expected) <= 2, "{left} bytes left, {expected} expected");
}

//= docs/specs/virtual-queue.md#VQ-8 stale frames
#[test]
fn a_late_frame_goes_to_the_oldest_slot() {
    let (queue, drain) = (Queue::<Cell<u64>>::default(), drain());
    let now_ps = 1 << 40;
    pass(&queue, &drain, now_ps, FRAME);
    assert!(!queue.locate(now_ps - ((SPAN - 1) << drain.shift), &drain).stale);
    assert!(queue.locate(now_ps - (SPAN << drain.shift), &drain).stale);
}

#[test]
fn a_false_future_time_is_discarded() {
    //= docs/specs/virtual-queue.md#VQ-9 restart of a queue
    // One frame with a time far ahead must not make all later ones stale.
    let (queue, drain) = (Queue::<Cell<u64>>::default(), drain());
    pass(&queue, &drain, u64::MAX >> 1, FRAME);
    let position = queue.locate(1 << 40, &drain);
    assert_eq!((position.backlog, position.stale), (0, false));
    assert!(!queue.locate((1 << 40) + 1_000, &drain).stale);
}

//= docs/specs/virtual-queue.md#VQ-11 changes of the rate
#[test]
fn a_rate_change_counts_from_its_slot() {
    let half = Drain { units: drain().units / 2, since: 1 << 20, ps_per_unit: drain().ps_per_unit * 2, ..drain() };
    let queue = Queue::<Cell<u64>>::default();
    let change_ps = half.since << half.shift;
    let start_ps = change_ps - (2 << half.shift);
    (0..100).for_each(|_| {
        pass(&queue, &drain(), start_ps, FRAME);
    });
    // Two slots at the full rate, four at half of it: four slots in total.
    let left = queue.locate(change_ps + (4 << half.shift), &half).bytes();
    let expected = u64::from(100 * FRAME) - (4 << half.shift) / PS_PER_BYTE;
    assert!(left.abs_diff(expected) <= 2, "{left} {expected}");
}

#[test]
fn saturates_instead_of_wrapping() {
    let (queue, drain) = (Queue::<Cell<u64>>::default(), drain());
    for _ in 0..20_000 {
        pass(&queue, &drain, 1 << 40, u32::MAX >> 8);
    }
    assert!(queue.locate((1 << 40) + (3 << drain.shift), &drain).backlog <= u64::from(u32::MAX) * 3);
}

#[test]
fn hostile_times_never_panic() {
    let queue = Queue::<Cell<u64>>::default();
    let mut dice = Dice(99);
    for _ in 0..20_000 {
        let shift = dice.below(64);
        let drain =
            Drain { units: dice.below(1 << 32) as u32, shift: shift % 40, since: dice.below(1 << 30), ..drain() };
        pass(&queue, &drain, dice.below(u64::MAX) >> shift & (u64::MAX >> 2), dice.below(1 << 32) as u32);
    }
}

#[test]
fn words_round_trip() {
    let (queue, drain) = (Queue::<Cell<u64>>::default(), drain());
    (0..50u64).for_each(|i| {
        pass(&queue, &drain, (1 << 40) + i * 100_000, FRAME);
    });
    let mut words = vec![queue.cursor.get(), queue.newest.get()];
    queue.slots.iter().for_each(|slot| words.extend([slot.arrived.get(), slot.state.get()]));
    let copy = Queue::from_words(words[..].try_into().expect("QUEUE_WORDS"));
    let at_ps = (1 << 40) + 6_000_000;
    assert_eq!(copy.locate(at_ps, &drain), queue.locate(at_ps, &drain));
    assert_eq!(size_of::<Queue<u64>>(), QUEUE_WORDS * 8);
}

/// Reading the backlog returns what a frame arriving at that time would find.
//= docs/specs/switching.md#SWC-15 a queue is read at the frame's own time
#[test]
fn the_backlog_as_read_is_exact() {
    for load in [30, 80, 99] {
        let (queue, drain) = (Queue::<Cell<u64>>::default(), drain());
        for arrival in arrivals(load, 2_000, load) {
            pass(&queue, &drain, arrival.t_ps, arrival.bytes);
            for later_ps in [0, 100_000, 700_000, 1_000_000_000] {
                let left = arrival.exact_ps.saturating_sub(arrival.t_ps + later_ps) / PS_PER_BYTE;
                let read = queue.peek(arrival.t_ps + later_ps, &drain);
                assert!(read.abs_diff(left) <= 6, "load {load} %, {later_ps} ps later: {read} B, exactly {left}");
            }
        }
    }
}

std::thread_local! {
    static SHARED: Queue<Watched> = Queue::default();
    /// The number of accesses until another CPU passes a frame, and the time of that frame.
    static OTHER: Cell<(u32, u64)> = const { Cell::new((0, 0)) };
}

/// A word of [`SHARED`], by index; another CPU may send a frame before each access.
#[derive(Default)]
struct Watched(Cell<u64>);

impl Watched {
    fn word(&self) -> &Cell<u64> {
        let (left, t_ps) = OTHER.get();
        OTHER.set((left.saturating_sub(1), t_ps));
        if left == 1 {
            SHARED.with(|queue| pass(queue, &drain(), t_ps, FRAME));
        }
        &self.0
    }
}

impl QueueWord for Watched {}

impl Word for Watched {
    fn load(&self) -> u64 {
        self.word().get()
    }
    fn store(&self, value: u64) {
        self.word().set(value);
    }
    fn add(&self, value: u64) {
        let word = self.word();
        word.set(word.get().wrapping_add(value));
    }
    fn compare_set(&self, seen: u64, value: u64) {
        let word = self.word();
        if word.get() == seen {
            word.set(value);
        }
    }
    fn next(&self) -> u64 {
        self.word().replace(self.0.get().wrapping_add(1))
    }
}

/// The number of frames that are queued at the start, so that the port never idles, and of those
/// that follow.
const WAITING: u64 = 20;
const FRAMES: u64 = 24;

/// Returns the arrival time of frame `number` at a load of 130 %.
fn at_ps(number: u64) -> u64 {
    (1 << 40) + number * u64::from(FRAME) * PS_PER_BYTE * 10 / 13
}

/// Passes all frames; `other` is passed on another CPU before this access of frame `one`. Returns
/// false if `one` has fewer accesses.
fn interrupted(queue: &Queue<Watched>, one: u64, other: u64, access: u32) -> bool {
    OTHER.take();
    let slots = queue.slots.iter().flat_map(|slot| [&slot.arrived, &slot.state]);
    slots.chain([&queue.cursor, &queue.newest]).for_each(|word| word.0.set(0));
    for _ in 0..WAITING {
        pass(queue, &drain(), at_ps(0), FRAME);
    }
    for number in (0..FRAMES).filter(|number| *number != other) {
        OTHER.set((if number == one { access } else { 0 }, at_ps(other)));
        pass(queue, &drain(), at_ps(number), FRAME);
        if OTHER.get().0 > 0 {
            return false;
        }
    }
    true
}

/// Regardless of the access before which another CPU passes a frame, neither frame is lost.
#[test]
fn a_frame_processed_during_another_is_counted() {
    //= docs/specs/virtual-queue.md#VQ-12 several CPUs
    let expected = (WAITING + FRAMES) * u64::from(FRAME) - (at_ps(FRAMES) - at_ps(0)) / PS_PER_BYTE;
    let pairs = (0..FRAMES - 3).flat_map(|one| [1, 2, 3].map(|after| (one, one + after)));
    let mut accesses = 0;
    SHARED.with(|queue| {
        for (one, other) in pairs.flat_map(|(one, other)| [(one, other), (other, one)]) {
            for access in (1..).take_while(|access| interrupted(queue, one, other, *access)) {
                let left = queue.locate(at_ps(FRAMES), &drain()).bytes();
                assert!(left.abs_diff(expected) <= 2, "{other} at access {access} of {one}: {left}, not {expected}");
                accesses += 1;
            }
        }
    });
    assert!(accesses > 1_000, "{accesses}");
}
