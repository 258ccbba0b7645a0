//! Connections in long use: counters that begin near their limits, and as many packets as time
//! permits.
//!
//! 64 bits suffice for all packet and byte counts. Message numbers have 32 bits, at the sender
//! twice: the caller's, and the running numbers of its slots. The slots of packets and the bits of
//! bitmaps are the low bits of packet numbers.

use std::vec::Vec;

use super::pair::{Channel, ChannelCounts, Pair};
use super::*;
use crate::rng;

/// 2^32 packets, 2^32 messages and 10 TB are passed within a test. Packet numbers keep their
/// remainders modulo all powers of two up to 512, on which some schemes depend.
const BEFORE: [Before; 4] = [
    Before { packets: (1 << 32) - 512, messages: u32::MAX - 20, bytes: 10_000_000_000_000 - 20_000 },
    Before { packets: (1 << 32) - 512, messages: (1 << 31) - 20, bytes: (1 << 32) - 20_000 },
    Before { packets: 1 << 32, messages: u32::MAX, bytes: 1 << 32 },
    Before { packets: (1 << 48) - 512, messages: u32::MAX - 255, bytes: (1 << 60) - 20_000 },
];

const ROUGH: Channel = Channel {
    loss: 100,
    ack_loss: 100,
    duplicate: 50,
    trim: 50,
    mark: 100,
    delay_ps: 5 * US,
    jitter_ps: 5 * US,
    ack_jitter_ps: 0,
    in_order: false,
    gap_ps: 0,
    lag_ps: 20 * US,
    outage: None,
    dead_paths: 0,
};

/// The outcome of a connection, relative to its start: its end time, the counts of the channel, the
/// order of messages, and the counters of both ends.
#[derive(Debug, PartialEq)]
struct History {
    ended: Time,
    sent: [u64; 4],
    completed: Vec<(u32, u64)>,
    delivered: Vec<u32>,
    counts: [u64; 13],
}

/// Sends 700 packets in 600 messages, of which several are in flight at a time.
fn history(config: FlowConfig, before: &Before) -> History {
    let messages: Vec<u64> = (0..600).map(|number| number * 997 % 2_200).collect();
    let mut pair = Pair::new(config, ROUGH, &messages, 3);
    pair.start_after(before);
    pair.run().unwrap_or_else(|stuck| panic!("{before:?}: {stuck}"));
    pair.drain();
    assert!(!pair.gave_up);
    let packets: u64 = messages.iter().map(|bytes| bytes.div_ceil(u64::from(PAYLOAD)).max(1)).sum();
    let bytes: u64 = messages.iter().sum();
    let (sent, got) = (*pair.sender.stats(), *pair.receiver.stats());
    let end = before.packets + packets;
    assert_eq!((pair.sender.next_psn(), pair.receiver.cumulative(), sent.packets_acked), (end, end, end));
    assert_eq!(
        (sent.bytes_sent, sent.bytes_acked, got.bytes),
        (before.bytes + bytes, before.bytes + bytes, before.bytes + bytes)
    );
    let ChannelCounts { sent: frames, lost, packets_lost, duplicated } = pair.channel_counts;
    let number = |message: u32| message.wrapping_sub(before.messages);
    History {
        ended: pair.now,
        sent: [frames, lost, packets_lost, duplicated],
        completed: pair.completed.iter().map(|&(message, bytes)| (number(message), bytes)).collect(),
        delivered: pair.delivered.iter().map(|&message| number(message)).collect(),
        counts: [
            sent.packets_sent - before.packets,
            sent.retransmits,
            sent.acks,
            sent.timeouts,
            sent.sack_gaps,
            sent.nacks,
            sent.messages_delivered,
            got.packets - before.packets,
            got.duplicates,
            got.messages,
            got.acks,
            got.order.reordered,
            pair.receiver.max_data() - before.bytes,
        ],
    }
}

/// A connection that has sent 2^32 packets, 2^32 messages and 10 TB behaves as a new one, packet
/// for packet.
//= docs/specs/endpoint.md#END-36 no age limit
#[test]
fn large_counters_do_not_change_a_connection() {
    let schemes = BalancerKind::ALL.map(|balancer| (balancer, CcKind::Dctcp, ReceiverKind::Selective));
    let controls = CcKind::ALL.map(|cc| (BalancerKind::Reps, cc, ReceiverKind::Selective));
    let receivers = RECEIVERS.map(|receiver| (BalancerKind::Ecmp, CcKind::Dctcp, receiver));
    for (balancer, cc, receiver) in schemes.into_iter().chain(controls).chain(receivers) {
        let config = FlowConfig {
            balancer: balancer.into(),
            cc: cc.into(),
            receiver: receiver.into(),
            max_data_bytes: 300_000,
            max_message_bytes: 10_000,
            ..config()
        };
        let new = history(config, &Before::default());
        let mut numbers: Vec<u32> = new.completed.iter().map(|(message, _)| *message).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..600), "{balancer:?}, {cc:?} and {receiver:?}: each once");
        for before in &BEFORE {
            assert_eq!(history(config, before), new, "{balancer:?}, {cc:?} and {receiver:?} after {before:?}");
        }
    }
}

/// Consecutive timeouts are counted in eight bits, by the sender, by each record, and by grant
/// requests.
#[test]
fn timeouts_in_a_row_may_be_many() {
    for max_data_bytes in [1_000_000, 0] {
        let config = FlowConfig { give_up_ps: u64::MAX, max_message_bytes: 0, max_data_bytes, ..config() };
        let mut rng = rng::stream(1, 1);
        let mut sender = Sender::new(&config, config.window_packets, max_data_bytes, &mut rng);
        sender.send_message(0, 5_000).unwrap();
        let (mut now, mut frames) = (Time::ZERO, 0);
        for _ in 0..2_000 {
            while sender.poll_transmit(now, &mut rng, &mut ()).is_some() {
                frames += 1;
            }
            let due = sender.poll_timeout().expect("it never gives up");
            assert!(due.since(now) <= config.rto.max_ps, "{frames} frames");
            now = now.max(due);
            sender.on_timeout(now, &mut ());
        }
        assert!(frames > 500 && !sender.has_failed(), "{frames}");
    }
}

/// An ACK counts packets in eight bits. More packets accumulate only if no ACKs are polled.
//= docs/specs/transport.md#TRN-55 content of an ACK
#[test]
fn the_packet_count_of_an_ack_saturates() {
    let config = FlowConfig { window_packets: 1 << 10, ack_every: 255, ..config() };
    let (mut rng, now) = (rng::stream(1, 1), Time::ZERO.after(US));
    let mut sender = Sender::new(&open_config(), 64, 1 << 30, &mut rng);
    let mut receiver = Receiver::new(&config);
    sender.send_message(0, 1_000).unwrap();
    let Some(Transmit::Data { data, .. }) = sender.poll_transmit(now, &mut rng, &mut ()) else { panic!("it may go") };
    let arrival = Arrival { data, port: spray_wire::EvPort::new(50_000), marked: true, ..Arrival::default() };
    for _ in 0..70_000 {
        let _ = receiver.on_data(now, &arrival);
    }
    let ack = receiver.poll_ack().unwrap();
    assert_eq!((ack.packets, ack.marked_packets, ack.cumulative, ack.echoes.len()), (255, 255, 1, 0));
    assert!(receiver.poll_ack().is_none());
}

/// Both ends without frames between them, at maximum speed. `SOAK_PACKETS` sets the number of
/// packets. Halfway the packet numbers, the message numbers and the bytes pass 2^32, 2^32 and 10
/// TB.
#[test]
#[ignore = "cargo xtask ci runs it"]
fn packets_for_the_time_available() {
    let packets: u64 = std::env::var("SOAK_PACKETS").map_or(20_000_000, |count| count.parse().unwrap());
    let config = FlowConfig { window_packets: 1 << 10, give_up_ps: 1 << 60, ..open_config() };
    let before = Before {
        packets: (1u64 << 32).saturating_sub(packets / 2),
        messages: u32::MAX - (packets / 8) as u32,
        bytes: 10_000_000_000_000u64.saturating_sub(packets * 400),
    };
    let mut ends = Ends::new(&config, &before);
    while ends.receiver.cumulative() < before.packets + packets {
        ends.step();
    }
    ends.check(&before);
}

/// A sender that always has something to send, and a receiver, in one process.
struct Ends {
    sender: Sender,
    receiver: Receiver,
    rng: rng::Rng,
    now: Time,
    frames: u64,
    /// Numbers of the next message to send, to complete and to deliver. Messages complete in the
    /// order in which they were sent, except those with lost packets, which `early` handles.
    queued: u32,
    completed: Numbers,
    delivered: Numbers,
}

/// A counter of numbers, with the few that arrived ahead of `next`.
struct Numbers {
    next: u32,
    count: u64,
    early: Vec<u32>,
}

impl Numbers {
    fn take(&mut self, number: u32) {
        self.count += 1;
        if number != self.next {
            assert!(number.wrapping_sub(self.next) < 1 << 16 && !self.early.contains(&number), "{number} twice");
            return self.early.push(number);
        }
        self.next = self.next.wrapping_add(1);
        while let Some(at) = self.early.iter().position(|early| *early == self.next) {
            self.early.swap_remove(at);
            self.next = self.next.wrapping_add(1);
        }
    }
}

impl Ends {
    fn new(config: &FlowConfig, before: &Before) -> Self {
        let mut rng = rng::stream(1, 1);
        let mut sender = Sender::new(config, config.window_packets, config.max_data_bytes, &mut rng);
        let mut receiver = Receiver::new(config);
        sender.start_after(before);
        receiver.start_after(before);
        let early = || Numbers { next: before.messages, count: 0, early: Vec::new() };
        let (completed, delivered) = (early(), early());
        Self { sender, receiver, rng, now: Time::ZERO, frames: 0, queued: before.messages, completed, delivered }
    }

    /// Runs one microsecond. Messages have 0 to 6,999 bytes; one packet in 1,009 is lost.
    fn step(&mut self) {
        self.now = self.now.after(US);
        while self.sender.send_message(self.queued, u64::from(self.queued % 7_000)).is_ok() {
            self.queued = self.queued.wrapping_add(1);
        }
        self.sender.on_timeout(self.now, &mut ());
        self.receiver.on_timeout(self.now);
        for _ in 0..64 {
            let Some(Transmit::Data { data, ev }) = self.sender.poll_transmit(self.now, &mut self.rng, &mut ()) else {
                break;
            };
            self.frames += 1;
            if !self.frames.is_multiple_of(1_009) {
                let port = ev.port(self.sender.path().evs.into());
                self.arrive(&Arrival { data, port, hops: 1, ..Arrival::default() });
            }
        }
        while let Some(event) = self.sender.poll_event() {
            let SenderEvent::MessageDelivered { message, .. } = event else { panic!("{event:?}") };
            self.delivered.take(message);
        }
    }

    fn arrive(&mut self, arrival: &Arrival) {
        assert!(!matches!(self.receiver.on_data(self.now, arrival), DataOutcome::Invalid | DataOutcome::OutOfWindow));
        while let Some((message, bytes)) = self.receiver.message_completed() {
            assert_eq!(bytes, u64::from(message % 7_000));
            self.completed.take(message);
            self.receiver.consumed(bytes);
        }
        while let Some(ack) = self.receiver.poll_ack() {
            self.sender.on_ack(self.now, &ack, &mut ());
        }
    }

    /// Checks that everything was delivered once, and that the rest is in flight.
    fn check(&self, before: &Before) {
        let (sent, got) = (self.sender.stats(), self.receiver.stats());
        assert_eq!((self.completed.count, self.delivered.count), (got.messages, sent.messages_delivered));
        assert!(self.completed.early.len() < 1_024 && self.delivered.early.len() < 1_024);
        assert!(
            self.completed.next < before.messages && self.delivered.next < before.messages,
            "their numbers have wrapped"
        );
        assert!(got.packets > 1 << 32 && sent.packets_acked <= got.packets && got.bytes <= sent.bytes_sent);
        assert_eq!((got.invalid, got.out_of_window, sent.invalid_acks, sent.invalid_echoes), (0, 0, 0, 0));
        assert!(got.bytes > 10_000_000_000_000 && sent.retransmits >= self.frames / 1_100);
        std::println!("{} frames, {} messages, {} bytes", self.frames, got.messages, got.bytes - before.bytes);
    }
}
