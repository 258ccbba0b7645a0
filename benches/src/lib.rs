//! Measures what the transport costs a packet: two ends over devices in memory, on one thread, each end by itself.
//!
//! Batches of the two ends alternate, with a look at the clock in between. A frame passes from one device to the other
//! without a copy, as between a NIC and the memory of its host.
//!
//! The parts of a packet are measured the same way, in the same run, by a ladder of programs of which each does one thing
//! more than the one before; a part is the difference of two rungs: see [`Rung`]. [`Flow`] and [`Choosing`] have no frames.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a measurement")]

mod flow;
mod frames;
#[cfg(all(target_os = "linux", feature = "xdp"))]
pub mod net;
mod pair;
mod queues;

pub use self::{
    flow::{Choosing, Flow},
    frames::{Frames, Rung},
    pair::{Hosts, Pair},
    queues::packets_per_s,
};
pub use spray_nic::device::Steering;

use std::net::IpAddr;

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use spray_core::{
    flow::FlowConfig,
    path::{BalancerKind, Path},
};
use spray_wire::{Kind, header_bytes, seal_bytes};

use spray_nic::device::{MemoryConfig, MemoryNetwork};
use spray_nic::sys::monotonic_ns;
use spray_nic::{Peer, RtoConfig};

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Payload of a packet.
    pub payload_bytes: u32,
    /// Packets of a message.
    pub message_packets: u32,
    /// Connections that send in turns.
    pub connections: u32,
    /// Packets for one ACK.
    pub ack_every: u32,
    /// The payload stays in the frames: the receiver looks at it there, and the sender writes it there.
    pub in_place: bool,
    /// The two ends have keys, and seal their frames.
    pub sealed: bool,
    /// Balancer and echoes are those of connections on NICs; otherwise it is REPS, without further echoes.
    pub deployed: bool,
}

impl Load {
    /// One connection that sends messages of 256 packets, copied in and out.
    #[must_use]
    pub fn new(payload_bytes: u32, ack_every: u32) -> Self {
        Self {
            payload_bytes,
            message_packets: 256,
            connections: 1,
            ack_every,
            in_place: false,
            sealed: false,
            deployed: false,
        }
    }

    fn message_bytes(&self) -> usize {
        self.payload_bytes as usize * self.message_packets as usize
    }

    /// A window of four batches, which they never fill.
    fn flow(&self) -> FlowConfig {
        let header = header_bytes(false, Kind::Data) as u32;
        let packet_bytes = self.payload_bytes + header;
        let link_bps = 4 * BATCH as u64 * u64::from(packet_bytes) * 8 * (1_000_000_000_000 / RTT_PS);
        let path = Path { bdp_packets: 4 * BATCH as u32, ..Path::new(RTT_PS, link_bps, packet_bytes) };
        // A thread that the machine keeps from its CPU loses nothing.
        let rto = RtoConfig { initial_ps: RTO_PS, min_ps: RTO_PS, max_ps: 16 * RTO_PS };
        let (balancer, ack_evs) =
            if self.deployed { (BalancerKind::RepsPlus, self.ack_every) } else { (BalancerKind::Reps, 1) };
        FlowConfig {
            ack_every: self.ack_every,
            ack_evs,
            rto,
            give_up_ps: 100 * RTO_PS,
            ..FlowConfig::new(balancer, path, header)
        }
    }
}

/// What a packet cost each end, in nanoseconds: for the sender with its share of an ACK that comes back.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Ends {
    /// The end that sends data.
    pub sender_ns: f64,
    /// The end that receives it.
    pub receiver_ns: f64,
}

impl Ends {
    /// The same in units of `ns`.
    #[must_use]
    pub fn per(self, ns: f64) -> Self {
        Self { sender_ns: self.sender_ns / ns, receiver_ns: self.receiver_ns / ns }
    }
}

/// A key to measure with.
const KEY: &str = "1810d6a504251c89b858dc2dc859ace9169f5b60cd9e36c9aa8b4d76cb02f243";
/// Packets of a batch, as many as an endpoint sends in one poll.
const BATCH: usize = 64;
/// Least retransmission timeout.
const RTO_PS: u64 = 50_000_000_000;
/// Base round-trip time of the path.
const RTT_PS: u64 = 100_000_000;
/// Time from one batch to the next, by the endpoints' clock.
const STEP_PS: u64 = 20_000_000;

/// Whose time it is.
#[derive(Clone, Copy)]
enum End {
    Sender,
    Receiver,
}

/// Adds up the time of each end.
struct Stopwatch {
    last_ns: u64,
    spent_ns: [u64; 2],
}

impl Stopwatch {
    fn start() -> Self {
        Self { last_ns: monotonic_ns(), spent_ns: [0; 2] }
    }

    /// The time since the last lap was that of `end`.
    fn lap(&mut self, end: End) {
        let now_ns = monotonic_ns();
        self.spent_ns[end as usize] += now_ns - self.last_ns;
        self.last_ns = now_ns;
    }

    fn per_packet(&self, packets: u64) -> Ends {
        let [sender_ns, receiver_ns] = self.spent_ns.map(|spent_ns| spent_ns as f64 / packets.max(1) as f64);
        Ends { sender_ns, receiver_ns }
    }
}

/// How long it takes to copy the payload of a packet from a message to a buffer of a packet, in nanoseconds: the floor.
#[must_use]
pub fn memcpy_ns(load: &Load, packets: u64) -> f64 {
    let message = vec![7; load.message_bytes()];
    let mut to = vec![0; load.payload_bytes as usize];
    let mut watch = Stopwatch::start();
    for payload in message.chunks_exact(to.len()).cycle().take(packets as usize) {
        to.copy_from_slice(payload);
        std::hint::black_box(&mut to);
    }
    watch.lap(End::Sender);
    watch.per_packet(packets).sender_ns
}

/// How long AES-128-GCM takes to seal the payload of a packet in place, with a header that it covers, in nanoseconds: what a sealed packet
/// cannot do without.
#[must_use]
pub fn aes_gcm_ns(load: &Load, packets: u64) -> f64 {
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[7; 16]).expect("16 bytes"));
    let (header, mut payload) = ([0; header_bytes(false, Kind::Data)], vec![7; load.payload_bytes as usize]);
    let mut watch = Stopwatch::start();
    for number in 0..packets as u32 {
        let mut nonce = [0; NONCE_LEN];
        nonce[..4].copy_from_slice(&number.to_le_bytes());
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = key.seal_in_place_separate_tag(nonce, Aad::from(&header), &mut payload);
        let _ = std::hint::black_box(tag);
    }
    watch.lap(End::Sender);
    watch.per_packet(packets).sender_ns
}

/// The largest that a frame of 4,096 bytes has room for.
const MTU: u32 = 4_082;
/// The largest payload of a [`Load`].
pub const MAX_PAYLOAD_BYTES: u32 = MTU + 14 - (header_bytes(false, Kind::Data) + seal_bytes(Kind::Data)) as u32;

fn network() -> MemoryNetwork {
    MemoryNetwork::new(MemoryConfig { mtu: MTU, ..MemoryConfig::default() })
}

fn host(number: u16) -> Peer {
    let [high, low] = number.to_be_bytes();
    Peer { address: IpAddr::from([10, 0, high, low]), mac: [2, 0, 0, 0, high, low] }
}
