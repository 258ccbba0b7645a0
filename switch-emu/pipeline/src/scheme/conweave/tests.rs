mod model;

use super::state::Counts;
use super::tag::{Kind, Tag};
use super::*;
use crate::flow_hash::Key;
use crate::frame::Frame;
use crate::scheme::note::ReunionNote;
use crate::scheme::tests::chassis::{BASE_RTT_PS, Chassis, FRAME, SETTINGS};
use crate::scheme::{Forwarding, Notice, Scheme, poll, route_by_trail};
use crate::trail::WORDS;
use proptest::prelude::*;
use spray_wire::switch_view::PacketFields;
use std::cell::RefMut;
use std::vec::Vec;
use std::{assert, assert_eq, assert_ne, vec};

const US: u64 = 1_000_000;
/// The fabric has four leaves with four hosts each, under eight spines.
const SPINES: u32 = 8;
const LEAVES: u32 = 4;
const SRC: u32 = 0;
const FAR: u32 = 3;
const DST: u32 = 12;
const LEN: u32 = 1_000;
const LATE: u64 = BASE_RTT_PS + 4 * US;

struct Net(Chassis);

/// A packet between two leaves.
#[derive(Clone, Copy, Debug)]
struct Packet {
    trail: [u64; WORDS],
    spine: u32,
    sent_ps: u64,
    dst: u32,
}

impl Packet {
    fn tag(&self) -> Tag {
        Tag::of(self.trail[7])
    }
    fn kind(&self) -> (Kind, bool) {
        (self.tag().kind, self.tag().rerouted)
    }
}

impl Net {
    fn new() -> Self {
        Self(Chassis::leaf_spine([LEAVES, SPINES, 4], Scheme::ConWeave, SETTINGS))
    }

    /// Sends a packet of a flow from the first host to another one, as far as the link to its leaf.
    fn send_to(&self, t_ps: u64, flow: u32, dst: u32) -> Packet {
        let key = Key { addresses: u64::from(SRC) << 32 | u64::from(dst), ports: flow, label: 0 };
        self.0.trail.begin(0, false, &key, &PacketFields::default());
        let hash = crate::hash::mix(u64::from(flow));
        let mut frame = Frame { flow: hash, time_ps: t_ps, switch: 0, len: LEN, ..FRAME };
        let spine = self.0.far_end(route_by_trail(&self.0, &mut frame, dst).unwrap()).unwrap();
        frame.switch = spine;
        assert_eq!(self.0.far_end(route_by_trail(&self.0, &mut frame, dst).unwrap()), Some(dst / 4));
        Packet { trail: self.0.trail.words(), spine: spine - LEAVES, sent_ps: t_ps, dst }
    }

    fn send(&self, t_ps: u64) -> Packet {
        self.send_to(t_ps, 1, DST)
    }

    fn deliver_as(&self, t_ps: u64, packet: &Packet, ecn: u8, control: bool) -> (Option<QueueAction>, Vec<Notice>) {
        self.0.trail.resume(packet.trail);
        let mut frame = Frame { time_ps: t_ps, switch: packet.dst / 4, len: LEN, ecn, control, ..FRAME };
        assert_eq!(self.0.far_end(route_by_trail(&self.0, &mut frame, packet.dst).unwrap()), None);
        let notices = core::iter::from_fn(|| poll(&self.0, FAR)).collect();
        (self.state(FAR).order(), notices)
    }

    fn deliver(&self, t_ps: u64, packet: &Packet) -> (Option<QueueAction>, Vec<Notice>) {
        self.deliver_as(t_ps, packet, 1, false)
    }

    fn on_notice(&self, t_ps: u64, notice: &Notice) {
        assert_eq!(notice.to, 0);
        self.0.trail.begin_notice(FAR, notice.note, notice.flow, notice.more);
        let mut frame = Frame { time_ps: t_ps, switch: 0, control: true, ..FRAME };
        route_by_trail(&self.0, &mut frame, SRC).unwrap();
    }

    fn counts(&self, switch: u32) -> Counts {
        self.state(switch).counts
    }

    fn state(&self, switch: u32) -> RefMut<'_, State> {
        self.0.state(switch).unwrap().borrow_mut()
    }

    /// Handles the expiry of a queue of the destination switch.
    fn expire(&self, queue: u32, now_ps: u64) -> Expiry {
        self.state(FAR).expire(queue, now_ps)
    }

    /// Returns the packets of a flow that has just been rerouted: one of the old path, sent at 0,
    /// the TAIL, and one of the new path.
    fn rerouted(&self, flow: u32, dst: u32) -> [Packet; 3] {
        [0, LATE + US, LATE + 2 * US].map(|t_ps| self.send_to(t_ps, flow, dst))
    }
}

fn kinds(notices: &[Notice]) -> Vec<Kind> {
    notices.iter().map(|notice| Tag::of(notice.more[1]).kind).collect()
}

#[test]
fn a_timely_reply_keeps_the_path_and_starts_an_epoch() {
    //= docs/specs/conweave.md#CWV-5 a request
    let net = Net::new();
    let first = net.send(US);
    assert_eq!(first.kind(), (Kind::Request, false));
    assert_eq!(net.send(2 * US).kind(), (Kind::Data, false), "one request per epoch");
    let (order, notices) = net.deliver(3 * US, &first);
    assert_eq!((order, kinds(&notices)), (None, vec![Kind::Reply]));
    net.on_notice(US + LATE - 1, &notices[0]);
    let next = net.send(US + LATE);
    assert_eq!((next.kind(), next.spine), ((Kind::Request, false), first.spine));
    assert_eq!(next.tag().epoch, first.tag().epoch.wrapping_add(1));
    assert_eq!(net.counts(0).rerouted + net.counts(FAR).rerouted, 0);
}

#[test]
fn a_late_reply_reroutes_once_until_the_tail_is_cleared() {
    //= docs/specs/conweave.md#CWV-6 a late reply
    //= docs/specs/conweave.md#CWV-7 the TAIL
    //= docs/specs/conweave.md#CWV-8 one reroute at a time
    let net = Net::new();
    let first = net.send(US);
    let (_, reply) = net.deliver(2 * US, &first);
    assert_eq!(net.send(US + LATE).kind(), (Kind::Data, false), "just before the deadline");
    let tail = net.send(US + LATE + 1);
    assert_eq!((tail.kind(), tail.spine), ((Kind::Tail, false), first.spine), "on the old path");
    net.on_notice(US + LATE + 2, &reply[0]);
    let moved = net.send(2 * LATE);
    assert_eq!(moved.kind(), (Kind::Data, true));
    assert_ne!(moved.spine, first.spine);
    assert_eq!(moved.tag().tail_ps, (US + LATE + 1) >> 10 << 10);
    // Neither time nor the late reply reroutes it again.
    let times = [3 * LATE, 10 * LATE, 30 * LATE, 60 * LATE, 90 * LATE];
    assert!(times.into_iter().all(|t_ps| {
        let packet = net.send(t_ps);
        packet.kind() == (Kind::Data, true) && packet.spine == moved.spine && packet.tag().epoch == first.tag().epoch
    }));
    let (_, clear) = net.deliver(90 * LATE + US, &tail);
    assert_eq!(kinds(&clear), [Kind::Clear]);
    net.on_notice(90 * LATE + 2 * US, &clear[0]);
    let after = net.send(90 * LATE + 3 * US);
    assert_eq!((after.kind(), after.spine), ((Kind::Request, false), moved.spine));
    assert_eq!(net.counts(0).rerouted, 1);
}

#[test]
fn busy_paths_are_not_chosen() {
    //= docs/specs/conweave.md#CWV-9 choice of a path
    //= docs/specs/conweave.md#CWV-10 busy paths
    let net = Net::new();
    let path = |spine| u64::from(spine + 1);
    let notify = |spine| Notice {
        more: [path(spine), Tag { kind: Kind::Notify, ..Tag::default() }.word()],
        ..Notice::default()
    };
    let (free, marked_ps) = (5, LATE);
    (0..SPINES).filter(|spine| *spine != free).for_each(|spine| net.on_notice(marked_ps, &notify(spine)));
    let mut moved = [0, 0];
    for flow in 1..300 {
        let [.., rerouted] = net.rerouted(flow, DST);
        let first = net.send_to(0, 1_000 + flow, DST).spine;
        net.send_to(LATE + 17 * US, 1_000 + flow, DST);
        let later = net.send_to(LATE + 18 * US, 1_000 + flow, DST);
        let [before, _, after] = net.rerouted(2_000 + flow, DST);
        assert!(after.spine == before.spine || after.spine == free, "rerouted to the free path or not at all");
        moved[0] += u32::from(rerouted.spine == free);
        moved[1] += u32::from(later.spine != free && later.spine != first);
    }
    // Two samples find one of eight paths in 23 % of the cases, and there are two attempts; after
    // 16 us all paths are free again.
    assert!((115..175).contains(&moved[0]), "{moved:?}");
    assert!(moved[1] > 200, "{moved:?}");
    let marked = net.send(400 * US);
    let (_, notices) = net.deliver_as(401 * US, &marked, 3, false);
    assert_eq!(kinds(&notices), [Kind::Reply, Kind::Notify], "the latest notification is sent first");
    assert_eq!(notices[1].more[0], path(marked.spine));
}

#[test]
fn a_pause_ends_an_epoch() {
    //= docs/specs/conweave.md#CWV-4 epochs
    let net = Net::new();
    let [_, tail, moved] = net.rerouted(1, DST);
    let at_ps = moved.sent_ps + 300 * US;
    assert_eq!(net.send(at_ps).kind(), (Kind::Data, true));
    let next = net.send(at_ps + 300 * US + 1);
    assert_eq!((next.kind(), next.tag().tail_ps), ((Kind::Request, false), 0));
    let (_, clear) = net.deliver(at_ps + 301 * US, &tail);
    net.on_notice(at_ps + 302 * US, &clear[0]);
    assert_eq!(net.send(at_ps + 303 * US).kind(), (Kind::Data, false), "of a previous epoch");
    let spines: std::collections::HashSet<u32> = (2..40).map(|pause| net.send(pause * 1_000 * US).spine).collect();
    assert!(spines.len() > 5, "{spines:?}");
}

#[test]
fn packets_of_the_new_path_wait_for_the_tail() {
    //= docs/specs/conweave.md#CWV-13 reordering queues
    //= docs/specs/conweave.md#CWV-14 release by the TAIL
    let net = Net::new();
    let [old, tail, moved] = net.rerouted(1, DST);
    let more = net.send(moved.sent_ps + US);
    assert_eq!(net.deliver(20 * US, &old).0, None);
    let (order, _) = net.deliver(21 * US, &moved);
    let due_ps = 20 * US + (tail.sent_ps >> 10 << 10) + 16 * US;
    assert_eq!(order, Some(QueueAction { queue: 0, holds: true, releases: false, due_ps }));
    assert_eq!(net.deliver(22 * US, &more).0, order);
    let (order, clear) = net.deliver(23 * US, &tail);
    assert_eq!(order.map(|order| (order.queue, order.holds, order.releases)), Some((0, false, true)));
    assert_eq!(kinds(&clear), [Kind::Clear]);
    assert_eq!(net.deliver(24 * US, &net.send(24 * US)).0, None, "no packet precedes it");
    assert_eq!(net.expire(0, due_ps), Expiry::Free);
    let Counts { held, held_bytes, queues, timeouts, .. } = net.counts(FAR);
    assert_eq!((held, held_bytes, queues, timeouts), (2, 2 * u64::from(LEN), 1, 0));
}

#[test]
fn the_wait_for_a_lost_tail_ends_at_its_expected_arrival() {
    //= docs/specs/conweave.md#CWV-16 a lost TAIL
    let net = Net::new();
    let [first, tail, moved] = net.rerouted(1, DST);
    let (order, _) = net.deliver(21 * US, &moved);
    assert_eq!(order.unwrap().due_ps, (21 + 200 + 16) * US, "the old path is unknown");
    let (order, _) = net.deliver(30 * US, &first);
    let due_ps = (30 + 16) * US + (tail.sent_ps >> 10 << 10);
    assert_eq!(order, Some(QueueAction { queue: 0, holds: false, releases: false, due_ps }), "now it is known");
    assert_eq!(net.expire(0, due_ps - 1), Expiry::At(due_ps));
    assert_eq!(net.expire(0, due_ps), Expiry::Now);
    assert_eq!((net.expire(0, due_ps), net.counts(FAR).timeouts), (Expiry::Free, 1));
    assert_eq!(net.deliver(due_ps + 1, &net.send(due_ps)).0, None, "the queue is empty");
    let (order, clear) = net.deliver(due_ps + 2, &tail);
    assert_eq!((order, kinds(&clear)), (None, vec![Kind::Clear]), "the packet is late");
}

#[test]
fn a_new_epoch_releases_queued_packets_of_the_previous_one() {
    //= docs/specs/conweave.md#CWV-15 a new epoch while packets wait
    let net = Net::new();
    let [first, _, moved] = net.rerouted(1, DST);
    assert!(net.deliver(21 * US, &moved).0.unwrap().holds);
    let next = net.send(moved.sent_ps + 301 * US);
    assert_eq!(next.kind(), (Kind::Request, false));
    let (order, _) = net.deliver(next.sent_ps + US, &next);
    assert_eq!(
        order.map(|order| (order.holds, order.releases)),
        Some((true, true)),
        "directly after the queued packets"
    );
    //= docs/specs/conweave.md#CWV-11 epochs at the destination
    assert_eq!(net.deliver(next.sent_ps + 2 * US, &first), (None, vec![]), "of the previous epoch");
    let tail = net.send(next.sent_ps + LATE + 1);
    let moved = net.send(next.sent_ps + LATE + 2);
    assert_eq!((tail.kind(), moved.kind()), ((Kind::Tail, false), (Kind::Data, true)));
    assert!(net.deliver(moved.sent_ps + US, &moved).0.unwrap().holds, "the new epoch has a new TAIL");
}

#[test]
fn queues_and_memory_are_bounded() {
    //= docs/specs/conweave.md#CWV-13 reordering queues
    let net = Net::new();
    net.state(FAR).settings.queues = 2;
    let flows: Vec<[Packet; 3]> = (1..=3).map(|flow| net.rerouted(flow, DST)).collect();
    let orders: Vec<_> = flows.iter().map(|[.., moved]| net.deliver(30 * US, moved).0).collect();
    assert_eq!(orders.iter().map(|order| order.map(|order| order.queue)).collect::<Vec<_>>(), [Some(0), Some(1), None]);
    assert_eq!(net.counts(FAR).no_queue, 1);
    let [.., other] = net.rerouted(9, DST + 1);
    assert_eq!(net.deliver(30 * US, &other).0.map(|order| order.queue), Some(2), "on the port of another host");
    net.deliver(31 * US, &flows[0][1]);
    net.state(FAR).settings.held_bytes = 3 * u64::from(LEN);
    let (order, _) = net.deliver(32 * US, &flows[2][2]);
    assert_eq!(order.map(|order| (order.queue, order.holds)), Some((0, true)), "free again; memory takes three");
    let (order, _) = net.deliver(33 * US, &flows[1][2]);
    assert_eq!(order.map(|order| (order.queue, order.holds, order.releases)), Some((1, true, true)), "a fourth packet");
    assert_eq!((net.counts(FAR).no_memory, net.counts(FAR).queues), (1, 3));
    assert_eq!(net.deliver(34 * US, &flows[1][2]).0, None, "its flow no longer waits");
}

#[test]
fn trimmed_packets_count_as_lost() {
    //= docs/specs/conweave.md#CWV-3 trimmed packets
    let net = Net::new();
    let [_, tail, moved] = net.rerouted(1, DST);
    assert!(net.deliver(20 * US, &moved).0.unwrap().holds);
    assert_eq!(net.deliver_as(21 * US, &tail, 3, true), (None, vec![]));
}

#[test]
fn flows_beyond_a_full_table_use_their_hash() {
    //= docs/specs/conweave.md#CWV-17 tables of flows
    let net = Net::new();
    let packets: Vec<Packet> = (0..6_000).map(|flow| net.send_to(US, flow, DST)).collect();
    let left = packets.iter().filter(|packet| packet.kind().0 == Kind::Other).count();
    assert!((3_950..4_300).contains(&left), "{left} of 6000 have no entry among 2048");
    assert_eq!(net.counts(0).no_entry, left as u64);
    let places: Vec<usize> = (0..6_000).filter(|flow| packets[*flow].kind().0 == Kind::Other).collect();
    let later = net.send_to(US + 301 * US, places[0] as u32, DST);
    assert_eq!(later.kind(), (Kind::Request, false), "idle entries are free");
}

#[test]
fn a_path_removed_by_routing_is_avoided_immediately() {
    //= docs/specs/conweave.md#CWV-2 source routing
    let net = Net::new();
    let flow = (1..).find(|flow| net.send_to(US, *flow, DST).spine == SPINES - 1).unwrap();
    net.0.most_ports.set(SPINES as u16 - 1);
    let next = net.send_to(2 * US, flow, DST);
    assert_eq!(next.kind(), (Kind::Request, false));
    assert_ne!(next.spine, SPINES - 1);
    assert_eq!(net.send_to(3 * US, flow, DST).spine, next.spine);
}

#[test]
fn a_path_assigned_by_reunion_is_taken_after_a_tail() {
    //= docs/specs/conweave.md#CWV-19 under Reunion
    let net = Net::new();
    // Returns the uplink and the tag of a packet sent at `t_ps`.
    let send = |t_ps: u64, given: u32| {
        let key = Key { addresses: u64::from(SRC) << 32 | u64::from(DST), ports: 1, label: 0 };
        net.0.trail.begin(0, false, &key, &PacketFields::default());
        let frame = Frame { time_ps: t_ps, switch: 0, len: LEN, ..FRAME };
        net.0.trail.note.set(ReunionNote::data(given, false).pack());
        let port = super::under_reunion(&net.0, &frame, DST, None).unwrap();
        let path = ReunionNote::unpack(net.0.trail.note.get()).path;
        assert_eq!(net.0.far_end(port), Some(LEAVES + path - 1), "the port of its path");
        (path, Tag::of(net.0.trail.more()[1]))
    };
    let (first, _) = send(US, 0);
    let [given, other] = [first % SPINES + 1, (first + 1) % SPINES + 1];
    let (path, tail) = send(2 * US, given);
    assert_eq!((path, tail.kind), (first, Kind::Tail), "immediately, except for the last one on the old path");
    let (path, moved) = send(3 * US, given);
    assert_eq!((path, moved.rerouted), (given, true));
    let (path, waits) = send(4 * US, other);
    assert_eq!((path, waits.kind), (given, Kind::Data), "one reroute at a time");
    let clear = Tag { kind: Kind::Clear, epoch: tail.epoch, ..Tag::default() };
    net.on_notice(5 * US, &Notice { flow: net.0.trail.flow(), more: [0, clear.word()], ..Notice::default() });
    assert_eq!((send(6 * US, other).1.kind, send(7 * US, other).1.kind), (Kind::Request, Kind::Tail));
    assert_eq!(send(8 * US, other).0, other);
    assert_eq!(net.counts(0).rerouted, 2);
}

/// A step of a random history.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    /// The packet at this position among those in flight arrives.
    Arrive(u8),
    Lose(u8),
    Notify(u8),
    DropNotice(u8),
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Send),
        6 => (0..8u8).prop_map(Step::Arrive),
        1 => any::<u8>().prop_map(Step::Lose),
        3 => any::<u8>().prop_map(Step::Notify),
        1 => any::<u8>().prop_map(Step::DropNotice),
        4 => (1..5_000u16).prop_map(Step::Wait),
        1 => Just(Step::Wait(u16::MAX)),
    ]
}

/// The switches and the model, for one flow.
struct SwitchAndModel {
    net: Net,
    source: model::Source,
    destination: model::Destination,
    now_ps: u64,
    first_epoch: Option<u16>,
    packets: Vec<(u32, Packet, model::Header)>,
    notices: Vec<Notice>,
    waiting: Vec<u32>,
    sent: u32,
    spine: Option<u32>,
}

impl SwitchAndModel {
    fn new() -> Self {
        let settings = Settings::default();
        let (source, destination) = (model::Source::new(settings, BASE_RTT_PS), model::Destination::new(settings));
        let (packets, notices, waiting) = (Vec::new(), Vec::new(), Vec::new());
        let now_ps = 1 << 30;
        Self {
            net: Net::new(),
            source,
            destination,
            now_ps,
            first_epoch: None,
            packets,
            notices,
            waiting,
            sent: 0,
            spine: None,
        }
    }

    fn epoch(&self, epoch: u16) -> u64 {
        u64::from(epoch.wrapping_sub(self.first_epoch.unwrap_or(epoch))) + 1
    }

    fn send(&mut self) {
        let (packet, header) = (self.net.send(self.now_ps), self.source.send(self.now_ps));
        let Tag { kind, rerouted, epoch, tail_ps } = packet.tag();
        self.first_epoch = self.first_epoch.or(Some(epoch));
        let found = model::Header { kind, rerouted, epoch: self.epoch(epoch), sent_ps: packet.trail[6], tail_ps };
        assert_eq!(found, header);
        let goes_on = kind == Kind::Tail || kind == Kind::Data;
        assert!(
            !goes_on || self.spine.is_none_or(|spine| spine == packet.spine),
            "it is rerouted after a TAIL or a pause"
        );
        self.spine = (kind != Kind::Tail).then_some(packet.spine);
        self.packets.push((self.sent, packet, header));
        self.sent += 1;
    }

    fn arrive(&mut self, place: usize) {
        let (number, packet, header) = self.packets.remove(place);
        let (order, notices) = self.net.deliver(self.now_ps, &packet);
        let mut out = Vec::new();
        match order {
            Some(QueueAction { holds: true, releases, .. }) => {
                self.waiting.push(number);
                if releases {
                    out.append(&mut self.waiting);
                }
            }
            Some(QueueAction { releases: true, .. }) => {
                out.push(number);
                out.append(&mut self.waiting);
            }
            _ => out.push(number),
        }
        assert_eq!(out, self.destination.arrive(self.now_ps, number, &header));
        if let Some(QueueAction { releases: false, due_ps, .. }) = order {
            assert_eq!(Some(due_ps), self.destination.resume_ps);
        }
        assert_eq!(self.waiting.is_empty(), self.destination.resume_ps.is_none());
        self.notices.extend(notices);
    }

    fn notify(&mut self, place: usize) {
        let notice = self.notices.remove(place);
        let Tag { kind, epoch, .. } = Tag::of(notice.more[1]);
        self.net.on_notice(self.now_ps, &notice);
        let epoch = self.epoch(epoch);
        self.source.on_notice(self.now_ps, kind, epoch);
    }

    /// Advances the time, and releases the queue if it expires.
    fn wait(&mut self, time_ps: u64) {
        let end_ps = self.now_ps + time_ps;
        if let Some(due_ps) = self.destination.resume_ps.filter(|due_ps| *due_ps <= end_ps) {
            self.now_ps = self.now_ps.max(due_ps);
            assert_eq!(self.net.expire(0, self.now_ps), Expiry::Now);
            assert_eq!(core::mem::take(&mut self.waiting), self.destination.resume());
        }
        self.now_ps = (end_ps.max(self.now_ps) >> 10) << 10;
    }

    fn step(&mut self, step: Step) {
        let place = |place: u8, of: usize| (of > 0).then(|| usize::from(place) % of);
        match step {
            Step::Send => self.send(),
            Step::Arrive(at) => place(at, self.packets.len()).into_iter().for_each(|at| self.arrive(at)),
            Step::Lose(at) => place(at, self.packets.len()).into_iter().for_each(|at| {
                self.packets.remove(at);
            }),
            Step::Notify(at) => place(at, self.notices.len()).into_iter().for_each(|at| self.notify(at)),
            Step::DropNotice(at) => place(at, self.notices.len()).into_iter().for_each(|at| {
                self.notices.remove(at);
            }),
            Step::Wait(u16::MAX) => self.wait(310 << 20),
            Step::Wait(nanos) => self.wait(u64::from(nanos) << 10),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_switches_agree_with_the_model_of_the_paper(steps in proptest::collection::vec(step(), 1..300)) {
        //= docs/specs/conweave.md#CWV-8 one reroute at a time
        //= docs/specs/conweave.md#CWV-16 a lost TAIL
        let mut both = SwitchAndModel::new();
        steps.into_iter().for_each(|step| both.step(step));
        let used = (0..256).filter(|queue| both.net.expire(*queue, u64::MAX >> 2) == Expiry::Now);
        prop_assert_eq!(used.count(), usize::from(!both.waiting.is_empty()));
    }
}
