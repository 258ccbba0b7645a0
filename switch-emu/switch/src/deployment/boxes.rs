//! The other boxes of a fabric whose switches are run by one box each: what they say, and whether they say anything. No I/O.

use std::net::IpAddr;

use spray_fabric::Network;
use spray_pipeline::hash::mix;

use super::message::{Body, EVERYBODY, HEAD_BYTES, Message, pass_on};

/// What a box knows of the others. Every message goes over all cables of every box once.
#[derive(Debug)]
pub(super) struct Boxes {
    /// The switch that this one runs.
    own: u16,
    network: u32,
    links: usize,
    /// The number of what it said last.
    number: u64,
    trunks: Vec<Trunk>,
    /// By switch.
    others: Vec<Other>,
}

/// A cable to another box.
#[derive(Debug)]
pub(super) struct Trunk {
    /// The port that leads to it, and the link of that.
    pub port: usize,
    pub link: usize,
    /// The Ethernet address of its interface, and the longest frame.
    pub mac: [u8; 6],
    pub longest: usize,
    /// The Ethernet address at its other end.
    far: Option<[u8; 6]>,
    /// When the box at its other end was last heard.
    heard_ns: Option<u64>,
    /// What was heard last.
    cabled: CableState<usize>,
}

/// What is at the other end of a cable to another box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CableState<Link = String> {
    /// Nobody has been heard for a second: the link is down.
    Silent,
    /// The box that should be there.
    Right,
    /// Another one: the cable's other end is that of this link, and the link is down.
    Wrong(Link),
    /// A box of another scenario, or with other settings: the link is down.
    Stranger,
}

#[derive(Clone, Debug, Default)]
struct Other {
    number: u64,
    heard_ns: u64,
    /// Links that it has said are down.
    down: Vec<u16>,
}

/// What a message has to say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard<'a> {
    /// The port of the cable that it came by leads to this Ethernet address from now on.
    pub far: Option<(usize, [u8; 6])>,
    /// A host and its addresses.
    pub host: Option<(usize, Vec<IpAddr>)>,
    /// A frame, and the host that it is for; `None`: for all.
    pub frame: Option<(Option<usize>, &'a [u8])>,
    /// What goes on by which ports.
    pub onward: Vec<(usize, Vec<u8>)>,
}

/// A box that has said nothing for so long is not there.
const SILENCE_NS: u64 = 1_000_000_000;
/// Who has said nothing for so long may have begun anew, by another clock.
const FORGET_NS: u64 = 3_000_000_000;

impl Trunk {
    /// The cable at this port, which leads by `link`.
    pub fn new(port: usize, link: usize, mac: [u8; 6], longest: usize) -> Self {
        Self { port, link, mac, longest, far: None, heard_ns: None, cabled: CableState::Silent }
    }

    /// The frame and the port that it leaves by; `None`: it is too long.
    fn takes(&self, frame: Vec<u8>) -> Option<(usize, Vec<u8>)> {
        (frame.len() <= self.longest).then_some((self.port, frame))
    }
}

impl Boxes {
    /// Those around the box that plays `own`. Numbers begin at `first`, above those of a box that has played it before.
    pub fn new(network: &Network, own: usize, trunks: Vec<Trunk>, first: u64) -> Self {
        Self {
            own: own as u16,
            network: digest(network),
            links: network.links.len(),
            number: first,
            trunks,
            others: vec![Other::default(); network.switches.len()],
        }
    }

    /// What goes by which ports to say something.
    pub fn say(&mut self, body: Body<'_>) -> Vec<(usize, Vec<u8>)> {
        if self.trunks.is_empty() {
            return Vec::new();
        }
        self.number += 1;
        let mut message = Message { link: 0, origin: self.own, number: self.number, network: self.network, body };
        let said = |trunk: &Trunk| {
            message.link = trunk.link as u16;
            trunk.takes(message.frame(trunk.mac))
        };
        self.trunks.iter().filter_map(said).collect()
    }

    /// Whether a frame of a host can be said by every cable.
    pub fn takes(&self, frame: &[u8]) -> bool {
        self.trunks.iter().all(|trunk| frame.len() + HEAD_BYTES <= trunk.longest)
    }

    /// Takes a frame that came by a cable.
    pub fn hear<'a>(&mut self, trunk: usize, frame: &'a [u8], now_ns: u64) -> Heard<'a> {
        let mut heard = Heard::default();
        let Some(message) = Message::read(frame) else { return heard };
        let here = &mut self.trunks[trunk];
        // Both directions of a cable differ in the last bit.
        let link = usize::from(message.link) ^ 1;
        here.cabled = match message.network == self.network {
            true if link == here.link => CableState::Right,
            true if link < self.links => CableState::Wrong(link ^ 1),
            _ => CableState::Stranger,
        };
        if here.cabled != CableState::Right {
            return heard;
        }
        here.heard_ns = Some(now_ns);
        let far: Option<[u8; 6]> = frame[6..].first_chunk().copied();
        if here.far != far {
            here.far = far;
            heard.far = far.map(|far| (here.port, far));
        }
        if !self.is_new(&message, now_ns) {
            return heard;
        }
        let others = self.trunks.iter().enumerate().filter(|(other, _)| *other != trunk);
        let passed = |(_, other): (usize, &Trunk)| other.takes(pass_on(frame, other.link as u16, other.mac));
        heard.onward = others.filter_map(passed).collect();
        match message.body {
            Body::Down(links) => self.others[usize::from(message.origin)].down = links,
            Body::Host(host, addresses) => heard.host = Some((host.into(), addresses)),
            Body::Frame(to, frame) => {
                heard.frame = Some(((to != EVERYBODY).then_some(to.into()), frame));
            }
        }
        heard
    }

    /// Whether a message is another box's, and is heard for the first time: it comes by many ways.
    fn is_new(&mut self, message: &Message<'_>, now_ns: u64) -> bool {
        let Some(other) = self.others.get_mut(usize::from(message.origin)) else { return false };
        if message.origin == self.own {
            return false;
        }
        let forgotten = now_ns.saturating_sub(other.heard_ns) >= FORGET_NS;
        if message.number <= other.number && !forgotten {
            return false;
        }
        (other.number, other.heard_ns) = (message.number, now_ns);
        true
    }

    /// What is at the other ends of the cables, by their links.
    pub fn cabled(&self, now_ns: u64) -> Vec<(usize, CableState<usize>)> {
        let at = |trunk: &Trunk| match trunk.cabled {
            CableState::Right if is_long_ago(trunk.heard_ns, now_ns) => CableState::Silent,
            other => other,
        };
        self.trunks.iter().map(|trunk| (trunk.link, at(trunk))).collect()
    }

    /// The links that other boxes say are down.
    pub fn down(&self, now_ns: u64) -> Vec<usize> {
        let speaking = self.others.iter().filter(|other| now_ns.saturating_sub(other.heard_ns) < FORGET_NS);
        let mut down: Vec<usize> = speaking.flat_map(|other| &other.down).map(|link| usize::from(*link)).collect();
        down.retain(|link| *link < self.links);
        down.sort_unstable();
        down.dedup();
        down
    }
}

fn is_long_ago(heard_ns: Option<u64>, now_ns: u64) -> bool {
    heard_ns.is_none_or(|heard_ns| now_ns.saturating_sub(heard_ns) >= SILENCE_NS)
}

/// A digest of what all boxes of a fabric have to agree on.
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

    /// Boxes of two leaves and two spines, a ring of cables, so that everything comes by two ways.
    struct Ring {
        network: Network,
        boxes: Vec<Boxes>,
        cut: Vec<usize>,
        now_ns: u64,
        /// Frames that went over cables, and what each box heard of bodies.
        crossed: usize,
        hosts: HashMap<usize, Vec<usize>>,
        frames: HashMap<usize, Vec<Vec<u8>>>,
    }

    impl Ring {
        fn new() -> Self {
            let network = LeafSpine::uniform([2, 2, 1], 1_000_000_000, 0).network();
            let boxes = (0..4).map(|own| Self::one(&network, own, 1)).collect();
            Self { network, boxes, cut: vec![], now_ns: 0, crossed: 0, hosts: HashMap::new(), frames: HashMap::new() }
        }

        /// Its ports have the numbers of their links.
        fn one(network: &Network, own: usize, first: u64) -> Boxes {
            let leaves =
                |link: &usize| network.links[*link].from == Node::Switch(own) && network.links[*link].is_uplink();
            let trunk = |link: usize| Trunk::new(link, link, [2, 0, 0, 0, 0, link as u8], 1514);
            Boxes::new(network, own, (0..network.links.len()).filter(leaves).map(trunk).collect(), first)
        }

        fn say(&mut self, own: usize, body: Body<'_>) {
            let mut under_way: VecDeque<_> = self.boxes[own].say(body).into();
            while let Some((link, frame)) = under_way.pop_front() {
                assert!(self.crossed < 1_000, "it goes round for ever");
                let Node::Switch(to) = self.network.links[link].to else { panic!("a box tells no host") };
                if self.cut.contains(&(link / 2)) {
                    continue;
                }
                self.crossed += 1;
                let trunk = self.boxes[to].trunks.iter().position(|trunk| trunk.link == link ^ 1).unwrap();
                let heard = self.boxes[to].hear(trunk, &frame, self.now_ns);
                under_way.extend(heard.onward);
                self.hosts.entry(to).or_default().extend(heard.host.map(|(host, _)| host));
                self.frames.entry(to).or_default().extend(heard.frame.map(|(_, frame)| frame.to_vec()));
            }
        }
    }

    //= docs/specs/switch.md#SW-27 one switch per machine
    #[test]
    fn everybody_hears_everything_once_whatever_is_cut() {
        for cut in [vec![], vec![2], vec![5]] {
            let mut ring = Ring { cut, ..Ring::new() };
            ring.say(0, Body::Frame(EVERYBODY, &[7; 60]));
            ring.say(0, Body::Host(0, vec!["10.0.0.1".parse().unwrap()]));
            for other in 1..4 {
                assert_eq!(ring.frames[&other], [vec![7; 60]], "box {other}");
                assert_eq!(ring.hosts[&other], [0]);
            }
            assert!(!ring.frames.contains_key(&0), "nobody hears himself");
        }
    }

    //= docs/specs/switch.md#SW-27 one switch per machine
    #[test]
    fn links_are_down_that_anybody_says_are_as_long_as_he_speaks() {
        let mut ring = Ring::new();
        ring.say(3, Body::Down(vec![4, 9, 60_000]));
        ring.say(1, Body::Down(vec![9]));
        assert_eq!(ring.boxes[0].down(0), [4, 9], "and none that there is not");
        ring.say(3, Body::Down(vec![]));
        assert_eq!(ring.boxes[0].down(0), [9]);
        assert_eq!(ring.boxes[0].down(FORGET_NS), [] as [usize; 0]);
    }

    #[test]
    fn a_box_that_begins_anew_is_heard() {
        let mut ring = Ring::new();
        ring.boxes[2] = Ring::one(&ring.network, 2, 1_000_000);
        ring.say(2, Body::Down(vec![4]));
        // By a clock that went back.
        ring.boxes[2] = Ring::one(&ring.network, 2, 1);
        ring.say(2, Body::Down(vec![]));
        assert_eq!(ring.boxes[0].down(0), [4]);
        ring.now_ns = FORGET_NS;
        ring.say(2, Body::Down(vec![5]));
        assert_eq!(ring.boxes[0].down(FORGET_NS), [5]);
    }

    #[test]
    fn who_is_at_the_other_end_is_told() {
        let mut ring = Ring::new();
        let link = ring.boxes[0].trunks[0].link;
        let at = |ring: &Ring| ring.boxes[0].cabled(ring.now_ns)[0];
        assert_eq!(at(&ring), (link, CableState::Silent));
        ring.say(2, Body::Down(vec![]));
        assert_eq!(at(&ring), (link, CableState::Right));
        ring.now_ns = SILENCE_NS;
        assert_eq!(at(&ring), (link, CableState::Silent));
        let other = ring.boxes[3].say(Body::Down(vec![])).remove(0).1;
        assert_eq!(ring.boxes[0].hear(0, &other, ring.now_ns), Heard::default());
        assert_eq!(at(&ring).1, CableState::Wrong(ring.boxes[3].trunks[0].link));
        ring.network.links[0].rate_bps /= 2;
        let strange = Ring::one(&ring.network, 2, 9).say(Body::Down(vec![])).remove(0).1;
        assert_eq!(ring.boxes[0].hear(0, &strange, ring.now_ns), Heard::default());
        assert_eq!(at(&ring).1, CableState::Stranger);
    }

    #[test]
    fn the_address_at_the_other_end_is_news_once_and_what_is_too_long_is_not_said() {
        let mut ring = Ring::new();
        let [first, second] = [(); 2].map(|()| ring.boxes[2].say(Body::Down(vec![])).remove(0).1);
        let far = ring.boxes[0].hear(0, &first, 0).far;
        assert_eq!(far, Some((ring.boxes[0].trunks[0].port, ring.boxes[2].trunks[0].mac)));
        assert_eq!(ring.boxes[0].hear(0, &second, 0).far, None);
        assert!(ring.boxes[0].takes(&[0; 1514 - HEAD_BYTES]) && !ring.boxes[0].takes(&[0; 1515 - HEAD_BYTES]));
        assert!(ring.boxes[0].say(Body::Frame(0, &[0; 1515 - HEAD_BYTES])).is_empty());
    }
}
