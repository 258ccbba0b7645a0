//! Count-Min Sketch of elephants (Cormode, Muthukrishnan, *J. Algorithms* 55, 2005; Reunion §3.2).

use super::memory::{Memory, before};
use super::regions::{CLASSES, ENTRIES, HASHES, SKETCH, single};
use crate::hash::mix;
use crate::packed::packed;
use crate::scheme::forwarding::Forwarding;
use crate::word::Word;

packed! {
    struct Count {
        count: u64 in 48,
        interval: u64 in 16,
    }
}

/// Classes of counts, by the power of two.
const MOST_CLASSES: u32 = 32;

/// Counts a frame; returns an upper bound of its flow's frames in this interval.
//= docs/specs/reunion.md#REU-5 the sketch
#[inline(always)]
pub(super) fn count<F: Forwarding>(memory: &Memory<'_, F>, flow: u64, interval: u64) -> Option<u64> {
    let hash = mix(flow);
    let (step, mut at) = ((hash >> 32) as u32 | 1, hash as u32);
    let mut least = u64::MAX;
    for row in 0..HASHES {
        let word = memory.word(SKETCH.place(row * ENTRIES + at % ENTRIES))?;
        let count = of_interval(word.load(), interval) + 1;
        word.store(Count { count, interval }.pack());
        least = least.min(count);
        at = at.wrapping_add(step).rotate_left(7);
    }
    if class(least) != class(least - 1) {
        let word = memory.word(CLASSES.place(class(least) - 1))?;
        word.store(Count { count: of_interval(word.load(), interval) + 1, interval }.pack());
    }
    Some(least)
}

#[inline(always)]
fn of_interval(entry: u64, interval: u64) -> u64 {
    let entry = Count::unpack(entry);
    if entry.interval == interval { entry.count } else { 0 }
}

/// The number of powers of two that a count has reached.
#[inline(always)]
fn class(count: u64) -> u32 {
    // BPF has no such instruction, and each branch doubles the verifier's paths: sets all bits
    // below the highest, and counts them.
    let mut bits = count.min(u64::from(u32::MAX));
    for shift in [1, 2, 4, 8, 16] {
        bits |= bits >> shift;
    }
    for (shift, mask) in [(1, 0x5555_5555), (2, 0x3333_3333), (4, 0x0f0f_0f0f), (8, 0x00ff_00ff), (16, 0xffff)] {
        bits = (bits & mask) + (bits >> shift & mask);
    }
    bits as u32
}

/// Whether a flow with this many frames may be an elephant.
//= docs/specs/reunion.md#REU-6 elephants
#[inline(always)]
pub(super) fn is_large<F: Forwarding>(memory: &Memory<'_, F>, count: u64) -> bool {
    memory.load(single::THRESHOLD).is_some_and(|threshold| u64::from(class(count)) >= threshold)
}

/// Admits another elephant, if the interval has room.
//= docs/specs/reunion.md#REU-6 elephants
#[inline(always)]
pub(super) fn admit<F: Forwarding>(memory: &Memory<'_, F>, interval: u64) -> Option<bool> {
    let word = memory.word(single::ELEPHANTS)?;
    let known = of_interval(word.load(), interval);
    let admits = known < memory.load(single::MAX_ELEPHANTS)?;
    if admits {
        word.store(Count { count: known + 1, interval }.pack());
    }
    Some(admits)
}

/// Sets the lowest class of elephants from the last interval: the lowest that at most `hot` flows
/// have reached, or the highest. Unchanged without any flow.
//= docs/specs/reunion.md#REU-6 elephants
#[inline(always)]
pub(super) fn begin<F: Forwarding>(memory: &Memory<'_, F>, interval: u64) -> Option<()> {
    let (over, hot) = (before(interval), memory.load(single::MAX_ELEPHANTS)?);
    // A flow has reached all classes below its own, so that counts fall with the class.
    let reached = |class: u32| Some(of_interval(memory.load(CLASSES.place(class - 1))?, over));
    let mut class = 1;
    while class < MOST_CLASSES && reached(class)? > hot {
        class += 1;
    }
    let threshold = if reached(class)? > 0 { class } else { class - 1 };
    if threshold != 0 {
        memory.word(single::THRESHOLD)?.store(u64::from(threshold));
    }
    Some(())
}
