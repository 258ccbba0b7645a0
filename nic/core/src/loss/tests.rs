//! Tests of loss detection; clauses are those of `docs/specs/transport.md`.

mod oracle;
mod section_loss;

use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::Time;
use crate::feedback::{Ev, LossCause};
use crate::tests::{at, at_step};
use oracle::{Op, Oracle};

/// RFC 6298 §2, transcribed in floating point.
#[derive(Default)]
struct LiteralRtt {
    srtt: Option<f64>,
    rttvar: f64,
}

impl LiteralRtt {
    fn on_sample(&mut self, r: f64) {
        match self.srtt {
            None => {
                self.srtt = Some(r);
                self.rttvar = r / 2.0;
            }
            Some(srtt) => {
                self.rttvar = (1.0 - 0.25) * self.rttvar + 0.25 * (srtt - r).abs();
                self.srtt = Some((1.0 - 0.125) * srtt + 0.125 * r);
            }
        }
    }

    fn rto(&self) -> f64 {
        self.srtt.unwrap() + 4.0 * self.rttvar
    }
}

const US: u64 = 1_000_000;

#[test]
fn a_record_is_half_a_cache_line() {
    assert_eq!(size_of::<Record>(), 32);
}

proptest! {
    //= docs/specs/transport.md#TRN-30 smoothed round-trip time
    #[test]
    fn rtt_follows_the_rfc(samples in prop::collection::vec(1u64..1_000_000_000, 1..200)) {
        let (mut rtt, mut literal) = (RttEstimator::default(), LiteralRtt::default());
        for (i, &sample) in samples.iter().enumerate() {
            rtt.on_sample(at(i as u64 * US), sample, US);
            literal.on_sample(sample as f64);
            let (ours, theirs) = (rtt.timeout_ps().unwrap() as f64, literal.rto());
            // Integer division loses less than 8 ps per step in SRTT, which decays, and four times
            // that in RTTVAR.
            prop_assert!((ours - theirs).abs() <= 200.0, "{ours}, by the RFC {theirs}");
        }
        prop_assert_eq!(rtt.min_ps(), *samples.iter().min().unwrap());
    }

    #[test]
    fn no_sample_overflows(samples in prop::collection::vec((any::<u64>(), any::<u64>()), 1..50)) {
        let mut rtt = RttEstimator::default();
        let config = RtoConfig { initial_ps: 1, min_ps: 1, max_ps: u64::MAX };
        for (steps, sample) in samples {
            rtt.on_sample(at_step(steps), sample, sample);
            prop_assert!(rtt.smoothed_ps() > 0);
            for backoff in [0, 1, 31, 64, 255] {
                prop_assert!(config.backed_off_ps(&rtt, backoff) >= config.timeout_ps(&rtt));
            }
        }
    }
}

//= docs/specs/transport.md#TRN-31 bounds of the timeout
//= docs/specs/transport.md#TRN-32 backoff
#[test]
fn timeout_has_floor_ceiling_and_backoff() {
    let config = RtoConfig { initial_ps: 100 * US, min_ps: 40 * US, max_ps: 200 * US };
    let mut rtt = RttEstimator::default();
    assert_eq!(config.timeout_ps(&rtt), 100 * US);
    for i in 0..100 {
        rtt.on_sample(at(i * 10 * US), 10 * US, 40 * US);
    }
    let timeouts: Vec<u64> = (0..5).map(|backoff| config.backed_off_ps(&rtt, backoff)).collect();
    assert_eq!(timeouts, [40 * US, 80 * US, 160 * US, 200 * US, 200 * US]);
}

//= docs/specs/transport.md#TRN-33 largest recent round-trip time
#[test]
fn largest_rtt_is_forgotten_after_two() {
    let mut rtt = RttEstimator::default();
    let mut now = Time::ZERO;
    let mut sample = |rtt: &mut RttEstimator, sample_ps| {
        now = now.after(5 * US);
        rtt.on_sample(now, sample_ps, 40 * US);
    };
    sample(&mut rtt, 30 * US);
    sample(&mut rtt, 10 * US);
    assert_eq!(rtt.recent_max_ps(), 30 * US);
    (0..10).for_each(|_| sample(&mut rtt, 10 * US));
    assert_eq!((rtt.recent_max_ps(), rtt.max_before_timeout_ps()), (10 * US, 30 * US), "a timeout takes longer");
    (0..10).for_each(|_| sample(&mut rtt, 10 * US));
    assert_eq!((rtt.recent_max_ps(), rtt.max_before_timeout_ps()), (10 * US, 10 * US));
    sample(&mut rtt, 12 * US);
    assert_eq!(rtt.recent_max_ps(), 12 * US);
}

//= docs/specs/transport.md#TRN-31 bounds of the timeout
#[test]
fn the_floor_covers_every_full_queue() {
    // The reference network with two tiers: queues of 415,000 bytes at 400 Gb/s. Without a known
    // length the queues of a path take one base RTT.
    assert_eq!(floor_ps(8_337_000, 8_300_000, 3), 41_537_000);
    assert_eq!(RtoConfig::for_path(8_337_000).min_ps, 41_685_000);
    // About the 70 us of REPS: three tiers with 500 ns for each of 12 links and 10 switches in both
    // directions, 4 KiB at 400 Gb/s over 6 links, and queues of 5 switches that drain in a base RTT
    // each.
    let base_rtt_ps = 22 * 500_000 + 6 * 81_920;
    assert_eq!(floor_ps(base_rtt_ps, base_rtt_ps, 5) / US, 68);
}

fn run(packets: u32, ops: &[Op]) {
    let (mut board, mut oracle) = (Scoreboard::new(packets), Oracle::new(board_capacity(packets)));
    for (time, op) in ops.iter().enumerate() {
        oracle.apply(&mut board, at_step(time as u64), *op);
        oracle.compare(&board);
    }
}

fn board_capacity(packets: u32) -> u64 {
    Scoreboard::new(packets).capacity()
}

/// Records double while packets are outstanding, lost and acknowledged; both lists keep their
/// order.
#[test]
fn lists_keep_their_order_when_records_grow() {
    let mut board = Scoreboard::new(1024);
    assert_eq!(board.capacity(), 1024);
    let send = |board: &mut Scoreboard, steps| board.send_new(at_step(steps), Ev::new(0), 0, 0, 1);
    (0..50).for_each(|psn| assert_eq!(send(&mut board, psn), psn));
    for psn in [40, 7, 23] {
        assert!(board.on_lost(psn, LossCause::Missing, Lost::Last));
    }
    board.settle(5, 5, &[1 << 10, 0, 0, 0], &mut |_| {});
    // 1,000 in flight: doubled four times.
    (50..1_005).for_each(|psn| assert_eq!(send(&mut board, psn), psn));
    assert_eq!((board.span(), board.lost(), board.cumulative()), (1_000, 3, 5));
    for psn in [40, 7, 23] {
        assert_eq!(board.send_lost(at_step(2_000), Ev::new(0), 0).map(|(psn, _)| psn), Some(psn));
    }
    let outstanding = (5..1_005).filter(|psn| ![40, 7, 23, 15].contains(psn)).chain([40, 7, 23]);
    for psn in outstanding {
        assert_eq!(board.oldest().map(|(psn, _)| psn), Some(psn));
        assert!(board.on_lost(psn, LossCause::Timeout, Lost::Last));
    }
    assert_eq!((board.outstanding(), board.lost()), (0, 999));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    //= docs/specs/transport.md#TRN-21 settling packets
    //= docs/specs/transport.md#TRN-35 gap rule
    #[test]
    fn scoreboard_agrees_with_its_oracle(
        packets in prop::sample::select(&[1u32, 64, 65, 128, 512][..]),
        ops in prop::collection::vec(oracle::op(), 1..400),
    ) {
        run(packets, &ops);
    }
}

#[test]
fn claims_of_packets_never_sent_are_detected() {
    let mut board = Scoreboard::new(64);
    (0..10).for_each(|i| {
        board.send_new(at_step(i), Ev::new(0), 0, 0, 1);
    });
    assert!(board.covers(0, &[0x3ff, 0, 0, 0]));
    assert!(!board.covers(0, &[0x400, 0, 0, 0]));
    assert!(!board.covers(9, &[2, 0, 0, 0]));
    assert!(!board.covers(0, &[0, 0, 0, 1]));
    assert!(board.covers(u64::MAX, &[0; 4]));
    assert!(!board.covers(u64::MAX, &[1, 0, 0, 0]));
    assert!(!board.covers(u64::MAX - 70, &[0, 0, 1, 0]));
}

//= docs/specs/transport.md#TRN-7 trimmed ones go first
#[test]
fn a_trimmed_packet_precedes_those_timed_out() {
    let mut board = Scoreboard::new(64);
    (0..4).for_each(|i| {
        board.send_new(at_step(i), Ev::new(0), 0, 0, 1);
    });
    assert!(board.on_lost(0, LossCause::Timeout, Lost::Last));
    assert!(board.on_lost(1, LossCause::Timeout, Lost::Last));
    assert!(board.on_lost(3, LossCause::Trimmed, Lost::First));
    assert!(!board.on_lost(3, LossCause::Timeout, Lost::Last), "already lost");
    let order: Vec<_> = core::iter::from_fn(|| board.send_lost(at_step(9), Ev::new(0), 0)).collect();
    assert_eq!(order, [(3, LossCause::Trimmed), (0, LossCause::Timeout), (1, LossCause::Timeout)]);
    assert_eq!(board.oldest().map(|(psn, _)| psn), Some(2));
}

//= docs/specs/transport.md#TRN-38 reordering window
#[test]
fn the_reorder_window_grows_once_per_round_trip_and_decays() {
    let mut rtt = RttEstimator::default();
    let mut reorder_window = ReorderWindow::default();
    assert_eq!(reorder_window.time_ps(&rtt), None);
    rtt.on_sample(Time::ZERO, 8 * US, 40 * US);
    let time_us = |reorder_window: &ReorderWindow, rtt: &RttEstimator| reorder_window.time_ps(rtt).unwrap() / US;
    assert_eq!(time_us(&reorder_window, &rtt), 9 + 12);
    (0..5).for_each(|_| reorder_window.on_spurious_loss(at(10 * US), &rtt));
    assert_eq!(time_us(&reorder_window, &rtt), 9 + 14);
    (2..100).for_each(|i| reorder_window.on_spurious_loss(at(10 * i * US), &rtt));
    assert_eq!(time_us(&reorder_window, &rtt), 9 + 32);
    (0..16).for_each(|_| reorder_window.on_confirmed_loss());
    assert_eq!(time_us(&reorder_window, &rtt), 9 + 30);
    (0..16 * 16).for_each(|_| reorder_window.on_confirmed_loss());
    assert_eq!(time_us(&reorder_window, &rtt), 9 + 12);
}

#[test]
fn each_reorder_window_returns_to_its_initial_value() {
    let mut rtt = RttEstimator::default();
    rtt.on_sample(Time::ZERO, 8 * US, 40 * US);
    //= docs/specs/erasure.md#ERA-4
    for (name, mut reorder_window, first_us) in [
        ("usual", ReorderWindow::default(), 9 + 12),
        ("eager", ReorderWindow::eager(), 9),
        ("quick", ReorderWindow::quick(), 9 + 6),
    ] {
        let time_us = |reorder_window: &ReorderWindow| reorder_window.time_ps(&rtt).unwrap() / US;
        assert_eq!(time_us(&reorder_window), first_us, "{name}");
        reorder_window.on_spurious_loss(at(10 * US), &rtt);
        assert_eq!(time_us(&reorder_window), first_us + 2, "{name}");
        (0..32).for_each(|_| reorder_window.on_confirmed_loss());
        assert_eq!(time_us(&reorder_window), first_us, "{name}");
    }
}
