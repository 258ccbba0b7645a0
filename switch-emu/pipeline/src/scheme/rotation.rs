//! Ports in turn: round robin (OFAN §6.1), and with a changing order (OFAN §3.2, Table 2).

use super::forwarding::{Arrival, Forwarding};
use crate::hash::{mix, pick};
use crate::routes::{Group, SwitchConfig};
use crate::word::Word;

/// Rounds after which the order changes (OFAN, Table 2).
const ROUNDS: u64 = 5;

/// The pointer of a frame: one each for data and control frames, which differ in size.
//= docs/specs/switching.md#SWC-5 pointers
#[inline(always)]
pub(super) fn pointer<'a, F: Forwarding>(tables: &'a F, group: &Group, frame: &Arrival) -> Option<&'a F::Word> {
    tables.word(group.pointer.wrapping_add(u32::from(frame.control)))
}

/// The next place of the frame's pointer.
#[inline(always)]
pub(super) fn simple<F: Forwarding>(tables: &F, group: &Group, frame: &Arrival) -> Option<u32> {
    Some((pointer(tables, group, frame)?.next() % u64::from(group.count)) as u32)
}

/// The next place of the frame's pointer in the order of its round.
//= docs/specs/switching.md#SWC-6 changing permutations
#[inline(always)]
pub(super) fn permuted<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    group: &Group,
    frame: &Arrival,
) -> Option<u32> {
    let (turn, count) = (pointer(tables, group, frame)?.next(), u64::from(group.count));
    let round = turn / count;
    let order = pick((mix((round / ROUNDS) ^ switch.salt) >> 32) as u32, u32::from(group.orders));
    Some(order * u32::from(group.count) + (turn - round * count) as u32)
}
