//! Checks whether the machine is fast enough to run switches at line rate.

use std::thread::available_parallelism;
use std::time::Duration;

use spray_fabric::{Fabric, Node, Switching};
use spray_pipeline::config::MAX_HOPS;

use crate::RunError;
use crate::program::HopBench;

/// The load when every link is full.
pub(super) struct RequiredCapacity {
    /// The sum over all links.
    pub bps: u64,
    pub frame_bytes: u32,
    /// Ports per frame, with its host's own link.
    pub hops: u32,
    /// Receive queues, each of which can use a CPU.
    pub queues: usize,
}

impl RequiredCapacity {
    /// Measures the program by test runs, which send nothing: the cost of redirecting and drivers
    /// comes on top, so that a machine that passes may still drop frames ([`Deployment::lost`]).
    //= docs/specs/switch.md#SW-28 forwarding capacity of a machine
    pub fn check(&self, switching: &Switching) -> Result<(), RunError> {
        let bench = HopBench::new(switching.clone(), 1)?;
        let mut best = Duration::MAX;
        for _ in 0..BURSTS {
            best = best.min(bench.switch(self.hops.min(HopBench::HOPS), BURST)?);
        }
        let cpus = available_parallelism().map_or(1, usize::from).min(self.queues) as f64;
        let (wanted, frame) = (self.bps as f64 / 8.0 / f64::from(self.frame_bytes), best.as_secs_f64());
        let possible = cpus / frame;
        if wanted <= possible {
            return Ok(());
        }
        Err(RunError::Port(format!(
            "the links carry {:.1} million frames of {} bytes per second, and this machine processes at most {:.1} \
             million: {cpus} CPUs with a receive queue, {:.0} ns per frame; use {:.0} % of the rates \
             (`--set topology.host_gbps`), or longer packets",
            wanted / 1e6,
            self.frame_bytes,
            possible / 1e6,
            frame * 1e9,
            (100.0 * possible / wanted).floor(),
        )))
    }
}

/// The best of many short bursts counts, so that one of them is undisturbed on a busy machine.
const BURST: u32 = 1_000;
const BURSTS: usize = 60;

/// The most ports on a path from the first host, with its own link; 2 for a single switch.
pub(super) fn hops(fabric: &Fabric, own: Option<usize>) -> u32 {
    let ends = fabric.routes.first().zip(fabric.ports.iter().find(|port| port.to == Node::Host(0)));
    let (Some((routes, first)), None) = (ends, own) else { return 2 };
    let to = |host: usize| {
        let (mut switch, mut hops) = (first.switch, 1u32);
        while let Some(port) = routes.groups[switch][host].first()
            && hops as usize <= MAX_HOPS
        {
            hops += 1;
            match fabric.ports[*port].to {
                Node::Switch(next) => switch = next,
                Node::Host(_) => break,
            }
        }
        hops
    };
    (1..fabric.hosts.len()).map(to).max().unwrap_or(2)
}

#[cfg(test)]
mod tests {
    use spray_fabric::{LeafSpine, Thresholds, compile};

    use super::*;

    //= docs/specs/switch.md#SW-28 forwarding capacity of a machine
    #[test]
    fn the_longest_path_counts() {
        let network = LeafSpine::uniform([2, 2, 2], 1_000_000_000, 0).network();
        let fabric = compile(&network, 1, |_| Thresholds::NONE, &[]).unwrap();
        assert_eq!(hops(&fabric, None), 4, "h0->leaf0->spine->leaf1->h2");
        assert_eq!(hops(&fabric, Some(0)), 2, "h0->leaf0->spine");
    }
}
