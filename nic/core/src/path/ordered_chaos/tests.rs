//! The clauses as tables, and the published rule as a model.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::rng;
use crate::tests::{at, path_of};

const US: u64 = 1_000_000;
const RTT: u64 = 8 * US;
const BYTES: u32 = 1_000;

struct Rig {
    path: Path,
    balancer: OrderedChaos,
    rng: rng::Rng,
    now_ps: u64,
    next_psn: u64,
    /// Payload still to be sent.
    unsent: u64,
    oldest: Option<Transmission>,
}

impl Rig {
    fn new(change: impl FnOnce(&mut OrderedChaosConfig)) -> Self {
        let path = path_of(RTT, 100);
        let mut own = OrderedChaosConfig { subflows: 4, jitter: Ratio::default(), ..OrderedChaosConfig::default() };
        change(&mut own);
        let mut rng = rng::stream(7, 0);
        let balancer = OrderedChaos::make(&own, &path, &mut rng);
        Self { path, balancer, rng, now_ps: 0, next_psn: 0, unsent: 1 << 40, oldest: None }
    }

    fn trailers(&mut self) -> Vec<(u64, Ev, u16)> {
        let (mut trailers, flight) = (Vec::new(), Flight { oldest: self.oldest, ..Flight::default() });
        while let Some(trailer) = self.balancer.poll_trailer(self.path.at_ps(self.now_ps), &flight) {
            trailers.push((trailer.psn, trailer.ev, trailer.section.get().unwrap().1));
        }
        trailers
    }

    /// Sends a new packet, as a sender would: probes first.
    fn send(&mut self) -> (Ev, Section) {
        let psn = self.next_psn;
        self.next_psn += 1;
        let packet = SendInfo { psn, bytes: BYTES, unsent_bytes: self.unsent, ..SendInfo::default() };
        self.unsent -= u64::from(BYTES);
        let ev = self.balancer.next_ev(self.path.at_ps(self.now_ps), &packet, &mut self.rng);
        (ev, self.balancer.section())
    }

    fn send_many(&mut self, packets: usize) {
        for _ in 0..packets {
            self.send();
        }
    }

    fn resend(&mut self, psn: u64) -> Ev {
        let packet = SendInfo { psn, bytes: BYTES, retransmit: true, unsent_bytes: 1 << 40, ..SendInfo::default() };
        self.balancer.next_ev(self.path.at_ps(self.now_ps), &packet, &mut self.rng)
    }

    fn ack(&mut self, psn: u64, ev: Ev, rtt_ps: u64) {
        let sent_at = at(self.now_ps).before(rtt_ps);
        let packet = PacketInfo { psn, ev, bytes: BYTES, sent_at, was_lost: false, reported: true };
        self.balancer.on_packet_acked(self.path.at_ps(self.now_ps), &packet);
        let ack =
            AckInfo { ev, packets: 1, rtt_ps, unsent_bytes: self.unsent, unacked_packets: 1, ..AckInfo::default() };
        self.balancer.on_ack(self.path.at_ps(self.now_ps), &ack, &mut ());
    }

    fn lose(&mut self, psn: u64, ev: Ev, cause: LossCause) {
        let loss =
            LossInfo { psn, ev, bytes: BYTES, cause, sent_at: at(self.now_ps).before(RTT), ..LossInfo::default() };
        self.balancer.on_loss(self.path.at_ps(self.now_ps), &loss, &mut ());
    }

    fn evs(&self) -> Vec<Ev> {
        self.balancer.evs().collect()
    }

    /// Returns the subflows that change their path with their next packets.
    fn moved_by_sending(&mut self) -> Vec<usize> {
        let before = self.evs();
        self.send_many(before.len());
        let after = self.evs();
        (0..before.len()).filter(|index| before[*index] != after[*index]).collect()
    }
}

#[test]
fn packets_take_turns_on_the_subflows_paths() {
    //= docs/specs/ordered-chaos.md#ORC-1 subflows
    //= docs/specs/ordered-chaos.md#ORC-2 packets of a subflow
    //= docs/specs/ordered-chaos.md#ORC-10 position in the section
    let mut rig = Rig::new(|_| {});
    let evs = rig.evs();
    for psn in 0..12u64 {
        let (ev, section) = rig.send();
        assert_eq!((ev, section.get()), (evs[psn as usize % 4], Some((4, psn as u16 / 4))), "{psn}");
    }
    assert_eq!(rig.resend(6), evs[2], "on the current path of its subflow");
    assert_eq!(rig.balancer.section(), Section::NONE, "without information on others");
    for (wanted, evs, subflows) in [(5, 100, 4), (64, 10, 8), (1, 100, 1), (16, 1, 1), (64, 65_535, 64)] {
        let path = Path { evs, ..path_of(RTT, 100) };
        let own = OrderedChaosConfig { subflows: wanted, ..OrderedChaosConfig::default() };
        let balancer = OrderedChaos::make(&own, &path, &mut rng::stream(1, 0));
        assert_eq!(balancer.subflows.len(), subflows);
        assert!(balancer.evs().all(|ev| ev.index() < evs));
    }
}

//= docs/specs/ordered-chaos.md#ORC-3 round-trip times
//= docs/specs/ordered-chaos.md#ORC-6 moving
#[test]
fn the_subflow_with_the_largest_mean_moves_each_interval() {
    //= docs/specs/ordered-chaos.md#ORC-4 intervals
    //= docs/specs/ordered-chaos.md#ORC-5 the worst subflow moves
    let mut rig = Rig::new(|config| config.probe_us = Some(Micros::new(1_000)));
    let evs = rig.evs();
    rig.send_many(16);
    // Subflow 1 has the largest single round-trip time, subflow 2 the largest mean.
    let times = [(0, 9), (1, 8), (1, 14), (2, 12), (2, 13), (3, 10)];
    rig.now_ps = 14 * US;
    for (index, us) in times {
        rig.ack(index as u64, evs[index], us * US);
    }
    assert!(rig.moved_by_sending().is_empty(), "not before the interval ends");
    rig.now_ps = 15 * US;
    rig.ack(7, evs[3], 10 * US);
    assert_eq!(rig.trailers(), [(18, evs[2], 4)], "a probe follows the last packet on the path");
    assert_eq!(rig.moved_by_sending(), [2]);
    let (_, section) = rig.send();
    assert_eq!(section.get(), Some((4, 6)), "subflow 0 continues");
    rig.send();
    let (ev, section) = rig.send();
    assert_eq!(
        (ev, section.get()),
        (rig.evs()[2], Some((4, 1))),
        "subflow 2 restarts its count at its first packet on the path"
    );
    // Measurements restart: the next interval uses no samples of the previous interval or of the
    // previous path.
    rig.now_ps = 29 * US;
    rig.ack(2, evs[2], 25 * US);
    rig.now_ps = 30 * US;
    rig.ack(9, evs[1], 9 * US);
    assert_eq!(rig.moved_by_sending(), [1]);
}

#[test]
fn a_trailer_ends_an_abandoned_section_with_packets_in_flight() {
    //= docs/specs/ordered-chaos.md#ORC-11 A trailer before a move
    for (packets, trailers) in [(4, &[][..]), (8, &[5][..])] {
        let mut rig = Rig::new(|config| config.probe_packets = 1_000);
        let evs = rig.evs();
        rig.send_many(packets);
        for index in [0, 2, 3, 1] {
            rig.now_ps = 15 * US - u64::from(index != 1);
            rig.ack(index as u64, evs[index], if index == 1 { 9 * US } else { 8 * US });
        }
        let ends: Vec<_> = rig.trailers().iter().map(|(psn, _, _)| *psn).collect();
        assert_eq!(ends, trailers, "{packets} packets");
        assert_eq!(rig.moved_by_sending(), [1]);
    }
}

#[test]
fn a_threshold_keeps_subflows_that_are_slightly_worse() {
    //= docs/specs/ordered-chaos.md#ORC-5 the worst subflow moves
    for (threshold, moves) in [(0, true), (249, true), (250, true), (251, false), (1_000, false)] {
        let mut rig = Rig::new(|config| config.threshold = Ratio::permille(threshold));
        let evs = rig.evs();
        rig.send_many(8);
        rig.now_ps = 15 * US;
        // In multiples of the stored unit and of a time step, so that the quarter is exact.
        rig.balancer.on_packet_acked(
            rig.path.at_ps(rig.now_ps),
            &PacketInfo {
                psn: 0,
                ev: evs[0],
                bytes: BYTES,
                sent_at: at(rig.now_ps).before(4_000 * 1024),
                was_lost: false,
                reported: true,
            },
        );
        rig.ack(1, evs[1], 5_000 * 1024);
        assert_eq!(!rig.moved_by_sending().is_empty(), moves, "{threshold}");
    }
}

#[test]
fn a_timeout_moves_its_subflow_unless_it_has_moved_since() {
    //= docs/specs/ordered-chaos.md#ORC-7 timeouts
    let mut rig = Rig::new(|_| {});
    let evs = rig.evs();
    rig.send_many(12);
    rig.lose(5, evs[1], LossCause::Missing);
    rig.lose(5, evs[1], LossCause::Trimmed);
    assert!(rig.moved_by_sending().is_empty());
    rig.lose(1, evs[1], LossCause::Timeout);
    rig.lose(9, evs[1], LossCause::Timeout);
    assert_eq!(rig.moved_by_sending(), [1]);
    rig.lose(5, evs[1], LossCause::Timeout);
    assert!(rig.moved_by_sending().is_empty(), "a timeout on the previous path");
}

#[test]
fn a_subflow_that_times_out_takes_the_best_known_path() {
    //= docs/specs/ordered-chaos.md#ORC-9 move to the best measured path
    let mut rig = Rig::new(|_| {});
    let evs = rig.evs();
    rig.send_many(16);
    rig.lose(1, evs[1], LossCause::Timeout);
    assert_eq!(rig.moved_by_sending(), [1]);
    assert!(!evs.contains(&rig.evs()[1]), "without samples a random path is taken");
    for (index, us) in [(0, 9), (2, 8), (3, 10)] {
        rig.now_ps = 15 * US - u64::from(index != 3);
        rig.ack(index as u64, evs[index], us * US);
    }
    assert_eq!(rig.moved_by_sending(), [3]);
    assert!(!evs.contains(&rig.evs()[3]), "the worst subflow does not switch");
    let dead = rig.evs()[1];
    rig.lose(1, dead, LossCause::Timeout);
    assert_eq!(rig.moved_by_sending(), [1]);
    assert_eq!(rig.evs()[1], evs[2]);
    rig.lose(2, evs[2], LossCause::Timeout);
    assert_eq!(rig.moved_by_sending(), [2]);
    assert_ne!(rig.evs()[2], evs[2], "but not the path that it leaves");
}

#[test]
fn a_subflow_without_feedback_for_two_intervals_moves() {
    //= docs/specs/ordered-chaos.md#ORC-8 silent subflows
    for silence in [true, false] {
        let mut rig = Rig::new(|config| config.silence = silence);
        let evs = rig.evs();
        rig.send_many(16);
        let mut moved = Vec::new();
        for interval in 1..=4 {
            // Subflow 0 is the worst of those with feedback, subflow 3 has none.
            for index in [1, 2, 0] {
                rig.now_ps = interval * 15 * US - u64::from(index != 0);
                let ev = rig.evs()[index];
                rig.ack(index as u64, ev, if index == 0 { 9 * US } else { 8 * US });
            }
            moved.push(rig.moved_by_sending());
            assert!(!silence || interval != 2 || rig.evs()[3] == evs[1], "it takes the best known path");
        }
        let with: &[&[usize]] = &[&[0], &[0, 3], &[0], &[0, 3]];
        let without: &[&[usize]] = &[&[0], &[0], &[0], &[0]];
        assert_eq!(moved, if silence { with } else { without }, "{evs:?}");
    }
}

#[test]
fn probes_follow_the_last_packets_and_retransmissions() {
    //= docs/specs/ordered-chaos.md#ORC-12 trailers at the end
    //= docs/specs/ordered-chaos.md#ORC-14 trailers of retransmissions
    let mut rig = Rig::new(|_| {});
    let evs = rig.evs();
    rig.unsent = 8 * u64::from(BYTES);
    let mut probed = Vec::new();
    for psn in 0..8u64 {
        rig.send();
        probed.extend(rig.trailers().into_iter().map(|trailer| (psn, trailer)));
    }
    let last: Vec<_> = (4..8).map(|psn: u64| (psn, (psn, evs[psn as usize % 4], 1))).collect();
    assert_eq!(probed, last, "after each subflow's last packet");
    rig.resend(2);
    assert_eq!(rig.trailers(), [(2, evs[2], 0)]);
    let mut rig = Rig::new(|config| config.probe_retransmissions = false);
    rig.send();
    rig.resend(0);
    assert!(rig.trailers().is_empty());
}

#[test]
fn probes_follow_after_a_time_or_number_of_packets() {
    //= docs/specs/ordered-chaos.md#ORC-13 periodic trailers
    let mut rig = Rig::new(|config| config.interval_us = Micros::new(1_000));
    let evs = rig.evs();
    assert_eq!(rig.balancer.poll_timeout(&rig.path), None, "nothing in flight");
    rig.send_many(6);
    assert_eq!(rig.balancer.poll_timeout(&rig.path), Some(at(RTT)), "a base round-trip time");
    assert!(rig.trailers().is_empty());
    rig.now_ps = RTT;
    assert_eq!(rig.trailers(), [(4, evs[0], 1), (5, evs[1], 1), (2, evs[2], 0), (3, evs[3], 0)]);
    rig.send();
    rig.now_ps = 2 * RTT;
    assert_eq!(rig.trailers(), [(6, evs[2], 1)], "only subflows that have sent since");
    // A trailer requests an overdue transmission, over its path.
    //= docs/specs/ordered-chaos.md#ORC-15 trailers of the oldest packet
    for (sent_ps, is_overdue) in [(2 * RTT, true), (2 * RTT + Time::STEP_PS, false)] {
        rig.now_ps = 3 * RTT;
        rig.balancer.state.next_probe_at = at(rig.now_ps);
        rig.oldest = Some(Transmission { psn: 1, ev: Ev::new(777), sent_at: at(sent_ps) });
        assert_eq!(rig.trailers(), if is_overdue { vec![(1, Ev::new(777), 0)] } else { vec![] });
    }
    rig.oldest = None;
    (0..7).for_each(|psn| rig.ack(psn, evs[psn as usize % 4], RTT));
    rig.now_ps = 5 * RTT;
    assert!(rig.trailers().is_empty());
    assert_eq!(rig.balancer.poll_timeout(&rig.path), None, "nothing in flight");

    let mut rig = Rig::new(|config| config.probe_packets = 3);
    let mut probed = Vec::new();
    for _ in 0..24 {
        rig.send();
        rig.now_ps += US;
        probed.extend(rig.trailers().into_iter().map(|trailer| trailer.0));
    }
    assert_eq!(probed, [8, 9, 10, 11, 20, 21, 22, 23], "every third packet of a subflow");
}

#[test]
fn intervals_differ_by_their_jitter() {
    //= docs/specs/ordered-chaos.md#ORC-4 intervals
    let mut lengths = Vec::new();
    for seed in 0..200 {
        let path = path_of(RTT, 100);
        let mut rng = rng::stream(seed, 0);
        let mut balancer = OrderedChaos::make(&OrderedChaosConfig::default(), &path, &mut rng);
        balancer.next_ev(path.at_ps(0), &SendInfo::default(), &mut rng);
        lengths.push(balancer.state.next_move.ps());
    }
    let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
    assert!((11_250_000..11_500_000).contains(least) && (18_500_000..=18_750_000).contains(most), "{least} {most}");
}

#[test]
fn sizes_are_as_documented() {
    assert_eq!(size_of::<Subflow>(), 12);
    assert_eq!(OrderedChaos::STATE_BYTES, 296);
    assert!(size_of::<OrderedChaos>() <= 160);
}

/// A transcription of the published rule: sums and counts per subflow since the last change; the
/// largest mean changes its path.
#[derive(Default)]
struct Published {
    sums: Vec<u64>,
    counts: Vec<u64>,
    next_update: u64,
}

impl Published {
    /// Takes a round-trip time; returns the subflow that gets a new path.
    fn process(&mut self, now: u64, subflow: usize, rtt: u64, interval: u64) -> Option<usize> {
        self.counts[subflow] += 1;
        self.sums[subflow] += rtt;
        if self.next_update > now {
            return None;
        }
        self.next_update = now + interval;
        let means: Vec<u64> =
            (0..self.sums.len()).map(|i| self.sums[i].checked_div(self.counts[i]).unwrap_or(0)).collect();
        let largest = *means.iter().max().unwrap();
        self.sums.fill(0);
        self.counts.fill(0);
        means.iter().position(|mean| *mean == largest)
    }
}

proptest! {
    //= docs/specs/ordered-chaos.md#ORC-5 the worst subflow moves
    #[test]
    fn the_worst_subflow_agrees_with_the_published_rule(
        feedback in prop::collection::vec((0usize..4, 1u64..40, 0u64..6 * US / Time::STEP_PS), 1..400)
    ) {
        let mut rig = Rig::new(|config| config.silence = false);
        rig.send_many(4);
        let mut model = Published { sums: vec![0; 4], counts: vec![0; 4], next_update: 15 * US };
        rig.now_ps = 41 * US;
        model.next_update = 15 * US;
        for (subflow, kilo, pause) in feedback {
            rig.now_ps += pause * Time::STEP_PS;
            // In multiples of the stored unit and of a time step, so that both round alike.
            let rtt = kilo * 1000 * 1024;
            let ev = rig.evs()[subflow];
            rig.ack(subflow as u64, ev, rtt);
            let expected: Vec<usize> = model.process(rig.now_ps, subflow, rtt, 15 * US).into_iter().collect();
            // Twice, so that the new paths are in use before the next feedback, as in the model.
            let moved = rig.moved_by_sending();
            prop_assert_eq!(moved, expected);
        }
    }
}

/// The sum of 65,535 round-trip times of 10 ms would be 655 s; the field holds up to 4.4 s.
#[test]
fn a_mean_stays_correct_when_its_sum_is_full() {
    let mut subflow = Subflow::default();
    for rtt_ps in [10_000_000_000, 100_000_000] {
        subflow = Subflow { ev: subflow.ev, ..Subflow::default() };
        (0..100_000).for_each(|_| assert!(subflow.sample(subflow.ev, rtt_ps)));
        let mean = subflow.mean().unwrap();
        assert!(mean.abs_diff(rtt_ps) <= 1 << RTT_SHIFT, "{mean} for {rtt_ps}");
    }
}
