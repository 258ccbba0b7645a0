//! A sender and a receiver over a channel that loses, trims, marks, duplicates, reorders and has dead paths.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use rand_core::RngCore;
use spray_core::flow::{Accept, Arrival, FlowConfig, Receiver, Sender, SenderEvent, Transmit};
use spray_core::path::Ev;
use spray_core::rng::{self, Rng};
use spray_wire::{Ack, Nack, ProbeAck, Pull, PullRequest, ev_port};

/// What the channel does to a frame, in shares of 1,000, and how long it takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Channel {
    pub loss: u32,
    /// Of what comes back.
    pub ack_loss: u32,
    pub duplicate: u32,
    pub trim: u32,
    pub mark: u32,
    pub delay_ps: u64,
    pub jitter_ps: u64,
    /// How long the application takes to consume a message.
    pub lag_ps: u64,
    /// When `dead_paths` of the eight paths lose everything.
    pub outage: Option<Outage>,
    pub dead_paths: u32,
}

/// A time without some paths.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    pub at_ps: u64,
    pub until_ps: u64,
}

/// How it ended.
pub struct End {
    pub gave_up: bool,
}

#[derive(Clone, Debug)]
enum Frame {
    Data(Arrival),
    Ack(Ack),
    Nack(Nack),
    Probe(u64, u64, Ev),
    ProbeAck(ProbeAck),
    Pull(Pull),
    PullRequest(PullRequest),
}

/// Both ends and what is between them.
pub struct Pair {
    config: FlowConfig,
    channel: Channel,
    now_ps: u64,
    sender: Sender,
    receiver: Receiver,
    rng: Rng,
    wire: BinaryHeap<Reverse<(u64, u64)>>,
    frames: BTreeMap<u64, Frame>,
    next_frame: u64,
    messages: VecDeque<u64>,
    queued: u32,
    delivered: u32,
    /// When bytes are consumed, in order.
    consumption: VecDeque<(u64, u64)>,
    /// Credit granted, and when the next is.
    credit: u64,
    pull_at_ps: Option<u64>,
    failed: bool,
}

/// More than any connection needs: without progress it ends after `give_up_ps`.
const MAX_STEPS: u32 = 2_000_000;
/// Wake-ups at one time that a sender may need to say all that it has to.
const MAX_IDLE_WAKES: u32 = 1000;
/// Between two grants of credit.
const PULL_PS: u64 = 1_000_000;

impl Pair {
    pub fn new(config: FlowConfig, channel: Channel, messages: &[u64], seed: u64) -> Self {
        let mut rng = rng::stream(seed, 0);
        let mut sender = Sender::new(&config, config.window_packets, config.max_data_bytes, &mut rng);
        if seed.is_multiple_of(3) {
            let paths: Vec<Ev> = (0..rng.next_u32() % 20).map(|_| (rng.next_u32() % config.path.evs) as Ev).collect();
            sender.on_reachable(0, &paths);
        }
        Self {
            sender,
            receiver: Receiver::new(&config),
            config,
            channel,
            now_ps: 0,
            rng,
            wire: BinaryHeap::new(),
            frames: BTreeMap::new(),
            next_frame: 0,
            messages: messages.iter().copied().collect(),
            queued: 0,
            delivered: 0,
            consumption: VecDeque::new(),
            credit: 0,
            pull_at_ps: None,
            failed: false,
        }
    }

    /// Runs until everything is delivered or the sender gives up.
    ///
    /// # Errors
    /// What is stuck: nothing would ever wake the sender, or waking it changes nothing.
    pub fn run(mut self) -> Result<End, String> {
        let mut idle_wakes = 0;
        for _ in 0..MAX_STEPS {
            self.send_all()?;
            if self.failed || (self.messages.is_empty() && self.delivered == self.queued) {
                return Ok(End { gave_up: self.failed });
            }
            let wake_ps = self.sender.poll_timeout();
            if wake_ps.is_none() && self.wire.is_empty() && self.consumption.is_empty() && self.pull_at_ps.is_none() {
                return Err(format!("nothing wakes it: {}", self.state()));
            }
            let next_ps = self.next_ps(wake_ps).unwrap_or(self.now_ps);
            idle_wakes = if next_ps > self.now_ps { 0 } else { idle_wakes + 1 };
            if idle_wakes > MAX_IDLE_WAKES {
                return Err(format!("woken for {wake_ps:?} again and again: {}", self.state()));
            }
            self.now_ps = next_ps.max(self.now_ps);
            self.advance();
        }
        Err(format!("never ends: {}", self.state()))
    }

    fn state(&self) -> String {
        let Self { now_ps, sender, delivered, queued, messages, .. } = self;
        let (in_flight, stats) = (sender.in_flight_bytes(), sender.stats());
        let left = messages.len();
        format!(
            "at {now_ps} ps, {delivered}/{queued} messages and {left} to come, {in_flight} bytes in flight, {stats:?}"
        )
    }

    fn next_ps(&self, wake_ps: Option<u64>) -> Option<u64> {
        let arrival_ps = self.wire.peek().map(|Reverse((at_ps, _))| *at_ps);
        let consumption_ps = self.consumption.front().map(|(at_ps, _)| *at_ps);
        let all = [arrival_ps, consumption_ps, self.pull_at_ps, wake_ps, self.receiver.poll_timeout()];
        all.into_iter().flatten().min()
    }

    fn advance(&mut self) {
        while let Some(&Reverse((at_ps, id))) = self.wire.peek()
            && at_ps <= self.now_ps
        {
            self.wire.pop();
            if let Some(frame) = self.frames.remove(&id) {
                self.deliver(frame);
            }
        }
        self.sender.on_timeout(self.now_ps, &mut ());
        self.receiver.on_timeout(self.now_ps);
        self.grant();
        self.answer();
    }

    fn deliver(&mut self, frame: Frame) {
        let now_ps = self.now_ps;
        match frame {
            Frame::Ack(ack) => self.sender.on_ack(now_ps, &ack, &mut ()),
            Frame::Nack(nack) => self.sender.on_nack(now_ps, &nack, &mut ()),
            Frame::Pull(pull) => self.sender.on_pull(now_ps, &pull),
            Frame::ProbeAck(ack) => self.sender.on_probe_ack(now_ps, &ack, &mut ()),
            Frame::Probe(token, timestamp_ps, ev) => {
                let ev = ev_port(ev, self.config.path.evs);
                let marked = self.happens(self.channel.mark);
                self.send_back(Frame::ProbeAck(ProbeAck { token, timestamp_ps, ev, marked, ..ProbeAck::default() }));
            }
            Frame::PullRequest(request) => {
                self.receiver.on_pull_request(&request);
                // One who asks again may have lost the answer.
                self.send_back(Frame::Pull(Pull { credit_bytes: self.credit }));
                self.want_pull();
            }
            Frame::Data(arrival) => {
                let accept = self.receiver.on_data(now_ps, &arrival);
                assert!(!matches!(accept, Accept::Invalid), "our own sender's frames are valid: {arrival:?}");
                self.want_pull();
                self.answer();
            }
        }
    }

    fn want_pull(&mut self) {
        if self.pull_at_ps.is_none() && self.credit < self.receiver.pull_target() {
            self.pull_at_ps = Some(self.now_ps + PULL_PS);
        }
    }

    fn grant(&mut self) {
        if self.pull_at_ps.is_some_and(|at_ps| at_ps <= self.now_ps) {
            self.pull_at_ps = None;
            self.credit = (self.credit + u64::from(self.config.packet_bytes())).min(self.receiver.pull_target());
            self.send_back(Frame::Pull(Pull { credit_bytes: self.credit }));
            self.want_pull();
        }
    }

    /// Sends what the receiver has to say, and takes what it completed.
    fn answer(&mut self) {
        while let Some((_, bytes)) = self.receiver.message_completed() {
            self.consumption.push_back((self.now_ps + self.channel.lag_ps, bytes));
        }
        while let Some(&(at_ps, bytes)) = self.consumption.front()
            && at_ps <= self.now_ps
        {
            self.consumption.pop_front();
            self.receiver.consumed(bytes);
        }
        while let Some(ack) = self.receiver.poll_ack(self.now_ps) {
            self.send_back(Frame::Ack(ack));
        }
        while let Some(nack) = self.receiver.poll_nack() {
            self.send_back(Frame::Nack(nack));
        }
    }

    fn send_all(&mut self) -> Result<(), String> {
        while let Some(bytes) = self.messages.front()
            && self.sender.send_message(self.queued, *bytes).is_ok()
        {
            self.messages.pop_front();
            self.queued += 1;
        }
        for sent in 0.. {
            let Some(transmit) = self.sender.poll_transmit(self.now_ps, &mut self.rng, &mut ()) else { break };
            if sent > MAX_STEPS {
                return Err(format!("sends without end: {transmit:?}, {}", self.state()));
            }
            self.transmit(transmit)?;
        }
        while let Some(event) = self.sender.poll_event() {
            match event {
                SenderEvent::MessageDelivered { .. } => self.delivered += 1,
                SenderEvent::Failed => self.failed = true,
            }
        }
        Ok(())
    }

    fn transmit(&mut self, transmit: Transmit) -> Result<(), String> {
        let (frame, ev) = match transmit {
            Transmit::Probe { probe, ev } => (Frame::Probe(probe.token, probe.timestamp_ps, ev), ev),
            Transmit::PullRequest { request, ev } => (Frame::PullRequest(request), ev),
            Transmit::Data { data, ev } => {
                let port = ev_port(ev, self.config.path.evs);
                let (marked, trimmed) = (self.happens(self.channel.mark), self.happens(self.channel.trim));
                (Frame::Data(Arrival { data, port, marked, hops: 1 + (ev % 4) as u8, trimmed }), ev)
            }
        };
        if u32::from(ev) >= self.config.path.evs {
            return Err(format!("entropy value {ev} of {}", self.config.path.evs));
        }
        let lost = self.is_dead(ev) || self.happens(self.channel.loss);
        self.put(frame, lost);
        Ok(())
    }

    fn is_dead(&self, ev: Ev) -> bool {
        let path = u32::from(ev).wrapping_mul(0x9e37_79b9) >> 29;
        let out = |outage: Outage| (outage.at_ps..outage.until_ps).contains(&self.now_ps);
        self.channel.outage.is_some_and(out) && path < self.channel.dead_paths
    }

    fn send_back(&mut self, frame: Frame) {
        let lost = self.happens(self.channel.ack_loss);
        self.put(frame, lost);
    }

    fn put(&mut self, frame: Frame, lost: bool) {
        let copies = u32::from(!lost) + u32::from(self.happens(self.channel.duplicate));
        for _ in 0..copies {
            let delay_ps = self.channel.delay_ps + self.rng.next_u64() % (self.channel.jitter_ps + 1);
            self.wire.push(Reverse((self.now_ps + delay_ps, self.next_frame)));
            self.frames.insert(self.next_frame, frame.clone());
            self.next_frame += 1;
        }
    }

    fn happens(&mut self, share: u32) -> bool {
        self.rng.next_u32() % 1000 < share
    }
}
