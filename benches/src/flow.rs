//! The transport without frames: cost of path selection and recovery.

use std::hint::black_box;

use spray_core::{
    Time,
    feedback::AckInfo,
    flow::{Arrival, FlowConfig, Receiver, Sender, Transmit},
    path::{AnyBalancer, Balancer, Ev, Path, SendInfo},
    rng::{self, Rng},
};
use spray_wire::{Ack, Data};

use super::{BATCH, End, EndCosts, Load, RTT_PS, STEP_PS, Stopwatch};

/// Sender and receiver of a connection: path selection, window, recovery, acknowledgements.
#[derive(Debug)]
pub struct Flow {
    sender: Sender,
    receiver: Receiver,
    rng: Rng,
    evs: u16,
    flight: Vec<(Data, Ev)>,
    acks: Vec<Ack>,
    now: Time,
}

impl Flow {
    /// Creates both ends, with an endless message.
    #[must_use]
    pub fn new(load: &Load) -> Self {
        let unlimited = u64::MAX / 4;
        let config = FlowConfig { max_data_bytes: unlimited, max_message_bytes: unlimited, ..load.flow() };
        let mut rng = rng::stream(1, 1);
        let mut sender = Sender::new(&config, config.window_packets, unlimited, &mut rng);
        sender.send_message(1, unlimited).expect("an empty queue");
        Self {
            sender,
            receiver: Receiver::new(&config),
            rng,
            evs: config.path.evs,
            flight: Vec::with_capacity(BATCH),
            acks: Vec::with_capacity(BATCH),
            now: Time::ZERO,
        }
    }

    /// Sends at least `packets` packets; returns the cost per packet.
    pub fn run(&mut self, packets: u64) -> EndCosts {
        let mut watch = Stopwatch::start();
        let mut sent = 0;
        while sent < packets {
            self.now = self.now.after(STEP_PS);
            self.send();
            sent += self.flight.len() as u64;
            watch.lap(End::Sender);
            self.receive();
            watch.lap(End::Receiver);
            self.acknowledge();
            watch.lap(End::Sender);
        }
        watch.per_packet(sent)
    }

    fn send(&mut self) {
        while self.flight.len() < BATCH
            && let Some(Transmit::Data { data, ev }) = self.sender.poll_transmit(self.now, &mut self.rng, &mut ())
        {
            self.flight.push((data, ev));
            black_box(self.sender.poll_timeout());
        }
    }

    fn receive(&mut self) {
        for (data, ev) in self.flight.drain(..) {
            let port = ev.port(self.evs.into());
            let arrival = Arrival { data, port, hops: 3, ..Arrival::default() };
            black_box(self.receiver.on_data(self.now, black_box(&arrival)));
            self.acks.extend(self.receiver.poll_ack());
            black_box((self.receiver.poll_nack(), self.receiver.poll_timeout()));
        }
    }

    fn acknowledge(&mut self) {
        for ack in self.acks.drain(..) {
            self.sender.on_ack(self.now, black_box(&ack), &mut ());
            black_box(self.sender.poll_timeout());
        }
    }
}

/// A balancer without a connection.
#[derive(Debug)]
pub struct BalancerOnly {
    balancer: AnyBalancer,
    path: Path,
    rng: Rng,
    packet_bytes: u32,
    ack_every: u16,
    chosen: Vec<Ev>,
    now: Time,
    psn: u64,
}

impl BalancerOnly {
    /// Creates the balancer.
    #[must_use]
    pub fn new(load: &Load) -> Self {
        let config = load.flow();
        let mut rng = rng::stream(1, 1);
        Self {
            balancer: AnyBalancer::new(&config.balancer, &config.path, &mut rng),
            path: config.path,
            rng,
            packet_bytes: config.packet_bytes(),
            ack_every: load.ack_every as u16,
            chosen: Vec::with_capacity(BATCH),
            now: Time::ZERO,
            psn: 0,
        }
    }

    /// Selects paths for at least `packets` packets; returns nanoseconds per packet.
    pub fn run(&mut self, packets: u64) -> f64 {
        let first = self.psn;
        let mut watch = Stopwatch::start();
        while self.psn - first < packets {
            self.now = self.now.after(STEP_PS);
            (0..BATCH).for_each(|_| self.choose());
            self.acknowledge();
        }
        watch.lap(End::Sender);
        watch.per_packet(self.psn - first).sender_ns
    }

    fn choose(&mut self) {
        let packet = SendInfo {
            psn: self.psn,
            bytes: self.packet_bytes,
            retransmit: false,
            in_flight_bytes: 0,
            unacked_packets: 0,
            unsent_bytes: u64::MAX / 4,
        };
        self.chosen.push(self.balancer.next_ev(self.path.at(self.now), black_box(&packet), &mut self.rng));
        self.psn += 1;
    }

    fn acknowledge(&mut self) {
        let packets = self.ack_every;
        for echoed in self.chosen.chunks(packets.into()).filter_map(|packets| packets.last()) {
            let info = AckInfo {
                ev: *echoed,
                packets,
                bytes: u64::from(self.packet_bytes) * u64::from(packets),
                rtt_ps: RTT_PS,
                packet_bytes: self.packet_bytes,
                ..AckInfo::default()
            };
            self.balancer.on_ack(self.path.at(self.now), black_box(&info), &mut ());
        }
        self.chosen.clear();
    }
}
