//! Connections with the settings for real networks over a model of conventional routers, in virtual
//! time: rates, round-trip times, queues, marks, failures, and competing TCP connections.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use rand_core::RngCore as _;
use spray_core::flow::{Arrival, Receiver, Sender, SenderEvent, Transmit};
use spray_core::rng::{Rng, stream};
use spray_nic::{EndpointConfig, Ev, Time};
use spray_wire::{Ack, Data, Probe, ProbeAck};

const PATHS: usize = 4;
const EVS: u16 = 64;
const FRAME_BYTES: u64 = 1514;
const PROBE_BYTES: u64 = 82;
const MESSAGE_BYTES: u64 = 1 << 20;
const US: u64 = 1_000_000;
/// The rates of a path and of the hosts' links, in bits per second.
const PATH_BPS: u64 = 100_000_000;
const HOST_BPS: u64 = 10_000_000_000;
/// The payload's share of the bits on the wire.
const PAYLOAD_SHARE: f64 = 0.9625;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Condition {
    Healthy,
    /// Path 0 has a tenth of its rate.
    Slow,
    /// Path 0 drops everything after half of the transfer, in both directions.
    Silent,
    /// One frame in a hundred is lost on every path, in both directions.
    Lossy,
}

impl Condition {
    /// Returns the average number of paths' worth of rate that is left.
    fn paths_left(self) -> f64 {
        match self {
            Self::Healthy => 4.0,
            Self::Slow => 3.1,
            Self::Silent => 2.0 / (1.0 / 4.0 + 1.0 / 3.0),
            Self::Lossy => 4.0 * 0.99,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Network {
    /// Round-trip time without queues, in picoseconds.
    rtt_ps: u64,
    /// The limit of a path's queue, and the backlog from which frames are marked, in bytes.
    queue_bytes: u64,
    mark_bytes: Option<u64>,
    condition: Condition,
    /// The number of competing TCP connections, and whether they negotiate ECN.
    tcp: usize,
    ecn: bool,
}

impl Network {
    /// Returns a network whose queues hold `half_bdps` halves of a bandwidth-delay product, and at
    /// least ten frames.
    fn new(rtt_us: u64, half_bdps: u64, is_marking: bool, condition: Condition) -> Self {
        let bdp_bytes = PATH_BPS / 8 * rtt_us / 1_000_000;
        let queue_bytes = (bdp_bytes * half_bdps / 2).max(10 * FRAME_BYTES);
        // A quarter of the queue, but at least 20 frames if they fit, as for DCTCP at 1 Gb/s.
        let mark_bytes = is_marking.then(|| (queue_bytes / 4).max((20 * FRAME_BYTES).min(queue_bytes * 2 / 3)));
        Self { rtt_ps: rtt_us * US, queue_bytes, mark_bytes, condition, tcp: 0, ecn: false }
    }
}

enum Event {
    AtQueue(Packet, Ev),
    /// The last field: whether the packet is marked.
    AtReceiver(Packet, Ev, bool),
    AckAtSender(Ack),
    ProbeAckAtSender(ProbeAck),
    Tcp {
        index: usize,
        is_lost: bool,
        is_marked: bool,
    },
    Timer,
}

#[derive(Clone, Copy)]
enum Packet {
    Data(Data),
    Probe(Probe),
}

/// A CUBIC connection (RFC 9438) over one path that always has data. It detects a loss one
/// round-trip time later.
#[derive(Clone, Copy, Default)]
struct Cubic {
    /// The window, and the window before the last reduction, in packets.
    window: f64,
    before_cut: f64,
    /// 0 before the first reduction.
    cut_at: Time,
    in_flight: u64,
    acked: u64,
    rtt_s: f64,
}

impl Cubic {
    /// Scale of the cubic function (C), and the factor of a reduction (beta).
    const C: f64 = 0.4;
    const BETA: f64 = 0.7;

    fn on_ack(&mut self, now: Time) {
        self.acked += 1;
        if self.cut_at == Time::ZERO {
            self.window += 1.0;
            return;
        }
        let since_s = now.since(self.cut_at) as f64 / 1e12;
        let inflection_s = (self.before_cut * (1.0 - Self::BETA) / Self::C).cbrt();
        let cubic = self.before_cut + Self::C * (since_s + self.rtt_s - inflection_s).powi(3);
        let reno = self.before_cut * Self::BETA + 0.53 * since_s / self.rtt_s;
        let target = cubic.max(reno).clamp(self.window, self.window * 1.5);
        self.window += (target - self.window) / self.window;
    }

    /// Reduces the window, at most once per round-trip time.
    fn cut(&mut self, now: Time) {
        if now.since(self.cut_at) as f64 / 1e12 > self.rtt_s {
            self.before_cut = if self.window < self.before_cut { self.window * 0.85 } else { self.window };
            self.window = (self.window * Self::BETA).max(2.0);
            self.cut_at = now;
        }
    }
}

struct Run {
    network: Network,
    now: Time,
    puts: u64,
    events: BTreeMap<(Time, u64), Event>,
    timer_at: Option<Time>,
    path_free_at: [Time; PATHS],
    host_free_at: Time,
    rng: Rng,
    sender: Sender,
    receiver: Receiver,
    header_bytes: u64,
    tcp: Vec<Cubic>,
    bytes: u64,
    queued_bytes: u64,
    delivered_bytes: u64,
}

/// Payload rate of the transfer, and frame rates of each TCP connection during it, in Mb/s.
struct Rates {
    transfer: f64,
    tcp: Vec<f64>,
}

impl Run {
    fn new(network: Network, bytes: u64, seed: u64) -> Self {
        let mut config = EndpointConfig::real([10, 0, 0, 1].into(), [2; 6], 1500).unwrap().flow;
        config.path.evs = EVS;
        let mut rng = stream(seed, 1);
        Self {
            network,
            now: Time::ZERO,
            puts: 0,
            events: BTreeMap::new(),
            timer_at: None,
            path_free_at: [Time::ZERO; PATHS],
            host_free_at: Time::ZERO,
            sender: Sender::new(&config, config.window_packets, config.max_data_bytes, &mut rng),
            receiver: Receiver::new(&config),
            header_bytes: config.header_bytes.into(),
            rng,
            tcp: vec![Cubic { window: 10.0, rtt_s: network.rtt_ps as f64 / 1e12, ..Cubic::default() }; network.tcp],
            bytes: bytes / MESSAGE_BYTES * MESSAGE_BYTES,
            queued_bytes: 0,
            delivered_bytes: 0,
        }
    }

    /// Starts the TCP connections, and three seconds later the transfer, which must end within a
    /// minute.
    fn run(mut self) -> Rates {
        let begins = if self.network.tcp > 0 { Time::from_ps(3_000_000 * US) } else { Time::from_ps(US) };
        (0..self.network.tcp).for_each(|index| self.send_tcp(index));
        let mut before = None;
        self.put(begins, Event::Timer);
        while self.delivered_bytes < self.bytes {
            let ((at, _), event) = self.events.pop_first().unwrap();
            assert!(at < begins.after(60_000_000 * US), "{:?}: {} bytes", self.network, self.delivered_bytes);
            self.now = at;
            if at >= begins && before.is_none() {
                before = Some(self.tcp.clone());
            }
            let is_stale = matches!(event, Event::Timer) && self.timer_at.is_some_and(|timer_at| timer_at != at);
            let is_tcp = matches!(event, Event::Tcp { .. });
            if !is_stale {
                self.on_event(event);
            }
            if at >= begins && !is_stale && !is_tcp {
                self.work();
            }
        }
        let seconds = self.now.since(begins) as f64 / 1e12;
        let mbps = |bytes: u64| bytes as f64 * 8.0 / seconds / 1e6;
        let acked = |(now, before): (&Cubic, Cubic)| mbps((now.acked - before.acked) * FRAME_BYTES);
        let tcp = self.tcp.iter().zip(before.unwrap()).map(acked).collect();
        Rates { transfer: mbps(self.delivered_bytes), tcp }
    }

    fn put(&mut self, at: Time, event: Event) {
        self.puts += 1;
        self.events.insert((at, self.puts), event);
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::AtQueue(packet, ev) => self.forward(packet, ev),
            Event::AtReceiver(packet, ev, marked) => self.receive(packet, ev, marked),
            Event::AckAtSender(ack) => self.sender.on_ack(self.now, &ack, &mut ()),
            Event::ProbeAckAtSender(answer) => self.sender.on_probe_ack(self.now, &answer, &mut ()),
            Event::Tcp { index, is_lost, is_marked } => self.on_tcp(index, is_lost, is_marked),
            Event::Timer => self.timer_at = None,
        }
    }

    /// Runs what is due in both halves of the connection.
    fn work(&mut self) {
        let now = self.now;
        self.receiver.on_timeout(now);
        self.send_acks();
        self.sender.on_timeout(now, &mut ());
        while self.queued_bytes < self.bytes
            && self.sender.send_message((self.queued_bytes / MESSAGE_BYTES) as u32, MESSAGE_BYTES).is_ok()
        {
            self.queued_bytes += MESSAGE_BYTES;
        }
        while let Some(event) = self.sender.poll_event() {
            assert!(matches!(event, SenderEvent::MessageDelivered { .. }), "{:?}: {event:?}", self.network);
            self.delivered_bytes += MESSAGE_BYTES;
        }
        while self.host_free_at <= now {
            let (packet, ev, bytes) = match self.sender.poll_transmit(now, &mut self.rng, &mut ()) {
                Some(Transmit::Data { data, ev }) => (Packet::Data(data), ev, FRAME_BYTES),
                Some(Transmit::Probe { probe, ev }) => (Packet::Probe(probe), ev, PROBE_BYTES),
                Some(Transmit::PullRequest { .. }) | None => break,
            };
            self.host_free_at = now.after(drain_ps(bytes, HOST_BPS));
            self.put(self.host_free_at, Event::AtQueue(packet, ev));
        }
        let host_free_at = Some(self.host_free_at).filter(|at| *at > now);
        let wakes = [self.sender.poll_timeout(), self.receiver.poll_timeout(), host_free_at];
        if let Some(at) = wakes.into_iter().flatten().min().map(|at| at.max(now.after(US)))
            && self.timer_at.is_none_or(|timer_at| at < timer_at)
        {
            self.timer_at = Some(at);
            self.put(at, Event::Timer);
        }
    }

    fn is_lost(&mut self, path: usize) -> bool {
        match self.network.condition {
            Condition::Silent => path == 0 && self.delivered_bytes >= self.bytes / 2,
            Condition::Lossy => self.rng.next_u64().is_multiple_of(100),
            Condition::Healthy | Condition::Slow => false,
        }
    }

    /// Enqueues a frame on a path. Returns when it leaves the queue and whether it is marked;
    /// `None` if it is dropped.
    fn enqueue(&mut self, path: usize, bytes: u64) -> Option<(Time, bool)> {
        let is_slow = self.network.condition == Condition::Slow && path == 0;
        let bps = if is_slow { PATH_BPS / 10 } else { PATH_BPS };
        let backlog_ps = self.path_free_at[path].since(self.now);
        if self.is_lost(path) || backlog_ps + drain_ps(bytes, bps) > drain_ps(self.network.queue_bytes, bps) {
            return None;
        }
        let leaves = self.path_free_at[path].max(self.now).after(drain_ps(bytes, bps));
        self.path_free_at[path] = leaves;
        let marks = |mark_bytes| backlog_ps >= drain_ps(mark_bytes, bps);
        Some((leaves, self.network.mark_bytes.is_some_and(marks)))
    }

    fn forward(&mut self, packet: Packet, ev: Ev) {
        let bytes = match packet {
            Packet::Data(data) => u64::from(data.payload_bytes) + self.header_bytes,
            Packet::Probe(_) => PROBE_BYTES,
        };
        if let Some((leaves, marked)) = self.enqueue(path_of(ev, false), bytes) {
            self.put(leaves.after(self.network.rtt_ps / 2), Event::AtReceiver(packet, ev, marked));
        }
    }

    fn receive(&mut self, packet: Packet, ev: Ev, marked: bool) {
        let port = ev.port(EVS.into());
        match packet {
            Packet::Data(data) => {
                self.receiver.on_data(self.now, &Arrival { data, port, marked, hops: 3, ..Arrival::default() });
                while let Some((_, bytes)) = self.receiver.message_completed() {
                    self.receiver.consumed(bytes);
                }
                self.send_acks();
            }
            Packet::Probe(Probe { token, timestamp }) => {
                let answer = ProbeAck { token, timestamp, port, marked, ..ProbeAck::default() };
                self.send_back(ev, Event::ProbeAckAtSender(answer));
            }
        }
    }

    fn send_acks(&mut self) {
        while let Some(ack) = self.receiver.poll_ack() {
            self.send_back(ack.port.ev(EVS.into()).unwrap(), Event::AckAtSender(ack));
        }
    }

    /// Returns a frame on the path of its entropy value. The queues of return paths are always
    /// empty.
    fn send_back(&mut self, ev: Ev, event: Event) {
        if !self.is_lost(path_of(ev, true)) {
            self.put(self.now.after(self.network.rtt_ps / 2), event);
        }
    }

    fn send_tcp(&mut self, index: usize) {
        while (self.tcp[index].in_flight as f64) < self.tcp[index].window.floor() {
            self.tcp[index].in_flight += 1;
            let sent = self.enqueue(index % PATHS, FRAME_BYTES);
            let (leaves, is_marked) = sent.unwrap_or((self.path_free_at[index % PATHS].max(self.now), false));
            // With a window below four packets a loss is detected only by timeout.
            let timeout_ps = if sent.is_none() && self.tcp[index].window < 4.0 { 200_000 * US } else { 0 };
            let at = leaves.after(self.network.rtt_ps + timeout_ps);
            self.put(at, Event::Tcp { index, is_lost: sent.is_none(), is_marked });
        }
    }

    fn on_tcp(&mut self, index: usize, is_lost: bool, is_marked: bool) {
        let queue_ps = self.path_free_at[index % PATHS].since(self.now);
        let tcp = &mut self.tcp[index];
        tcp.in_flight -= 1;
        tcp.rtt_s = (self.network.rtt_ps + queue_ps) as f64 / 1e12;
        if is_lost || (is_marked && self.network.ecn) {
            tcp.cut(self.now);
        }
        if !is_lost {
            tcp.on_ack(self.now);
        }
        self.send_tcp(index);
    }
}

fn drain_ps(bytes: u64, bps: u64) -> u64 {
    bytes * 8_000_000_000 / (bps / 1_000)
}

fn path_of(ev: Ev, is_back: bool) -> usize {
    let hash = (u64::from(ev.index()) * 2 + u64::from(is_back)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> 40) as usize % PATHS
}

/// Returns which share of the payload rate that is left a transfer of 200 round-trip times, but at
/// least three seconds, reaches: the least of four random sequences of losses.
fn share(network: Network) -> f64 {
    let seconds = (network.rtt_ps as f64 / 1e12 * 200.0).max(3.0);
    let bits = PATHS as f64 * PATH_BPS as f64 * seconds;
    let left = network.condition.paths_left() * PATH_BPS as f64 / 1e6 * PAYLOAD_SHARE;
    let seeds = if network.condition == Condition::Lossy { 1..5 } else { 1..2 };
    let shares = seeds.map(|seed| Run::new(network, (bits / 8.0) as u64, seed).run().transfer / left);
    shares.fold(f64::MAX, f64::min)
}

const CONDITIONS: [Condition; 4] = [Condition::Healthy, Condition::Slow, Condition::Silent, Condition::Lossy];

//= docs/specs/calibration.md#CAL-13 growth while queues are short
//= docs/specs/calibration.md#CAL-14 random losses
//= docs/specs/calibration.md#CAL-17 marks passed to the balancer
#[test]
fn transfers_use_most_of_the_remaining_rate() {
    // Minimum shares in per cent by round-trip time in us: without marks, with queues of half a
    // bandwidth-delay product, one and five, then with marks. At 20 ms, a queue of half a
    // bandwidth-delay product marks from an eighth on, which is less than DCTCP needs.
    let least_shares = [(100, [94; 6]), (1_000, [94; 6]), (5_000, [94; 6]), (20_000, [90, 90, 90, 86, 90, 90])];
    for (rtt_us, least) in least_shares {
        for (index, least) in least.into_iter().enumerate() {
            for condition in CONDITIONS {
                let network = Network::new(rtt_us, [1, 2, 10][index % 3], index >= 3, condition);
                let percent = 100.0 * share(network);
                assert!(percent >= f64::from(least), "{percent:.1} of {least} %: {network:?}");
            }
        }
    }
}

//= docs/specs/calibration.md#CAL-15 minimum window after marks
#[test]
fn with_tcp_a_transfer_has_half_of_a_fair_share() {
    for (queue_bytes, mark_bytes) in [(250_000, Some(60_000)), (100_000, None), (1_000_000, None)] {
        for ecn in [false, true] {
            for rtt_us in [200, 2_000] {
                let empty = Network::new(rtt_us, 2, false, Condition::Healthy);
                let rates = Run::new(Network { queue_bytes, mark_bytes, tcp: 8, ecn, ..empty }, 50_000_000, 1).run();
                let fair = PATHS as f64 * PATH_BPS as f64 / 1e6 / 9.0;
                let place = format!("{queue_bytes} B, ecn {ecn}, {rtt_us} us");
                assert!(rates.transfer >= fair / 2.0, "{:.1} of {fair:.1} Mb/s: {place}", rates.transfer);
                // Other connections get less beside TCP that has just started
                // (docs/results/real-network.md).
                let least = rates.tcp.iter().copied().fold(f64::MAX, f64::min);
                assert!(least >= fair * 0.35, "{least:.1} of {fair:.1} Mb/s: {place}");
            }
        }
    }
}
