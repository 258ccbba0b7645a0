//! A socket per entropy value, with its queued frames. Consecutive frames of equal length to one
//! peer are sent by one system call (GSO).

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use quinn_udp::{EcnCodepoint, Transmit, UdpSocketState};
use spray_wire::offsets::{ETHERTYPE, ETHERTYPE_V6, udp_offset, udp_payload_offset, v4, v6};
use spray_wire::{Ev, EvPort};

use super::options::{self, TooLong};
use crate::device::DeviceStats;

/// Maximum number of queued frames of a socket: those of a few flushes if all have one entropy
/// value.
const QUEUE: usize = 256;
/// Maximum number of bytes of one call: the limit of UDP.
const BATCH_BYTES: usize = 65_000;

pub(super) struct TxSockets {
    lanes: Box<[Lane]>,
    /// The lanes with queued frames.
    busy: Vec<u16>,
    /// The state of quinn-udp for the sockets, which are all alike; the last is used. A failed call
    /// invalidates it.
    states: Vec<UdpSocketState>,
    /// Payloads of one call, contiguous.
    batch: Box<[u8]>,
    /// Maximum number of frames of a call.
    max_gso: usize,
    is_v6: bool,
    may_fragment: bool,
}

/// A socket and its queue.
#[derive(Debug)]
struct Lane {
    socket: UdpSocket,
    queue: VecDeque<Outgoing>,
}

/// A queued frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    frame: u32,
    to: SocketAddr,
    ecn: Option<EcnCodepoint>,
    start: usize,
    end: usize,
}

impl Outgoing {
    /// Reads the destination and the source port of a frame. `None` when it is no frame of the
    /// transport.
    pub(super) fn read(bytes: &[u8], frame: u32) -> Option<(EvPort, Self)> {
        let u16_at = |at| array(bytes, at).map(u16::from_be_bytes);
        let is_v6 = u16_at(ETHERTYPE)? == ETHERTYPE_V6;
        let udp = udp_offset(is_v6);
        let (to, tos): (IpAddr, u16) = match is_v6 {
            true => (Ipv6Addr::from(array::<16>(bytes, v6::DST)?).into(), u16_at(v6::VERSION_CLASS)? >> 4),
            false => (Ipv4Addr::from(array::<4>(bytes, v4::DST)?).into(), (*bytes.get(v4::TOS)?).into()),
        };
        let to = SocketAddr::new(to, u16_at(udp + 2)?);
        let (ecn, start) = (EcnCodepoint::from_bits(tos as u8 & 3), udp_payload_offset(is_v6));
        // Padding is not sent.
        let end = (udp + usize::from(u16_at(udp + 4)?)).min(bytes.len());
        (start < end).then_some((EvPort::new(u16_at(udp)?), Self { frame, to, ecn, start, end }))
    }

    fn bytes(&self) -> usize {
        self.end - self.start
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

impl TxSockets {
    /// # Errors
    /// When a socket option is refused.
    pub(super) fn new(sockets: Vec<UdpSocket>, address: IpAddr) -> io::Result<Self> {
        let is_v6 = address.is_ipv6();
        let mut states = Vec::with_capacity(sockets.len());
        for socket in &sockets {
            states.push(UdpSocketState::new(socket.into())?);
            options::handle_too_long(socket, is_v6, TooLong::Refused)?;
        }
        let lane = |socket| Lane { socket, queue: VecDeque::with_capacity(QUEUE) };
        Ok(Self {
            busy: Vec::with_capacity(sockets.len()),
            max_gso: states.last().map_or(1, UdpSocketState::max_gso_segments),
            states,
            lanes: sockets.into_iter().map(lane).collect(),
            batch: vec![0; BATCH_BYTES].into(),
            is_v6,
            may_fragment: false,
        })
    }

    pub(super) fn count(&self) -> u16 {
        self.lanes.len() as u16
    }

    #[cfg(test)]
    pub(super) fn set_segments(&mut self, most: usize) {
        self.max_gso = self.max_gso.min(most);
    }

    pub(super) fn may_fragment(&self) -> bool {
        self.may_fragment
    }

    pub(super) fn sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        self.lanes.iter().map(|lane| &lane.socket)
    }

    pub(super) fn queue_errors(&self, on: bool) -> io::Result<()> {
        self.sockets().try_for_each(|socket| options::queue_errors(socket, self.is_v6, on))
    }

    /// Returns the lane of a source port.
    pub(super) fn of(&self, port: EvPort) -> Option<u16> {
        port.ev(self.lanes.len() as u32).map(Ev::index)
    }

    /// Queues a frame for the next flush. Returns `false` when the queue is full.
    pub(super) fn push(&mut self, lane: u16, outgoing: Outgoing) -> bool {
        let queue = &mut self.lanes[usize::from(lane)].queue;
        if queue.len() == QUEUE {
            return false;
        }
        if queue.is_empty() {
            self.busy.push(lane);
        }
        queue.push_back(outgoing);
        true
    }

    pub(super) fn queued(&self) -> usize {
        self.lanes.iter().map(|lane| lane.queue.len()).sum()
    }

    /// Sends queued frames as far as the sockets have room. Calls `done` for each frame that was
    /// sent or dropped.
    pub(super) fn flush<'a>(
        &mut self,
        frame_at: impl Fn(u32) -> &'a [u8],
        stats: &mut DeviceStats,
        mut done: impl FnMut(u32),
    ) {
        for at in (0..self.busy.len()).rev() {
            let lane = self.busy[at];
            while self.send(lane, &frame_at, stats, &mut done) {}
            if self.lanes[usize::from(lane)].queue.is_empty() {
                self.busy.swap_remove(at);
            }
        }
    }

    /// Sends the first frames of a lane. Returns whether to continue with it.
    fn send<'a>(
        &mut self,
        lane: u16,
        frame_at: &impl Fn(u32) -> &'a [u8],
        stats: &mut DeviceStats,
        done: &mut impl FnMut(u32),
    ) -> bool {
        let Lane { socket, queue } = &self.lanes[usize::from(lane)];
        let (Some(first), Some(state)) = (queue.front(), self.states.last()) else { return false };
        let count = alike(queue, self.max_gso);
        let contents = gather(&mut self.batch, queue.range(..count), frame_at);
        let segment_size = (count > 1).then_some(first.bytes());
        let transmit = Transmit { destination: first.to, ecn: first.ecn, contents, segment_size, src_ip: None };
        stats.kicks += 1;
        match state.try_send(socket.into(), &transmit) {
            Ok(()) => stats.tx_completed += count as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                stats.kicks_deferred += 1;
                return false;
            }
            // They are sent again in another way.
            Err(error) if self.give_way(&error, count) => return true,
            Err(_) => stats.tx_dropped += count as u64,
        }
        let queue = &mut self.lanes[usize::from(lane)].queue;
        queue.drain(..count).for_each(|outgoing| done(outgoing.frame));
        true
    }

    /// Disables what the kernel refuses: GSO, where the interface or an old kernel has none, and
    /// unfragmented frames, where the path's MTU has decreased. Returns whether there was something
    /// to disable.
    pub(super) fn give_way(&mut self, error: &io::Error, count: usize) -> bool {
        let is_too_long = error.raw_os_error() == Some(libc::EMSGSIZE);
        let is_refused = matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO));
        if is_refused && self.states.len() > 1 {
            // With it quinn-udp would clear the ECN bits of all later frames.
            self.states.pop();
        }
        if count > 1 && (is_too_long || is_refused) {
            self.max_gso = 1;
            return true;
        }
        let gives_way = is_too_long && !self.may_fragment;
        if gives_way {
            (self.may_fragment, self.max_gso) = (true, 1);
            for lane in &self.lanes {
                // If that fails, frames continue to fail, and are dropped.
                let _ = options::handle_too_long(&lane.socket, self.is_v6, TooLong::Fragmented);
            }
        }
        gives_way
    }
}

/// Returns how many of the first frames one call can send: to one peer with one ECN mark, as long
/// as the first, and a shorter last one.
fn alike(queue: &VecDeque<Outgoing>, most: usize) -> usize {
    let Some(first) = queue.front() else { return 0 };
    let (mut count, mut bytes, mut is_over) = (1, first.bytes(), false);
    for next in queue.iter().skip(1).take(most.saturating_sub(1)) {
        bytes += next.bytes();
        let fits =
            next.to == first.to && next.ecn == first.ecn && next.bytes() <= first.bytes() && bytes <= BATCH_BYTES;
        if is_over || !fits {
            break;
        }
        is_over = next.bytes() < first.bytes();
        count += 1;
    }
    count
}

/// Copies the payloads of several frames side by side; a single one stays in place.
fn gather<'b, 'f: 'b, 'q>(
    batch: &'b mut [u8],
    mut frames: impl ExactSizeIterator<Item = &'q Outgoing>,
    frame_at: &impl Fn(u32) -> &'f [u8],
) -> &'b [u8] {
    let payload = |outgoing: &Outgoing| &frame_at(outgoing.frame)[outgoing.start..outgoing.end];
    if frames.len() == 1 {
        return frames.next().map_or(&[], payload);
    }
    let mut end = 0;
    for outgoing in frames {
        batch[end..end + outgoing.bytes()].copy_from_slice(payload(outgoing));
        end += outgoing.bytes();
    }
    &batch[..end]
}

impl std::fmt::Debug for TxSockets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TxSockets").field("lanes", &self.lanes).field("max_gso", &self.max_gso).finish_non_exhaustive()
    }
}
