//! Throughput of the transport and of bare frames over veth and a switch: `spray bench veth`. In
//! real time, with switch queues faster than the machine, so that only CPU cost is measured.

use std::time::Duration;

use spray_core::flow::FlowConfig;
use spray_core::path::BalancerKind;
use spray_nic::device::XskDevice;
use spray_nic::{Endpoint, EndpointConfig, Peer};

use spray_fabric::{BinScale, Fabric, LeafSpine};
use spray_switch::program::AttachMode;
use spray_switch::{FabricSpec, RunError, data_frame, data_header_bytes};
use spray_testbed::{EmulatedDevice, HostEndpoint, OPEN_QUEUE, RATE_BPS, Rig, unpaced};

use super::bare;
use super::measure::{Latency, REQUEST_BYTES, Throughput, failed, run_both, threads};
use super::pair::Pair;
use super::transport;

/// Two hosts under two leaves with four spines, in one chassis: three switch hops per frame.
const FABRIC: LeafSpine = LeafSpine::uniform([2, 4, 1], RATE_BPS, 1_000_000);
/// Maximum number of packets in flight: the ring of veth holds 256 and drops further ones.
const WINDOW_PACKETS: u32 = 192;
/// Frames per socket: enough for a window and its ACKs, and few enough for the CPU's cache.
const FRAMES: u32 = 512;
/// Time to collect frames for one doorbell, as interrupt coalescing; far below that of a window.
const COALESCE_PS: u64 = 20_000_000;

/// Settings of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Packets per ACK.
    pub ack_every: u32,
    /// Whether frames wait up to 20 us for others, as with interrupt coalescing.
    pub coalesces: bool,
}

/// A fabric with two hosts.
#[derive(Debug)]
pub struct VethBench {
    rig: Rig,
    fabric: Fabric,
    payload_bytes: u32,
}

impl VethBench {
    /// Sets up the fabric for packets of `payload_bytes`. Needs root. On an error what was
    /// created is removed.
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
        rig.configure(&fabric, packet_bytes, BinScale::default())?;
        Ok(Self { rig, fabric, payload_bytes })
    }

    /// Measures messages over one REPS connection. Only the payload of complete messages counts.
    pub fn transport(&mut self, transport: Transport, duration: Duration) -> Result<Throughput, RunError> {
        let [sender, receiver] = self.endpoints(transport)?;
        let peer = self.peer(1);
        let send = |_: &_| transport::send(sender, peer, duration);
        let ((sender, sent), (receiver, arrivals)) =
            run_both(threads(), send, |stop| transport::receive(receiver, stop)).map_err(RunError::thread)?;
        self.rig.devices = vec![Some(sender), Some(receiver)];
        Ok(Throughput {
            sent,
            // The first message only started the clock.
            received: arrivals.count.saturating_sub(1),
            bytes: transport::MESSAGE_BYTES,
            receiving: arrivals.time(),
        })
    }

    /// Measures round trips of small messages over two REPS connections, one per direction.
    pub fn transport_latency(&mut self, transport: Transport, duration: Duration) -> Result<Latency, RunError> {
        let [asking, answering] = self.endpoints(transport)?;
        let peers = [1, 0].map(|host| self.peer(host));
        let ask = |_: &_| transport::ask(asking, peers[0], duration);
        let ((asking, took), answering) =
            run_both(threads(), ask, |stop| transport::answer(answering, peers[1], stop)).map_err(RunError::thread)?;
        self.rig.devices = vec![Some(asking), Some(answering)];
        Ok(took)
    }

    /// Measures frames of the transport's size over the same path and sockets.
    pub fn bare(&mut self, duration: Duration) -> Result<Throughput, RunError> {
        let [template, _] = self.frames(self.payload_bytes as u16);
        let [sender, receiver] = self.idle_devices()?;
        let config = bare::BareConfig { template: &template, duration, window: WINDOW_PACKETS, threads: threads() };
        bare::run(sender, receiver, &config).map_err(failed("sending bare frames"))
    }

    /// Measures round trips of small messages in bare frames.
    pub fn bare_latency(&mut self, duration: Duration) -> Result<Latency, RunError> {
        let frames = self.frames(REQUEST_BYTES as u16);
        bare::exchange(self.idle_devices()?, frames, duration, threads()).map_err(failed("exchanging bare frames"))
    }

    fn frames(&self, payload_bytes: u16) -> [Vec<u8>; 2] {
        let hosts = &self.fabric.hosts;
        [(0, 1), (1, 0)].map(|(from, to)| data_frame(&hosts[from], &hosts[to], payload_bytes))
    }

    /// Returns the devices after draining frames of earlier measurements.
    fn idle_devices(&mut self) -> Result<[&mut XskDevice; 2], RunError> {
        self.rig.drain()?;
        match self.rig.devices.as_mut_slice() {
            [Some(sender), Some(receiver)] => Ok([sender, receiver]),
            _ => Err(RunError::Unsupported("an earlier measurement failed".into())),
        }
    }

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

/// Attaches an XDP program to a veth pair; returns whether it runs in native mode.
pub fn probe_veth_xdp() -> Result<bool, RunError> {
    let (_program, mode) = Pair::new()?.steer(0)?;
    Ok(mode == AttachMode::Native)
}
