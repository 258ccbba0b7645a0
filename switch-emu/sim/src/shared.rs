//! Memory that the ports of a switch share.

use spray_fabric::{Network, Node, Thresholds};

use super::port::Port;

/// Which ports share memory: those of a switch.
#[derive(Debug)]
pub(super) struct Shared {
    /// Per port.
    thresholds: Vec<Thresholds>,
    switch: Vec<u32>,
    /// Per switch.
    ports: Vec<Vec<u32>>,
}

impl Shared {
    /// `None` where every port has its own memory.
    pub(super) fn new(network: &Network, queues: &[Thresholds]) -> Option<Self> {
        let Network { switches, links, .. } = network;
        let mut shared = Self { thresholds: Vec::new(), switch: Vec::new(), ports: vec![Vec::new(); switches.len()] };
        for (link, queue) in links.iter().zip(queues) {
            let Node::Switch(switch) = link.from else { continue };
            shared.ports[switch].push(shared.switch.len() as u32);
            shared.switch.push(switch as u32);
            shared.thresholds.push(*queue);
        }
        shared.thresholds.iter().any(|port| port.shared_bytes > 0).then_some(shared)
    }

    /// Data bytes that may wait at `port` at `now_ps`.
    //= docs/specs/switch.md#SW-20 shared buffer
    pub(super) fn limit(&self, ports: &[Port], port: u32, now_ps: u64) -> u32 {
        let thresholds = &self.thresholds[port as usize];
        if thresholds.shared_bytes == 0 {
            return thresholds.limit_bytes;
        }
        let own = &self.ports[self.switch[port as usize] as usize];
        let used = own.iter().map(|port| ports[*port as usize].waiting_bytes(now_ps)).sum();
        thresholds.limit_within(used, ports[port as usize].waiting_data_bytes(now_ps))
    }
}
