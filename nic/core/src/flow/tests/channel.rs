//! Two parties over a hostile channel in virtual time: seeded loss, duplication, reordering, trims, lost ACKs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use rand_core::RngCore;
use spray_wire::{Ack, Data, Nack, Pull, PullRequest, ev_port};

use super::*;
use crate::cc::PullPacer;
use crate::path::Ev;
use crate::rng::{self, Rng};

/// What the channel does to a frame, in shares of 1,000, and how long it takes.
#[derive(Clone, Copy, Debug)]
struct Channel {
    loss: u32,
    ack_loss: u32,
    duplicate: u32,
    trim: u32,
    mark: u32,
    delay_ps: u64,
    jitter_ps: u64,
    /// How long the application takes to consume a message.
    lag_ps: u64,
}

const CLEAN: Channel =
    Channel { loss: 0, ack_loss: 0, duplicate: 0, trim: 0, mark: 0, delay_ps: 5 * US, jitter_ps: 0, lag_ps: 0 };

#[derive(Clone, Debug)]
enum Frame {
    Data(Arrival, Vec<u8>),
    Ack(Ack),
    Nack(Nack),
    Pull(Pull),
    PullRequest(PullRequest),
}

/// What the channel did, for the conservation of counts.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    sent: u64,
    lost: u64,
    duplicated: u64,
}

struct Simulation {
    config: FlowConfig,
    channel: Channel,
    now_ps: u64,
    sender: Sender,
    receiver: Receiver,
    /// What the receiver's host grants, once it is asked.
    pacer: PullPacer,
    pull_entry: Option<u32>,
    rng: Rng,
    wire: BinaryHeap<Reverse<(u64, u64)>>,
    frames: BTreeMap<u64, Frame>,
    next_frame: u64,
    data_fate: Fate,
    /// Messages to send, in order.
    queue: Vec<u64>,
    queued: usize,
    buffers: BTreeMap<u32, Vec<u8>>,
    completed: Vec<u32>,
    /// When bytes are consumed, in order.
    consumption: VecDeque<(u64, u64)>,
    delivered: Vec<u32>,
}

/// The byte at `offset` of `message`.
fn byte(message: u32, offset: u64) -> u8 {
    (u64::from(message).wrapping_mul(0x9e37_79b9) ^ offset.wrapping_mul(0x85eb_ca6b) >> 7) as u8
}

impl Simulation {
    fn new(config: FlowConfig, channel: Channel, messages: &[u64], seed: u64) -> Self {
        let mut rng = rng::stream(seed, 0);
        Self {
            config,
            channel,
            now_ps: 0,
            sender: Sender::new(&config, config.window_packets, config.max_data_bytes, &mut rng),
            receiver: Receiver::new(&config),
            pacer: PullPacer::new(config.cc.link_bps, 990),
            pull_entry: None,
            rng,
            wire: BinaryHeap::new(),
            frames: BTreeMap::new(),
            next_frame: 0,
            data_fate: Fate::default(),
            queue: messages.to_vec(),
            queued: 0,
            buffers: BTreeMap::new(),
            completed: vec![],
            consumption: VecDeque::new(),
            delivered: vec![],
        }
    }

    /// Runs until every message is delivered, and checks what must hold at the end.
    fn run(mut self) -> Self {
        let limit_ps = 20_000_000 * US;
        loop {
            self.send_all();
            if self.delivered.len() == self.queue.len() && self.wire.is_empty() {
                break;
            }
            let next_ps = self.next_ps().expect("nothing under way and not done");
            // A deadline in the past that nothing clears would spin here for ever.
            self.now_ps = next_ps.max(self.now_ps);
            assert!(self.now_ps < limit_ps, "not done after 20 s: {:?}", self.sender.stats());
            self.advance();
        }
        self.check();
        self
    }

    fn next_ps(&self) -> Option<u64> {
        let arrival_ps = self.wire.peek().map(|Reverse((at_ps, _))| *at_ps);
        let consumption_ps = self.consumption.front().map(|(at_ps, _)| *at_ps);
        let pull_ps = self.pacer.poll_timeout();
        [arrival_ps, consumption_ps, pull_ps, self.sender.poll_timeout(), self.receiver.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    fn advance(&mut self) {
        while let Some(&Reverse((at_ps, id))) = self.wire.peek()
            && at_ps <= self.now_ps
        {
            self.wire.pop();
            let frame = self.frames.remove(&id).unwrap();
            self.deliver(frame);
        }
        self.sender.on_timeout(self.now_ps, &mut ());
        self.receiver.on_timeout(self.now_ps);
        while let Some((_, pull)) = self.pacer.poll_pull(self.now_ps) {
            self.send(Frame::Pull(pull), self.channel.ack_loss);
        }
        self.answer();
    }

    fn deliver(&mut self, frame: Frame) {
        match frame {
            Frame::Ack(ack) => self.sender.on_ack(self.now_ps, &ack, &mut ()),
            Frame::Nack(nack) => self.sender.on_nack(self.now_ps, &nack, &mut ()),
            Frame::Pull(pull) => self.sender.on_pull(self.now_ps, &pull),
            Frame::PullRequest(request) => self.grant(request),
            Frame::Data(arrival, payload) => {
                let accept = self.receiver.on_data(self.now_ps, &arrival);
                if accept == (Accept::New { place: true }) {
                    self.place(&arrival.data, &payload);
                }
                if let Some(entry) = self.pull_entry {
                    self.pacer.on_target(self.now_ps, entry, self.receiver.pull_target());
                }
                self.answer();
            }
        }
    }

    fn grant(&mut self, request: PullRequest) {
        self.receiver.on_pull_request(&request);
        let pull_bytes = u64::from(self.config.packet_bytes());
        let entry = *self.pull_entry.get_or_insert_with(|| self.pacer.open(0, pull_bytes));
        self.pacer.on_request(self.now_ps, entry, request.pulled_bytes);
        self.pacer.on_target(self.now_ps, entry, self.receiver.pull_target());
    }

    fn place(&mut self, data: &Data, payload: &[u8]) {
        let buffer = self.buffers.entry(data.message).or_insert_with(|| vec![0; data.message_bytes as usize]);
        buffer[data.offset as usize..][..payload.len()].copy_from_slice(payload);
    }

    fn consume(&mut self) {
        while let Some(&(at_ps, bytes)) = self.consumption.front()
            && at_ps <= self.now_ps
        {
            self.consumption.pop_front();
            self.receiver.consumed(bytes);
        }
    }

    /// Sends what the receiver has to say, and takes what it completed.
    fn answer(&mut self) {
        while let Some((message, bytes)) = self.receiver.message_completed() {
            let buffer = self.buffers.remove(&message).unwrap_or_default();
            assert_eq!(buffer.len() as u64, bytes);
            assert!(buffer.iter().enumerate().all(|(i, &b)| b == byte(message, i as u64)), "message {message}");
            assert!(!self.completed.contains(&message), "completed twice");
            self.completed.push(message);
            self.consumption.push_back((self.now_ps + self.channel.lag_ps, bytes));
        }
        self.consume();
        while let Some(ack) = self.receiver.poll_ack(self.now_ps) {
            self.send(Frame::Ack(ack), self.channel.ack_loss);
        }
        while let Some(nack) = self.receiver.poll_nack() {
            self.send(Frame::Nack(nack), self.channel.ack_loss);
        }
    }

    fn send_all(&mut self) {
        while self.queued < self.queue.len()
            && self.sender.send_message(self.queued as u32, self.queue[self.queued]).is_ok()
        {
            self.queued += 1;
        }
        while let Some((data, ev)) = self.poll_data() {
            let payload = (0..u64::from(data.payload_bytes)).map(|i| byte(data.message, data.offset + i)).collect();
            let port = ev_port(ev, self.config.path.evs);
            let marked = self.happens(self.channel.mark);
            let trimmed = self.happens(self.channel.trim);
            let arrival = Arrival { data, port, marked, hops: 3, trimmed };
            let fate = self.send(Frame::Data(arrival, payload), self.channel.loss);
            self.data_fate.sent += fate.sent;
            self.data_fate.lost += fate.lost;
            self.data_fate.duplicated += fate.duplicated;
        }
        while let Some(event) = self.sender.poll_event() {
            match event {
                SenderEvent::MessageDelivered { message, .. } => self.delivered.push(message),
                SenderEvent::Failed => panic!("failed: {:?}", self.sender.stats()),
            }
        }
        if self.queued < self.queue.len() && self.delivered.len() == self.queued {
            self.send_all();
        }
    }

    /// Polls one data packet and checks that the windows allowed it.
    fn poll_data(&mut self) -> Option<(Data, Ev)> {
        let before_bytes = self.sender.in_flight_bytes();
        let window_bytes = self.sender.window_bytes();
        let (data, ev) = loop {
            match self.sender.poll_transmit(self.now_ps, &mut self.rng, &mut ())? {
                Transmit::Data { data, ev } => break (data, ev),
                Transmit::PullRequest { request, .. } => {
                    self.send(Frame::PullRequest(request), self.channel.ack_loss);
                }
                Transmit::Probe { .. } => panic!("no probes are configured"),
            }
        };
        let after_bytes = self.sender.in_flight_bytes();
        //= docs/specs/transport.md#TRN-3
        assert!(after_bytes <= window_bytes || before_bytes == 0);
        assert!(self.sender.stats().bytes_sent <= self.receiver.max_data());
        assert!(data.psn == u64::MAX || data.psn < self.receiver.cumulative() + u64::from(self.config.window_packets));
        Some((data, ev))
    }

    fn send(&mut self, frame: Frame, loss: u32) -> Fate {
        let lost = self.happens(loss);
        let duplicated = self.happens(self.channel.duplicate);
        let copies = u64::from(!lost) + u64::from(duplicated);
        for _ in 0..copies {
            let delay_ps = self.channel.delay_ps + self.rng.next_u64() % (self.channel.jitter_ps + 1);
            self.wire.push(Reverse((self.now_ps + delay_ps, self.next_frame)));
            self.frames.insert(self.next_frame, frame.clone());
            self.next_frame += 1;
        }
        Fate { sent: 1, lost: u64::from(lost), duplicated: u64::from(duplicated) }
    }

    fn happens(&mut self, share: u32) -> bool {
        self.rng.next_u32() % 1000 < share
    }

    fn check(&self) {
        let packets: u64 =
            self.queue.iter().map(|bytes| bytes.div_ceil(u64::from(self.config.payload_bytes)).max(1)).sum();
        let (sent, received) = (self.sender.stats(), self.receiver.stats());
        assert!(self.sender.is_idle() && !self.sender.has_failed());
        assert_eq!(self.sender.in_flight_bytes(), 0);
        //= docs/specs/transport.md#TRN-24
        //= docs/specs/transport.md#TRN-52
        assert_eq!(self.completed.len(), self.queue.len());
        assert_eq!(self.delivered.len(), self.queue.len());
        assert_eq!((sent.messages_delivered, received.messages), (self.queue.len() as u64, self.queue.len() as u64));
        assert_eq!((sent.packets_acked, received.packets), (packets, packets));
        let bytes: u64 = self.queue.iter().sum();
        assert_eq!((sent.bytes_sent, sent.bytes_acked, received.bytes), (bytes, bytes, bytes));
        assert_eq!(sent.packets_sent, packets + sent.retransmits);
        assert_eq!(sent.retransmits, sent.timeouts + sent.sack_gaps + sent.nacks - sent.late_acks);
        let fate = self.data_fate;
        assert_eq!(fate.sent, sent.packets_sent + sent.grant_requests);
        assert_eq!(received.frames, fate.sent - fate.lost + fate.duplicated);
        let judged = received.packets + received.duplicates + received.trimmed + received.out_of_window;
        assert_eq!(received.frames, judged + received.invalid);
        assert_eq!((received.invalid, sent.invalid_acks, sent.invalid_echoes, sent.foreign_evs), (0, 0, 0, 0));
        assert_eq!(received.nacks + received.nacks_dropped, received.trimmed);
    }
}

#[test]
fn a_clean_channel_needs_no_retransmission() {
    for ack_every in [1, 2, 4, 8, 16] {
        let config = FlowConfig { ack_every, ..config() };
        let done = Simulation::new(config, CLEAN, &[1_000_000, 0, 1, 999, 1000, 1001], 1).run();
        assert_eq!(done.sender.stats().retransmits, 0);
        assert_eq!(done.receiver.stats().duplicates, 0);
        // The channel has no serialisation: a window of 17 packets a round trip.
        assert!(done.now_ps < 1_004 / 17 * 11 * US + 100 * US, "{ack_every}: {} us", done.now_ps / US);
    }
}

//= docs/specs/transport.md#TRN-35
#[test]
fn reordering_alone_hardly_ever_looks_like_loss() {
    let channel = Channel { jitter_ps: 3 * US, ..CLEAN };
    let done = Simulation::new(config(), channel, &[3_000_000], 2).run();
    assert!(done.receiver.stats().reordered > 1000);
    let spurious = done.sender.stats().retransmits;
    assert!(spurious < 30, "{spurious} of 3000 although everything arrived within 16 us");
}

#[test]
fn gaps_are_found_before_the_timeout() {
    let channel = Channel { loss: 10, jitter_ps: US, ..CLEAN };
    let with = Simulation::new(config(), channel, &[2_000_000], 3).run();
    let without = Simulation::new(FlowConfig { sack_gap_packets: None, ..config() }, channel, &[2_000_000], 3).run();
    assert!(with.sender.stats().sack_gaps > 10 && without.sender.stats().sack_gaps == 0);
    assert!(with.now_ps < without.now_ps, "{} against {} us", with.now_ps / US, without.now_ps / US);
}

#[test]
fn trims_are_repaired_without_timeouts() {
    let channel = Channel { trim: 200, ..CLEAN };
    let done = Simulation::new(config(), channel, &[1_000_000], 4).run();
    let stats = done.sender.stats();
    assert_eq!((stats.timeouts, stats.sack_gaps), (0, 0));
    assert!(stats.nacks > 150 && stats.nacks == stats.retransmits);
}

#[test]
fn many_small_messages_over_a_bad_channel() {
    let channel =
        Channel { loss: 200, ack_loss: 200, duplicate: 100, trim: 50, mark: 100, jitter_ps: 20 * US, ..CLEAN };
    let messages: Vec<u64> = (0..3000).map(|i| i * 7 % 3001).collect();
    Simulation::new(config(), channel, &messages, 5).run();
}

//= docs/specs/transport.md#TRN-57
#[test]
fn grants_lost_with_their_acks_are_asked_for() {
    let mut config = config();
    config.max_data_bytes = 3000;
    config.max_message_bytes = 3000;
    let channel = Channel { ack_loss: 500, loss: 100, lag_ps: 30 * US, ..CLEAN };
    let done = Simulation::new(config, channel, &[3000; 200], 6).run();
    assert!(done.sender.stats().grant_requests > 0);
}

/// Requests and pulls go the way of acknowledgements: half of them do not arrive.
//= docs/specs/eqds.md#EQDS-14
#[test]
fn credit_lost_is_asked_for_again() {
    let mut config = config();
    config.cc.kind = CcKind::Eqds;
    let channel = Channel { ack_loss: 500, loss: 100, ..CLEAN };
    let done = Simulation::new(config, channel, &[30_000; 20], 7).run();
    let stats = done.sender.stats();
    assert!(stats.pull_requests > 5 && stats.pulls > 100, "{stats:?}");
}

//= docs/specs/eqds.md#EQDS-6
//= docs/specs/eqds.md#EQDS-11
#[test]
fn credit_paces_a_clean_channel_at_the_link_rate() {
    let mut config = config();
    config.cc.kind = CcKind::Eqds;
    let done = Simulation::new(config, CLEAN, &[1_000_000], 8).run();
    // 1,000 packets of 1,100 bytes at 99 % of 10 Gb/s, and two round trips: to ask, and for the last acknowledgement.
    let ideal_ps = 1_000 * 1_100 * 8 * 100 / 99 * 100;
    assert!(done.now_ps < ideal_ps + 21 * US, "{} us against {}", done.now_ps / US, ideal_ps / US);
    let stats = done.sender.stats();
    assert_eq!((stats.retransmits, stats.timeouts), (0, 0));
    // The first 13 packets went without credit; one request for each half of three bandwidth-delay products, about.
    assert_eq!(stats.pulls, 1_000 - 12);
    assert!((30..70).contains(&stats.pull_requests), "{}", stats.pull_requests);
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
            lag_ps: lag * US,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Whatever the channel does: every message arrives byte-exact exactly once, in bounded time, and all counts agree.
    #[test]
    fn any_channel_any_window(
        channel in channel(),
        seed in any::<u64>(),
        (ack_every, window, gap) in (1u32..=16, 0u32..=10, prop::option::of(1u32..20)),
        (cc_packets, grant, cc) in (1u64..200, 2_500u64..200_000, 0..3),
        messages in prop::collection::vec(0u64..20_000, 1..60),
    ) {
        let mut config =
            FlowConfig { ack_every, ack_evs: ack_every, window_packets: 1 << window, sack_gap_packets: gap, ..config() };
        config.give_up_ps = 1_000_000 * US;
        config.max_data_bytes = grant.max(20_000);
        config.max_message_bytes = 20_000;
        config.cc.initial_window_bytes = cc_packets * 1100;
        config.cc.max_window_bytes = cc_packets * 1100;
        match cc {
            0 => config.cc = fixed(cc_packets * 1100, 1_000_000_000),
            1 => {
                config.cc.kind = CcKind::Eqds;
                config.cc.schemes.eqds.speculative_bytes = (cc_packets - 1) * 1100;
                config.cc.schemes.eqds.request_bytes = cc_packets * 500;
            }
            _ => {}
        }
        Simulation::new(config, channel, &messages, seed).run();
    }
}
