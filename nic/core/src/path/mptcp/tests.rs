//! Tests of the MPTCP-like balancer; clauses are those of `docs/specs/subflow.md`.

use std::collections::VecDeque;
use std::vec::Vec;

use rand_core::RngCore;

use super::*;
use crate::cc::CcKind;
use crate::link::bdp_bytes;
use crate::rng::{Rng, stream};
use crate::tests::at;

const PACKET: u32 = 4_150;
const RTT_PS: u64 = 8_337_000;
const BPS: u64 = 400_000_000_000;

fn path() -> Path {
    Path { seed: Some(1), ..Path::new(RTT_PS, BPS, PACKET) }
}

/// The sender's state around one balancer.
struct Rig {
    path: Path,
    mptcp: Mptcp,
    rng: Rng,
    in_flight: VecDeque<PacketInfo>,
    unsent: u64,
    now_ps: u64,
}

impl Rig {
    fn new(subflows: u16, split: MptcpSplit, cc: impl Into<ControlConfig>, path: Path) -> Self {
        let mut rng = stream(2, 2);
        let mut mptcp = Mptcp::make(&MptcpConfig { subflows, split }, &path, &mut rng);
        mptcp.on_control(&cc.into(), &path);
        Self { path, mptcp, rng, in_flight: VecDeque::new(), unsent: 1 << 40, now_ps: 0 }
    }

    fn dctcp(subflows: u16, split: MptcpSplit) -> Self {
        Self::new(subflows, split, CcKind::Dctcp, path())
    }

    fn info(&self, retransmit: bool) -> SendInfo {
        let in_flight_bytes = self.in_flight.iter().map(|packet| u64::from(packet.bytes)).sum();
        SendInfo { bytes: PACKET, retransmit, in_flight_bytes, unsent_bytes: self.unsent, ..SendInfo::default() }
    }

    /// Sends a packet if permitted; returns its subflow.
    fn send(&mut self, retransmit: bool) -> Option<u16> {
        let info = self.info(retransmit);
        if self.mptcp.admit(self.path.at_ps(self.now_ps), &info) != Admission::Go {
            return None;
        }
        let ev = self.mptcp.next_ev(self.path.at_ps(self.now_ps), &info, &mut self.rng);
        self.in_flight.push_back(PacketInfo {
            psn: 0,
            ev,
            bytes: PACKET,
            sent_at: at(self.now_ps),
            was_lost: false,
            reported: true,
        });
        if !retransmit {
            self.unsent -= u64::from(PACKET);
        }
        self.mptcp.labels.label(ev)
    }

    fn send_all(&mut self) -> Vec<u16> {
        core::iter::from_fn(|| self.send(false)).collect()
    }

    fn take(&mut self, label: u16) -> PacketInfo {
        let ev = self.mptcp.labels.ev(label);
        let place = self.in_flight.iter().position(|packet| packet.ev == ev).unwrap();
        self.in_flight.remove(place).unwrap()
    }

    fn ack(&mut self, label: u16, marked: bool) {
        let packet = self.take(label);
        self.mptcp.on_packet_acked(self.path.at_ps(self.now_ps), &packet);
        let (bytes, marked_packets) = (PACKET.into(), marked.into());
        let ack = AckInfo { ev: packet.ev, marked, packets: 1, marked_packets, bytes, ..AckInfo::default() };
        self.mptcp.on_ack(self.path.at_ps(self.now_ps), &ack, &mut ());
    }

    fn lose(&mut self, label: u16, cause: LossCause) {
        let PacketInfo { ev, sent_at, .. } = self.take(label);
        let loss = LossInfo { ev, sent_at, bytes: PACKET, cause, ..LossInfo::default() };
        self.mptcp.on_loss(self.path.at_ps(self.now_ps), &loss, &mut ());
    }

    fn windows(&self) -> Vec<u64> {
        self.mptcp.lanes.iter().map(|lane| lane.cc.window_bytes(&self.mptcp.share)).collect()
    }
}

#[test]
fn every_subflow_has_its_share_of_the_window() {
    //= docs/specs/subflow.md#MPTCP-1 subflows
    //= docs/specs/subflow.md#MPTCP-2 room on a subflow
    //= docs/specs/subflow.md#MPTCP-3 order of subflows
    let mut rig = Rig::dctcp(8, MptcpSplit::Equal);
    let sent = rig.send_all();
    // An initial window of 626,650 bytes is 18.9 packets for each.
    assert_eq!(sent.len(), 8 * 18);
    assert!(sent.iter().enumerate().all(|(number, label)| usize::from(*label) == number % 8));
    rig.ack(3, false);
    assert_eq!(rig.send_all(), [3]);
}

#[test]
fn feedback_moves_its_own_subflows_window() {
    //= docs/specs/subflow.md#MPTCP-5 feedback of a subflow
    let mut rig = Rig::dctcp(4, MptcpSplit::Free);
    rig.send_all();
    let before = rig.windows();
    rig.ack(1, true);
    rig.ack(3, false);
    rig.lose(2, LossCause::Timeout);
    let moved = rig.windows();
    let most = bdp_bytes(RTT_PS, BPS) * 3 / 2 / 4;
    assert_eq!(moved[0], before[0]);
    assert_eq!(
        moved[1],
        before[1] - u64::from(PACKET) / 4 - 1,
        "a quarter of the marked bytes, in fractions of a byte"
    );
    assert_eq!(moved[2], before[2] - u64::from(PACKET));
    assert_eq!(moved[3], most, "cut to the largest");
    let mut sent = rig.send_all();
    sent.sort_unstable();
    assert_eq!(sent, [1, 3], "subflow 2's packet left with its window");
}

#[test]
fn lost_packets_are_resent_on_another_subflow_with_room() {
    //= docs/specs/subflow.md#MPTCP-3 order of subflows
    let mut rig = Rig::dctcp(2, MptcpSplit::Free);
    assert_eq!([rig.send(false), rig.send(false)], [Some(0), Some(1)]);
    rig.lose(0, LossCause::SackGap);
    assert_eq!([rig.send(true), rig.send(true), rig.send(false)], [Some(1), Some(1), Some(0)]);
    let mut rig = Rig::dctcp(2, MptcpSplit::Free);
    rig.send_all();
    (0..5).for_each(|_| rig.lose(0, LossCause::SackGap));
    assert_eq!(rig.send(true), None, "the bytes in flight still fill the smaller window");
    while rig.in_flight.iter().any(|packet| packet.ev == rig.mptcp.labels.ev(0)) {
        rig.lose(0, LossCause::SackGap);
    }
    assert_eq!(rig.send(true), Some(0));
}

#[test]
fn a_stale_subflow_is_probed_less_and_less_often() {
    //= docs/specs/subflow.md#MPTCP-7 stale subflows
    let learned = Path { learned: true, ..path() };
    let mut rig = Rig::new(3, MptcpSplit::Equal, CcKind::Dctcp, learned);
    let (mut probes, mut packets) = (Vec::new(), 0u64);
    // One packet at a time; subflow 1 acknowledges nothing.
    while packets < 200_000 {
        rig.now_ps += RTT_PS;
        let label = rig.send(false).unwrap();
        packets += 1;
        rig.now_ps += RTT_PS;
        if label == 1 {
            probes.push(packets);
            assert_ne!(rig.send(false), Some(1), "one packet at a time");
            rig.lose(1, LossCause::Timeout);
            let other = rig.in_flight.front().map(|packet| rig.mptcp.labels.label(packet.ev).unwrap());
            rig.ack(other.unwrap(), false);
            packets += 1;
            assert_ne!(rig.send(true), Some(1));
            packets += 1;
        }
        while let Some(packet) = rig.in_flight.front() {
            let label = rig.mptcp.labels.label(packet.ev).unwrap();
            rig.ack(label, false);
        }
    }
    let waits: Vec<u64> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits.len() >= 11, "{waits:?}");
    for (number, wait) in waits.iter().enumerate() {
        // The two other subflows may come first.
        let expected = 64 << number.min(10);
        assert!((expected..expected + 5).contains(wait), "{number}: {waits:?}");
    }
    // An acknowledgement ends this, and the subflows take turns again.
    while rig.send(false) != Some(1) {
        let label = rig.mptcp.labels.label(rig.in_flight[0].ev).unwrap();
        rig.ack(label, false);
    }
    rig.ack(1, false);
    assert_eq!([(); 4].map(|()| rig.send(false)), [2, 0, 1, 2].map(Some));
}

#[test]
fn if_all_subflows_are_stale_all_are_used() {
    //= docs/specs/subflow.md#MPTCP-7 stale subflows
    let mut rig = Rig::new(2, MptcpSplit::Free, CcKind::Dctcp, Path { learned: true, ..path() });
    for label in [0, 1] {
        rig.now_ps += RTT_PS;
        assert_eq!(rig.send(false), Some(label));
        rig.lose(label, LossCause::Timeout);
    }
    assert_eq!([rig.send(false), rig.send(false)], [Some(0), Some(1)]);
    // A loss detected from later packets is not a timeout.
    let mut rig = Rig::new(2, MptcpSplit::Free, CcKind::Dctcp, Path { learned: true, ..path() });
    rig.now_ps = RTT_PS;
    rig.send(false);
    rig.lose(0, LossCause::SackGap);
    assert_eq!([rig.send(false), rig.send(false)], [Some(1), Some(0)]);
}

#[test]
fn equal_subflows_send_equally_and_free_ones_at_their_rate() {
    //= docs/specs/subflow.md#MPTCP-4 equal shares
    for (split, expected) in [(MptcpSplit::Equal, [25, 25, 25, 25]), (MptcpSplit::Free, [1, 33, 33, 33])] {
        let mut rig = Rig::dctcp(4, split);
        rig.unsent = 100 * u64::from(PACKET);
        let mut counts = [0; 4];
        // Subflow 0 acknowledges nothing until the others can send no more.
        rig.mptcp.lanes[0].cc = AnyCc::new(&CcKind::Dctcp.into(), &Path { initial_window_bytes: 1, ..path() });
        while rig.unsent > 0 {
            match rig.send(false) {
                Some(label) => {
                    counts[usize::from(label)] += 1;
                    if label > 0 {
                        rig.ack(label, false);
                    }
                }
                None => rig.ack(0, false),
            }
        }
        assert_eq!(counts, expected);
    }
}

#[test]
fn a_paced_subflow_returns_its_wake_up_time() {
    //= docs/specs/subflow.md#MPTCP-2 room on a subflow
    let path = Path { max_window_bytes: u64::MAX, ..path() };
    let mut rig = Rig::new(2, MptcpSplit::Equal, CcKind::FixedRate, path);
    assert_eq!(rig.send_all(), [0, 1]);
    let each_ps = 2 * u64::from(PACKET) * 20;
    assert_eq!(rig.mptcp.poll_timeout(&rig.path), Some(at(each_ps)));
    rig.now_ps = each_ps;
    assert_eq!(rig.send_all(), [0, 1]);
}

#[test]
fn a_coalesced_ack_is_divided_among_subflows() {
    //= docs/specs/subflow.md#MPTCP-5 feedback of a subflow
    let mut rig = Rig::dctcp(2, MptcpSplit::Free);
    assert_eq!([(); 4].map(|()| rig.send(false)), [0, 1, 0, 1].map(Some));
    let before = rig.windows();
    let packets: Vec<_> = [0, 1, 0, 1].map(|label| rig.take(label)).into();
    packets.iter().for_each(|packet| rig.mptcp.on_packet_acked(rig.path.at_ps(0), packet));
    let (ev, bytes) = (packets[3].ev, 4 * u64::from(PACKET));
    let ack = AckInfo { ev, marked: true, packets: 4, marked_packets: 2, bytes, ..AckInfo::default() };
    rig.mptcp.on_ack(rig.path.at_ps(0), &ack, &mut ());
    let lost = |label: usize| before[label] - rig.windows()[label];
    assert!(lost(0) == lost(1) && lost(0) > u64::from(PACKET) / 8, "half of each subflow's bytes count as marked");
}

#[test]
fn without_separate_windows_labels_take_turns() {
    //= docs/specs/subflow.md#MPTCP-6 without windows
    let (mut rng, path) = (stream(4, 4), path());
    let mut mptcp = Mptcp::make(&MptcpConfig { subflows: 3, split: MptcpSplit::Equal }, &path, &mut rng);
    let info = SendInfo { bytes: PACKET, unsent_bytes: 1 << 20, ..SendInfo::default() };
    let labels = [(); 5].map(|()| {
        assert_eq!(mptcp.admit(path.at_ps(0), &info), Admission::Window);
        let ev = mptcp.next_ev(path.at_ps(0), &info, &mut rng);
        mptcp.labels.label(ev).unwrap()
    });
    assert_eq!(labels, [0, 1, 2, 0, 1]);
}

/// With one subflow the window always equals the connection's.
#[test]
fn one_subflow_is_a_plain_connection() {
    let path = path();
    for kind in [CcKind::Dctcp, CcKind::FixedWindow, CcKind::FixedRate] {
        let (mut rig, mut cc) = (Rig::new(1, MptcpSplit::Equal, kind, path), AnyCc::new(&kind.into(), &path));
        let mut random = stream(5, 5);
        let mut open = 0;
        for _ in 0..50_000 {
            let bits = random.next_u32();
            let packets = rig.in_flight.len() as u64;
            let fits = packets == 0 || (packets + 1) * u64::from(PACKET) <= cc.window_bytes(&path);
            let goes = fits && cc.poll_send(path.at_ps(rig.now_ps)) <= at(rig.now_ps);
            match bits % 8 {
                0..4 => {
                    assert_eq!(rig.send(false).is_some(), goes, "{kind} {packets}");
                    if goes {
                        cc.on_send(path.at_ps(rig.now_ps), PACKET);
                        open += 1;
                    }
                }
                4..7 if packets > 0 => {
                    let marked = bits & 8 == 0;
                    rig.ack(0, marked);
                    let (bytes, marked_packets) = (PACKET.into(), marked.into());
                    cc.on_ack(
                        path.at_ps(rig.now_ps),
                        &AckInfo { marked, packets: 1, marked_packets, bytes, ..AckInfo::default() },
                    );
                }
                7 if packets > 0 => {
                    rig.lose(0, LossCause::SackGap);
                    cc.on_loss(path.at_ps(rig.now_ps), PACKET, LossCause::SackGap);
                }
                _ => {}
            }
            rig.now_ps += u64::from(bits >> 12);
        }
        assert!(open > 1_000, "{kind}: {open} sent");
    }
}

#[test]
fn bytes_in_flight_add_up_and_never_block() {
    //= docs/specs/subflow.md#MPTCP-3 order of subflows
    for split in [MptcpSplit::Equal, MptcpSplit::Free] {
        let mut rig = Rig::dctcp(8, split);
        let mut random = stream(6, 6);
        for _ in 0..50_000 {
            let bits = random.next_u32();
            let marked = bits & 16 == 0;
            let oldest = rig.in_flight.front().and_then(|packet| rig.mptcp.labels.label(packet.ev));
            match (bits % 16, oldest) {
                (0..9, _) => {
                    let sent = rig.send(bits & 32 == 0).is_some();
                    assert!(sent || !rig.in_flight.is_empty(), "with nothing in flight a packet goes");
                }
                (9..15, Some(label)) => rig.ack(label, marked),
                (15, Some(label)) => rig.lose(label, LossCause::Timeout),
                _ => {}
            }
            let all: u64 = rig.mptcp.lanes.iter().map(|lane| lane.in_flight).sum();
            assert_eq!(all, rig.in_flight.len() as u64 * u64::from(PACKET));
        }
    }
}
