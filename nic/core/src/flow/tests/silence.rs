//! A path that dies while a connection has nothing to send: what the balancer knows of it is all that it knows, and wrong.

use std::vec::Vec;

use super::*;
use crate::path::{BalancerKind, Ev};
use crate::rng;

const EVS: u16 = 256;
/// Paths, by the last bits of an entropy value.
const PATHS: u16 = 4;
const ONE_WAY_PS: u64 = 5 * US;

/// The direction in which frames of the dead path are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dead {
    Forward,
    /// Everything arrives, and the acknowledgements, which echo the entropy value, come back over the dead path.
    Back,
}

fn is_on(path: Option<u16>, ev: Ev) -> bool {
    path == Some(ev.index() % PATHS)
}

/// Sends a message of one packet, then, when its path has died, another. Returns whether that is delivered.
fn second_message_arrives(kind: BalancerKind, dead: Dead, seed: u64) -> bool {
    let mut config = config();
    (config.balancer, config.path.evs) = (kind.into(), EVS);
    config.give_up_ps = 100 * config.rto.max_ps;
    let mut rng = rng::stream(seed, 5);
    let mut sender = Sender::new(&config, config.window_packets, config.max_data_bytes, &mut rng);
    let mut receiver = Receiver::new(&config);
    let (mut now, mut first, mut dead_path) = (Time::ZERO, None, None);
    for message in 0..2 {
        sender.send_message(message, u64::from(PAYLOAD)).unwrap();
        loop {
            let mut arrivals = Vec::new();
            while let Some(transmit) = sender.poll_transmit(now, &mut rng, &mut ()) {
                if let Transmit::Data { data, ev } = transmit {
                    first.get_or_insert(ev.index() % PATHS);
                    arrivals.push((data, ev));
                }
            }
            arrivals.retain(|(_, ev)| dead != Dead::Forward || !is_on(dead_path, *ev));
            now = now.after(ONE_WAY_PS);
            for (data, ev) in arrivals {
                let arrival = Arrival { data, port: ev.port(EVS.into()), hops: 3, ..Arrival::default() };
                receiver.on_data(now, &arrival);
            }
            receiver.on_timeout(now);
            while let Some((_, bytes)) = receiver.message_completed() {
                receiver.consumed(bytes);
            }
            now = now.after(ONE_WAY_PS);
            while let Some(ack) = receiver.poll_ack() {
                let ev = ack.port.ev(EVS.into()).unwrap();
                if dead != Dead::Back || !is_on(dead_path, ev) {
                    sender.on_ack(now, &ack, &mut ());
                }
            }
            match sender.poll_event() {
                Some(SenderEvent::MessageDelivered { .. }) => break,
                Some(SenderEvent::Failed) => return false,
                None => {}
            }
            let wakes = [sender.poll_timeout(), receiver.poll_timeout()];
            now = now.max(wakes.into_iter().flatten().min().unwrap_or(Time::NEVER));
            sender.on_timeout(now, &mut ());
            receiver.on_timeout(now);
        }
        dead_path = first;
    }
    true
}

/// Balancers with which the second message does not always arrive.
fn stuck(dead: Dead) -> Vec<BalancerKind> {
    let is_stuck = |kind: &BalancerKind| !(0..20).all(|seed| second_message_arrives(*kind, dead, seed));
    BalancerKind::ALL.into_iter().filter(is_stuck).collect()
}

/// Only who keeps to one path is lost with it.
//= docs/specs/transport.md#TRN-41 Knowledge that silence outdates
//= docs/specs/flowcut.md#FLC-41 A dead path
#[test]
fn a_message_arrives_though_the_only_path_that_is_known_is_dead() {
    assert_eq!(stuck(Dead::Forward), [BalancerKind::Ecmp]);
    assert_eq!(stuck(Dead::Back), [BalancerKind::Ecmp]);
}
