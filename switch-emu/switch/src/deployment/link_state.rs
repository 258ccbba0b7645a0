//! Liveness and link state of the machines that run the other switches. No I/O.

use std::net::IpAddr;

use spray_fabric::Network;
use spray_pipeline::hash::mix;

use super::message::{ALL_HOSTS, Body, HEAD_BYTES, Message, relay};

/// The state of the other machines. Every message is flooded over all cables of every machine once.
#[derive(Debug)]
pub(super) struct Peers {
    /// The switch that this machine runs.
    own: u16,
    network: u32,
    links: usize,
    /// The sequence number of the last message sent.
    sequence: u64,
    trunks: Vec<Trunk>,
    /// By switch.
    machines: Vec<Peer>,
}

/// A cable to another machine.
#[derive(Debug)]
pub(super) struct Trunk {
    /// The egress port, and its link.
    pub port: usize,
    pub link: usize,
    /// The MAC of the interface, and its longest frame in bytes.
    pub mac: [u8; 6],
    pub longest: usize,
    /// The MAC at the other end.
    far: Option<[u8; 6]>,
    received_ns: Option<u64>,
    /// As of the last message.
    cable_state: CableState<usize>,
}

/// The machine at the other end of a cable; the link is up if it is the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CableState<Link = String> {
    /// No message for a second.
    NoPeer,
    /// The expected machine.
    Connected,
    /// Another one, at which this link ends.
    Miscabled(Link),
    /// A machine of another scenario, or with other settings.
    OtherFabric,
}

#[derive(Clone, Debug, Default)]
struct Peer {
    sequence: u64,
    received_ns: u64,
    /// Links that it advertises as down.
    down: Vec<u16>,
}

/// What follows from a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Effects<'a> {
    /// The new MAC at the other end of this port.
    pub far: Option<(usize, [u8; 6])>,
    pub host: Option<(usize, Vec<IpAddr>)>,
    /// A frame to forward, and the host that it is for; `None`: all.
    pub frame: Option<(Option<usize>, &'a [u8])>,
    /// Frames to relay, each after its egress port.
    pub onward: Vec<(usize, Vec<u8>)>,
}

const LIVENESS_TIMEOUT_NS: u64 = 1_000_000_000;
/// After this silence a machine may have restarted: its sequence number is is_restarted.
const RESTART_NS: u64 = 3_000_000_000;

impl Trunk {
    pub fn new(port: usize, link: usize, mac: [u8; 6], longest: usize) -> Self {
        Self { port, link, mac, longest, far: None, received_ns: None, cable_state: CableState::NoPeer }
    }

    /// The frame after its egress port; `None` where it is too long.
    fn fits(&self, frame: Vec<u8>) -> Option<(usize, Vec<u8>)> {
        (frame.len() <= self.longest).then_some((self.port, frame))
    }
}

impl Peers {
    /// Creates the state of the machine that runs switch `own`. Its sequence numbers begin at
    /// `first`, above those of an earlier process.
    pub fn new(network: &Network, own: usize, trunks: Vec<Trunk>, first: u64) -> Self {
        Self {
            own: own as u16,
            network: digest(network),
            links: network.links.len(),
            sequence: first,
            trunks,
            machines: vec![Peer::default(); network.switches.len()],
        }
    }

    /// Encodes a message for all trunks.
    pub fn flood(&mut self, body: Body<'_>) -> Vec<(usize, Vec<u8>)> {
        if self.trunks.is_empty() {
            return Vec::new();
        }
        self.sequence += 1;
        let mut message = Message { link: 0, origin: self.own, sequence: self.sequence, network: self.network, body };
        let said = |trunk: &Trunk| {
            message.link = trunk.link as u16;
            trunk.fits(message.frame(trunk.mac))
        };
        self.trunks.iter().filter_map(said).collect()
    }

    /// Returns whether all trunks can carry a host's frame.
    pub fn fits(&self, frame: &[u8]) -> bool {
        self.trunks.iter().all(|trunk| frame.len() + HEAD_BYTES <= trunk.longest)
    }

    /// Processes a frame received over a trunk.
    pub fn receive<'a>(&mut self, trunk: usize, frame: &'a [u8], now_ns: u64) -> Effects<'a> {
        let mut effects = Effects::default();
        let Some(message) = Message::read(frame) else { return effects };
        let here = &mut self.trunks[trunk];
        // The two directions of a cable differ in the last bit.
        let link = usize::from(message.link) ^ 1;
        here.cable_state = match message.network == self.network {
            true if link == here.link => CableState::Connected,
            true if link < self.links => CableState::Miscabled(link ^ 1),
            _ => CableState::OtherFabric,
        };
        if here.cable_state != CableState::Connected {
            return effects;
        }
        here.received_ns = Some(now_ns);
        let far: Option<[u8; 6]> = frame[6..].first_chunk().copied();
        if here.far != far {
            here.far = far;
            effects.far = far.map(|far| (here.port, far));
        }
        if !self.is_new(&message, now_ns) {
            return effects;
        }
        let machines = self.trunks.iter().enumerate().filter(|(other, _)| *other != trunk);
        let passed = |(_, other): (usize, &Trunk)| other.fits(relay(frame, other.link as u16, other.mac));
        effects.onward = machines.filter_map(passed).collect();
        match message.body {
            Body::Down(links) => self.machines[usize::from(message.origin)].down = links,
            Body::Host(host, addresses) => effects.host = Some((host.into(), addresses)),
            Body::Frame(to, frame) => {
                effects.frame = Some(((to != ALL_HOSTS).then_some(to.into()), frame));
            }
        }
        effects
    }

    /// Whether a message is another machine's and not a duplicate from another path.
    fn is_new(&mut self, message: &Message<'_>, now_ns: u64) -> bool {
        let Some(other) = self.machines.get_mut(usize::from(message.origin)) else { return false };
        if message.origin == self.own {
            return false;
        }
        let is_restarted = now_ns.saturating_sub(other.received_ns) >= RESTART_NS;
        if message.sequence <= other.sequence && !is_restarted {
            return false;
        }
        (other.sequence, other.received_ns) = (message.sequence, now_ns);
        true
    }

    /// Returns what is at the other ends of the trunks, by link.
    pub fn cable_states(&self, now_ns: u64) -> Vec<(usize, CableState<usize>)> {
        let at = |trunk: &Trunk| match trunk.cable_state {
            CableState::Connected if is_expired(trunk.received_ns, now_ns) => CableState::NoPeer,
            other => other,
        };
        self.trunks.iter().map(|trunk| (trunk.link, at(trunk))).collect()
    }

    /// The links that live machines advertise as down.
    pub fn down(&self, now_ns: u64) -> Vec<usize> {
        let alive = self.machines.iter().filter(|other| now_ns.saturating_sub(other.received_ns) < RESTART_NS);
        let mut down: Vec<usize> = alive.flat_map(|other| &other.down).map(|link| usize::from(*link)).collect();
        down.retain(|link| *link < self.links);
        down.sort_unstable();
        down.dedup();
        down
    }
}

fn is_expired(received_ns: Option<u64>, now_ns: u64) -> bool {
    received_ns.is_none_or(|received_ns| now_ns.saturating_sub(received_ns) >= LIVENESS_TIMEOUT_NS)
}

/// A digest of what all machines must agree on.
fn digest(network: &Network) -> u32 {
    let nodes = network.hosts.iter().chain(network.switches.iter().map(|switch| &switch.name));
    let links = network.links.iter().map(|link| format!("{} {}", link.name, link.rate_bps));
    let text = nodes.cloned().chain(links).chain([network.switching.to_string()]);
    let fold = |sum: u64, text: String| text.bytes().fold(mix(sum), |sum, byte| mix(sum ^ u64::from(byte)));
    text.fold(0, fold) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, VecDeque};

    use spray_fabric::{LeafSpine, Node};

    use super::*;

    /// The machines of two leaves and two spines, a ring of cables with two paths between any two.
    struct Ring {
        network: Network,
        peers: Vec<Peers>,
        cut: Vec<usize>,
        now_ns: u64,
        /// Frames that crossed cables, and the bodies received by each machine.
        crossed: usize,
        hosts: HashMap<usize, Vec<usize>>,
        frames: HashMap<usize, Vec<Vec<u8>>>,
    }

    impl Ring {
        fn new() -> Self {
            let network = LeafSpine::uniform([2, 2, 1], 1_000_000_000, 0).network();
            let peers = (0..4).map(|own| Self::one(&network, own, 1)).collect();
            Self { network, peers, cut: vec![], now_ns: 0, crossed: 0, hosts: HashMap::new(), frames: HashMap::new() }
        }

        /// Ports have the numbers of their links.
        fn one(network: &Network, own: usize, first: u64) -> Peers {
            let leaves =
                |link: &usize| network.links[*link].from == Node::Switch(own) && network.links[*link].is_uplink();
            let trunk = |link: usize| Trunk::new(link, link, [2, 0, 0, 0, 0, link as u8], 1514);
            Peers::new(network, own, (0..network.links.len()).filter(leaves).map(trunk).collect(), first)
        }

        fn flood(&mut self, own: usize, body: Body<'_>) {
            let mut under_way: VecDeque<_> = self.peers[own].flood(body).into();
            while let Some((link, frame)) = under_way.pop_front() {
                assert!(self.crossed < 1_000, "a forwarding loop");
                let Node::Switch(to) = self.network.links[link].to else { panic!("no message to a host") };
                if self.cut.contains(&(link / 2)) {
                    continue;
                }
                self.crossed += 1;
                let trunk = self.peers[to].trunks.iter().position(|trunk| trunk.link == link ^ 1).unwrap();
                let effects = self.peers[to].receive(trunk, &frame, self.now_ns);
                under_way.extend(effects.onward);
                self.hosts.entry(to).or_default().extend(effects.host.map(|(host, _)| host));
                self.frames.entry(to).or_default().extend(effects.frame.map(|(_, frame)| frame.to_vec()));
            }
        }
    }

    //= docs/specs/switch.md#SW-27 one switch per machine
    #[test]
    fn each_machine_receives_each_message_once_despite_cuts() {
        for cut in [vec![], vec![2], vec![5]] {
            let mut ring = Ring { cut, ..Ring::new() };
            ring.flood(0, Body::Frame(ALL_HOSTS, &[7; 60]));
            ring.flood(0, Body::Host(0, vec!["10.0.0.1".parse().unwrap()]));
            for other in 1..4 {
                assert_eq!(ring.frames[&other], [vec![7; 60]], "machine {other}");
                assert_eq!(ring.hosts[&other], [0]);
            }
            assert!(!ring.frames.contains_key(&0), "not its own message");
        }
    }

    //= docs/specs/switch.md#SW-27 one switch per machine
    #[test]
    fn links_are_down_while_a_live_machine_advertises_it() {
        let mut ring = Ring::new();
        ring.flood(3, Body::Down(vec![4, 9, 60_000]));
        ring.flood(1, Body::Down(vec![9]));
        assert_eq!(ring.peers[0].down(0), [4, 9], "and no unknown link");
        ring.flood(3, Body::Down(vec![]));
        assert_eq!(ring.peers[0].down(0), [9]);
        assert_eq!(ring.peers[0].down(RESTART_NS), [] as [usize; 0]);
    }

    #[test]
    fn a_restarted_machine_is_received() {
        let mut ring = Ring::new();
        ring.peers[2] = Ring::one(&ring.network, 2, 1_000_000);
        ring.flood(2, Body::Down(vec![4]));
        // By a clock that went back.
        ring.peers[2] = Ring::one(&ring.network, 2, 1);
        ring.flood(2, Body::Down(vec![]));
        assert_eq!(ring.peers[0].down(0), [4]);
        ring.now_ns = RESTART_NS;
        ring.flood(2, Body::Down(vec![5]));
        assert_eq!(ring.peers[0].down(RESTART_NS), [5]);
    }

    #[test]
    fn the_machine_at_the_other_end_is_identified() {
        let mut ring = Ring::new();
        let link = ring.peers[0].trunks[0].link;
        let at = |ring: &Ring| ring.peers[0].cable_states(ring.now_ns)[0];
        assert_eq!(at(&ring), (link, CableState::NoPeer));
        ring.flood(2, Body::Down(vec![]));
        assert_eq!(at(&ring), (link, CableState::Connected));
        ring.now_ns = LIVENESS_TIMEOUT_NS;
        assert_eq!(at(&ring), (link, CableState::NoPeer));
        let other = ring.peers[3].flood(Body::Down(vec![])).remove(0).1;
        assert_eq!(ring.peers[0].receive(0, &other, ring.now_ns), Effects::default());
        assert_eq!(at(&ring).1, CableState::Miscabled(ring.peers[3].trunks[0].link));
        ring.network.links[0].rate_bps /= 2;
        let strange = Ring::one(&ring.network, 2, 9).flood(Body::Down(vec![])).remove(0).1;
        assert_eq!(ring.peers[0].receive(0, &strange, ring.now_ns), Effects::default());
        assert_eq!(at(&ring).1, CableState::OtherFabric);
    }

    #[test]
    fn a_new_mac_is_reported_once_and_long_frames_are_not_sent() {
        let mut ring = Ring::new();
        let [first, second] = [(); 2].map(|()| ring.peers[2].flood(Body::Down(vec![])).remove(0).1);
        let far = ring.peers[0].receive(0, &first, 0).far;
        assert_eq!(far, Some((ring.peers[0].trunks[0].port, ring.peers[2].trunks[0].mac)));
        assert_eq!(ring.peers[0].receive(0, &second, 0).far, None);
        assert!(ring.peers[0].fits(&[0; 1514 - HEAD_BYTES]) && !ring.peers[0].fits(&[0; 1515 - HEAD_BYTES]));
        assert!(ring.peers[0].flood(Body::Frame(0, &[0; 1515 - HEAD_BYTES])).is_empty());
    }
}
