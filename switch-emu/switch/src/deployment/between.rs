//! A fabric between interfaces that are given: attaching to them, and what follows from how they are.

use std::time::SystemTime;

use spray_fabric::{ChassisSpec, Network, Node, host_ports};

use super::boxes::{Boxes, CableState};
use super::bridge::Bridge;
use super::claim::Dispute;
use super::edge::{Edge, GivenState};
use super::given::{Given, GivenPort};
use super::hold::Holder;
use super::opening::Opening;
use super::speed::{Needs, hops};
use super::stations::Stations;
use super::{Deployment, LinkNews, Parts};
use crate::program::{KernelClock, SwitchProgram};
use crate::sites::{self, Chassis};
use crate::{FabricSpec, RunError};

/// What a fabric is deployed between.
#[derive(Clone, Copy, Debug)]
pub struct Between<'a> {
    /// The interfaces at which its cables end.
    pub ports: &'a [GivenPort],
    /// The switch that this machine runs alone, while others run the others; `None`: all switches, of one program.
    pub node: Option<&'a str>,
}

/// A cable to another box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cable {
    /// The link that leaves by it.
    pub link: String,
    /// Its interface.
    pub port: GivenPort,
    /// What is at its other end.
    pub state: CableState,
}

/// What given interfaces may bring in all for their frames to be held: a thread carries more, if hardly.
const HELD_BPS: u64 = 3_000_000_000;

/// How often interfaces that are given are looked at.
const LOOK_NS: u64 = 500_000_000;

/// Addresses of the machine's own on an interface that is given, that are told from hosts'.
const OWN_ADDRESSES: usize = 32;

impl Deployment {
    /// As [`Deployment::new`], but the hosts are whatever is behind interfaces that exist. Everything but packets to hosts goes to this machine's kernel
    /// as before.
    ///
    /// # Errors
    /// [`RunError::Port`] when an interface is missing, in use or too slow, or there is no such switch; others as for [`Deployment::new`].
    pub fn between(
        spec: &FabricSpec<'_>,
        convergence_ps: u64,
        Between { ports, node }: Between<'_>,
    ) -> Result<Self, RunError> {
        sites::check_root()?;
        let fabric = FabricSpec { events: &[], ..*spec }.compile(0)?;
        let network = spec.network;
        let switch = node.map(|node| switch_called(network, node)).transpose()?;
        let given = Given::all(ports, network, switch)?;
        let own = host_ports(network, spec.queue);
        let chassis = ChassisSpec { switch, frame_bytes: spec.packet_bytes, ..ChassisSpec::whole(&fabric) };
        let room = network.hosts.len() * Stations::ADDRESSES + given.len() * OWN_ADDRESSES;
        let clock = KernelClock::new()?;
        let mut program = SwitchProgram::load_standing(&chassis, &clock, &own, Some(room))?;
        let queues = given.iter().map(|given| given.queues as usize).sum();
        let mut opening = Opening::new(&fabric, queues);
        let brought_bps = given.iter().map(|given| network.links[given.link].rate_bps).sum();
        let at_once = brought_bps > HELD_BPS;
        if at_once {
            let frame_bytes =
                spec.packet_bytes.min(given.iter().map(|given| given.longest as u32).max().unwrap_or(u32::MAX));
            let needs = Needs { bps: brought_bps, frame_bytes, hops: hops(&fabric, switch), queues };
            needs.check(&network.switching)?;
        }
        let (ways, trunks) = opening.open_all(&mut program, &given, network, at_once)?;
        if at_once {
            // Without tracefs nobody counts them, which is told.
            let _ = program.count_missed();
        }
        let boxes = Boxes::new(network, switch.unwrap_or(0), trunks, since_1970_ns());
        let bridge = Bridge::new(ways, boxes, program.hosts()?);
        for (host, address) in given.iter().filter_map(|it| Some((it.host?, &it.port.addresses))) {
            address.iter().for_each(|address| bridge.bind(host, *address));
        }
        let holder = Holder::new(clock, opening.entries, opening.exits, Some(bridge.clone()), Vec::new())?;
        let chassis = vec![Chassis { program, switch }];
        let parts = Parts { fabric, clock, own, chassis, holder, sites: Vec::new() };
        let mut this = Self::of(spec, parts, convergence_ps);
        let states = |given: Given| GivenState { is_heard: true, given, has_carrier: true, is_up: true };
        let given = given.into_iter().map(states).collect();
        this.edge = Some(Edge { given, bridge, look_ns: 0, down_elsewhere: Vec::new(), at_once });
        this.look()?;
        Ok(this)
    }

    /// Looks how the interfaces are that were given, twice a second at most, and what other boxes have said since. A link whose interface has no
    /// carrier is down until it has one; so is one at whose other end there is not the box that should be.
    ///
    /// # Errors
    /// As [`Deployment::order`].
    pub fn look(&mut self) -> Result<(), RunError> {
        let Some(mut edge) = self.edge.take() else { return Ok(()) };
        let outcome = self.look_at(&mut edge);
        self.edge = Some(edge);
        outcome
    }

    fn look_at(&mut self, edge: &mut Edge) -> Result<(), RunError> {
        let now_ns = self.clock.now_ns();
        let mut changed = edge.hear(now_ns);
        if now_ns >= edge.look_ns {
            edge.look_ns = now_ns + LOOK_NS;
            changed.extend(edge.look(&mut self.chassis[0].program)?);
        }
        for place in changed {
            let GivenState { given, has_carrier, is_heard, .. } = &edge.given[place];
            let cable = [given.link, given.link ^ 1];
            let is_there = *has_carrier && *is_heard;
            self.change(|failures, now_ps| failures.set_carrier(&cable, is_there, now_ps))?;
            let name = self.network.links[given.link].name.replacen("->", "-", 1);
            self.note(name, if is_there { LinkNews::Found } else { LinkNews::Lost });
        }
        for Dispute { address, of, by, has_moved } in edge.bridge.disputes() {
            let name = self.network.links[self.network.downlink(by)].name.replacen("->", "-", 1);
            let of = self.network.hosts[of].clone();
            self.note(name, if has_moved { LinkNews::Took(address, of) } else { LinkNews::Claimed(address, of) });
        }
        let down = edge.bridge.down_elsewhere(now_ns);
        if down != edge.down_elsewhere {
            let links = self.network.links.len();
            self.change(|failures, now_ps| failures.set_told(&down, links, now_ps))?;
            edge.down_elsewhere = down;
        }
        let here = |link: &usize| edge.given.iter().any(|state| state.given.link | 1 == link | 1);
        edge.bridge.set_down(self.failures.down().into_iter().filter(here).map(|link| link as u16).collect());
        Ok(())
    }

    /// The cables to other boxes.
    pub fn cables(&self) -> Vec<Cable> {
        let Some(edge) = &self.edge else { return Vec::new() };
        let name = |link: usize| self.network.links[link].name.clone();
        let state = |cabled| match cabled {
            CableState::Silent => CableState::Silent,
            CableState::Right => CableState::Right,
            CableState::Wrong(link) => CableState::Wrong(name(link)),
            CableState::Stranger => CableState::Stranger,
        };
        let cabled = edge.bridge.cabled(self.clock.now_ns());
        let trunks = edge.given.iter().filter(|state| state.given.host.is_none());
        let cable = |(at, (link, cabled)): (&GivenState, (usize, CableState<usize>))| Cable {
            link: name(link),
            port: at.given.port.clone(),
            state: state(cabled),
        };
        trunks.zip(cabled).map(cable).collect()
    }

    /// The switch that this machine runs alone, if it does.
    pub fn node(&self) -> Option<&str> {
        let switch = self.edge.as_ref().and(self.chassis[0].switch)?;
        Some(&self.network.switches[switch].name)
    }

    /// Whether frames are sent on at once instead of being held, since no thread holds as many: latencies are then none of the fabric's.
    pub fn sends_at_once(&self) -> bool {
        self.edge.as_ref().is_some_and(|edge| edge.at_once)
    }

    /// Whether frames may leave with checksums that their sender's kernel has only begun: of veth, which nobody holds.
    pub fn leaves_checksums(&self) -> bool {
        let software = |edge: &Edge| edge.given.iter().any(|state| state.given.is_software);
        self.edge.as_ref().is_some_and(|edge| edge.at_once && software(edge))
    }
}

/// What a box says first has a number above all that one has said which was there before: a clock that goes on beyond a restart.
#[expect(clippy::disallowed_methods, reason = "the edge")]
fn since_1970_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// The number of a switch.
fn switch_called(network: &Network, name: &str) -> Result<usize, RunError> {
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
