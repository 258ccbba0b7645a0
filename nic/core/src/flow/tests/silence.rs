//! A path fails while a connection is idle, so that all information of the balancer is outdated.

use std::vec::Vec;

use super::*;
use crate::path::{BalancerKind, Ev};
use crate::rng;

const EVS: u16 = 256;
/// The number of paths; the low bits of an entropy value select one.
const PATHS: u16 = 4;
const ONE_WAY_PS: u64 = 5 * US;

/// The direction in which frames of the failed path are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Forward,
    /// All data arrives, but acknowledgements, which echo the entropy value, return over the failed
    /// path.
    Back,
}

fn is_on(path: Option<u16>, ev: Ev) -> bool {
    path == Some(ev.index() % PATHS)
}

/// Sends messages of one packet in sequence; the first one's path fails after its delivery. Returns
/// the timeouts of each message, or `None` if the connection fails.
fn timeouts_of_messages(mut config: FlowConfig, failure: Failure, seed: u64, count: u32) -> Option<Vec<u64>> {
    config.path.evs = EVS;
    config.give_up_ps = 100 * config.rto.max_ps;
    let mut rng = rng::stream(seed, 5);
    let mut sender = Sender::new(&config, config.window_packets, config.max_data_bytes, &mut rng);
    let mut receiver = Receiver::new(&config);
    let (mut now, mut first, mut failed_path) = (Time::ZERO, None, None);
    let mut timeouts = Vec::new();
    for message in 0..count {
        let before = sender.stats().timeouts;
        sender.send_message(message, u64::from(PAYLOAD)).unwrap();
        loop {
            let mut arrivals = Vec::new();
            while let Some(transmit) = sender.poll_transmit(now, &mut rng, &mut ()) {
                if let Transmit::Data { data, ev } = transmit {
                    first.get_or_insert(ev.index() % PATHS);
                    arrivals.push((data, ev));
                }
            }
            arrivals.retain(|(_, ev)| failure != Failure::Forward || !is_on(failed_path, *ev));
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
                if failure != Failure::Back || !is_on(failed_path, ev) {
                    sender.on_ack(now, &ack, &mut ());
                }
            }
            match sender.poll_event() {
                Some(SenderEvent::MessageDelivered { .. }) => break,
                Some(SenderEvent::Failed) => return None,
                None => {}
            }
            let wakes = [sender.poll_timeout(), receiver.poll_timeout()];
            now = now.max(wakes.into_iter().flatten().min().unwrap_or(Time::NEVER));
            sender.on_timeout(now, &mut ());
            receiver.on_timeout(now);
        }
        failed_path = first;
        timeouts.push(sender.stats().timeouts - before);
        now = now.after(20 * ONE_WAY_PS);
    }
    Some(timeouts)
}

fn with(balancer: BalancerKind) -> FlowConfig {
    FlowConfig { balancer: balancer.into(), ..config() }
}

/// Returns the balancers with which the second message may be lost.
fn stuck(failure: Failure) -> Vec<BalancerKind> {
    let is_stuck =
        |kind: &BalancerKind| !(0..20).all(|seed| timeouts_of_messages(with(*kind), failure, seed, 2).is_some());
    BalancerKind::ALL.into_iter().filter(is_stuck).collect()
}

/// Only a balancer that stays on one path fails with it.
//= docs/specs/transport.md#TRN-41 repeated timeouts
//= docs/specs/flowcut.md#FLC-41 A dead path
#[test]
fn a_message_arrives_though_the_only_known_path_failed() {
    assert_eq!(stuck(Failure::Forward), [BalancerKind::Ecmp]);
    assert_eq!(stuck(Failure::Back), [BalancerKind::Ecmp]);
}

/// One request at a time, as in `ping`: schemes that use several paths leave the failed one.
#[test]
fn sparse_messages_leave_a_failed_path() {
    //= docs/specs/subflow.md#MPTCP-7 stale subflows
    //= docs/specs/flowcut.md#FLC-41 A dead path
    for failure in [Failure::Forward, Failure::Back] {
        let timeouts = |kind| {
            (0..20).flat_map(|seed| timeouts_of_messages(with(kind).learning(), failure, seed, 60).unwrap()).collect()
        };
        let mptcp: Vec<u64> = timeouts(BalancerKind::Mptcp);
        // Once each subflow of the failed path has timed out, one packet in 64 probes it.
        let late: u64 = mptcp.chunks(60).flat_map(|connection| &connection[30..]).sum();
        assert!(late <= 2 * 20, "{failure:?}: {late} timeouts of 600 messages");
        let flowcut: Vec<u64> = timeouts(BalancerKind::Flowcut);
        // A quarter of the newly drawn paths is the failed one again.
        let all: u64 = flowcut.iter().sum();
        assert!(all <= 2 * 20, "{failure:?}: {all} timeouts of 20 connections");
        assert!(flowcut.chunks(60).all(|connection| connection[2..].iter().all(|one| *one == 0)), "{failure:?}");
    }
}
