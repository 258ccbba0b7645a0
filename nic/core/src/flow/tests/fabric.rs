//! Four connections over four queues: loss detection with paths of different delay, full queues and
//! a failed path.

use std::vec::Vec;

use rand_core::RngCore;
use spray_wire::{Ack, Data, Nack};

use super::*;
use crate::path::Ev;
use crate::rng::{self, Rng};
use crate::tests::agenda::Agenda;

const HOSTS: usize = 4;
const PATHS: usize = 4;
/// A link's time for one byte, in picoseconds: 100 Gb/s.
const BYTE_PS: u64 = 80;
const RTT_PS: u64 = 9_000_000;
const QUEUE_BYTES: u64 = 112_500;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Condition {
    Healthy,
    /// Path 0 has half its rate.
    Slow,
    /// Path 0 drops everything from 60 us to 260 us.
    Failed,
}

enum Event {
    /// A host's link is free.
    Free(usize),
    AtQueue(usize, Data, Ev),
    AtReceiver(usize, Arrival),
    Ack(usize, Ack),
    Nack(usize, Nack),
    Timer(usize),
}

struct Host {
    sender: Sender,
    receiver: Receiver,
    free_at: Time,
    delivered_at: Option<Time>,
}

struct Fabric {
    condition: Condition,
    trims: bool,
    now: Time,
    hosts: Vec<Host>,
    busy_until: [Time; PATHS],
    rng: Rng,
    events: Agenda<Event>,
    drops: u64,
}

/// Sums over the connections of one run.
#[derive(Debug, Default)]
struct Outcome {
    finished_us: u64,
    timeouts: u64,
    gaps: u64,
    mistakes: u64,
    drops: u64,
    reordered: u64,
}

impl Fabric {
    fn new(balancer: BalancerKind, condition: Condition, gap: Option<u32>, trims: bool, seed: u64) -> Self {
        let path = Path { bdp_packets: 27, trimming: trims, ..Path::new(RTT_PS, 100_000_000_000, 4150) };
        let mut config = FlowConfig::new(balancer, path, 64);
        config.sack_gap_packets = gap;
        let mut rng = rng::stream(seed, 0);
        let hosts = (0..HOSTS)
            .map(|_| {
                let mut sender = Sender::new(&config, config.window_packets, config.max_data_bytes, &mut rng);
                sender.send_message(0, 4 << 20).unwrap();
                Host { sender, receiver: Receiver::new(&config), free_at: Time::ZERO, delivered_at: None }
            })
            .collect();
        let events = Agenda::default();
        Self { condition, trims, now: Time::ZERO, hosts, busy_until: [Time::ZERO; PATHS], rng, events, drops: 0 }
    }

    fn run(mut self) -> Outcome {
        (0..HOSTS).for_each(|host| self.events.put(Time::ZERO, Event::Free(host)));
        while self.hosts.iter().any(|host| host.delivered_at.is_none()) {
            self.now = self.events.next().expect("stuck");
            assert!(self.now < at(100_000_000_000), "not done after 100 ms");
            let event = self.events.take_due(self.now).expect("it is due");
            self.on_event(event);
        }
        self.outcome()
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Free(host) => self.send(host),
            Event::AtQueue(host, data, ev) => self.queue(host, data, ev),
            Event::AtReceiver(host, arrival) => self.receive(host, arrival),
            Event::Ack(host, ack) => {
                self.hosts[host].sender.on_ack(self.now, &ack, &mut ());
                self.send(host);
            }
            Event::Nack(host, nack) => {
                self.hosts[host].sender.on_nack(self.now, &nack, &mut ());
                self.send(host);
            }
            Event::Timer(host) => {
                self.hosts[host].sender.on_timeout(self.now, &mut ());
                self.send(host);
            }
        }
    }

    fn send(&mut self, index: usize) {
        let (now, host) = (self.now, &mut self.hosts[index]);
        while let Some(SenderEvent::MessageDelivered { at, .. }) = host.sender.poll_event() {
            host.delivered_at = Some(at);
        }
        if host.free_at > now {
            return;
        }
        if let Some(Transmit::Data { data, ev }) = host.sender.poll_transmit(now, &mut self.rng, &mut ()) {
            host.free_at = now.after(4150 * BYTE_PS);
            let free_at = host.free_at;
            self.events.put(free_at.after(1_000_000), Event::AtQueue(index, data, ev));
            self.events.put(free_at, Event::Free(index));
        }
        if let Some(at) = self.hosts[index].sender.poll_timeout() {
            self.events.put(at.max(now.next()), Event::Timer(index));
        }
    }

    fn queue(&mut self, host: usize, data: Data, ev: Ev) {
        let hash = (u64::from(ev.index()) * 4 + host as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let path = hash as usize % PATHS;
        let slowed = self.condition == Condition::Slow && path == 0;
        let dead = self.condition == Condition::Failed && path == 0 && (at(60 * US)..at(260 * US)).contains(&self.now);
        let byte_ps = if slowed { 2 * BYTE_PS } else { BYTE_PS };
        let backlog = self.busy_until[path].since(self.now) / byte_ps;
        let full = backlog + 4150 > QUEUE_BYTES;
        self.drops += u64::from(dead || full);
        if dead || (full && !self.trims) {
            return;
        }
        let (min, max) = (QUEUE_BYTES / 5, QUEUE_BYTES * 4 / 5);
        let marked = backlog > min && self.rng.next_u64() % (max - min) < backlog - min;
        let arrival = Arrival { data, port: ev.port(65_535), marked, hops: 3, trimmed: full, ..Arrival::default() };
        let mut leaves = self.now;
        if !full {
            self.busy_until[path] = self.busy_until[path].max(self.now).after(4150 * byte_ps);
            leaves = self.busy_until[path];
        }
        self.events.put(leaves.after(3_000_000), Event::AtReceiver(host, arrival));
    }

    fn receive(&mut self, host: usize, arrival: Arrival) {
        let receiver = &mut self.hosts[host].receiver;
        receiver.on_data(self.now, &arrival);
        let _ = receiver.message_completed();
        let ack = receiver.poll_ack();
        let nack = receiver.poll_nack();
        let back = self.now.after(4_000_000);
        if let Some(ack) = ack {
            self.events.put(back, Event::Ack(host, ack));
        }
        if let Some(nack) = nack {
            self.events.put(back, Event::Nack(host, nack));
        }
    }

    fn outcome(&self) -> Outcome {
        let sum = |count: &dyn Fn(&SenderStats) -> u64| self.hosts.iter().map(|host| count(host.sender.stats())).sum();
        Outcome {
            finished_us: self.hosts.iter().filter_map(|host| host.delivered_at).max().unwrap_or(Time::ZERO).ps() / US,
            timeouts: sum(&|stats| stats.timeouts),
            gaps: sum(&|stats| stats.sack_gaps),
            mistakes: sum(&|stats| stats.late_acks + stats.spurious_retransmits),
            drops: self.drops,
            reordered: self.hosts.iter().map(|host| host.receiver.stats().order.reordered).sum(),
        }
    }
}

/// Returns the sums over all seeds.
fn runs(balancer: BalancerKind, condition: Condition, gap: Option<u32>, trims: bool) -> Outcome {
    let mut sum = Outcome::default();
    for seed in 0..SEEDS {
        let run = Fabric::new(balancer, condition, gap, trims, seed).run();
        sum.finished_us += run.finished_us;
        sum.timeouts += run.timeouts;
        sum.gaps += run.gaps;
        sum.mistakes += run.mistakes;
        sum.drops += run.drops;
        sum.reordered += run.reordered;
    }
    sum
}

//= docs/specs/transport.md#TRN-35 gap rule
//= docs/specs/transport.md#TRN-38 reordering window
#[test]
fn slow_paths_do_not_look_like_losses() {
    for balancer in [BalancerKind::Ops, BalancerKind::Reps] {
        for condition in [Condition::Healthy, Condition::Slow] {
            let with = runs(balancer, condition, GAP, true);
            assert!(with.reordered > 1000 * SEEDS, "too little reordering: {with:?}");
            // Of 4,100 packets per run: one in a thousand.
            assert!(with.mistakes <= 4 * SEEDS, "{balancer} {condition:?}: {with:?}");
            let without = runs(balancer, condition, None, true);
            let (with_us, without_us) = (with.finished_us, without.finished_us);
            assert!(with_us < without_us * 105 / 100, "{balancer} {condition:?}: {with_us}, without {without_us}");
        }
    }
}

//= docs/specs/transport.md#TRN-35 gap rule
#[test]
fn gaps_detect_a_failed_path_before_timeouts() {
    for trims in [false, true] {
        let with = runs(BalancerKind::Reps, Condition::Failed, GAP, trims);
        let without = runs(BalancerKind::Reps, Condition::Failed, None, trims);
        assert!(with.gaps > 20 * SEEDS && with.gaps > with.timeouts, "{with:?}");
        //= docs/specs/reps.md#REPS-16 declared losses
        if trims {
            assert!(with.timeouts < 5 * SEEDS, "{with:?}");
            assert!(with.drops < without.drops, "{}, without gaps {}: it freezes sooner", with.drops, without.drops);
        }
    }
}

//= docs/specs/transport.md#TRN-36 trimmed packets
#[test]
fn full_queues_that_trim_need_no_timeout() {
    let run = runs(BalancerKind::Ops, Condition::Slow, None, true);
    assert!(run.drops > 20 * SEEDS && run.timeouts == 0, "{run:?}");
}

const GAP: Option<u32> = Some(DEFAULT_SACK_GAP_PACKETS);
const SEEDS: u64 = 4;
