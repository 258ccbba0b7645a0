//! A device over ordinary UDP sockets: without XDP, without root, in any container.
//!
//! An entropy value is a socket: the value with index *i* leaves by the one that is bound to the port that stands for it (WIRE-13). So
//! frames look as those of AF_XDP do from the UDP header on, but for the DSCP, which is 0. What lies before that is left out on the way
//! out, and written anew on the way in. What the kernel cannot send is lost, as it would be on the way; connections notice.

use std::io;
use std::net::{IpAddr, UdpSocket};

use spray_wire::frame::envelop;
use spray_wire::offsets::udp_payload_offset;
use spray_wire::{Ecn, Envelope, EvPort, INITIAL_TTL};

use super::frames::{FrameState, Frames};
use super::{Device, DeviceHealth, DeviceInfo, DeviceStats, FrameCensus, FrameId, Received};

mod arrivals;
mod config;
mod lanes;
mod options;

#[cfg(test)]
mod tests;

pub use self::config::{UdpConfig, UdpError};

use self::arrivals::{Arrivals, Segment};
use self::config::Sockets;
use self::lanes::{Lanes, Outgoing};

/// Bytes of an Ethernet header, which the MTU does not count.
const ETHERNET_BYTES: usize = 14;
/// Frames of a device: those of some batches that arrive and of some that leave, as none stays here for long.
const FRAMES: u32 = 1024;
/// The least space of a frame: a peer's MTU may be larger than ours.
const LEAST_SPACE: usize = 9216;

/// Sockets of one address: one that receives, and one for each entropy value.
#[derive(Debug)]
pub struct UdpDevice {
    lanes: Lanes,
    arrivals: Arrivals,
    frames: Frames,
    memory: Box<[u8]>,
    /// Bytes of memory for each frame.
    space: usize,
    max_frame: usize,
    address: IpAddr,
    port: u16,
    stats: DeviceStats,
}

impl UdpDevice {
    /// Opens the sockets. Any user may.
    ///
    /// # Errors
    /// Names the address or the port that cannot be had, and what to do.
    pub fn open(config: &UdpConfig) -> Result<Self, UdpError> {
        let Sockets { receiving, sending } = config.sockets()?;
        let max_frame = config.mtu as usize + ETHERNET_BYTES;
        let space = max_frame.max(LEAST_SPACE);
        Ok(Self {
            lanes: Lanes::new(sending, config.address).map_err(UdpError::Setup)?,
            arrivals: Arrivals::new(receiving).map_err(UdpError::Setup)?,
            frames: Frames::new(FRAMES),
            memory: vec![0; space * FRAMES as usize].into(),
            space,
            max_frame,
            address: config.address,
            port: config.ports.first(),
            stats: DeviceStats::default(),
        })
    }

    /// The address that it is bound to.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Whether a frame was longer than the MTU of its path, so that the kernel sends frames in fragments from then on. Whoever opens another
    /// device learns the MTU anew.
    #[must_use]
    pub fn has_fragmented(&self) -> bool {
        self.lanes.may_fragment()
    }

    /// Sets whether the kernel queues ICMP's answers to frames at [`sending_sockets`](Self::sending_sockets), where it does not by default. While it does,
    /// each answer costs the next frames of a socket; turned off, what is queued is dropped.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn queue_errors(&self, on: bool) -> io::Result<()> {
        self.lanes.queue_errors(on)
    }

    /// The sockets that send, one for each entropy value.
    pub fn sending_sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        self.lanes.sockets()
    }

    fn bytes(&mut self, index: u32) -> &mut [u8] {
        &mut self.memory[index as usize * self.space..][..self.space]
    }

    /// Writes a datagram into a frame, behind the headers that it would have come with. Returns the frame's length, or `None` when it is
    /// too long for one.
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
            // No port of an entropy value: no endpoint sends such a frame (END-49).
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

    fn census(&self) -> FrameCensus {
        self.frames.census()
    }

    fn audit(&self) -> Result<(), String> {
        self.frames.audit()?;
        let (queued, sent) = (self.lanes.queued(), self.frames.count(FrameState::Tx) as usize);
        if queued == sent { Ok(()) } else { Err(format!("{queued} frames queued, {sent} by place")) }
    }
}
