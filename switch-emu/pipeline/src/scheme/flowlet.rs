//! Flowlets: a flow keeps its port until it pauses. The scheme chooses the next: the least loaded
//! port, a random one (LetFlow), or that of the least congested path (Conga).

use super::forwarding::{Arrival, Forwarding};
use crate::hash::mix;
use crate::packed::packed;
use crate::routes::{Group, SwitchConfig};
use crate::word::Word;

/// Entries of a switch's flowlet table, 8 bytes each; a power of two.
pub const FLOWLETS: u32 = 4_096;

packed! {
    struct Flowlet {
        place: u32 in 16,
        /// Of the latest frame, in units of 4.096 ns.
        time: u64 in 48,
    }
}

const TIME_SHIFT: u32 = 12;
/// Maximum lateness of a frame in units of time: 137 ms.
const LATE: u64 = 1 << 25;

/// The place of a flowlet. `fresh` chooses a new one, given the previous place if still there.
//= docs/specs/switching.md#SWC-13 flowlets
#[inline(always)]
pub(super) fn rank<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    group: &Group,
    frame: &Arrival,
    fresh: impl FnOnce(Option<u32>) -> u32,
) -> Option<u32> {
    let index = (mix(frame.flow ^ switch.salt) >> 32) as u32 & (FLOWLETS - 1);
    let entry = tables.word(switch.memory.wrapping_add(index))?;
    let time = frame.t_ps >> TIME_SHIFT;
    let known = entry.load();
    let Flowlet { place, time: last } = Flowlet::unpack(known);
    // A late frame's gap is negative: the same flowlet. Times have 48 bits, and wrap after 13 days.
    //= docs/specs/switching.md#SWC-14 flowlets out of order
    let gap = time.wrapping_sub(last).wrapping_add(LATE) << 16;
    let pause = ((switch.gap_ps >> TIME_SHIFT) + LATE) << 16;
    let has_place = known != 0 && place < u32::from(group.count);
    let goes_on = gap < pause && has_place;
    let place = if goes_on { place } else { fresh(has_place.then_some(place)) };
    if !goes_on || gap > LATE << 16 {
        entry.store(Flowlet { place, time }.pack());
    }
    Some(place)
}
