//! Messages over a hostile channel: seeded loss, duplication, reordering, trims, lost ACKs.

use std::vec::Vec;

use proptest::prelude::*;

use spray_wire::Pull;

use super::pair::{Channel, Pair};
use super::*;
use crate::cc::{CcKind, ControlConfig, CreditBound, EqdsConfig};
use crate::path::BalancerKind;
use crate::rng;
use crate::units::ByteSize;

const CLEAN: Channel = Channel {
    loss: 0,
    ack_loss: 0,
    duplicate: 0,
    trim: 0,
    mark: 0,
    delay_ps: 5 * US,
    jitter_ps: 0,
    ack_jitter_ps: 0,
    in_order: false,
    gap_ps: 0,
    lag_ps: 0,
    outage: None,
    dead_paths: 0,
};

/// Sends `messages` until all are delivered, and checks the invariants at the end.
fn run(config: FlowConfig, channel: Channel, messages: &[u64], seed: u64) -> Pair {
    let mut pair = Pair::new(config, channel, messages, seed);
    pair.run().unwrap_or_else(|stuck| panic!("{stuck}"));
    pair.drain();
    check(&pair, messages);
    pair
}

fn check(pair: &Pair, messages: &[u64]) {
    let packets: u64 = messages.iter().map(|bytes| bytes.div_ceil(u64::from(PAYLOAD)).max(1)).sum();
    let (sent, received) = (pair.sender.stats(), pair.receiver.stats());
    assert!(pair.sender.is_idle() && !pair.sender.has_failed());
    assert_eq!(pair.sender.in_flight_bytes(), 0);
    //= docs/specs/transport.md#TRN-24 delivered messages
    //= docs/specs/transport.md#TRN-52 placing payload
    assert_eq!(pair.completed.len(), messages.len());
    assert_eq!(pair.delivered.len(), messages.len());
    assert_eq!((sent.messages_delivered, received.messages), (messages.len() as u64, messages.len() as u64));
    assert_eq!((sent.packets_acked, received.packets), (packets, packets));
    let bytes: u64 = messages.iter().sum();
    assert_eq!((sent.bytes_sent, sent.bytes_acked, received.bytes), (bytes, bytes, bytes));
    assert_eq!(sent.packets_sent, packets + sent.retransmits);
    assert_eq!(sent.retransmits, declared_lost(sent) - sent.late_acks);
    let channel_counts = pair.channel_counts;
    assert_eq!(channel_counts.sent, sent.packets_sent + sent.grant_requests);
    assert_eq!(received.frames, channel_counts.sent - channel_counts.lost + channel_counts.duplicated);
    let delivered = received.packets + received.duplicates + received.trimmed;
    let counted = delivered + received.out_of_order + received.out_of_window;
    assert_eq!(received.frames, counted + received.invalid);
    assert_eq!((received.invalid, sent.invalid_acks, sent.invalid_echoes, sent.foreign_evs), (0, 0, 0, 0));
    if pair.config.receiver != ReceiverKind::GoBackN.into() {
        assert_eq!(received.nacks + received.nacks_dropped, received.trimmed);
    }
}

fn declared_lost(sent: &SenderStats) -> u64 {
    sent.timeouts + sent.sack_gaps + sent.nacks + sent.missing + sent.gone_back
}

#[test]
fn a_clean_channel_needs_no_retransmission() {
    for ack_every in [1, 2, 4, 8, 16] {
        let config = FlowConfig { ack_every, ..config() };
        let done = run(config, CLEAN, &[1_000_000, 0, 1, 999, 1000, 1001], 1);
        assert_eq!(done.sender.stats().retransmits, 0);
        assert_eq!(done.receiver.stats().duplicates, 0);
        // The channel has no serialisation delay: a window of 17 packets per round trip.
        assert!(done.now.ps() < 1_004 / 17 * 11 * US + 100 * US, "{ack_every}: {} us", done.now.ps() / US);
    }
}

#[test]
fn marks_by_competing_traffic_do_not_starve_a_sender() {
    //= docs/specs/calibration.md#CAL-9 competing traffic
    //= docs/specs/calibration.md#CAL-10 loss-based control
    let packets = 4_000;
    let done = |loss, mark| {
        let config =
            FlowConfig { cc: CcKind::Dctcp.into(), window_packets: 512, sack_gap_packets: Some(3), ..config() }
                .learning();
        let channel = Channel { loss, mark, delay_ps: 500 * US, ..CLEAN };
        run(config, channel, &[packets * u64::from(PAYLOAD)], 1)
    };
    // One packet per round trip, to which marks alone would reduce it, would take 4,000 round
    // trips.
    for loss in [0, 1, 10] {
        let done = done(loss, 1_000);
        let trips = done.now.ps() / (1_000 * US);
        let stats = done.sender.stats();
        assert!(
            trips < 400 && stats.contended_acks > packets / 2,
            "{loss} of 1,000 lost: {trips} round trips, {stats:?}"
        );
    }
    // Where one packet in four is unmarked, marks control the window.
    let marked = done(0, 750);
    let trips = marked.now.ps() / (1_000 * US);
    let stats = marked.sender.stats();
    assert!(trips > 1_000 && stats.contended_acks == 0, "{trips} round trips, {stats:?}");
}

//= docs/specs/transport.md#TRN-35 gap rule
#[test]
fn reordering_rarely_looks_like_loss() {
    let channel = Channel { jitter_ps: 3 * US, ack_jitter_ps: 3 * US, ..CLEAN };
    let done = run(config(), channel, &[3_000_000], 2);
    assert!(done.receiver.stats().order.reordered > 1000);
    let spurious = done.sender.stats().retransmits;
    assert!(spurious < 30, "{spurious} of 3000 although everything arrived within 16 us");
}

#[test]
fn gaps_are_found_before_the_timeout() {
    let channel = Channel { loss: 10, jitter_ps: US, ack_jitter_ps: US, ..CLEAN };
    let with = run(config(), channel, &[2_000_000], 3);
    let without = run(FlowConfig { sack_gap_packets: None, ..config() }, channel, &[2_000_000], 3);
    assert!(with.sender.stats().sack_gaps > 10 && without.sender.stats().sack_gaps == 0);
    assert!(with.now.ps() < without.now.ps(), "{} us, without gaps {} us", with.now.ps() / US, without.now.ps() / US);
}

#[test]
fn trims_are_repaired_without_timeouts() {
    let channel = Channel { trim: 200, ..CLEAN };
    let done = run(config(), channel, &[1_000_000], 4);
    let stats = done.sender.stats();
    assert_eq!((stats.timeouts, stats.sack_gaps), (0, 0));
    assert!(stats.nacks > 150 && stats.nacks == stats.retransmits);
}

#[test]
fn many_small_messages_over_a_lossy_channel() {
    let channel = Channel {
        loss: 200,
        ack_loss: 200,
        duplicate: 100,
        trim: 50,
        mark: 100,
        jitter_ps: 20 * US,
        ack_jitter_ps: 20 * US,
        ..CLEAN
    };
    let messages: Vec<u64> = (0..3000).map(|i| i * 7 % 3001).collect();
    run(config(), channel, &messages, 5);
}

//= docs/specs/transport.md#TRN-57 granting
#[test]
fn grants_lost_with_their_acks_are_requested() {
    let mut config = config();
    config.max_data_bytes = 3000;
    config.max_message_bytes = 3000;
    let channel = Channel { ack_loss: 500, loss: 100, lag_ps: 30 * US, ..CLEAN };
    let done = run(config, channel, &[3000; 200], 6);
    assert!(done.sender.stats().grant_requests > 0);
}

/// Requests and pulls are lost like acknowledgements: half of them do not arrive.
//= docs/specs/eqds.md#EQDS-14 A sender without credit
#[test]
fn lost_credit_is_requested_again() {
    let mut config = config();
    config.cc = CcKind::Eqds.into();
    let channel = Channel { ack_loss: 500, loss: 100, ..CLEAN };
    let done = run(config, channel, &[30_000; 20], 7);
    let stats = done.sender.stats();
    assert!(stats.pull_requests > 5 && stats.pulls > 100, "{stats:?}");
}

/// Pulls may arrive where data does not: credit alone must not keep a connection alive.
//= docs/specs/eqds.md#EQDS-14 A sender without credit
#[test]
fn a_sender_without_acknowledgements_fails_despite_credit() {
    let config = FlowConfig { cc: CcKind::Eqds.into(), give_up_ps: 5_000 * US, ..config() };
    let mut rng = rng::stream(4, 4);
    let mut sender = Sender::new(&config, config.window_packets, config.max_data_bytes, &mut rng);
    sender.send_message(0, 3_000_000).unwrap();
    let (mut sent, mut failed_at) = (0, None);
    for step in 1..=1_000 {
        let now = at(10 * US * step);
        sender.on_pull(now, &Pull { credit_bytes: 1_100 * step });
        sender.on_timeout(now, &mut ());
        while let Some(transmit) = sender.poll_transmit(now, &mut rng, &mut ()) {
            sent += u64::from(matches!(transmit, Transmit::Data { .. }));
        }
        if sender.poll_event() == Some(SenderEvent::Failed) {
            failed_at = Some(now);
            break;
        }
    }
    assert!(failed_at.is_some_and(|at| at.ps() < 5_200 * US) && sent > 400, "{failed_at:?} {sent}");
}

/// A sender with one path that gets no answers to its requests.
//= docs/specs/eqds.md#EQDS-14 A sender without credit
//= docs/specs/eqds.md#EQDS-18 Paths of requests and pulls
#[test]
fn repeated_requests_take_the_balancers_path() {
    let mut config = FlowConfig { cc: CcKind::Eqds.into(), give_up_ps: 1 << 60, ..config() };
    (config.path.evs, config.balancer) = (1024, BalancerKind::Ecmp.into());
    let mut rng = rng::stream(3, 3);
    let mut sender = Sender::new(&config, config.window_packets, config.max_data_bytes, &mut rng);
    sender.send_message(0, 30_000).unwrap();
    let (mut now, mut own, mut requests) = (Time::ZERO, None, Vec::new());
    while requests.len() < 12 {
        while let Some(transmit) = sender.poll_transmit(now, &mut rng, &mut ()) {
            match transmit {
                Transmit::Data { ev, .. } => own = Some(ev),
                Transmit::PullRequest { ev, .. } => requests.push((now, ev)),
                Transmit::Probe { .. } => panic!("it does not probe"),
            }
        }
        now = sender.poll_timeout().unwrap().max(now.next());
        sender.on_timeout(now, &mut ());
    }
    let repeated = &requests[requests.len() - 8..];
    assert!(repeated.iter().all(|(_, ev)| Some(*ev) == own), "{requests:?}");
    let timeout_ps = config.rto.initial_ps;
    let gaps = repeated.windows(2).map(|pair| pair[1].0.since(pair[0].0));
    assert!(gaps.clone().all(|gap_ps| gap_ps == 4 * timeout_ps), "{:?}", gaps.collect::<Vec<_>>());
    assert_ne!(Some(requests[0].1), own, "the first request takes a random path");
}

//= docs/specs/eqds.md#EQDS-6 demand
//= docs/specs/eqds.md#EQDS-11 one queue
#[test]
fn credit_paces_a_clean_channel_at_the_link_rate() {
    let mut config = config();
    config.cc = CcKind::Eqds.into();
    let done = run(config, CLEAN, &[1_000_000], 8);
    // 1,000 packets of 1,100 bytes at 99 % of 10 Gb/s, and two round trips: one for the request,
    // one for the last acknowledgement.
    let ideal_ps = 1_000 * 1_100 * 8 * 100 / 99 * 100;
    assert!(done.now.ps() < ideal_ps + 21 * US, "{} us, ideally {}", done.now.ps() / US, ideal_ps / US);
    let stats = done.sender.stats();
    assert_eq!((stats.retransmits, stats.timeouts), (0, 0));
    // The first 13 packets were sent without credit; about one request per half of three
    // bandwidth-delay products.
    assert_eq!(stats.pulls, 1_000 - 12);
    assert!((30..70).contains(&stats.pull_requests), "{}", stats.pull_requests);
}

/// Credit is lost with thousands of packets: the bound neither stalls a sender nor slows it down.
//= docs/specs/eqds.md#EQDS-16 limit of unused credit
//= docs/specs/eqds.md#EQDS-17 requests without room
#[test]
fn losses_do_not_consume_credit() {
    let mut config = config();
    config.cc = CcKind::Eqds.into();
    config.give_up_ps = 1_000_000 * US;
    let took_ps = |channel, bound: Option<CreditBound>| -> u64 {
        let took = (0..20).map(|seed| {
            let mut pair = Pair::new(config, channel, &[200_000; 10], seed);
            pair.bound = bound.unwrap_or(pair.bound);
            pair.run().unwrap_or_else(|stuck| panic!("seed {seed}: {stuck}"));
            pair.drain();
            check(&pair, &[200_000; 10]);
            pair.now.ps()
        });
        took.sum()
    };
    // Losses in both directions and trims per 1,000, and the percentage by which the bound may
    // prolong the transfer.
    for (loss, ack_loss, trim, percent) in
        [(100, 100, 0, 0), (500, 0, 0, 0), (500, 300, 100, 10), (0, 500, 700, 10), (800, 0, 0, 10), (900, 0, 0, 2_000)]
    {
        let channel = Channel { loss, ack_loss, trim, ..CLEAN };
        let (bounded, unbounded) = (took_ps(channel, None), took_ps(channel, Some(CreditBound::NONE)));
        assert!(
            bounded <= unbounded + unbounded / 100 * percent,
            "{loss} {ack_loss} {trim}: {} against {} us",
            bounded / US,
            unbounded / US
        );
    }
}

fn channel() -> impl Strategy<Value = Channel> {
    (0u32..=300, 0u32..=300, 0u32..=200, 0u32..=200, 0u32..=300, 0u64..20, 0u64..60, 0u64..200).prop_map(
        |(loss, ack_loss, duplicate, trim, mark, delay, jitter, lag)| Channel {
            loss,
            ack_loss,
            duplicate,
            trim,
            mark,
            delay_ps: delay * US,
            jitter_ps: jitter * US,
            ack_jitter_ps: jitter * US,
            lag_ps: lag * US,
            ..CLEAN
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// On any channel every message arrives byte-exact exactly once, in bounded time, and all
    /// counters agree.
    #[test]
    fn any_channel_any_window(
        channel in channel(),
        seed in any::<u64>(),
        (ack_every, window, gap) in (1u32..=16, 0u32..=10, prop::option::of(1u32..20)),
        (cc_packets, grant, cc) in (1u64..200, 2_500u64..200_000, 0..3),
        messages in prop::collection::vec(0u64..20_000, 1..60),
        receiver in 0..3usize,
    ) {
        let mut config =
            FlowConfig { ack_every, ack_evs: ack_every, window_packets: 1 << window, sack_gap_packets: gap, ..config() };
        config.give_up_ps = 1_000_000 * US;
        config.receiver = RECEIVERS[receiver].into();
        config.max_data_bytes = grant.max(20_000);
        config.max_message_bytes = 20_000;
        config.path.initial_window_bytes = cc_packets * 1100;
        config.path.max_window_bytes = cc_packets * 1100;
        match cc {
            0 => config = fixed(config, cc_packets * 1100, 1_000_000_000),
            1 => {
                let eqds = EqdsConfig {
                    speculative_bytes: Some(ByteSize::new((cc_packets - 1) * 1100)),
                    request_bytes: Some(ByteSize::new(cc_packets * 500)),
                    ..EqdsConfig::default()
                };
                config.cc = ControlConfig::Eqds(eqds);
            }
            _ => {}
        }
        run(config, channel, &messages, seed);
    }
}
