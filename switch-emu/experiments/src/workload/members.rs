//! Which hosts take part in a workload.

use rand_core::RngCore;
use spray_core::rng::stream;

use super::{MEMBER_STREAM, Workload};

/// The hosts of each workload, of `hosts` hosts, in a run with root `seed`.
///
/// Workloads that draw hosts do so one after the other from one random order of all hosts, each passing over those that an earlier one
/// has drawn and those that are not among its own.
//= docs/specs/workloads.md#WL-2 hosts that are drawn
pub fn members(workloads: &[Workload], hosts: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut order = shuffled((0..hosts).collect(), seed, MEMBER_STREAM);
    let mut of = |workload: &Workload| {
        let Some(drawn) = workload.drawn else {
            return workload.hosts.clone().unwrap_or_else(|| (0..hosts).collect());
        };
        let may = |host: &usize| workload.hosts.as_ref().is_none_or(|hosts| hosts.contains(host));
        let taken: Vec<usize> = order.iter().copied().filter(may).take(drawn).collect();
        order.retain(|host| !taken.contains(host));
        taken
    };
    workloads.iter().map(&mut of).collect()
}

/// `list` in a random order.
pub(super) fn shuffled(mut list: Vec<usize>, seed: u64, number: u64) -> Vec<usize> {
    let mut rng = stream(seed, number);
    for last in (1..list.len()).rev() {
        let other = ((u128::from(rng.next_u64()) * (last as u128 + 1)) >> 64) as usize;
        list.swap(last, other);
    }
    list
}
