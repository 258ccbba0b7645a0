//! Flowcut between a real sender and a real receiver, over paths that keep order.

use std::collections::VecDeque;
use std::vec::Vec;

use rand_core::RngCore;
use spray_wire::{Ack, Data};

use super::*;
use crate::path::Ev;
use crate::path::{BalancerConfig, FlowcutConfig, FlowcutRule};
use crate::rng::{Rng, stream};
use crate::units::{ByteSize, Micros, Ratio};

const EVS: u16 = 3;

/// Both ends, a queue for each path, and a return path that reorders and loses frames.
struct Paths {
    sender: Sender,
    receiver: Receiver,
    data: [VecDeque<(Data, Ev)>; EVS as usize],
    acks: Vec<Ack>,
    now: Time,
    rng: Rng,
    sent: Vec<(u64, Ev, bool)>,
}

impl Paths {
    fn new(seed: u64, change: impl FnOnce(&mut FlowConfig, &mut FlowcutConfig)) -> Self {
        let mut config = open_config();
        let mut own = FlowcutConfig { tail_bytes: Some(ByteSize::new(0)), ..FlowcutConfig::default() };
        change(&mut config, &mut own);
        (config.balancer, config.path.evs) = (BalancerConfig::Flowcut(own), EVS);
        config.give_up_ps = u64::MAX / 4;
        let mut rng = stream(seed, 3);
        let sender = Sender::new(&config, config.window_packets, config.max_data_bytes, &mut rng);
        let receiver = Receiver::new(&config);
        Self { sender, receiver, data: Default::default(), acks: Vec::new(), now: Time::ZERO, rng, sent: Vec::new() }
    }

    /// Sends all packets that may be sent.
    fn send(&mut self) {
        while let Some(transmit) = self.sender.poll_transmit(self.now, &mut self.rng, &mut ()) {
            if let Transmit::Data { data, ev } = transmit {
                self.sent.push((data.psn, ev, data.retransmit));
                self.data[usize::from(ev.index())].push_back((data, ev));
            }
        }
    }

    /// Delivers the next packet of a path.
    fn deliver(&mut self, path: usize) {
        let Some((data, ev)) = self.data[path].pop_front() else { return };
        let arrival = Arrival { data, port: ev.port(EVS.into()), hops: 3, ..Arrival::default() };
        self.receiver.on_data(self.now, &arrival);
        while let Some((_, bytes)) = self.receiver.message_completed() {
            self.receiver.consumed(bytes);
        }
        self.collect_acks();
    }

    fn collect_acks(&mut self) {
        while let Some(ack) = self.receiver.poll_ack() {
            self.acks.push(ack);
        }
    }

    fn take_ack(&mut self, index: usize) {
        let ack = self.acks.remove(index);
        self.sender.on_ack(self.now, &ack, &mut ());
    }

    fn wait(&mut self, ps: u64) {
        self.now = self.now.after(ps);
        self.sender.on_timeout(self.now, &mut ());
        self.receiver.on_timeout(self.now);
        self.collect_acks();
    }

    fn below(&mut self, count: usize) -> usize {
        (self.rng.next_u64() % count.max(1) as u64) as usize
    }
}

/// Any behaviour of paths and acknowledgements, as long as each path delivers in order. Most
/// timeouts are spurious, so that paths are left while everything sent on them is still in flight.
//= docs/specs/flowcut.md#FLC-5 no reordering
//= docs/specs/flowcut.md#FLC-43 lowest packet first
//= docs/specs/flowcut.md#FLC-45 order and progress in repair
#[test]
fn flowcut_never_reorders() {
    let (mut repaired, mut moved) = (0, 0);
    for seed in 0..600 {
        let mut draw = stream(seed, 4);
        let mut paths = Paths::new(seed, |config, own| {
            config.ack_every = [1, 2, 8][draw.next_u64() as usize % 3];
            config.sack_gap_packets = [None, Some(1), Some(8)][draw.next_u64() as usize % 3];
            own.rule = [FlowcutRule::Paper, FlowcutRule::Simple][draw.next_u64() as usize % 2];
            own.rtt_ratio = Ratio::permille(1_000 + draw.next_u64() % 20_000);
            own.dead_timeouts = 1 + (draw.next_u64() % 3) as u8;
            own.drain_timeout_us = Some(Micros::new(1 + draw.next_u64() % 400));
            own.credit_bytes = ByteSize::new(draw.next_u64() % 4_000);
        });
        paths.sender.send_message(0, 200_000).unwrap();
        let loss = draw.next_u64() % 20;
        for step in 0..20_000 {
            paths.send();
            // Later all paths are healthy, so that the flow must end.
            let rough = step < 8_000;
            let frozen = (step / 500) % (EVS as usize + 1);
            match paths.below(8) {
                0..=3 => {
                    let path = paths.below(EVS as usize);
                    if rough && u64::from(draw.next_u32() % 100) < loss {
                        paths.data[path].pop_front();
                    } else if !rough || path != frozen {
                        paths.deliver(path);
                    }
                }
                4..=5 if !paths.acks.is_empty() => {
                    let index = paths.below(paths.acks.len());
                    if rough && u64::from(draw.next_u32() % 100) < loss {
                        paths.acks.remove(index);
                    } else {
                        paths.take_ack(index);
                    }
                }
                _ => {
                    let ps = draw.next_u64() % (20 * US);
                    paths.wait(ps);
                }
            }
            if paths.sender.is_idle() {
                break;
            }
        }
        assert_eq!(paths.receiver.stats().order.reordered, 0, "seed {seed}");
        assert!(paths.sender.is_idle(), "seed {seed}: {:?}", paths.sender.stats());
        let again = paths.sent.windows(2).filter(|pair| pair[1].2 && pair[0].1 != pair[1].1);
        repaired += again.count();
        moved += paths.sent.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    }
    assert!(repaired > 300 && moved > 1_000, "{repaired} {moved}");
}

//= docs/specs/flowcut.md#FLC-41 A dead path
//= docs/specs/flowcut.md#FLC-42 repair
//= docs/specs/flowcut.md#FLC-43 lowest packet first
#[test]
fn packets_of_a_failed_path_are_resent_one_by_one() {
    let mut paths = Paths::new(1, |_, own| own.dead_timeouts = 2);
    paths.sender.send_message(0, 8_000).unwrap();
    paths.send();
    let old = paths.sent[0].1;
    assert!(paths.sent.iter().all(|sent| sent.1 == old) && paths.sent.len() == 8);
    while paths.sent.iter().all(|sent| sent.1 == old) {
        paths.wait(10 * US);
        paths.send();
    }
    let new = paths.sent.last().unwrap().1;
    paths.sent.clear();
    for psn in 0..8 {
        paths.deliver(usize::from(new.index()));
        while !paths.acks.is_empty() {
            paths.take_ack(0);
        }
        paths.send();
        let next = (psn < 7).then_some((psn + 1, new, true));
        assert_eq!(paths.sent.pop(), next);
        assert!(paths.sent.is_empty());
    }
    assert!(paths.sender.is_idle());
}
