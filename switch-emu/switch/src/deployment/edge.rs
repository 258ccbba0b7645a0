//! The external interfaces of a fabric, and their state.

use spray_fabric::Network;
use spray_nic::net::Interface;

use super::bridge::Bridge;
use super::host::{DeployedHost, HostLocation};
use super::interface::ExternalInterface;
use super::link_state::CableState;
use crate::RunError;
use crate::program::SwitchProgram;

/// The external interfaces of a fabric.
#[derive(Debug)]
pub(super) struct Edge {
    pub interfaces: Vec<InterfaceState>,
    pub bridge: Bridge,
    /// When the interfaces are next polled.
    pub poll_ns: u64,
    pub down_remotely: Vec<usize>,
    /// Drivers forward frames at once instead of the delay queue.
    pub undelayed: bool,
}

/// An interface, and its state when it was last polled.
#[derive(Debug)]
pub(super) struct InterfaceState {
    pub interface: ExternalInterface,
    pub has_carrier: bool,
    pub is_up: bool,
    /// The machine at the other end is the right one and alive; always true for a host.
    pub is_alive: bool,
}

impl Edge {
    /// Returns the hosts behind the interfaces.
    pub fn hosts(&self, network: &Network) -> Vec<DeployedHost> {
        let behind = |interface: &ExternalInterface| {
            interface.host.map(|host| DeployedHost {
                name: network.hosts[host].clone(),
                addresses: self.bridge.addresses(host),
                place: HostLocation::External(interface.port.clone()),
            })
        };
        self.interfaces.iter().filter_map(|state| behind(&state.interface)).collect()
    }

    /// Updates which machines are alive. Returns the positions of interfaces with a change.
    pub fn update_liveness(&mut self, now_ns: u64) -> Vec<usize> {
        let states = self.bridge.cable_states(now_ns);
        let mut changed = Vec::new();
        for (place, state) in self.interfaces.iter_mut().enumerate() {
            let is_alive =
                states.iter().all(|(link, cable)| *link != state.interface.link || *cable == CableState::Connected);
            if std::mem::replace(&mut state.is_alive, is_alive) != is_alive {
                changed.push(place);
            }
        }
        changed
    }

    /// Reads the state of the interfaces, and attaches again to those that were set down and up.
    /// Returns the positions of those with a changed carrier.
    pub fn poll(&mut self, program: &mut SwitchProgram) -> Result<Vec<usize>, RunError> {
        let now: Vec<Option<Interface>> = self.interfaces.iter().map(|state| state.interface.now()).collect();
        let local = now.iter().flatten().flat_map(|interface| &interface.l3_interface().addresses);
        self.bridge.set_local(local.copied().collect());
        let mut changed = Vec::new();
        for (place, (found, state)) in now.iter().zip(&mut self.interfaces).enumerate() {
            let InterfaceState { interface, has_carrier, is_up, .. } = state;
            let was_up = std::mem::replace(is_up, found.as_ref().is_some_and(|found| found.up));
            let carries = found.as_ref().is_some_and(|found| found.up && found.carrier);
            if std::mem::replace(has_carrier, carries) != carries {
                changed.push(place);
            }
            if let (Some(host), Some(found)) = (interface.host, found) {
                let neighbours = interface.neighbours(found);
                neighbours.into_iter().for_each(|(address, mac)| self.bridge.learn(host, address, mac));
            }
            if !was_up && *is_up {
                // Drivers such as vmxnet3 detach programs when the interface is set down.
                interface.run(|| program.reattach(interface.index))??;
            }
        }
        Ok(changed)
    }
}
