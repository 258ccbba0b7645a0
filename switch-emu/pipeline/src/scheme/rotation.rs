//! Ports in turn: simple round robin (OFAN §6.1), and with an order that changes (OFAN §3.2, Table 2).

use crate::hash::{mix, pick};
use crate::routes::{Group, SwitchConfig};
use crate::word::Word;

/// Rounds after which the order changes (OFAN, Table 2).
const ROUNDS: u64 = 5;

/// The next place of a pointer.
//= docs/specs/switching.md#SWC-5 pointers
#[inline(always)]
pub(super) fn simple(pointer: &impl Word, group: &Group) -> Option<u32> {
    Some((pointer.next() % u64::from(group.count)) as u32)
}

/// The next place of a pointer in the order of its round.
//= docs/specs/switching.md#SWC-6 an order that changes
#[inline(always)]
pub(super) fn permuted(pointer: &impl Word, group: &Group, switch: &SwitchConfig) -> Option<u32> {
    let (turn, count) = (pointer.next(), u64::from(group.count));
    let round = turn / count;
    let order = pick((mix((round / ROUNDS) ^ switch.salt) >> 32) as u32, u32::from(group.orders));
    Some(order * u32::from(group.count) + (turn - round * count) as u32)
}
