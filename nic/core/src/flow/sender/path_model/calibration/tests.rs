//! The path model of a connection, round by round.

use super::*;
use crate::feedback::Ev;
use crate::path::BalancerKind;
use crate::tests::{On, at};

const US: u64 = 1_000_000;
const PACKET: u64 = 1_000;

fn calibration() -> On<Calibration> {
    let path = Path::new(100 * US, 10_000_000_000, PACKET as u32);
    let config = FlowConfig::new(BalancerKind::Reps, path, 64).learning();
    On { scheme: Calibration::new(&config, true), path: config.path }
}

fn ack(rtt_ps: u64, marked: bool) -> AckInfo {
    AckInfo { ev: Ev::default(), marked, bytes: PACKET, rtt_ps, packets: 1, ..AckInfo::default() }
}

/// Rounds of 50 us with one acknowledgement each.
fn rounds(calibration: &mut On<Calibration>, from: u64, packets: &[u64]) {
    for (round, packets) in (from..).zip(packets) {
        calibration.round.bytes += packets * PACKET;
        calibration.scheme.on_ack(at(round * 50 * US), &mut calibration.path, &ack(50 * US, false), 50 * US);
    }
}

#[test]
fn the_window_doubles_until_rounds_deliver_no_more() {
    //= docs/specs/calibration.md#CAL-3 slow start
    let mut calibration = calibration();
    assert_eq!(calibration.path.initial_window_bytes, 32 * PACKET);
    rounds(&mut calibration, 1, &[1, 32, 64, 128]);
    assert_eq!(calibration.path.initial_window_bytes, 256 * PACKET);
    rounds(&mut calibration, 5, &[130, 130, 130]);
    assert!(matches!(calibration.phase, Phase::Starting(3)));
    rounds(&mut calibration, 8, &[130]);
    assert_eq!(calibration.phase, Phase::Steady);
    //= docs/specs/calibration.md#CAL-4 use of the measurements
    assert_eq!((calibration.path.base_rtt_ps, calibration.path.bdp_packets), (50 * US, 128));
}

#[test]
fn the_start_ends_at_the_largest_window() {
    //= docs/specs/calibration.md#CAL-3 slow start
    let mut calibration = calibration();
    calibration.path.max_window_bytes = 50 * PACKET;
    rounds(&mut calibration, 1, &[1, 32, 50]);
    assert_eq!(calibration.path.initial_window_bytes, 50 * PACKET);
}

#[test]
fn the_window_grows_by_a_quarter_where_a_packet_is_late() {
    //= docs/specs/calibration.md#CAL-6 conservative slow start
    for (reuses, grown) in [(true, 50), (false, 80)] {
        let mut calibration = calibration();
        calibration.reuses = reuses;
        rounds(&mut calibration, 1, &[1, 32]);
        calibration.round.bytes += 8 * PACKET;
        calibration.scheme.on_ack(at(120 * US), &mut calibration.path, &ack(150 * US, false), 50 * US);
        rounds(&mut calibration, 3, &[32]);
        assert_eq!(calibration.path.initial_window_bytes, grown.max(64) * PACKET, "{reuses}");
        // The next round doubles the window again.
        rounds(&mut calibration, 4, &[50]);
        assert_eq!(calibration.path.initial_window_bytes, 100 * PACKET, "{reuses}");
    }
}

#[test]
fn careful_rounds_need_less_growth_to_continue() {
    //= docs/specs/calibration.md#CAL-6 conservative slow start
    for (late, phase) in [(true, Phase::Starting(0)), (false, Phase::Starting(1))] {
        let mut calibration = calibration();
        rounds(&mut calibration, 1, &[1, 40]);
        let rtt_ps = if late { 150 * US } else { 50 * US };
        calibration.scheme.on_ack(at(120 * US), &mut calibration.path, &ack(rtt_ps, false), 50 * US);
        rounds(&mut calibration, 3, &[46]);
        assert_eq!(calibration.phase, phase, "{late}");
    }
}

#[test]
fn the_link_rate_is_twice_the_delivery_rate() {
    //= docs/specs/calibration.md#CAL-4 use of the measurements
    let mut calibration = calibration();
    rounds(&mut calibration, 1, &[1, 100]);
    // 100 packets of 1,000 bytes in 50 us are 16 Gb/s.
    assert_eq!(calibration.path.link_bps, 32_000_000_000);
}

#[test]
fn marks_on_a_third_of_two_rounds_end_the_start() {
    //= docs/specs/calibration.md#CAL-3 slow start
    let mark = |calibration: &mut On<Calibration>, us: u64, count: u64| {
        (0..count).for_each(|number| {
            calibration.scheme.on_ack(at(us * US + number), &mut calibration.path, &ack(50 * US, true), 50 * US);
        });
    };
    for (first, second, ends) in [(11, 4, true), (10, 4, false), (11, 3, false)] {
        let mut calibration = calibration();
        rounds(&mut calibration, 1, &[1]);
        // A third of the first window of 32 packets; then of the 12 that this round acknowledged.
        mark(&mut calibration, 51, first);
        rounds(&mut calibration, 2, &[40]);
        //= docs/specs/calibration.md#CAL-6 conservative slow start
        let window = if first == 11 { 50 } else { 80 };
        assert_eq!(calibration.path.initial_window_bytes, window * PACKET, "{first}");
        mark(&mut calibration, 101, second);
        assert_eq!(!calibration.is_starting(), ends, "{first}, {second}");
    }
}

#[test]
fn the_balancer_sees_marks_in_proportion_to_queues() {
    //= docs/specs/calibration.md#CAL-17 marks passed to the balancer
    for (rtt_us, seen) in [(100, 10), (125, 10), (200, 20), (500, 32), (u64::MAX / US, 40)] {
        let mut calibration = calibration();
        learn(&mut calibration, at(US), 100 * US, false);
        let count = (0..80).filter(|_| calibration.shows_mark(rtt_us * US)).count();
        assert!(seen - 1 <= count && count <= seen, "{rtt_us}: {count}");
        // If no path is reused, marks carry more information.
        calibration.reuses = false;
        assert!((0..80).all(|_| calibration.shows_mark(rtt_us * US)));
    }
}

#[test]
fn unmarked_packets_measure_the_base_rtt() {
    //= docs/specs/calibration.md#CAL-1 base round-trip time
    let mut calibration = calibration();
    calibration.scheme.on_ack(at(50 * US), &mut calibration.path, &ack(20 * US, false), 50 * US);
    (2..200).for_each(|round| {
        calibration.scheme.on_ack(at(round * 50 * US), &mut calibration.path, &ack(80 * US, false), 50 * US);
    });
    assert_eq!(calibration.base_rtt_ps(), 20 * US);
    calibration.scheme.on_ack(at(10_000 * US), &mut calibration.path, &ack(500 * US, true), 50 * US);
    assert!((79 * US..=80 * US).contains(&calibration.base_rtt_ps()), "{}", calibration.base_rtt_ps());
}

/// Processes an acknowledgement as a sender does.
fn learn(calibration: &mut On<Calibration>, now: Time, rtt_ps: u64, marked: bool) {
    calibration.scheme.learn(now, &mut calibration.path, &mut ack(rtt_ps, marked), rtt_ps, true);
}

#[test]
fn a_path_is_slow_beyond_five_quarters_of_the_usual_delay() {
    //= docs/specs/calibration.md#CAL-12 slow paths
    let mut calibration = calibration();
    assert_eq!(calibration.path.slow_rtt_ps, u64::MAX, "no sample yet");
    learn(&mut calibration, at(US), 100 * US, false);
    assert_eq!(calibration.path.slow_rtt_ps, 100 * US);
    // After many packets the usual delay is theirs: 900 us beyond the minimum.
    (1..200).for_each(|ack| learn(&mut calibration, at(ack * US), 1_000 * US, ack % 2 > 0));
    assert!(calibration.path.slow_rtt_ps.abs_diff(1_225 * US) < US, "{}", calibration.path.slow_rtt_ps);
}

#[test]
fn a_timeout_before_the_first_acknowledgement_does_not_end_the_start() {
    //= docs/specs/calibration.md#CAL-16 timeouts before the first acknowledgement
    let mut calibration = calibration();
    assert!(calibration.on_loss(at(US), 0, false) && calibration.is_starting());
    // Of the first window, one loss may be random (CAL-14).
    assert!(!calibration.on_loss(at(US), 100 * US, false) && calibration.is_starting());
    assert!(calibration.on_loss(at(US), 100 * US, false) && !calibration.is_starting());
    // A switch reports it: the window is too large.
    let mut calibration = self::calibration();
    assert!(calibration.on_loss(at(US), 0, true) && !calibration.is_starting());
}

#[test]
fn answers_to_probes_are_late_by_the_rule_of_packets() {
    //= docs/specs/calibration.md#CAL-7 networks that do not mark
    let mut calibration = calibration();
    assert!(!calibration.is_late(u64::MAX / 2), "no sample yet");
    learn(&mut calibration, at(US), 100 * US, false);
    assert!(!calibration.is_late(5_100 * US) && calibration.is_late(5_101 * US));
    learn(&mut calibration, at(US), 100 * US, true);
    assert!(!calibration.is_late(6_000 * US), "this network marks");
}

#[test]
fn an_old_minimum_of_the_rtt_expires() {
    //= docs/specs/calibration.md#CAL-1 base round-trip time
    let mut calibration = calibration();
    calibration.scheme.on_ack(at(1_000), &mut calibration.path, &ack(20 * US, false), 50 * US);
    for second in 1..=11 {
        let known_ps = calibration.base_rtt_ps();
        assert_eq!(known_ps, if second <= 10 { 20 * US } else { 90 * US }, "{second}");
        calibration.scheme.on_ack(at(second * 1_000_000 * US), &mut calibration.path, &ack(90 * US, false), 50 * US);
    }
}
