//! What the transport carries over veth and a switch, and what bare frames and kernel UDP carry there: `spray bench veth`.
//!
//! All in real time: frames bear no virtual time and the switch's queues are faster than the machine, so that only the cost
//! of each way is measured. Every measurement has one sending and one receiving thread.

use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use spray_core::flow::FlowConfig;
use spray_core::path::{BalancerKind, PathConfig};
use spray_nic::clock::DilatedClock;
use spray_nic::device::XskDevice;
use spray_nic::driver::{DriverOptions, Idle, run};
use spray_nic::{Endpoint, EndpointConfig, EndpointEvent, Mode, Peer};

use super::pair::Pair;
use super::rig::Rig;
use super::{FabricSpec, OPEN_QUEUE, RunError};
use crate::bench::{Arrivals, StopOnDrop, Throughput, bare, join, kernel_udp};
use crate::frame::{RATE_BPS, RTO_PS, RTT_PS, data_frame, data_header_bytes, unpaced};
use crate::program::AttachMode;
use spray_fabric::{Fabric, LeafSpine};

/// Two hosts under two leaves with four spines between them, all in one chassis: three switch hops a frame.
const FABRIC: LeafSpine = LeafSpine::uniform([2, 4, 1], RATE_BPS, 1_000_000);
/// Frames on their way at a time: veth's ring holds 256 and drops what comes on top.
const WINDOW_PACKETS: u32 = 192;
/// Frames of either socket: a window and its ACKs fit, and all of them stay in the CPU's cache.
const FRAMES: u32 = 512;
/// One doorbell for several frames, as a NIC's interrupt for several; a small part of the time that a full window takes.
const COALESCE_PS: u64 = 20_000_000;
/// The transport's messages, and how many of them wait.
const MESSAGE_BYTES: usize = 1 << 20;
const QUEUED_MESSAGES: usize = 8;

/// A standing fabric of two hosts for measurements, and a veth pair beside it for the kernel's own UDP.
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
        rig.configure(&fabric, packet_bytes)?;
        Ok(Self { rig, fabric, payload_bytes, pair: Pair::new()? })
    }

    /// Messages over one connection with REPS, received whole: payload only, at `ack_every` packets an ACK.
    ///
    /// # Errors
    /// When the machine fails, or nothing arrives.
    pub fn transport(&mut self, ack_every: u32, duration: Duration) -> Result<Throughput, RunError> {
        self.rig.drain()?;
        let flow = self.flow(ack_every);
        let sender = self.endpoint(0, flow)?;
        let receiver = self.endpoint(1, flow)?;
        let peer = Peer { address: self.fabric.hosts[1].v4.into(), mac: self.fabric.hosts[1].mac };
        let stop = AtomicBool::new(false);
        let ((sender, sent), (receiver, arrivals)) = std::thread::scope(|scope| {
            let receiving = scope.spawn(|| receive(receiver, &stop));
            let sending = scope.spawn(|| send(sender, peer, duration, &stop));
            (join(sending), join(receiving))
        });
        self.rig.devices = vec![Some(sender), Some(receiver)];
        Ok(Throughput {
            sent,
            // The first one only started the clock.
            received: arrivals.count.saturating_sub(1),
            bytes: MESSAGE_BYTES,
            sending: duration,
            receiving: arrivals.time(),
        })
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
        bare::run(sender, receiver, &config).map_err(|error| RunError::io("sending bare frames", error))
    }

    /// Datagrams of the same payload by `sendmmsg` and `recvmmsg` over one veth pair.
    ///
    /// With `programs`, XDP programs sit on both ends as on the hosts' own links, and pass every datagram to the kernel; without,
    /// the kernel has the pair for itself, which is faster.
    ///
    /// # Errors
    /// When a program or a socket fails.
    pub fn kernel_udp(&self, programs: bool, duration: Duration) -> Result<Throughput, RunError> {
        let _programs = if programs { Some([self.pair.steer(0)?, self.pair.steer(1)?]) } else { None };
        let [sender, receiver] = udp_sockets(&self.pair)?;
        kernel_udp::run(&sender, &receiver, duration, self.payload_bytes as usize, threads(false))
            .map_err(|error| RunError::io("sending kernel UDP", error))
    }

    fn flow(&self, ack_every: u32) -> FlowConfig {
        let header_bytes = data_header_bytes();
        let window_bytes = u64::from(WINDOW_PACKETS) * u64::from(self.payload_bytes + header_bytes);
        let path = PathConfig::new(BalancerKind::Reps, RTT_PS, WINDOW_PACKETS);
        FlowConfig { ack_every, window_packets: 1024, ..unpaced(self.payload_bytes, header_bytes, window_bytes, path) }
    }

    fn endpoint(&mut self, host: usize, flow: FlowConfig) -> Result<Endpoint<XskDevice>, RunError> {
        let own = &self.fabric.hosts[host];
        let device = self.rig.devices[host].take();
        let device = device.ok_or_else(|| RunError::Unsupported("an earlier measurement failed".into()))?;
        let mut config = EndpointConfig::new(own.v4.into(), own.mac, Mode::Real, flow);
        config.coalesce_ps = COALESCE_PS;
        Endpoint::new(device, config).map_err(RunError::host(&own.name))
    }
}

/// How the sending and the receiving thread of every measurement run: each on a CPU of its own if there are two, since a
/// scheduler that moves them about halves any of the figures; spinning ones under SCHED_IDLE.
fn threads(idle_priority: bool) -> [DriverOptions; 2] {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    [0, 1].map(|side| DriverOptions { idle_priority, cpu: (cpus > 1).then_some(side), ..DriverOptions::emulation() })
}

/// Sends messages, a few waiting at any time, for `duration`; then waits for what is under way.
fn send(mut endpoint: Endpoint<XskDevice>, peer: Peer, duration: Duration, stop: &AtomicBool) -> (XskDevice, u64) {
    let _stop = StopOnDrop(stop);
    let _ = threads(true)[0].apply();
    let payload = Bytes::from(vec![0x5a; MESSAGE_BYTES]);
    let until_ps = duration.as_nanos() as u64 * 1000;
    let connection = endpoint.connect(1, peer, None);
    let (mut queued, mut delivered) = (0usize, 0usize);
    run(std::slice::from_mut(&mut endpoint), &mut DilatedClock::real(), Idle::Spin, |endpoints, now_ps| {
        let (endpoint, Ok(connection)) = (&mut endpoints[0], connection.as_ref()) else {
            return ControlFlow::Break(());
        };
        while let Some(event) = endpoint.poll_event() {
            match event {
                EndpointEvent::Delivered { .. } => delivered += 1,
                EndpointEvent::Failed { .. } | EndpointEvent::Closed { .. } => return ControlFlow::Break(()),
                _ => {}
            }
        }
        let is_over = now_ps >= until_ps;
        while !is_over && queued < delivered + QUEUED_MESSAGES && endpoint.send(*connection, payload.clone()).is_ok() {
            queued += 1;
        }
        if is_over && (delivered == queued || now_ps >= until_ps + RTO_PS) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    (endpoint.into_device(), queued as u64)
}

/// Receives messages until told to stop.
fn receive(mut endpoint: Endpoint<XskDevice>, stop: &AtomicBool) -> (XskDevice, Arrivals) {
    let _ = threads(true)[1].apply();
    let mut arrivals = Arrivals::default();
    run(std::slice::from_mut(&mut endpoint), &mut DilatedClock::real(), Idle::Spin, |endpoints, _| {
        while let Some(event) = endpoints[0].poll_event() {
            arrivals.add(matches!(event, EndpointEvent::Received { .. }).into());
        }
        if stop.load(Ordering::Acquire) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (endpoint.into_device(), arrivals)
}

/// Tries an XDP program on a veth pair in namespaces of its own: whether the kernel has it run in the driver.
///
/// # Errors
/// When namespaces, veth or XDP do not work here.
pub fn probe_veth_xdp() -> Result<bool, RunError> {
    let (_program, mode) = Pair::new()?.steer(0)?;
    Ok(mode == AttachMode::Native)
}

/// A UDP sender and a receiver, each on its side of the pair.
fn udp_sockets(pair: &Pair) -> Result<[UdpSocket; 2], RunError> {
    let open = |side: usize| {
        let bound = pair.run_in(side, || UdpSocket::bind((Pair::address(side, false), 0)))?;
        bound.map_err(|error| RunError::io("opening a UDP socket", error))
    };
    Ok([open(0)?, open(1)?])
}
