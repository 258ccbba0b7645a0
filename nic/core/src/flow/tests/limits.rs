//! The limits that a sender reports.

use spray_wire::{Ack, EvPort};

use super::*;
use crate::rng::{Rng, stream};

const ALL: [Limit; 5] = [Limit::Application, Limit::Window, Limit::Pacing, Limit::Receiver, Limit::Balancer];

fn waited_us(sender: &Sender) -> [u64; 5] {
    ALL.map(|limit| sender.limits().waited_ps(limit) / US)
}

/// Returns only this limit, for this number of microseconds.
fn only(limit: Limit, us: u64) -> [u64; 5] {
    ALL.map(|other| if other == limit { us } else { 0 })
}

fn sender(config: &FlowConfig, window_packets: u32, max_data: u64) -> (Sender, Rng) {
    let mut rng = stream(1, 1);
    (Sender::new(config, window_packets, max_data, &mut rng), rng)
}

/// Polls until nothing more is sent; returns the number of frames.
fn drain(sender: &mut Sender, rng: &mut Rng, now_ps: u64) -> usize {
    core::iter::from_fn(|| sender.poll_transmit(at(now_ps), rng, &mut ())).count()
}

#[test]
fn time_counts_for_the_limit_of_the_next_packet() {
    let open = open_config();
    let own_windows = FlowConfig { balancer: BalancerKind::Mptcp.into(), ..config() };
    let mut eqds = FlowConfig { cc: CcKind::Eqds.into(), ..open_config() };
    eqds.path.initial_window_bytes = 12_000;
    let (any, unlimited) = (64, u64::MAX);
    for (limit, config, window_packets, max_data) in [
        (Limit::Window, config(), any, unlimited),
        (Limit::Window, open, 8, unlimited),
        (Limit::Pacing, fixed(open_config(), 1 << 30, 100_000_000), any, unlimited),
        (Limit::Receiver, open, any, 5_000),
        (Limit::Receiver, eqds, any, unlimited),
        (Limit::Balancer, own_windows, any, unlimited),
    ] {
        let (mut sender, mut rng) = sender(&config, window_packets, max_data);
        // Nothing to send at first.
        drain(&mut sender, &mut rng, 10 * US);
        drain(&mut sender, &mut rng, 13 * US);
        sender.send_message(1, 10_000_000).unwrap();
        assert!(drain(&mut sender, &mut rng, 15 * US) > 0, "{limit:?}");
        assert_eq!(waited_us(&sender), only(Limit::Application, 5), "{limit:?}");
        for now_us in [20, 21, 40] {
            assert_eq!(drain(&mut sender, &mut rng, now_us * US), 0, "{limit:?}");
        }
        let mut expected = only(limit, 25);
        expected[0] = 5;
        assert_eq!(waited_us(&sender), expected, "{limit:?}");
    }
}

#[test]
fn time_between_two_packets_counts_for_the_host() {
    let (mut sender, mut rng) = sender(&open_config(), 64, u64::MAX);
    sender.send_message(1, 3_000).unwrap();
    for now_us in [0, 10, 20] {
        assert!(sender.poll_transmit(at(now_us * US), &mut rng, &mut ()).is_some());
    }
    assert!(sender.poll_transmit(at(30 * US), &mut rng, &mut ()).is_none());
    assert_eq!(waited_us(&sender), [0; 5]);
    assert!(sender.poll_transmit(at(31 * US), &mut rng, &mut ()).is_none());
    assert_eq!(waited_us(&sender), only(Limit::Application, 1));
}

#[test]
fn a_wait_ends_when_a_packet_is_sent() {
    let (mut sender, mut rng) = sender(&open_config(), 1, u64::MAX);
    sender.send_message(1, 2_000).unwrap();
    assert_eq!(drain(&mut sender, &mut rng, 0), 1);
    let ack = Ack { cumulative: 1, sack_base: 1, packets: 1, port: EvPort::new(7), ..Ack::default() };
    sender.on_ack(at(10 * US), &ack, &mut ());
    // The link is busy for 2 us: the sender is polled when it is free.
    assert!(sender.poll_transmit(at(12 * US), &mut rng, &mut ()).is_some());
    sender.on_ack(at(30 * US), &Ack { cumulative: 2, sack_base: 2, ..ack }, &mut ());
    assert!(sender.poll_transmit(at(30 * US), &mut rng, &mut ()).is_none());
    assert_eq!(waited_us(&sender), only(Limit::Window, 12));
}

#[test]
fn a_sender_that_learns_its_path_reports_rtt_quantiles() {
    let (mut sender, mut rng) = sender(&open_config().learning(), 64, u64::MAX);
    sender.send_message(1, 50_000).unwrap();
    // 32 packets fit the first window; the first is acknowledged after 100 us, the others after 10
    // us.
    assert!(drain(&mut sender, &mut rng, US) >= 20);
    for psn in 0..20 {
        let now_ps = if psn == 0 { 101 * US } else { (101 + psn) * US };
        let timestamp_echo = at(if psn == 0 { US } else { now_ps - 10 * US });
        let (cumulative, port) = (psn + 1, EvPort::new(7));
        let ack = Ack { cumulative, sack_base: cumulative, timestamp_echo, packets: 1, port, ..Ack::default() };
        sender.on_ack(at(now_ps), &ack, &mut ());
    }
    let rtts = sender.rtts().unwrap();
    let near = |permille, us| rtts.permille_ps(permille).abs_diff(us * US) < us * US / 16;
    assert!(near(500, 10) && near(990, 100), "{rtts:?}");
    let (fixed, _) = self::sender(&open_config(), 64, u64::MAX);
    assert!(fixed.rtts().is_none());
}
