//! A sender and a receiver over a channel, by the test's clock. The channel loses, trims, marks,
//! duplicates and delays.

use std::collections::{BTreeMap, VecDeque};
use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use rand_core::RngCore;
use spray_wire::{Ack, Data, Nack, ProbeAck, Pull, PullRequest};

use super::*;
use crate::cc::{CreditBound, PullPacer};
use crate::path::{Balancer, Ev};
use crate::rng::{self, Rng};
use crate::tests::agenda::Agenda;

/// The behaviour of the channel. Shares are per 1,000 frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Channel {
    /// Share of the sender's frames that is lost.
    pub loss: u32,
    /// Share of the receiver's frames that is lost.
    pub ack_loss: u32,
    /// Share of frames that arrives twice.
    pub duplicate: u32,
    /// Share of data packets that is trimmed.
    pub trim: u32,
    /// Share of data packets, probes and trailers that is marked.
    pub mark: u32,
    /// One-way delay of all frames.
    pub delay_ps: u64,
    /// Maximum random delay added to the sender's frames.
    pub jitter_ps: u64,
    /// Maximum random delay added to the receiver's frames.
    pub ack_jitter_ps: u64,
    /// Whether packets with one entropy value arrive in the order in which they were sent. Trimmed
    /// packets overtake.
    pub in_order: bool,
    /// Time between two frames of the sender.
    pub gap_ps: u64,
    /// The time after which the application consumes a message.
    pub lag_ps: u64,
    /// When `dead_paths` of the eight paths lose everything.
    pub outage: Option<Outage>,
    pub dead_paths: u32,
}

/// The time from `at_ps` to `until_ps`.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    pub at_ps: u64,
    pub until_ps: u64,
}

#[derive(Clone, Debug)]
enum Frame {
    Data(Arrival),
    Ack(Ack),
    Nack(Nack),
    Probe(u64, Time, Ev),
    ProbeAck(ProbeAck),
    Pull(Pull),
    PullRequest(PullRequest),
}

/// Counts of data frames, including the trailers of Ordered Chaos.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChannelCounts {
    pub sent: u64,
    pub lost: u64,
    /// Those of `lost` that were packets and not trailers.
    pub packets_lost: u64,
    pub duplicated: u64,
}

/// Both ends, the channel between them and the messages to send.
pub struct Pair {
    pub config: FlowConfig,
    pub sender: Sender,
    pub receiver: Receiver,
    pub now: Time,
    pub channel_counts: ChannelCounts,
    /// Messages that the receiver completed, with their bytes.
    pub completed: Vec<(u32, u64)>,
    /// Messages that were reported complete to the sender.
    pub delivered: Vec<u32>,
    pub gave_up: bool,
    coded: bool,
    channel: Channel,
    rng: Rng,
    wire: Agenda<Frame>,
    /// When the last packet of each entropy value arrives.
    busy_until: BTreeMap<Ev, Time>,
    /// Grants credit for the receiver's host, on request.
    pacer: PullPacer,
    pull_entry: Option<u32>,
    pub bound: CreditBound,
    messages: Vec<u64>,
    queued: usize,
    /// The number of the first message.
    pub first_message: u32,
    buffers: BTreeMap<u32, Vec<u8>>,
    /// The times at which the application consumes bytes, and their numbers.
    consumption: VecDeque<(Time, u64)>,
}

/// More than any connection needs for its next packet: without progress it gives up after
/// `give_up_ps`.
const MAX_STEPS: u32 = 2_000_000;
/// The maximum number of wake-ups at one time without progress.
const MAX_IDLE_WAKES: u32 = 1000;

/// Returns the byte at `offset` of `message`.
fn byte(message: u32, offset: u64) -> u8 {
    (u64::from(message).wrapping_mul(0x9e37_79b9) ^ offset.wrapping_mul(0x85eb_ca6b) >> 7) as u8
}

impl Pair {
    /// Makes both ends use the ideal erasure code.
    pub fn erasure_coded(self) -> Self {
        Self { sender: self.sender.erasure_coded(), receiver: self.receiver.erasure_coded(), coded: true, ..self }
    }

    pub fn new(config: FlowConfig, channel: Channel, messages: &[u64], seed: u64) -> Self {
        let mut rng = rng::stream(seed, 0);
        Self {
            sender: Sender::new(&config, config.window_packets, config.max_data_bytes, &mut rng),
            receiver: Receiver::new(&config),
            now: Time::ZERO,
            channel_counts: ChannelCounts::default(),
            completed: vec![],
            delivered: vec![],
            gave_up: false,
            coded: false,
            channel,
            rng,
            wire: Agenda::default(),
            busy_until: BTreeMap::new(),
            pacer: PullPacer::new(config.path.link_bps, config.cc.eqds().pull_rate),
            pull_entry: None,
            bound: config.clamped().credit_bound(),
            messages: messages.to_vec(),
            queued: 0,
            first_message: 0,
            buffers: BTreeMap::new(),
            consumption: VecDeque::new(),
            config,
        }
    }

    /// Starts the counters as if this had been sent before.
    pub fn start_after(&mut self, before: &Before) {
        self.sender.start_after(before);
        self.receiver.start_after(before);
        self.first_message = before.messages;
    }

    /// Sets up to 20 paths, as routing would.
    pub fn name_paths(&mut self) {
        let count = self.rng.next_u32() % 20;
        let evs = u32::from(self.config.path.evs);
        let mut draw = |_| Ev::new((self.rng.next_u32() % evs) as u16);
        let paths: Vec<_> = (0..count).map(|_| core::array::from_fn(&mut draw)).collect();
        self.sender.on_reachable(Time::ZERO, &paths);
    }

    /// Runs until every message is delivered or the sender gives up.
    ///
    /// # Errors
    /// What is stuck: nothing would wake the sender, or waking it changes nothing.
    pub fn run(&mut self) -> Result<(), String> {
        let (mut idle_wakes, mut steps, mut acked) = (0, 0, 0);
        while steps < MAX_STEPS {
            self.send_all()?;
            if self.gave_up || self.delivered.len() == self.messages.len() {
                return Ok(());
            }
            // At the minimum rate many probes are sent between two packets.
            let packets_acked = self.sender.stats().packets_acked;
            steps = if packets_acked == acked { steps + 1 } else { 0 };
            acked = packets_acked;
            let next = self.next().ok_or_else(|| format!("nothing wakes it: {}", self.state()))?;
            idle_wakes = if next > self.now { 0 } else { idle_wakes + 1 };
            if idle_wakes > MAX_IDLE_WAKES {
                return Err(format!("woken for {next:?} again and again: {}", self.state()));
            }
            self.now = next.max(self.now);
            self.advance();
        }
        Err(format!("never ends: {}", self.state()))
    }

    /// Delivers all frames in flight.
    pub fn drain(&mut self) {
        while let Some(next) = self.wire.next() {
            self.now = next.max(self.now);
            self.advance();
        }
    }

    fn state(&self) -> String {
        let Self { now, sender, delivered, queued, messages, .. } = self;
        let (delivered, all) = (delivered.len(), messages.len());
        let (in_flight, stats) = (sender.in_flight_bytes(), sender.stats());
        format!(
            "at {now:?}, {delivered} of {queued} messages and of {all} in all, {in_flight} bytes in flight, {stats:?}"
        )
    }

    fn next(&self) -> Option<Time> {
        let consumption = self.consumption.front().map(|(at, _)| *at);
        let ends = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
        [self.wire.next(), consumption, self.pacer.poll_timeout()].into_iter().chain(ends).flatten().min()
    }

    fn advance(&mut self) {
        while let Some(frame) = self.wire.take_due(self.now) {
            self.deliver(frame);
        }
        self.sender.on_timeout(self.now, &mut ());
        self.receiver.on_timeout(self.now);
        while let Some((_, pull)) = self.pacer.poll_pull(self.now) {
            self.send_back(Frame::Pull(pull));
        }
        self.answer();
        self.take_events();
    }

    fn deliver(&mut self, frame: Frame) {
        let now = self.now;
        match frame {
            Frame::Ack(ack) => self.sender.on_ack(now, &ack, &mut ()),
            Frame::Nack(nack) => self.sender.on_nack(now, &nack, &mut ()),
            Frame::Pull(pull) => self.sender.on_pull(now, &pull),
            Frame::ProbeAck(ack) => self.sender.on_probe_ack(now, &ack, &mut ()),
            Frame::Probe(token, timestamp, ev) => {
                let port = ev.port(self.config.path.evs.into());
                let marked = self.happens(self.channel.mark);
                self.send_back(Frame::ProbeAck(ProbeAck { token, timestamp, port, marked, ..ProbeAck::default() }));
            }
            Frame::PullRequest(request) => self.grant(request),
            Frame::Data(arrival) => self.receive(&arrival),
        }
    }

    fn receive(&mut self, arrival: &Arrival) {
        let accept = self.receiver.on_data(self.now, arrival);
        assert!(!matches!(accept, DataOutcome::Invalid), "our own sender's frames are valid: {arrival:?}");
        if let DataOutcome::New { place: Some(_) } = accept {
            self.place(&arrival.data);
        }
        if let Some(entry) = self.pull_entry {
            self.pacer.on_arrival(self.now, entry, self.receiver.credit_back(arrival, accept));
            self.pacer.on_target(self.now, entry, self.receiver.pull_target());
        }
        self.answer();
    }

    fn place(&mut self, data: &Data) {
        let buffer = self.buffers.entry(data.message).or_insert_with(|| vec![0; data.message_bytes as usize]);
        let payload = &mut buffer[data.offset as usize..][..usize::from(data.payload_bytes)];
        payload.iter_mut().zip(data.offset..).for_each(|(place, offset)| *place = byte(data.message, offset));
    }

    fn grant(&mut self, request: PullRequest) {
        self.receiver.on_pull_request(&request);
        let pull_bytes = u64::from(self.config.packet_bytes());
        let entry = *self.pull_entry.get_or_insert_with(|| self.pacer.open(0, pull_bytes, self.bound));
        self.pacer.on_request(self.now, entry, request.pulled_bytes);
        self.pacer.on_target(self.now, entry, self.receiver.pull_target());
    }

    /// Sends the receiver's frames, and processes the messages that it completed.
    fn answer(&mut self) {
        while let Some((message, bytes)) = self.receiver.message_completed() {
            self.complete(message, bytes);
        }
        while let Some(&(at, bytes)) = self.consumption.front()
            && at <= self.now
        {
            self.consumption.pop_front();
            self.receiver.consumed(bytes);
        }
        while let Some(ack) = self.receiver.poll_ack() {
            self.send_back(Frame::Ack(ack));
        }
        while let Some(nack) = self.receiver.poll_nack() {
            self.send_back(Frame::Nack(nack));
        }
    }

    fn complete(&mut self, message: u32, bytes: u64) {
        let buffer = self.buffers.remove(&message).unwrap_or_default();
        // With the erasure code a message completes on any of its packets.
        if !self.coded {
            assert_eq!(buffer.len() as u64, bytes);
            assert!(buffer.iter().zip(0..).all(|(&found, offset)| found == byte(message, offset)), "message {message}");
        }
        assert!(self.completed.iter().all(|(earlier, _)| *earlier != message), "completed twice");
        self.completed.push((message, bytes));
        self.consumption.push_back((self.now.after(self.channel.lag_ps), bytes));
    }

    fn send_all(&mut self) -> Result<(), String> {
        loop {
            while let Some(bytes) = self.messages.get(self.queued)
                && self.sender.send_message(self.first_message.wrapping_add(self.queued as u32), *bytes).is_ok()
            {
                self.queued += 1;
            }
            self.transmit_all()?;
            self.take_events();
            // Messages that are delivered at once make room for more.
            if self.queued == self.messages.len() || self.delivered.len() < self.queued || self.gave_up {
                return Ok(());
            }
        }
    }

    fn transmit_all(&mut self) -> Result<(), String> {
        for sent in 0.. {
            let Some(transmit) = self.poll() else { break };
            if sent > MAX_STEPS {
                return Err(format!("sends without end: {transmit:?}, {}", self.state()));
            }
            self.transmit(transmit)?;
            self.now = self.now.after(self.channel.gap_ps);
        }
        Ok(())
    }

    /// Polls one frame and checks that the windows allowed it.
    fn poll(&mut self) -> Option<Transmit> {
        let before_bytes = self.sender.in_flight_bytes();
        let window_bytes = self.sender.window_bytes();
        let transmit = self.sender.poll_transmit(self.now, &mut self.rng, &mut ())?;
        let after_bytes = self.sender.in_flight_bytes();
        //= docs/specs/transport.md#TRN-3 bytes in flight stay within the window
        assert!(self.sender.stats().bytes_sent <= self.receiver.max_data());
        if let Transmit::Data { data, .. } = transmit
            && !data.trailer
        {
            let window_packets = u64::from(self.config.window_packets);
            assert!(data.psn == u64::MAX || data.psn < self.receiver.cumulative() + window_packets);
            assert!(self.admits_itself() || after_bytes <= window_bytes || before_bytes == 0);
        }
        Some(transmit)
    }

    /// Whether the balancer admits packets beyond the window.
    fn admits_itself(&self) -> bool {
        self.sender.balancer().features().delays_packets
    }

    fn take_events(&mut self) {
        while let Some(event) = self.sender.poll_event() {
            match event {
                SenderEvent::MessageDelivered { message, .. } => self.delivered.push(message),
                SenderEvent::Failed => self.gave_up = true,
            }
        }
    }

    fn transmit(&mut self, transmit: Transmit) -> Result<(), String> {
        let (Transmit::Probe { ev, .. } | Transmit::PullRequest { ev, .. } | Transmit::Data { ev, .. }) = transmit;
        if ev.index() >= self.config.path.evs {
            return Err(format!("entropy value {ev:?} of {}", self.config.path.evs));
        }
        let lost = self.is_dead(ev) || self.happens(self.channel.loss);
        match transmit {
            Transmit::Data { data, .. } => self.send_data(data, ev, lost),
            Transmit::Probe { probe, .. } => self.send(Frame::Probe(probe.token, probe.timestamp, ev), lost),
            Transmit::PullRequest { request, .. } => self.send(Frame::PullRequest(request), lost),
        }
        Ok(())
    }

    fn send_data(&mut self, data: Data, ev: Ev, lost: bool) {
        let port = ev.port(self.config.path.evs.into());
        let can_be_trimmed = !(self.channel.in_order && data.trailer);
        let (marked, trimmed) = (self.happens(self.channel.mark), can_be_trimmed && self.happens(self.channel.trim));
        let frame = Frame::Data(Arrival {
            data,
            port,
            marked,
            hops: 1 + (ev.index() % 4) as u8,
            trimmed,
            ..Arrival::default()
        });
        self.channel_counts.sent += 1;
        self.channel_counts.lost += u64::from(lost);
        self.channel_counts.packets_lost += u64::from(lost && !data.trailer);
        if !self.channel.in_order {
            self.channel_counts.duplicated += self.put(frame, lost, self.channel.jitter_ps);
        } else if trimmed {
            self.put(frame, lost, 0);
        } else if !lost {
            let delay_ps = self.delay_ps(self.channel.jitter_ps);
            let busy_until = self.busy_until.entry(ev).or_default();
            *busy_until = busy_until.next().max(self.now.after(delay_ps));
            self.wire.put(*busy_until, frame);
        }
    }

    fn is_dead(&self, ev: Ev) -> bool {
        let path = u32::from(ev.index()).wrapping_mul(0x9e37_79b9) >> 29;
        let out = |outage: Outage| (at(outage.at_ps)..at(outage.until_ps)).contains(&self.now);
        self.channel.outage.is_some_and(out) && path < self.channel.dead_paths
    }

    fn send(&mut self, frame: Frame, lost: bool) {
        self.put(frame, lost, self.channel.jitter_ps);
    }

    fn send_back(&mut self, frame: Frame) {
        let lost = self.happens(self.channel.ack_loss);
        self.put(frame, lost, self.channel.ack_jitter_ps);
    }

    /// Puts a frame on the wire, and returns the number of copies.
    fn put(&mut self, frame: Frame, lost: bool, jitter_ps: u64) -> u64 {
        let copies = u64::from(self.happens(self.channel.duplicate));
        for _ in 0..copies + u64::from(!lost) {
            let delay_ps = self.delay_ps(jitter_ps);
            self.wire.put(self.now.after(delay_ps), frame.clone());
        }
        copies
    }

    fn delay_ps(&mut self, jitter_ps: u64) -> u64 {
        self.channel.delay_ps + self.rng.next_u64() % (jitter_ps + 1)
    }

    fn happens(&mut self, share: u32) -> bool {
        self.rng.next_u32() % 1000 < share
    }
}
