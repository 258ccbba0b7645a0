//! OFAN: destination-based rotation in switches (OFAN §7, §F.4).
//!
//! A switch has a pointer per destination edge switch (at edges) or pod (above) and class of
//! frames. Its frames take the ports in turn, so that a destination's traffic arrives evenly. The
//! tables have the sharing of pointers, the random order of ports, weights and starts.

use super::forwarding::{Arrival, Forwarding, least_loaded};
use super::rotation;
use super::subprograms::LoadMeasure;
use crate::routes::{Group, SwitchConfig};
use crate::word::Word;

/// The next place of the frame's pointer; an unused pointer, 0, starts at the shortest queue.
//= docs/specs/switching.md#SWC-10 OFAN from the shortest queue
#[inline(always)]
pub(super) fn rank_from_shortest<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    group: &Group,
    frame: &Arrival,
) -> Option<u32> {
    let (pointer, count) = (rotation::pointer(tables, group, frame)?, u64::from(group.count));
    if pointer.load() == 0 {
        let first = least_loaded(tables, switch, group, frame, LoadMeasure::Bytes);
        pointer.store(u64::from(first) + count + 1);
        return Some(first);
    }
    Some((pointer.next() % count) as u32)
}
