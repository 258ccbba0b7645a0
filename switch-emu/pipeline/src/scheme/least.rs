//! The least loaded port: by bytes (JSQ, OFAN §6.1; adaptive RoCE, REPS §4.1), by classes of load
//! (OFAN §3.2, Table 2), or by the congestion of paths.

use super::conga;
use super::forwarding::{Forwarding, QueueState};
use super::subprograms::{LoadMeasure, LoadQuery};
use crate::hash::mix;
use crate::routes::Group;

/// Maximum number of places of a group in the kernel's switch; its loader rejects more.
pub const MAX_IN_KERNEL: u32 = 256;

const PLACES: u32 = 0xffff;

/// Returns the place of a group's least loaded port among the first `most`; random if equal.
//= docs/specs/switching.md#SWC-11 the least loaded port
#[inline(always)]
pub fn least<F: Forwarding>(tables: &F, group: &Group, t_ps: u64, query: &LoadQuery, most: u32) -> u32 {
    let mut best = u64::MAX;
    for place in 0..most {
        if place >= u32::from(group.count) {
            break;
        }
        best = best.min(tables.score(group.first.wrapping_add(place), t_ps, query, place));
    }
    best as u32 & PLACES
}

/// Returns load, random bits and place: the minimum is a random one among equals.
#[inline(always)]
pub fn score<F: Forwarding>(tables: &F, member: u32, t_ps: u64, query: &LoadQuery, place: u32) -> u64 {
    load(tables, member, t_ps, query).map_or(u64::MAX, |load| {
        let random_bits = mix(u64::from(query.random) << 32 | u64::from(place)) >> 48;
        load.min(u64::from(u32::MAX)) << 32 | random_bits << 16 | u64::from(place)
    })
}

#[inline(always)]
fn load<F: Forwarding>(tables: &F, member: u32, t_ps: u64, query: &LoadQuery) -> Option<u64> {
    let port = tables.member(member)?;
    if query.measure == LoadMeasure::Path {
        return conga::load(tables, port, t_ps, query.row);
    }
    let QueueState { bytes, limit, .. } = tables.queue_state(port, t_ps)?;
    //= docs/specs/switching.md#SWC-12 classes of load
    let class = || [20, 10, 5].iter().map(|part| u64::from(bytes * part >= u64::from(limit))).sum();
    Some(if query.measure == LoadMeasure::Bytes { bytes } else { class() })
}
