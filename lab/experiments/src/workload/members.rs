//! Participating hosts of workloads.

use std::collections::HashSet;

use rand_core::RngCore;
use spray_core::rng::stream;

use super::Workload;
use super::streams::MEMBER_STREAM;

/// Returns the hosts of each workload, of `hosts` hosts, in a run with root `seed`.
///
/// Workloads draw in turn from their own hosts in one random order, skipping drawn ones.
//= docs/specs/workloads.md#WL-2 hosts that are drawn
pub fn members(workloads: &[Workload], hosts: usize, seed: u64) -> Vec<Vec<usize>> {
    let draws = workloads.iter().any(|workload| workload.drawn.is_some());
    let mut order = if draws { shuffled((0..hosts).collect(), seed, MEMBER_STREAM) } else { Vec::new() };
    let mut of = |workload: &Workload| {
        let Some(drawn) = workload.drawn else {
            return workload.hosts.clone().unwrap_or_else(|| (0..hosts).collect());
        };
        let own: Option<HashSet<usize>> = workload.hosts.as_ref().map(|hosts| hosts.iter().copied().collect());
        let mut taken = Vec::with_capacity(drawn);
        order.retain(|host| {
            let takes = taken.len() < drawn && own.as_ref().is_none_or(|own| own.contains(host));
            taken.extend(takes.then_some(*host));
            !takes
        });
        taken
    };
    workloads.iter().map(&mut of).collect()
}

pub(super) fn shuffled(mut list: Vec<usize>, seed: u64, number: u64) -> Vec<usize> {
    let mut rng = stream(seed, number);
    for last in (1..list.len()).rev() {
        let other = ((u128::from(rng.next_u64()) * (last as u128 + 1)) >> 64) as usize;
        list.swap(last, other);
    }
    list
}
