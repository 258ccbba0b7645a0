//! A whole sender that learns its path.

use spray_wire::{Ack, Echoes, EvPort};

use super::*;
use crate::event::{Choice, Event, Publisher};
use crate::feedback::Ev;
use crate::rng::{Rng, stream};

const RTT_PS: u64 = 100 * US;

/// Returns settings for a path with a configured round-trip time of `configured_ps`.
fn configured(configured_ps: u64) -> FlowConfig {
    let path = Path { bdp_packets: 12, ..Path::new(configured_ps, 10_000_000_000, PAYLOAD + HEADER) };
    FlowConfig {
        rto: RtoConfig { initial_ps: 10 * configured_ps, min_ps: 50 * US, max_ps: 800 * US },
        sack_gap_packets: None,
        ..FlowConfig::new(BalancerKind::Ecmp, path, HEADER)
    }
    .learning()
}

/// Returns a sender whose first 20 packets have been acknowledged after a round-trip time.
fn calibrated(config: &FlowConfig) -> (Sender, Rng) {
    let mut rng = stream(1, 1);
    let mut sender = Sender::new(config, 64, u64::MAX, &mut rng);
    sender.send_message(1, 20_000).unwrap();
    assert_eq!(core::iter::from_fn(|| sender.poll_transmit(at(US), &mut rng, &mut ())).count(), 20);
    for psn in 1..=20 {
        let ack = Ack { cumulative: psn, sack_base: psn, timestamp_echo: at(US), packets: 1, ..Ack::default() };
        sender.on_ack(at(US + RTT_PS), &Ack { port: EvPort::new(7), ..ack }, &mut ());
    }
    (sender, rng)
}

#[test]
fn the_timeout_follows_the_measured_round_trip_time() {
    //= docs/specs/calibration.md#CAL-4 use of the measurements
    let timeout_ps = |configured_ps, min_ps| {
        let mut config = configured(configured_ps);
        config.rto.min_ps = min_ps;
        let (mut sender, mut rng) = calibrated(&config);
        sender.send_message(2, 1_000).unwrap();
        assert!(sender.poll_transmit(at(300 * US), &mut rng, &mut ()).is_some());
        sender.poll_timeout().unwrap().since(at(300 * US))
    };
    for configured_ps in [RTT_PS / 10, RTT_PS, RTT_PS * 10] {
        // The base round-trip time and four full queues.
        assert_eq!(timeout_ps(configured_ps, 50 * US), 5 * RTT_PS, "{configured_ps}");
        // The settings may configure a longer minimum.
        assert_eq!(timeout_ps(configured_ps, 700 * US), 700 * US, "{configured_ps}");
    }
}

#[test]
fn the_best_round_expires_gradually() {
    //= docs/specs/calibration.md#CAL-2 rounds
    let (mut sender, mut rng) = calibrated(&configured(RTT_PS));
    let mut psn = 20;
    let mut bdp_after = |round: u64, packets: u64| {
        let sent_at = at(US + (round - 1) * RTT_PS);
        sender.send_message(round as u32, packets * u64::from(PAYLOAD)).unwrap();
        psn += core::iter::from_fn(|| sender.poll_transmit(sent_at, &mut rng, &mut ())).count() as u64;
        let ack = Ack { cumulative: psn, sack_base: psn, timestamp_echo: sent_at, packets: 1, ..Ack::default() };
        sender.on_ack(at(US + round * RTT_PS), &Ack { port: EvPort::new(7), ..ack }, &mut ());
        sender.path().bdp_packets
    };
    let many = (2..10).map(|round| bdp_after(round, 20)).last().unwrap();
    assert!((20..=22).contains(&many), "a round trip brings 20 packets: {many}");
    assert!(bdp_after(10, 10) > 15, "one round with a smaller value");
    let few = (11..20).map(|round| bdp_after(round, 10)).last().unwrap();
    assert!((10..=11).contains(&few), "{few}");
}

#[test]
fn no_window_exceeds_the_maximum() {
    //= docs/specs/calibration.md#CAL-3 slow start
    let mut config = configured(RTT_PS);
    config.path.max_window_bytes = 24 * u64::from(PAYLOAD + HEADER);
    let (mut sender, mut rng) = calibrated(&config);
    assert_eq!(sender.window_bytes(), 24 * u64::from(PAYLOAD + HEADER));
    sender.send_message(2, 100_000).unwrap();
    assert_eq!(core::iter::from_fn(|| sender.poll_transmit(at(300 * US), &mut rng, &mut ())).count(), 24);
}

#[test]
fn learning_discards_configured_path_values() {
    //= docs/specs/calibration.md#CAL-5 initial estimates
    let settings = |configured_ps| FlowConfig {
        rto: config().rto,
        ack_delay_ps: 0,
        window_packets: 256,
        ..configured(configured_ps)
    };
    let expected = settings(RTT_PS).learning();
    assert_eq!(settings(RTT_PS / 10).learning(), expected);
    assert_eq!(settings(RTT_PS * 10).learning(), expected);
    let mut other = settings(RTT_PS);
    other.path.bdp_packets = 5_000;
    assert_eq!(other.learning(), expected);
    // Except for a configured rate.
    let mut paced = fixed(configured(RTT_PS), 1 << 20, 1);
    paced.path.link_bps = 7_000_000_000;
    assert_eq!(paced.learning().cc, paced.cc);
    let cc = ControlConfig::FixedRate(FixedRateConfig { rate_gbps: None });
    let with_rate = FlowConfig { cc, ..paced }.learning();
    let rate_gbps = Some(Gbps::from_bps(7_000_000_000));
    assert_eq!(with_rate.cc, ControlConfig::FixedRate(FixedRateConfig { rate_gbps }));
}

/// Counts packets that reuse the entropy value of an acknowledged packet.
#[derive(Default)]
struct Recycled(usize);

impl Publisher for Recycled {
    fn on_event(&mut self, _now: Time, _event: Event) {}

    fn wants_choices(&self) -> bool {
        true
    }

    fn on_choice(&mut self, _now: Time, _ev: Ev, _evs: u32, choice: Choice) {
        self.0 += usize::from(choice == Choice::Recycled);
    }
}

#[test]
fn one_of_eight_marks_without_queues_reaches_the_balancer() {
    //= docs/specs/calibration.md#CAL-17 marks passed to the balancer
    let mut echoes = Echoes::default();
    (10..17).for_each(|port| echoes.push(EvPort::new(port), true, 7));
    for (misrouted, recycled) in [(false, 7), (true, 0)] {
        let config = FlowConfig { balancer: BalancerKind::RepsPlus.into(), ..configured(RTT_PS) };
        let mut rng = stream(1, 1);
        let mut sender = Sender::new(&config, 64, u64::MAX, &mut rng);
        sender.send_message(1, 40_000).unwrap();
        (0..8).for_each(|_| assert!(sender.poll_transmit(at(US), &mut rng, &mut ()).is_some()));
        let with_rate = Ack {
            cumulative: 8,
            sack_base: 8,
            timestamp_echo: at(US),
            packets: 8,
            marked_packets: 8,
            ..Ack::default()
        };
        let with_rate = Ack { marked: true, port: EvPort::new(7), echoes, misrouted, ..with_rate };
        sender.on_ack(at(US + RTT_PS), &with_rate, &mut ());
        let mut choices = Recycled::default();
        (0..16).for_each(|_| assert!(sender.poll_transmit(at(US + RTT_PS), &mut rng, &mut choices).is_some()));
        assert_eq!(choices.0, recycled, "{misrouted}");
    }
}
