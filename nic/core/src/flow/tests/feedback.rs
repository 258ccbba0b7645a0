//! What a sender passes to its algorithms, and the state that it returns at the end.

use std::vec::Vec;

use spray_wire::Ack;

use super::*;
use crate::rng;

/// Returns a sender of ten packets with a small window, which is full.
fn sending(balancer: BalancerKind) -> (Sender, Vec<spray_wire::Ev>) {
    let mut config = FlowConfig { balancer: balancer.into(), cc: CcKind::Dctcp.into(), ..config() };
    config.path.initial_window_bytes = 5 * u64::from(PAYLOAD + HEADER);
    let mut rng = rng::stream(1, 1);
    let mut sender = Sender::new(&config, 64, u64::MAX, &mut rng);
    sender.send_message(1, 10_000).unwrap();
    let mut evs = Vec::new();
    while let Some(Transmit::Data { ev, .. }) = sender.poll_transmit(at(US), &mut rng, &mut ()) {
        evs.push(ev);
    }
    (sender, evs)
}

/// Returns an ACK of all packets below this number.
fn ack(cumulative: u64) -> Ack {
    Ack { cumulative, sack_base: cumulative, timestamp_echo: at(US), ..Ack::default() }
}

//= docs/specs/transport.md#TRN-23 feedback of an ACK
#[test]
fn an_ack_without_a_packet_counts_what_it_settles() {
    let (mut sender, evs) = sending(BalancerKind::Ecmp);
    assert_eq!(evs.len(), 5);
    let mut window_bytes = |cumulative| {
        sender.on_ack(at(11 * US), &ack(cumulative), &mut ());
        sender.window_bytes()
    };
    let [nothing, three, again, five] = [0, 3, 3, 5].map(&mut window_bytes);
    assert_eq!(nothing, 5 * u64::from(PAYLOAD + HEADER));
    assert!(nothing < three && three == again && again < five, "{nothing} {three} {again} {five}");
}

//= docs/specs/reps-plus.md#RPP-18 memory across connections
#[test]
fn the_balancers_state_is_returned_at_the_end() {
    for balancer in [BalancerKind::Ecmp, BalancerKind::RepsPlus] {
        let (mut sender, evs) = sending(balancer);
        assert_eq!(sender.path_history(), None);
        let port = evs[0].port(config().path.evs.into());
        sender.on_ack(at(11 * US), &Ack { packets: 1, port, ..ack(1) }, &mut ());
        let learned = sender.path_history();
        assert_eq!(learned.is_some(), balancer == BalancerKind::RepsPlus);
        assert!(learned.is_none_or(|learned| learned.good() == [evs[0]]));
    }
}
