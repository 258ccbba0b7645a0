//! Fabrics between external interfaces: attaches to them, and follows their state.

use std::time::SystemTime;

use spray_fabric::{ChassisSpec, Network, Node, host_ports};

use super::bridge::Bridge;
use super::capacity::{RequiredCapacity, hops};
use super::claim::Dispute;
use super::delay_queue::DelayQueue;
use super::edge::{Edge, InterfaceState};
use super::fdb::Fdb;
use super::interface::{ExternalInterface, PortSpec};
use super::interface_sockets::InterfaceSockets;
use super::link_state::{CableState, Peers};
use super::{Deployment, LinkLogEvent, Parts};
use crate::netns_nodes::{self, Chassis};
use crate::program::{KernelClock, SwitchProgram};
use crate::{FabricSpec, RunError};

/// The external interfaces to deploy a fabric between.
#[derive(Clone, Copy, Debug)]
pub struct ExternalInterfaces<'a> {
    /// The interfaces at which its cables end.
    pub ports: &'a [PortSpec],
    /// The only switch that this machine runs; `None`: all switches, by one program.
    pub node: Option<&'a str>,
}

/// A cable to another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCable {
    /// The link that leaves by it.
    pub link: String,
    /// Its interface.
    pub port: PortSpec,
    /// What is at its other end.
    pub state: CableState,
}

/// The maximum total rate for delaying frames: about what one thread can forward.
const MAX_DELAYED_BPS: u64 = 3_000_000_000;

const POLL_INTERVAL_NS: u64 = 500_000_000;

/// Room for the machine's own addresses, per external interface.
const MAX_LOCAL_ADDRESSES: usize = 32;

impl Deployment {
    /// Deploys as [`Deployment::new`], but between existing interfaces, behind which the hosts are.
    /// Everything but packets to hosts still goes to this machine's kernel.
    ///
    /// # Errors
    /// [`RunError::Port`] when an interface is missing, in use or too slow, or there is no such
    /// switch; others as for [`Deployment::new`].
    pub fn on_interfaces(
        spec: &FabricSpec<'_>,
        convergence_ps: u64,
        ExternalInterfaces { ports, node }: ExternalInterfaces<'_>,
    ) -> Result<Self, RunError> {
        netns_nodes::check_root()?;
        let fabric = FabricSpec { events: &[], ..*spec }.compile(0)?;
        let network = spec.network;
        let switch = node.map(|node| switch_named(network, node)).transpose()?;
        let interfaces = ExternalInterface::all(ports, network, switch)?;
        let own = host_ports(network, spec.queue);
        let chassis = ChassisSpec { switch, frame_bytes: spec.packet_bytes, ..ChassisSpec::whole(&fabric) };
        let room = network.hosts.len() * Fdb::MAX_ADDRESSES + interfaces.len() * MAX_LOCAL_ADDRESSES;
        let clock = KernelClock::new()?;
        let mut program = SwitchProgram::load_deployed(&chassis, &clock, &own, Some(room))?;
        let queues = interfaces.iter().map(|interface| interface.queues as usize).sum();
        let mut opened = InterfaceSockets::new(&fabric, queues);
        let bps = interfaces.iter().map(|interface| network.links[interface.link].rate_bps).sum();
        let undelayed = bps > MAX_DELAYED_BPS;
        if undelayed {
            let longest = interfaces.iter().map(|interface| interface.longest as u32).max().unwrap_or(u32::MAX);
            let frame_bytes = spec.packet_bytes.min(longest);
            RequiredCapacity { bps, frame_bytes, hops: hops(&fabric, switch), queues }.check(&network.switching)?;
        }
        let (egress, trunks) = opened.open_all(&mut program, &interfaces, network, undelayed)?;
        if undelayed {
            // Without tracefs they are not counted, which is reported.
            let _ = program.count_driver_drops();
        }
        let peers = Peers::new(network, switch.unwrap_or(0), trunks, unix_time_ns());
        let bridge = Bridge::new(egress, peers, program.hosts()?);
        for (host, addresses) in interfaces.iter().filter_map(|it| Some((it.host?, &it.port.addresses))) {
            addresses.iter().for_each(|address| bridge.bind(host, *address));
        }
        let delay_queue = DelayQueue::new(clock, opened.sockets, opened.egress, Some(bridge.clone()), Vec::new())?;
        let chassis = vec![Chassis { program, switch }];
        let parts = Parts { fabric, clock, own, chassis, delay_queue, nodes: Vec::new() };
        let mut this = Self::of(spec, parts, convergence_ps);
        let state = |interface| InterfaceState { interface, has_carrier: true, is_up: true, is_alive: true };
        let interfaces = interfaces.into_iter().map(state).collect();
        this.edge = Some(Edge { interfaces, bridge, poll_ns: 0, down_remotely: Vec::new(), undelayed });
        this.refresh()?;
        Ok(this)
    }

    /// Polls the external interfaces, at most twice a second, and the state of other machines. A
    /// link is down while its interface has no carrier or its other end is not the right machine.
    pub fn refresh(&mut self) -> Result<(), RunError> {
        let Some(mut edge) = self.edge.take() else { return Ok(()) };
        let outcome = self.refresh_edge(&mut edge);
        self.edge = Some(edge);
        outcome
    }

    fn refresh_edge(&mut self, edge: &mut Edge) -> Result<(), RunError> {
        let now_ns = self.clock.now_ns();
        let mut changed = edge.update_liveness(now_ns);
        if now_ns >= edge.poll_ns {
            edge.poll_ns = now_ns + POLL_INTERVAL_NS;
            changed.extend(edge.poll(&mut self.chassis[0].program)?);
        }
        for place in changed {
            let InterfaceState { interface, has_carrier, is_alive, .. } = &edge.interfaces[place];
            let cable = [interface.link, interface.link ^ 1];
            let is_up = *has_carrier && *is_alive;
            self.change(|failures, now_ps| failures.set_carrier(&cable, is_up, now_ps))?;
            let name = self.network.links[interface.link].name.replacen("->", "-", 1);
            self.note(name, if is_up { LinkLogEvent::Up } else { LinkLogEvent::Down });
        }
        for Dispute { address, of, by, has_moved } in edge.bridge.disputes() {
            let name = self.network.links[self.network.downlink(by)].name.replacen("->", "-", 1);
            let of = self.network.hosts[of].clone();
            let event = if has_moved { LinkLogEvent::AddressMoved } else { LinkLogEvent::AddressConflict };
            self.note(name, event(address, of));
        }
        let down = edge.bridge.down_remotely(now_ns);
        if down != edge.down_remotely {
            let links = self.network.links.len();
            self.change(|failures, now_ps| failures.set_down_remotely(&down, links, now_ps))?;
            edge.down_remotely = down;
        }
        let here = |link: &usize| edge.interfaces.iter().any(|state| state.interface.link | 1 == link | 1);
        edge.bridge.set_down(self.failures.down().into_iter().filter(here).map(|link| link as u16).collect());
        Ok(())
    }

    /// Returns the cables to other machines.
    pub fn cables(&self) -> Vec<RemoteCable> {
        let Some(edge) = &self.edge else { return Vec::new() };
        let name = |link: usize| self.network.links[link].name.clone();
        let states = edge.bridge.cable_states(self.clock.now_ns());
        let trunks = edge.interfaces.iter().filter(|state| state.interface.host.is_none());
        let cable = |(at, (link, state)): (&InterfaceState, (usize, CableState<usize>))| RemoteCable {
            link: name(link),
            port: at.interface.port.clone(),
            state: match state {
                CableState::NoPeer => CableState::NoPeer,
                CableState::Connected => CableState::Connected,
                CableState::Miscabled(link) => CableState::Miscabled(name(link)),
                CableState::OtherFabric => CableState::OtherFabric,
            },
        };
        trunks.zip(states).map(cable).collect()
    }

    /// Returns the only switch that this machine runs; `None` where it runs all.
    pub fn node(&self) -> Option<&str> {
        let switch = self.edge.as_ref().and(self.chassis[0].switch)?;
        Some(&self.network.switches[switch].name)
    }

    /// Returns whether frames are forwarded undelayed, as one thread could not delay them all.
    pub fn is_undelayed(&self) -> bool {
        self.edge.as_ref().is_some_and(|edge| edge.undelayed)
    }

    /// Returns whether frames may leave with partial checksums: of veth, forwarded at once.
    pub fn leaves_partial_checksums(&self) -> bool {
        let software = |edge: &Edge| edge.interfaces.iter().any(|state| state.interface.is_software);
        self.edge.as_ref().is_some_and(|edge| edge.undelayed && software(edge))
    }
}

/// The first sequence number: above those of an earlier process, also after a reboot.
#[expect(clippy::disallowed_methods, reason = "the edge")]
fn unix_time_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn switch_named(network: &Network, name: &str) -> Result<usize, RunError> {
    match network.node(name) {
        Some(Node::Switch(switch)) => Ok(switch),
        _ => {
            let names: Vec<_> = network.switches.iter().map(|switch| switch.name.as_str()).collect();
            Err(RunError::Port(format!(
                "--node {name}: the scenario has no switch `{name}`; its switches: {}",
                names.join(", ")
            )))
        }
    }
}
