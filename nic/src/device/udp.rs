//! A device over UDP sockets of the kernel: no XDP, no root, any container.
//!
//! Entropy value *i* is a socket bound to its port (WIRE-13), so that frames look like those of
//! AF_XDP from the UDP header on, except for the DSCP, which is 0. The headers before it are not
//! sent, and are rebuilt for the receiver. Frames that the kernel cannot send are lost, as they
//! would be in the network.

use std::io;
use std::net::{IpAddr, UdpSocket};

use spray_wire::frame::envelop;
use spray_wire::offsets::udp_payload_offset;
use spray_wire::{Ecn, Envelope, EvPort, INITIAL_TTL};

use super::frames::{FrameState, Frames};
use super::{Device, DeviceHealth, DeviceInfo, DeviceStats, FrameCounts, FrameId, Received};

mod config;
mod options;
mod rx_socket;
mod tx_sockets;

#[cfg(test)]
mod tests;

pub use self::config::{UdpConfig, UdpError};

use self::config::Sockets;
use self::rx_socket::{RxSocket, Segment};
use self::tx_sockets::{Outgoing, TxSockets};

/// Bytes of an Ethernet header, which the MTU excludes.
const ETHERNET_BYTES: usize = 14;
/// Frames of a device: a few batches of arrivals and of departures.
const FRAMES: u32 = 1024;
/// Minimum space of a frame: a peer's MTU may be larger.
const LEAST_SPACE: usize = 9216;

/// Sockets of one address: one that receives, and one that sends for each entropy value.
#[derive(Debug)]
pub struct UdpDevice {
    lanes: TxSockets,
    arrivals: RxSocket,
    frames: Frames,
    memory: Box<[u8]>,
    /// Bytes of a frame's memory.
    space: usize,
    max_frame: usize,
    address: IpAddr,
    port: u16,
    stats: DeviceStats,
}

impl UdpDevice {
    /// Opens the sockets. Needs no privileges.
    ///
    /// # Errors
    /// Names the address or port that cannot be bound, and the remedy.
    pub fn open(config: &UdpConfig) -> Result<Self, UdpError> {
        let Sockets { receiving, sending } = config.sockets()?;
        let max_frame = config.mtu as usize + ETHERNET_BYTES;
        let space = max_frame.max(LEAST_SPACE);
        Ok(Self {
            lanes: TxSockets::new(sending, config.address).map_err(UdpError::Setup)?,
            arrivals: RxSocket::new(receiving).map_err(UdpError::Setup)?,
            frames: Frames::new(FRAMES),
            memory: vec![0; space * FRAMES as usize].into(),
            space,
            max_frame,
            address: config.address,
            port: config.ports.first(),
            stats: DeviceStats::default(),
        })
    }

    /// Returns the local address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns whether a frame was longer than the MTU of its path, so that the kernel has
    /// fragmented frames since.
    #[must_use]
    pub fn has_fragmented(&self) -> bool {
        self.lanes.may_fragment()
    }

    /// Sets whether the kernel queues ICMP errors at [`sending_sockets`](Self::sending_sockets)
    /// (off by default). While it does, each error makes the next call on that socket fail; turning
    /// it off drops the queue.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn queue_errors(&self, on: bool) -> io::Result<()> {
        self.lanes.queue_errors(on)
    }

    /// Returns the sockets that send, by entropy value.
    pub fn sending_sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        self.lanes.sockets()
    }

    fn bytes(&mut self, index: u32) -> &mut [u8] {
        &mut self.memory[index as usize * self.space..][..self.space]
    }

    /// Writes a datagram into a frame, after the headers that it would have had. Returns the
    /// frame's length, or `None` if it does not fit.
    fn write(&mut self, index: u32) -> Option<u32> {
        let Self { arrivals, memory, space, address, port, .. } = self;
        let Segment { payload, from, ecn } = arrivals.take()?;
        let frame = &mut memory[index as usize * *space..][..*space];
        let start = udp_payload_offset(from.is_ipv6());
        frame.get_mut(start..start + payload.len())?.copy_from_slice(payload);
        let envelope = Envelope {
            src_mac: [0; 6],
            dst_mac: [0; 6],
            src: from.ip(),
            dst: *address,
            src_port: EvPort::new(from.port()),
            dst_port: *port,
            dscp: 0,
            ecn: ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_tos(ecn as u8)),
            ttl: INITIAL_TTL,
        };
        envelop(frame, &envelope, payload.len()).ok().map(|len| len as u32)
    }
}

impl Device for UdpDevice {
    fn receive(&mut self, out: &mut Vec<Received>, budget: usize) -> io::Result<usize> {
        let (before, budget) = (out.len(), budget.min(out.capacity() - out.len()));
        while out.len() - before < budget && self.arrivals.fill() {
            let Some(index) = self.frames.take(FrameState::Held) else {
                self.stats.fill_empty += 1;
                break;
            };
            match self.write(index) {
                Some(len) => {
                    out.push(Received { frame: FrameId(index), len, misrouted: false });
                    self.stats.rx_bytes += u64::from(len);
                }
                None => {
                    self.frames.shift(index, FrameState::Held, FrameState::Free);
                    self.stats.rx_dropped += 1;
                }
            }
        }
        self.stats.rx += (out.len() - before) as u64;
        Ok(out.len() - before)
    }

    fn frame(&self, id: &FrameId, len: u32) -> &[u8] {
        &self.memory[self.frames.held(id) as usize * self.space..][..len as usize]
    }

    fn frame_mut(&mut self, id: &FrameId) -> &mut [u8] {
        let index = self.frames.held(id);
        self.bytes(index)
    }

    fn release(&mut self, id: FrameId) {
        self.frames.release(&id);
    }

    fn allocate(&mut self) -> Option<FrameId> {
        self.frames.take(FrameState::Held).map(FrameId)
    }

    fn transmit(&mut self, id: FrameId, len: u32) -> Result<(), FrameId> {
        assert!(len as usize <= self.max_frame, "frame of {len} bytes, the longest is {}", self.max_frame);
        let index = self.frames.held(&id);
        let outgoing = Outgoing::read(self.frame(&id, len), index);
        let lane = outgoing.as_ref().and_then(|(port, _)| self.lanes.of(*port));
        let (Some((_, outgoing)), Some(lane)) = (outgoing, lane) else {
            // Not the port of an entropy value: endpoints send no such frame (END-49).
            self.stats.tx_dropped += 1;
            self.release(id);
            return Ok(());
        };
        if !self.lanes.push(lane, outgoing) {
            self.stats.tx_ring_full += 1;
            return Err(id);
        }
        self.frames.shift(index, FrameState::Held, FrameState::Tx);
        self.stats.tx += 1;
        self.stats.tx_bytes += u64::from(len);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let Self { lanes, frames, memory, space, stats, .. } = self;
        let frame_at = |index: u32| &memory[index as usize * *space..][..*space];
        lanes.flush(frame_at, stats, |index| frames.shift(index, FrameState::Tx, FrameState::Free));
        Ok(())
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            max_frame: self.max_frame,
            evs: self.lanes.count(),
            resolves_next_hop: true,
            wake_fd: Some(self.arrivals.fd()),
        }
    }
}

impl DeviceHealth for UdpDevice {
    fn stats(&self) -> DeviceStats {
        DeviceStats { rx_dropped_ring_full: self.arrivals.dropped(), ..self.stats }
    }

    fn frame_counts(&self) -> FrameCounts {
        self.frames.frame_counts()
    }

    fn audit(&self) -> Result<(), String> {
        self.frames.audit()?;
        let (queued, sent) = (self.lanes.queued(), self.frames.count(FrameState::Tx) as usize);
        if queued == sent { Ok(()) } else { Err(format!("{queued} frames queued, {sent} by place")) }
    }
}
