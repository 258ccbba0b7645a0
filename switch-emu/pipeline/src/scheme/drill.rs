//! DRILL: the shortest of two random queues and the last choice (Ghorbani et al., *DRILL: Micro
//! Load Balancing for Low-latency Data Center Networks*, SIGCOMM 2017).

use super::forwarding::{Arrival, Forwarding};
use super::subprograms::{LoadMeasure, LoadQuery};
use crate::hash::pick;
use crate::routes::{Group, SwitchConfig};
use crate::word::Word;

/// Chooses a frame's place, and remembers it for the next frame.
//= docs/specs/switching.md#SWC-55 two random queues and the last best
#[inline(always)]
pub(super) fn rank<F: Forwarding>(tables: &F, switch: &SwitchConfig, group: &Group, frame: &Arrival) -> Option<u32> {
    let (memory, count) = (tables.word(group.pointer)?, u32::from(group.count));
    let random_bits = frame.random(switch);
    let query = LoadQuery { measure: LoadMeasure::Bytes, random: (random_bits >> 16) as u32, row: 0 };
    let score = |place: u32| tables.score(group.first.wrapping_add(place), frame.t_ps, &query, place);
    let shorter = |(best, least): (u32, u64), place: u32| {
        let score = score(place);
        if score < least { (place, score) } else { (best, least) }
    };
    let last = shorter((0, u64::MAX), memory.load() as u32 % count);
    let (best, _) = shorter(shorter(last, pick((random_bits >> 32) as u32, count)), pick(random_bits as u32, count));
    memory.store(u64::from(best));
    Some(best)
}
