//! Tests of MP-RDMA's path rule; clauses are those of `docs/specs/mprdma.md`.

use super::*;
use crate::rng::{self, Rng};
use crate::tests::path_of;

const RTT_PS: u64 = 1_000;

struct Rig {
    path: Path,
    mprdma: Mprdma,
    rng: Rng,
}

fn mprdma(change: impl FnOnce(&mut MprdmaConfig)) -> Rig {
    let mut own = MprdmaConfig::default();
    change(&mut own);
    let mut rng = rng::stream(1, 0);
    let path = path_of(RTT_PS, 10);
    Rig { mprdma: Mprdma::make(&own, &path, &mut rng), path, rng }
}

fn paper() -> Rig {
    mprdma(|mprdma| (mprdma.rule, mprdma.probe_share) = (MprdmaRule::Paper, Ratio::default()))
}

impl Rig {
    /// Processes an acknowledgement after which the window has room for this number of packets of
    /// 4,150 bytes.
    fn ack(&mut self, ev: u16, room_bytes: u64) {
        let (window_bytes, in_flight_bytes) = (100_000 + room_bytes, 100_000);
        let ack = AckInfo {
            ev: Ev::new(ev),
            packets: 1,
            packet_bytes: 4_150,
            window_bytes,
            in_flight_bytes,
            ..AckInfo::default()
        };
        self.mprdma.on_ack(self.path.at_ps(0), &ack, &mut ());
    }

    /// Processes one of packet `psn`, after which there is almost no room.
    fn ack_of(&mut self, psn: u64, ev: u16) {
        let packet =
            PacketInfo { psn, ev: Ev::new(ev), bytes: 4_150, sent_at: Time::ZERO, was_lost: false, reported: true };
        self.mprdma.on_packet_acked(self.path.at_ps(0), &packet);
        self.ack(ev, 4_150);
    }

    fn loss(&mut self, ev: u16, cause: LossCause) {
        self.mprdma.on_loss(self.path.at_ps(0), &LossInfo { ev: Ev::new(ev), cause, ..LossInfo::default() }, &mut ());
    }

    /// Returns the next packet's entropy value, or `None` if it is drawn at random.
    fn send(&mut self) -> Option<u16> {
        let before = self.rng.clone();
        let ev = self.mprdma.next_ev(self.path.at_ps(0), &SendInfo::default(), &mut self.rng);
        (before == self.rng).then_some(ev.index())
    }
}

#[test]
fn before_the_first_acknowledgement_packets_go_anywhere() {
    //= docs/specs/mprdma.md#MPRDMA-1 initial exploration
    for mut rig in [mprdma(|_| ()), paper()] {
        assert_eq!([(); 5].map(|()| rig.send()), [None; 5]);
    }
}

#[test]
fn an_ack_with_room_for_two_packets_sets_the_path() {
    //= docs/specs/mprdma.md#MPRDMA-2 room
    //= docs/specs/mprdma.md#MPRDMA-3 reuse
    let mut rig = mprdma(|_| ());
    for (room_bytes, reused) in [(8_235, Some(7)), (8_234, None), (4_150, None), (1 << 30, Some(7)), (0, None)] {
        rig.ack(7, room_bytes);
        assert_eq!([rig.send(), rig.send()], [reused; 2], "{room_bytes} bytes");
    }
    rig.ack(7, 10_000);
    rig.ack(9, 10_000);
    assert_eq!(rig.send(), Some(9));
    rig.ack(11, 100);
    assert_eq!(rig.send(), None);
}

#[test]
fn the_artifact_reuses_the_path_of_a_trimmed_packet() {
    //= docs/specs/mprdma.md#MPRDMA-4 trimmed packets
    let mut rig = mprdma(|_| ());
    rig.loss(3, LossCause::Trimmed);
    assert_eq!(rig.send(), None, "not before an acknowledgement had room");
    rig.ack(7, 10_000);
    rig.loss(3, LossCause::Trimmed);
    assert_eq!(rig.send(), Some(3));
    let mut rig = paper();
    rig.ack_of(0, 7);
    rig.loss(3, LossCause::Trimmed);
    assert_eq!(rig.send(), Some(7));
}

#[test]
fn a_timeout_abandons_the_path() {
    //= docs/specs/mprdma.md#MPRDMA-5 timeouts
    for mut rig in [mprdma(|_| ()), paper()] {
        rig.ack_of(0, 7);
        rig.ack(7, 10_000);
        rig.loss(8, LossCause::Timeout);
        assert_eq!(rig.send(), Some(7));
        rig.loss(7, LossCause::Timeout);
        assert_eq!(rig.send(), None);
        rig.ack(7, 10_000);
        assert_eq!(rig.send(), Some(7));
    }
}

#[test]
fn by_the_papers_rule_late_packets_do_not_set_the_path() {
    //= docs/specs/mprdma.md#MPRDMA-6 slow paths
    let mut rig = paper();
    let acks = [(100, 1, 1), (68, 2, 2), (67, 3, 2), (133, 4, 4), (101, 5, 5), (100, 6, 5), (132, 7, 7)];
    for (psn, ev, reused) in acks {
        rig.ack_of(psn, ev);
        assert_eq!([rig.send(), rig.send()], [Some(reused); 2], "packet {psn}");
    }
    let mut rig = mprdma(|mprdma| {
        (mprdma.rule, mprdma.ooo_packets, mprdma.probe_share) = (MprdmaRule::Paper, 1, Ratio::default());
    });
    for (psn, ev, reused) in [(5, 1, 1), (4, 2, 2), (3, 3, 2)] {
        rig.ack_of(psn, ev);
        assert_eq!(rig.send(), Some(reused), "packet {psn}");
    }
}

#[test]
fn by_the_papers_rule_one_packet_in_a_hundred_round_trips_probes() {
    //= docs/specs/mprdma.md#MPRDMA-7 periodic exploration
    let mut rig = mprdma(|mprdma| mprdma.rule = MprdmaRule::Paper);
    rig.ack_of(0, 7);
    let mut probes = 0;
    for round in 0..20_000 {
        for packet in 0..3 {
            let ev = rig
                .mprdma
                .next_ev(rig.path.at_ps(round * RTT_PS + packet * Time::STEP_PS), &SendInfo::default(), &mut rig.rng)
                .index();
            probes += u32::from(ev != 7);
            assert!(packet == 0 || ev == 7);
        }
    }
    assert!((150..250).contains(&probes), "{probes}");
}

#[test]
fn only_the_papers_rule_needs_packet_feedback() {
    assert!(paper().mprdma.features().packet_feedback && !mprdma(|_| ()).mprdma.features().packet_feedback);
    assert_eq!(Mprdma::STATE_BYTES, 32);
}

#[test]
fn an_entropy_value_outside_the_set_is_not_reused() {
    let path = Path { evs: 4, ..path_of(RTT_PS, 10) };
    for rule in [MprdmaRule::Artifact, MprdmaRule::Paper] {
        let own = MprdmaConfig { rule, probe_share: Ratio::default(), ..MprdmaConfig::default() };
        let mut rig = Rig { mprdma: Mprdma::make(&own, &path, &mut rng::stream(1, 0)), path, rng: rng::stream(2, 0) };
        rig.ack(4, 10_000);
        assert_eq!(rig.send(), None);
        rig.ack(3, 10_000);
        rig.loss(5, LossCause::Trimmed);
        assert_eq!(rig.send(), Some(3));
    }
}
