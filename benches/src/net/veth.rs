//! What the transport carries over veth and a switch, what bare frames carry there, and what the kernel's transports and QUIC carry over a
//! veth pair: `spray bench veth`.
//!
//! All in real time: frames bear no virtual time and the switch's queues are faster than the machine, so that only the cost
//! of each way is measured. Every measurement has one sending and one receiving thread, under load one more of each for sockets.

use std::time::Duration;

use spray_core::flow::FlowConfig;
use spray_core::path::BalancerKind;
use spray_nic::{Endpoint, EndpointConfig, Peer};

use spray_fabric::{Fabric, LeafSpine, Scale};
use spray_switch::program::AttachMode;
use spray_switch::{FabricSpec, RunError, data_frame, data_header_bytes};
use spray_testbed::{EmulatedDevice, HostEndpoint, OPEN_QUEUE, RATE_BPS, Rig, unpaced};

use super::bare::{self, Talker};
use super::cpu;
use super::exchange::{self, MESSAGE_BYTES};
use super::measure::{Latency, Throughput, both, failed, threads};
use super::pair::Pair;
#[cfg(feature = "quic")]
use super::quic::{self, Quic};

mod kernel;
mod transport;

pub use self::kernel::Kernel;
use self::kernel::OverPair;

/// Two hosts under two leaves with four spines between them, all in one chassis: three switch hops a frame.
const FABRIC: LeafSpine = LeafSpine::uniform([2, 4, 1], RATE_BPS, 1_000_000);
/// Frames on their way at a time: veth's ring holds 256 and drops what comes on top.
const WINDOW_PACKETS: u32 = 192;
/// Frames of either socket: a window and its ACKs fit, and all of them stay in the CPU's cache.
const FRAMES: u32 = 512;
/// One doorbell for several frames, as a NIC's interrupt for several; a small part of the time that a full window takes.
const COALESCE_PS: u64 = 20_000_000;
/// How a connection of ours is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Packets an ACK.
    pub ack_every: u32,
    /// Frames wait up to 20 us for others, as interrupts of a NIC do.
    pub coalesces: bool,
}

/// a deployed fabric of two hosts for measurements, and a veth pair beside it for the kernel's own transports.
#[derive(Debug)]
pub struct VethBench {
    rig: Rig,
    fabric: Fabric,
    payload_bytes: u32,
    pair: Pair,
}

impl VethBench {
    /// Sets everything up for packets of `payload_bytes`. Needs root.
    ///
    /// # Errors
    /// [`RunError`]; what had been made by then is removed.
    pub fn new(payload_bytes: u32) -> Result<Self, RunError> {
        let packet_bytes = payload_bytes + data_header_bytes();
        let network = FABRIC.network();
        let spec = FabricSpec {
            network: &network,
            events: &[],
            queue: &|_| OPEN_QUEUE,
            packet_bytes,
            per_switch: false,
            seed: 1,
        };
        let fabric = spec.compile(0)?;
        let mut rig = Rig::with_frames(&spec, &fabric, FRAMES)?;
        rig.configure(&fabric, packet_bytes, Scale::default())?;
        Ok(Self { rig, fabric, payload_bytes, pair: Pair::new()? })
    }

    /// Messages over one connection with REPS, received whole: payload only.
    ///
    /// # Errors
    /// When the machine fails, or nothing arrives.
    pub fn transport(&mut self, transport: Transport, duration: Duration) -> Result<Throughput, RunError> {
        let [sender, receiver] = self.endpoints(transport)?;
        let peer = self.peer(1);
        let busy = machine_busy()?;
        let ((sender, sent), (receiver, arrivals)) =
            both(|_| transport::send(sender, peer, duration), |stop| transport::receive(receiver, stop))
                .map_err(RunError::thread)?;
        let busy = machine_busy()?.saturating_sub(busy);
        self.rig.devices = vec![Some(sender), Some(receiver)];
        Ok(Throughput {
            sent,
            // The first one only started the clock.
            received: arrivals.count.saturating_sub(1),
            bytes: transport::MESSAGE_BYTES,
            sending: duration,
            receiving: arrivals.time(),
            busy,
        })
    }

    /// Round trips of small messages over two connections with REPS, one each way; `loaded` beside one that carries as much as it can.
    ///
    /// # Errors
    /// When the machine fails.
    pub fn transport_latency(
        &mut self,
        transport: Transport,
        loaded: bool,
        duration: Duration,
    ) -> Result<Latency, RunError> {
        let [asking, answering] = self.endpoints(transport)?;
        let peers = [1, 0].map(|host| self.peer(host));
        let ((asking, took), answering) = both(
            |_| transport::ask(asking, peers[0], loaded, duration),
            |stop| transport::answer(answering, peers[1], stop),
        )
        .map_err(RunError::thread)?;
        self.rig.devices = vec![Some(asking), Some(answering)];
        Ok(took)
    }

    /// Frames of the transport's size over the same path, by the same sockets, without a transport.
    ///
    /// # Errors
    /// When a device fails.
    pub fn bare(&mut self, duration: Duration) -> Result<Throughput, RunError> {
        self.rig.drain()?;
        let [from, to] = [0, 1].map(|host| &self.fabric.hosts[host]);
        let template = data_frame(from, to, self.payload_bytes as u16);
        let [Some(sender), Some(receiver)] = self.rig.devices.as_mut_slice() else {
            return Err(RunError::Unsupported("an earlier measurement failed".into()));
        };
        let config = bare::BareConfig { template: &template, duration, window: WINDOW_PACKETS, threads: threads(true) };
        bare::run(sender, receiver, &config).map_err(failed("sending bare frames"))
    }

    /// Round trips of small messages by such frames.
    ///
    /// # Errors
    /// When a device fails.
    pub fn bare_latency(&mut self, duration: Duration) -> Result<Latency, RunError> {
        self.rig.drain()?;
        let hosts = &self.fabric.hosts;
        let frames = [(0, 1), (1, 0)].map(|(from, to)| data_frame(&hosts[from], &hosts[to], MESSAGE_BYTES as u16));
        let [Some(asking), Some(answering)] = self.rig.devices.as_mut_slice() else {
            return Err(RunError::Unsupported("an earlier measurement failed".into()));
        };
        let [asks, answers] = frames;
        let (asking, answering) = (Talker::new(asking, asks), Talker::new(answering, answers));
        exchange::run(asking, answering, duration, threads(true)).map_err(failed("exchanging bare frames"))
    }

    /// The same payloads by the kernel, over one veth pair.
    ///
    /// # Errors
    /// When a program or a socket fails.
    pub fn kernel(&self, way: Kernel, duration: Duration) -> Result<Throughput, RunError> {
        self.over_pair(way).throughput(duration)
    }

    /// Round trips of small messages by the kernel; `loaded` beside sockets that carry as much as they can.
    ///
    /// # Errors
    /// When a program or a socket fails.
    pub fn kernel_latency(&self, way: Kernel, loaded: bool, duration: Duration) -> Result<Latency, RunError> {
        self.over_pair(way).latency(loaded, duration)
    }

    /// The same payloads by a stream of a QUIC library, over that pair.
    ///
    /// # Errors
    /// When the library or a socket fails.
    #[cfg(feature = "quic")]
    pub fn quic(&self, library: Quic, duration: Duration) -> Result<Throughput, RunError> {
        let sockets = kernel::udp_sockets(&self.pair)?;
        let outcome = quic::run(library, sockets, duration, self.payload_bytes as u16, threads(false));
        outcome.map_err(failed("sending by QUIC"))
    }

    /// Round trips of small messages by a QUIC library; `loaded` beside a stream that carries as much as it can.
    ///
    /// # Errors
    /// When the library or a socket fails.
    #[cfg(feature = "quic")]
    pub fn quic_latency(&self, library: Quic, loaded: bool, duration: Duration) -> Result<Latency, RunError> {
        let sockets = kernel::udp_sockets(&self.pair)?;
        let outcome = quic::exchange(library, sockets, loaded, duration, self.payload_bytes as u16, threads(false));
        outcome.map_err(failed("asking by QUIC"))
    }

    fn over_pair(&self, way: Kernel) -> OverPair<'_> {
        OverPair { pair: &self.pair, way, payload_bytes: self.payload_bytes }
    }

    /// Both hosts' endpoints, after what an earlier measurement left has gone.
    fn endpoints(&mut self, transport: Transport) -> Result<[HostEndpoint; 2], RunError> {
        self.rig.drain()?;
        Ok([self.endpoint(0, transport)?, self.endpoint(1, transport)?])
    }

    fn peer(&self, host: usize) -> Peer {
        Peer { address: self.fabric.hosts[host].v4.into(), mac: self.fabric.hosts[host].mac }
    }

    fn flow(&self, ack_every: u32) -> FlowConfig {
        let header_bytes = data_header_bytes();
        let window_bytes = u64::from(WINDOW_PACKETS) * u64::from(self.payload_bytes + header_bytes);
        let flow = unpaced(BalancerKind::Reps, self.payload_bytes, header_bytes, window_bytes);
        FlowConfig { ack_every, window_packets: 1024, ..flow }
    }

    fn endpoint(&mut self, host: usize, transport: Transport) -> Result<HostEndpoint, RunError> {
        let own = &self.fabric.hosts[host];
        let device = self.rig.devices[host].take();
        let device = device.ok_or_else(|| RunError::Unsupported("an earlier measurement failed".into()))?;
        let mut config = EndpointConfig::new(own.v4.into(), own.mac, self.flow(transport.ack_every));
        config.coalesce_ps = if transport.coalesces { COALESCE_PS } else { 0 };
        Endpoint::new(EmulatedDevice::in_real_time(device), config).map_err(RunError::host(&own.name))
    }
}

/// Tries an XDP program on a veth pair in namespaces of its own: whether the kernel has it run in the driver.
///
/// # Errors
/// When namespaces, veth or XDP do not work here.
pub fn probe_veth_xdp() -> Result<bool, RunError> {
    let (_program, mode) = Pair::new()?.steer(0)?;
    Ok(mode == AttachMode::Native)
}

fn machine_busy() -> Result<Duration, RunError> {
    cpu::busy().map_err(failed("reading the CPUs' time"))
}
