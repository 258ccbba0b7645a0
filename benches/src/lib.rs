//! CPU time of the transport per packet: two ends over in-memory devices on one thread, each
//! measured separately in alternating batches. Frames pass without a copy, as from a NIC to memory.
//!
//! The parts are differences of programs that each do one thing more than the previous one, see
//! [`Layer`]. [`Flow`] and [`BalancerOnly`] have no frames.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a measurement")]

mod flow;
mod frames;
#[cfg(all(target_os = "linux", feature = "xdp"))]
pub mod net;
mod pair;
mod queues;

pub use self::{
    flow::{BalancerOnly, Flow},
    frames::{Frames, Layer},
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

/// The traffic of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Payload of a packet in bytes.
    pub payload_bytes: u32,
    /// Packets per message.
    pub message_packets: u32,
    /// Number of connections, which send in turns.
    pub connections: u32,
    /// Packets per ACK.
    pub ack_every: u32,
    /// Whether the payload is read and written in the frames, without copies.
    pub in_place: bool,
    /// Whether frames are sealed with keys.
    pub sealed: bool,
    /// Whether balancer and echoes are the defaults on NICs; otherwise REPS without further echoes.
    pub deployed: bool,
}

impl Load {
    /// Creates a load of one connection that sends messages of 256 packets, copied in and out.
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

    /// A window of four batches, which are never filled.
    fn flow(&self) -> FlowConfig {
        let header = header_bytes(false, Kind::Data) as u32;
        let packet_bytes = self.payload_bytes + header;
        let link_bps = 4 * BATCH as u64 * u64::from(packet_bytes) * 8 * (1_000_000_000_000 / RTT_PS);
        let path = Path { bdp_packets: 4 * BATCH as u32, ..Path::new(RTT_PS, link_bps, packet_bytes) };
        // Long enough for a descheduled thread.
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

/// Nanoseconds per packet at each end; the sender's include its share of the ACK.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct EndCosts {
    /// The sending end.
    pub sender_ns: f64,
    /// The receiving end.
    pub receiver_ns: f64,
}

impl EndCosts {
    /// Converts to units of `ns`.
    #[must_use]
    pub fn per(self, ns: f64) -> Self {
        Self { sender_ns: self.sender_ns / ns, receiver_ns: self.receiver_ns / ns }
    }
}

const KEY: &str = "1810d6a504251c89b858dc2dc859ace9169f5b60cd9e36c9aa8b4d76cb02f243";
/// Packets per batch, as an endpoint sends in one poll.
const BATCH: usize = 64;
const RTO_PS: u64 = 50_000_000_000;
const RTT_PS: u64 = 100_000_000;
/// Time between batches on the clock of the endpoints.
const STEP_PS: u64 = 20_000_000;

#[derive(Clone, Copy)]
enum End {
    Sender,
    Receiver,
}

struct Stopwatch {
    last_ns: u64,
    spent_ns: [u64; 2],
}

impl Stopwatch {
    fn start() -> Self {
        Self { last_ns: monotonic_ns(), spent_ns: [0; 2] }
    }

    fn lap(&mut self, end: End) {
        let now_ns = monotonic_ns();
        self.spent_ns[end as usize] += now_ns - self.last_ns;
        self.last_ns = now_ns;
    }

    fn per_packet(&self, packets: u64) -> EndCosts {
        let [sender_ns, receiver_ns] = self.spent_ns.map(|spent_ns| spent_ns as f64 / packets.max(1) as f64);
        EndCosts { sender_ns, receiver_ns }
    }
}

/// Returns the nanoseconds to copy the payload of a packet into a packet buffer.
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

/// Returns the nanoseconds of AES-128-GCM to seal the payload of a packet, header included.
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

/// The maximum for frame buffers of 4,096 bytes.
const MTU: u32 = 4_082;
/// Maximum payload of a [`Load`].
pub const MAX_PAYLOAD_BYTES: u32 = MTU + 14 - (header_bytes(false, Kind::Data) + seal_bytes(Kind::Data)) as u32;

fn network() -> MemoryNetwork {
    MemoryNetwork::new(MemoryConfig { mtu: MTU, ..MemoryConfig::default() })
}

fn host(number: u16) -> Peer {
    let [high, low] = number.to_be_bytes();
    Peer { address: IpAddr::from([10, 0, high, low]), mac: [2, 0, 0, 0, high, low] }
}
