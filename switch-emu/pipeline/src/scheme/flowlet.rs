//! Adaptive routing of flowlets: a flow keeps its port until it pauses, then takes the least loaded one.

use super::{Arrival, Forwarding, Measure, least_loaded};
use crate::hash::mix;
use crate::routes::{Group, SwitchConfig};
use crate::word::Word;

/// Entries of a switch's flowlet table, 8 bytes each; a power of two.
pub const FLOWLETS: u32 = 4_096;

/// An entry: the time of the flow's latest frame in units of 4.096 ns above, its place in the group below.
const PLACE_BITS: u32 = 16;
const TIME_SHIFT: u32 = 12;

/// The place of a frame's flowlet.
//= docs/specs/switching.md#SWC-13 flowlets
#[inline(always)]
pub(super) fn rank<F: Forwarding>(tables: &F, switch: &SwitchConfig, group: &Group, frame: &Arrival) -> Option<u32> {
    let index = (mix(frame.flow ^ switch.salt) >> 32) as u32 & (FLOWLETS - 1);
    let entry = tables.word(switch.flowlets.wrapping_add(index))?;
    let now = frame.t_ps >> TIME_SHIFT << PLACE_BITS;
    let known = entry.load();
    let (last, place) = (known >> PLACE_BITS << PLACE_BITS, known as u32 & 0xffff);
    // A frame may come before another whose time is earlier: its gap is negative, and it belongs to the same flowlet.
    //= docs/specs/switching.md#SWC-14 flowlets out of order
    let gap = now.wrapping_sub(last) as i64;
    let pause = (switch.gap_ps >> TIME_SHIFT << PLACE_BITS) as i64;
    let goes_on = gap < pause && known != 0 && place < u32::from(group.count);
    let place = if goes_on { place } else { least_loaded(tables, switch, group, frame, Measure::Class) };
    if !goes_on || gap > 0 {
        entry.store(now | u64::from(place));
    }
    Some(place)
}
