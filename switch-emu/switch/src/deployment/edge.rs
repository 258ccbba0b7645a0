//! The interfaces of a fabric that are given, and how they are.

use spray_fabric::Network;
use spray_nic::net::Interface;

use super::boxes::CableState;
use super::bridge::Bridge;
use super::given::{self, Given};
use super::host::{DeployedHost, HostLocation};
use crate::RunError;
use crate::program::SwitchProgram;

/// The interfaces that are given, and what is behind them.
#[derive(Debug)]
pub(super) struct Edge {
    pub given: Vec<GivenState>,
    pub bridge: Bridge,
    /// When these are looked at again.
    pub look_ns: u64,
    /// The links that other boxes said are down.
    pub down_elsewhere: Vec<usize>,
    pub at_once: bool,
}

/// An interface that was given, and how it was when it was last looked at.
#[derive(Debug)]
pub(super) struct GivenState {
    pub given: Given,
    pub has_carrier: bool,
    pub is_up: bool,
    /// The box at its other end is heard; always of a host.
    pub is_heard: bool,
}

impl Edge {
    /// The hosts behind the interfaces.
    pub fn hosts(&self, network: &Network) -> Vec<DeployedHost> {
        let behind = |given: &Given| {
            given.host.map(|host| DeployedHost {
                name: network.hosts[host].clone(),
                addresses: self.bridge.addresses(host),
                place: HostLocation::Behind(given.port.clone()),
            })
        };
        self.given.iter().filter_map(|state| behind(&state.given)).collect()
    }

    /// Notes which boxes are heard. Returns the places of the interfaces behind which that has changed.
    pub fn hear(&mut self, now_ns: u64) -> Vec<usize> {
        let cabled = self.bridge.cabled(now_ns);
        let mut changed = Vec::new();
        for (place, state) in self.given.iter_mut().enumerate() {
            let is_heard =
                cabled.iter().all(|(link, cabled)| *link != state.given.link || *cabled == CableState::Right);
            if std::mem::replace(&mut state.is_heard, is_heard) != is_heard {
                changed.push(place);
            }
        }
        changed
    }

    /// Notes how the interfaces are, and attaches to those anew that were set down and up. Returns the places of those whose carrier has changed.
    pub fn look(&mut self, program: &mut SwitchProgram) -> Result<Vec<usize>, RunError> {
        let now: Vec<Option<Interface>> = self.given.iter().map(|state| state.given.now()).collect();
        self.bridge.set_own(given::addresses(now.iter().flatten()));
        let mut changed = Vec::new();
        for (place, (found, state)) in now.iter().zip(&mut self.given).enumerate() {
            let GivenState { given, has_carrier, is_up, .. } = state;
            let was_up = std::mem::replace(is_up, found.as_ref().is_some_and(|found| found.up));
            let carries = found.as_ref().is_some_and(|found| found.up && found.carrier);
            if std::mem::replace(has_carrier, carries) != carries {
                changed.push(place);
            }
            if let (Some(host), Some(found)) = (given.host, found) {
                let neighbours = given.neighbours(found);
                neighbours.into_iter().for_each(|(address, mac)| self.bridge.learn(host, address, mac));
            }
            if !was_up && *is_up {
                // Drivers such as vmxnet3 forget what sat on them.
                given.run(|| program.open_again(given.index))??;
            }
        }
        Ok(changed)
    }
}
