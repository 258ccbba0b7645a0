//! Detours over a third group, switch by switch, in one chassis and in the kernel.

use super::super::SwitchProgram;
use super::build::{START_PS, Spec, host};
use super::{Engine, loaded_for};
use spray_fabric::{
    Cables, ChassisSpec, Dragonfly, Fabric, LinkAction, LinkEvent, Node, Scheme, Switching, Thresholds, compile,
};
use spray_pipeline::Verdict;
use spray_pipeline::shim::SHIM_BYTES;
use spray_test_support::NativeSwitch;
use spray_wire::{Ecn, Ports};
use std::collections::HashMap;

/// The number of switches, and of hosts, per group.
const SWITCHES: usize = 3;
const HOSTS: usize = 6;
const GROUPS: usize = 4;
/// The offset of the detour note in a frame's shim.
const NOTE: usize = 14;

/// Returns four groups of three switches with two hosts each, one cable between any two groups; h0
/// is at switch 0 of group 0.
fn fabric(scheme: Scheme) -> Fabric {
    without(scheme, &[])
}

/// Returns the same fabric without some cables, which are removed from the routes.
fn without(scheme: Scheme, cables: &[&str]) -> Fabric {
    let dragonfly = Dragonfly {
        groups: GROUPS,
        routers_per_group: SWITCHES,
        hosts_per_router: HOSTS / SWITCHES,
        global_cables: 1,
        local_gbps: None,
        global_gbps: None,
        global_latency_us: None,
        cables: Cables::default(),
    };
    let mut network = dragonfly.network();
    network.switching = Switching::all(scheme);
    let down = |name: &&str| LinkEvent {
        name: (*name).into(),
        links: network.links_named(name).expect("one of the fabric"),
        at_ps: 0,
        until_ps: None,
        action: LinkAction::Down { convergence_ps: 0 },
    };
    let events: Vec<LinkEvent> = cables.iter().map(down).collect();
    let mut fabric = compile(&network, 7, |_| QUEUE, &events).expect("few events");
    fabric.hosts.iter_mut().enumerate().for_each(|(number, entry)| *entry = host(number as u16));
    fabric
}

const QUEUE: Thresholds = Thresholds {
    limit_bytes: 100_000,
    mark_min_bytes: 20_000,
    mark_max_bytes: 80_000,
    control_limit_bytes: 10_000,
    trim: true,
    ..Thresholds::NONE
};

/// A chassis per switch, and one for all.
struct Both<'a> {
    fabric: &'a Fabric,
    singles: Vec<NativeSwitch>,
    whole: NativeSwitch,
}

impl<'a> Both<'a> {
    fn new(fabric: &'a Fabric) -> Self {
        let native = |switch| {
            let spec = ChassisSpec { switch, ..ChassisSpec::whole(fabric) };
            NativeSwitch::new(&spec).expect("a valid fabric")
        };
        let singles = (0..fabric.salts.len()).map(|switch| native(Some(switch))).collect();
        Self { fabric, singles, whole: native(None) }
    }

    /// Returns the switches that a frame crosses from `switch` on. Checks that the result is that
    /// of one chassis, and that it arrives untrimmed.
    fn walk(&self, switch: usize, frame: &[u8]) -> Vec<usize> {
        let (mut one, mut frame, mut path) = (frame.to_vec(), frame.to_vec(), vec![switch]);
        let verdict = self.whole.process(&mut one, switch, 0);
        loop {
            let at = path[path.len() - 1];
            let step = self.singles[at].process(&mut frame, at, 0);
            let Verdict::Redirect { port, .. } = step else { panic!("{step:?} after {path:?}") };
            match self.fabric.ports[port as usize].to {
                Node::Switch(next) => path.push(next),
                Node::Host(_) => {
                    assert!(step == verdict && frame == one, "{path:?}: {step:?}, {verdict:?}");
                    break;
                }
            }
        }
        assert!(matches!(spray_wire::parse(&frame[SHIM_BYTES..], Ports::DEFAULT), Ok(Some(_))), "{path:?}");
        path
    }

    /// Returns the number of links on the shortest path between two switches.
    fn links(&self, from: usize, to: usize) -> u64 {
        let next = |at: &usize| {
            let port = *self.fabric.routes[0].groups[*at][to * (HOSTS / SWITCHES)].first()?;
            match self.fabric.ports[port].to {
                Node::Switch(next) => Some(next),
                Node::Host(_) => None,
            }
        };
        std::iter::successors(Some(from), next).count() as u64 - 1
    }

    /// Returns the bytes queued at switch 0 on each shortest path to another one.
    fn waiting(&self, to: usize, time_ps: u64) -> Vec<u64> {
        let ports = &self.fabric.routes[0].groups[0][to * (HOSTS / SWITCHES)];
        ports.iter().map(|port| self.whole.queue_bytes(*port, time_ps)[0]).collect()
    }
}

/// Returns the groups on a path, in order.
fn groups(path: &[usize]) -> Vec<usize> {
    let mut groups: Vec<usize> = path.iter().map(|switch| switch / SWITCHES).collect();
    groups.dedup();
    groups
}

#[test]
fn valiant_uses_all_third_groups_equally() {
    //= docs/specs/switching.md#SWC-30 over a third group
    let fabric = fabric(Scheme::Valiant);
    let both = Both::new(&fabric);
    for to in 1..(GROUPS * HOSTS) as u16 {
        let target = usize::from(to) / HOSTS;
        let mut taken: HashMap<usize, u32> = HashMap::new();
        for port in 0..400 {
            let time_ps = START_PS + (u64::from(to) * 400 + u64::from(port)) * 1_000_000;
            let path = both.walk(0, &Spec { to, port, v6: port % 2 == 0, time_ps, ..Spec::DATA }.frame());
            match groups(&path).as_slice() {
                [0] => assert!(target == 0 && path.len() <= 2, "{path:?}"),
                [0, via, last] => {
                    assert!(
                        *last == target && target != 0 && ![0, target].contains(via) && path.len() <= 6,
                        "{path:?}"
                    );
                    *taken.entry(*via).or_default() += 1;
                }
                other => panic!("h0 to h{to}: {other:?}"),
            }
        }
        // 400 fair coin tosses: 200 within four standard deviations.
        let fair = taken.values().all(|count| (160..=240).contains(count)) && taken.len() == GROUPS - 2;
        assert!(target == 0 || fair, "h0 to h{to}: {taken:?}");
    }
}

#[test]
fn ugal_takes_the_shortest_path_without_queues() {
    //= docs/specs/switching.md#SWC-31 choice of the detour
    let fabric = fabric(Scheme::Ugal);
    let both = Both::new(&fabric);
    for (number, to) in (0..2_000).zip((1..(GROUPS * HOSTS) as u16).cycle()) {
        let path = both.walk(
            0,
            &Spec { to, port: number, time_ps: START_PS + u64::from(number) * 1_000_000, ..Spec::DATA }.frame(),
        );
        let target = usize::from(to) / (HOSTS / SWITCHES);
        assert_eq!(path.len() as u64 - 1, both.links(0, target), "h0 to h{to}: {path:?}");
    }
}

/// The paper's rule, for a frame with a known group. The host of the group and the sampled port
/// among equal ones are unknown: the rule must hold for one of them.
//= docs/specs/switching.md#SWC-33 the one whose queue was compared
#[test]
fn ugal_compares_queues_times_links() {
    //= docs/specs/switching.md#SWC-31 choice of the detour
    let fabric = fabric(Scheme::Ugal);
    let both = Both::new(&fabric);
    let mut detours = 0;
    for number in 0..1_000u64 {
        let (to, time_ps) = (6 + (number % 5) as u16, START_PS + number * 150_000);
        let target = usize::from(to) / (HOSTS / SWITCHES);
        let times = |waiting: Vec<u64>, links: u64| waiting.into_iter().map(move |bytes| bytes * links);
        let shortest: Vec<u64> = times(both.waiting(target, time_ps), both.links(0, target)).collect();
        let through = |third| times(both.waiting(third, time_ps), both.links(0, third) + both.links(third, target));
        let longer: Vec<Vec<u64>> =
            (0..GROUPS).map(|via| (via * SWITCHES..(via + 1) * SWITCHES).flat_map(through).collect()).collect();
        let [least, most] = [shortest.iter().min(), shortest.iter().max()].map(Option::unwrap);
        let path = both.walk(0, &Spec { to, port: number as u16, time_ps, ..Spec::DATA }.frame());
        match groups(&path).as_slice() {
            [0, 1] => assert!(longer[2..].iter().flatten().any(|longer| least <= longer), "{number}"),
            [0, via, 1] => {
                detours += 1;
                assert!(longer[*via].iter().any(|longer| most > longer), "{number}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!((200..800).contains(&detours), "{detours}");
}

#[test]
fn invalid_notes_do_not_misroute_frames() {
    //= docs/specs/switching.md#SWC-32 invalid notes
    for scheme in [Scheme::Valiant, Scheme::Ugal] {
        let fabric = fabric(scheme);
        let both = Both::new(&fabric);
        for note in 0..=u8::MAX {
            for (switch, to) in (0..GROUPS * SWITCHES).zip([3, 9, 14, 23].into_iter().cycle()) {
                let v6 = note % 2 == 0;
                let time_ps = START_PS + (u64::from(note) * 12 + switch as u64) * 1_000_000;
                let mut frame = Spec { to, v6, port: u16::from(note), time_ps, ..Spec::DATA }.frame();
                frame[NOTE] = note;
                let path = both.walk(switch, &frame);
                assert!(path.len() <= 6 && groups(&path).len() <= 3, "{note} at {switch}: {path:?}");
                if note == 1 || note > 1 + GROUPS as u8 {
                    let target = usize::from(to) / (HOSTS / SWITCHES);
                    assert_eq!(path.len() as u64 - 1, both.links(switch, target), "{note}: {path:?}");
                }
            }
        }
    }
}

#[test]
fn kernel_and_memory_agree_on_detours() {
    //= docs/specs/switching.md#SWC-2 one implementation
    let (valiant, ugal) = (fabric(Scheme::Valiant), fabric(Scheme::Ugal));
    let Some(mut kernel) = loaded_for(&valiant) else { return };
    let verdicts = [&valiant, &ugal].map(|fabric| agree(&mut kernel, fabric));
    assert_ne!(verdicts[0], verdicts[1]);
}

/// Sends frames to all hosts, every third with a note, not in order of time.
fn agree(kernel: &mut SwitchProgram, fabric: &Fabric) -> Vec<Vec<u8>> {
    let spec = ChassisSpec::whole(fabric);
    kernel.configure(&spec).expect("a fabric of the same shape");
    let memory = NativeSwitch::new(&spec).expect("a valid fabric");
    let one = |number: u64| {
        let lot = spray_fabric::mix(number);
        let (to, v6) = ((lot % 25) as u16, lot >> 8 & 1 == 1);
        let time_ps = START_PS + number * 20_000 + (lot >> 20 & 0xff_ffff);
        let mut frame = Spec { to, v6, port: number as u16, time_ps, ..Spec::DATA }.frame();
        if number.is_multiple_of(3) {
            frame[NOTE] = (lot >> 48) as u8 % 8;
        }
        let (verdict, out) = memory.run(&frame);
        assert_eq!(kernel.run(&frame), (verdict, out.clone()), "frame {number}");
        out
    };
    let frames = (0..4_000).map(one).collect();
    for port in 0..fabric.ports.len() {
        assert_eq!(kernel.counters(port).expect("a port"), memory.counters(port), "{}", fabric.ports[port].name);
    }
    frames
}

/// Packets of many flows to one group at the same time: some flowcuts take detours, and all packets
/// of a flowcut take the same ports. If every switch keeps entries, ACKs return over the cables of
/// the data, also without the cable between groups 1 and 2, where the paths over group 2 cross some
/// switches twice.
#[test]
fn flowcuts_keep_their_path_over_a_third_group() {
    //= docs/specs/switching.md#SWC-2 one implementation
    //= docs/specs/flowcut-switch.md#FCS-8 reverse path
    //= docs/specs/flowcut-switch.md#FCS-11 detours
    let mut kernel = loaded_for(&fabric(Scheme::FlowcutSwitch));
    for scheme in [Scheme::FlowcutIngress, Scheme::FlowcutSwitch] {
        for cables in [&[][..], &["g1r0-g2r2"]] {
            let mut fabric = without(scheme, cables);
            fabric.switching.longest_ps = 1_000_000_000;
            let spec = ChassisSpec::whole(&fabric);
            let memory = NativeSwitch::new(&spec).expect("a valid fabric");
            if let Some(kernel) = &mut kernel {
                kernel.configure(&spec).expect("a fabric of the same shape");
            }
            let mut time_ps = START_PS;
            let mut cross = |packet: Spec, ingress: usize, gap_ps: u64| {
                time_ps += gap_ps;
                let frame = Spec { time_ps, ..packet }.frame();
                let before: Vec<u64> = (0..fabric.ports.len()).map(|port| memory.counters(port).frames).collect();
                let mut native = frame.clone();
                let verdict = memory.process(&mut native, ingress, 0);
                assert!(matches!(verdict, Verdict::Redirect { .. }), "{scheme}: {verdict:?}");
                if let Some(kernel) = &mut kernel {
                    assert_eq!(kernel.test_run(&frame, ingress).expect("a run"), (verdict, native));
                }
                let passed = |port: &usize| memory.counters(*port).frames > before[*port];
                let is_inside = |port: &usize| matches!(fabric.ports[*port].to, Node::Switch(_));
                (0..fabric.ports.len()).filter(is_inside).filter(passed).collect::<Vec<_>>()
            };
            let (mut ways, mut detours, mut twice) = (Vec::new(), 0, 0);
            for round in 0..4 {
                for flow in 0..30u16 {
                    let packet = Spec {
                        to: 6 + flow % 6,
                        port: 50_000 + flow,
                        v6: flow % 2 == 0,
                        payload: Some(1_000),
                        ..Spec::DATA
                    };
                    let packet = Spec { stamp_ps: START_PS + round, ..packet };
                    let way = cross(packet, 0, if round == 0 { 20_000 } else { 400_000 });
                    if round == 0 {
                        ways.push((packet, way.clone()));
                    }
                    assert_eq!(way, ways[usize::from(flow)].1, "{scheme}: {flow}");
                }
            }
            for (packet, way) in &ways {
                let (stamp_ps, payload, ecn) = (START_PS + 3, None, Ecn::NotEct);
                let reply = Spec { from: packet.to, to: packet.from, stamp_ps, payload, ecn, ..*packet };
                let back = cross(reply, usize::from(packet.to) / (HOSTS / SWITCHES), 400_000);
                let cable = |port: &usize| (Node::Switch(fabric.ports[*port].switch), fabric.ports[*port].to);
                let there: Vec<_> = way.iter().map(cable).map(|(from, to)| (to, from)).collect();
                // If the data crossed its first switch twice, the ACK has arrived there.
                let is_home = way.iter().filter(|port| fabric.ports[**port].switch == 0).count() > 1;
                let goes_back = back.iter().all(|port| there.contains(&cable(port)));
                let all = goes_back && (is_home || back.len() == there.len());
                assert!(scheme == Scheme::FlowcutIngress || all, "{way:?}, {back:?}");
                let groups = |port: &&usize| matches!(cable(port), (Node::Switch(a), Node::Switch(b)) if a / SWITCHES != b / SWITCHES);
                detours += u32::from(way.iter().filter(groups).count() > 1);
                let from = |port: &usize| fabric.ports[*port].switch;
                twice +=
                    u32::from(way.iter().any(|port| way.iter().filter(|other| from(other) == from(port)).count() > 1));
            }
            assert!((3..28).contains(&detours), "{scheme}: {detours}");
            assert_eq!(twice > 0, !cables.is_empty(), "{scheme}: {twice}");
        }
    }
}
