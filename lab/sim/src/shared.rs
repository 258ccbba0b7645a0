//! Shared buffers of switches.

use spray_fabric::{Network, Thresholds};

use super::port::Port;

#[derive(Debug)]
pub(super) struct Shared {
    /// By port.
    thresholds: Vec<Thresholds>,
    switch: Vec<u32>,
    /// The ports of each switch.
    ports: Vec<Vec<u32>>,
}

impl Shared {
    /// Returns `None` if no ports share memory.
    pub(super) fn new(network: &Network, queues: &[Thresholds], port_of_link: &[u32]) -> Option<Self> {
        let Network { switches, links, .. } = network;
        if queues.iter().all(|queue| queue.shared_bytes == 0) {
            return None;
        }
        let (thresholds, switch) = (vec![Thresholds::NONE; links.len()], vec![0; links.len()]);
        let mut shared = Self { thresholds, switch, ports: vec![Vec::new(); switches.len()] };
        for (index, link) in links.iter().enumerate() {
            let Some(switch) = link.from.switch() else { continue };
            let port = port_of_link[index];
            shared.ports[switch].push(port);
            shared.switch[port as usize] = switch as u32;
            shared.thresholds[port as usize] = queues[index];
        }
        Some(shared)
    }

    /// Returns the limit of data bytes at `port` at `now_ps`; `at` returns the ports of its switch.
    //= docs/specs/switch.md#SW-20 shared buffer
    pub(super) fn limit<'p>(&self, at: impl Fn(u32) -> &'p Port, port: u32, now_ps: u64) -> u32 {
        let thresholds = &self.thresholds[port as usize];
        if thresholds.shared_bytes == 0 {
            return thresholds.limit_bytes;
        }
        let own = &self.ports[self.switch[port as usize] as usize];
        let used = own.iter().map(|port| at(*port).waiting_bytes(now_ps)).sum();
        thresholds.limit_within(used, at(port).waiting_data_bytes(now_ps))
    }
}
