//! Delays frames until they are due, which an XDP program cannot.
//!
//! One thread has an AF_XDP socket per queue of the switches' interfaces. It receives processed
//! frames behind delay headers, and sends each when due. Unforwarded frames go to the bridge.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use spray_nic::device::{Device, DeviceHealth, DeviceStats, FrameId, Received, XskDevice};
use spray_pipeline::deployment::{CORRUPTED, DELAY_HEADER_BYTES, DUPLICATED, DelayHeader, EXPIRED};
use spray_pipeline::hash::mix;
use spray_pipeline::scheme::NO_PORT;
use spray_wire::offsets::ETHERNET_BYTES;

use super::bridge::{Bridge, Frames, Source};
use super::{checksum, time_exceeded};
use crate::RunError;
use crate::program::KernelClock;

/// How frames of a port leave: the socket of its interface's queue 0, and the number of queues.
pub type EgressSocket = (usize, usize);

/// The socket of one queue.
#[derive(Debug)]
pub struct QueueSocket {
    pub socket: XskDevice,
    /// The sender behind an external interface.
    pub source: Option<Source>,
    /// Received frames may have partial checksums.
    pub is_software: bool,
}

/// The thread that delays frames; dropping it stops the thread and closes its sockets.
#[derive(Debug)]
pub struct DelayQueue {
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Frames dropped for lack of room at the egress, or by the bridge.
    refused: AtomicU64,
    /// Frames dropped by the sockets.
    dropped: AtomicU64,
}

/// The maximum number of frames received from a socket at a time.
const BATCH: usize = 256;
/// Bounds the time that stopping takes.
const MAX_SLEEP: Duration = Duration::from_millis(50);
/// High priority does not starve others: the thread mostly sleeps.
const NICENESS: libc::c_int = -15;
/// The sleep while the kernel is too busy to send.
const RETRY: Duration = Duration::from_micros(100);
const COUNT_INTERVAL_NS: u64 = 500_000_000;
/// How early a frame may leave: less than the resolution of a sleep.
const EARLY_NS: u64 = 5_000;

impl DelayQueue {
    /// Starts the thread. `egress` has the exit of each port that has one, and `switches` the
    /// switch of each port; empty: switches send no ICMP errors.
    pub fn new(
        clock: KernelClock,
        sockets: Vec<QueueSocket>,
        egress: Vec<Option<EgressSocket>>,
        bridge: Option<Bridge>,
        switches: Vec<usize>,
    ) -> Result<Self, RunError> {
        let shared = Arc::new(Shared::default());
        let needs_flush = vec![false; sockets.len()];
        let worker = Worker {
            clock,
            sockets,
            needs_flush,
            egress,
            bridge,
            switches,
            due: BinaryHeap::new(),
            count: 0,
            counted_ns: 0,
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new().name("spray-hold".into()).spawn(move || worker.run());
        let thread = thread.map_err(|source| RunError::io("starting a thread", source))?;
        Ok(Self { thread: Some(thread), shared })
    }

    /// The number of frames dropped for lack of capacity.
    pub fn lost(&self) -> u64 {
        self.shared.refused.load(Relaxed) + self.shared.dropped.load(Relaxed)
    }

    /// Whether the thread has ended.
    pub fn is_gone(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for DelayQueue {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        // A panic of the thread has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Ordered by due time, in ns, then by arrival.
type Due = Reverse<(u64, u64, DelayedFrame)>;

/// A received frame in its socket's UMEM, and its egress port.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DelayedFrame {
    socket: usize,
    frame: FrameId,
    len: u32,
    port: u32,
    flags: u32,
}

struct Worker {
    clock: KernelClock,
    sockets: Vec<QueueSocket>,
    /// By socket.
    needs_flush: Vec<bool>,
    egress: Vec<Option<EgressSocket>>,
    bridge: Option<Bridge>,
    switches: Vec<usize>,
    due: BinaryHeap<Due>,
    /// Frames received plus bits flipped: orders frames and seeds flips.
    count: u64,
    /// When the sockets' drops were last read.
    counted_ns: u64,
    shared: Arc<Shared>,
}

impl Worker {
    fn run(mut self) {
        // Otherwise sleeps end 50 us late, or milliseconds late beside busy programs.
        let _ = nix::sys::prctl::set_timerslack(1);
        // SAFETY: plain arguments; 0 is the calling thread.
        let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
        let mut arrivals = Vec::with_capacity(BATCH);
        while !self.shared.stop.load(Relaxed) {
            self.tick_bridge();
            self.receive(&mut arrivals);
            self.send_due();
            if self.sleep().is_err() {
                std::thread::sleep(MAX_SLEEP);
            }
        }
    }

    /// Receives from all sockets; errors of an interface that is down or gone are ignored.
    fn receive(&mut self, arrivals: &mut Vec<Received>) {
        let now_ns = self.clock.now_ns();
        for from in 0..self.sockets.len() {
            if self.sockets[from].socket.receive(arrivals, BATCH).is_ok_and(|count| count == 0) {
                continue;
            }
            for Received { frame, len, .. } in arrivals.drain(..) {
                match DelayHeader::read(self.sockets[from].socket.frame(&frame, len)) {
                    Some((DelayHeader { due_ps, port, flags }, _)) if port != NO_PORT => {
                        self.count += 1;
                        let place = DelayedFrame { socket: from, frame, len, port, flags };
                        // The reply is delayed by as much again for its way back.
                        let back_ns = if flags & EXPIRED != 0 { (due_ps / 1000).saturating_sub(now_ns) } else { 0 };
                        self.due.push(Reverse((due_ps / 1000 + back_ns, self.count, place)));
                        continue;
                    }
                    Some((_, bytes)) => {
                        let bytes = bytes.to_vec();
                        self.bridge(from, bytes);
                    }
                    None => {}
                }
                self.sockets[from].socket.release(frame);
            }
            self.needs_flush[from] = true;
        }
    }

    /// Hands a frame that no switch forwards to the bridge.
    fn bridge(&mut self, from: usize, mut frame: Vec<u8>) {
        let QueueSocket { source, is_software, .. } = self.sockets[from];
        let (Some(bridge), Some(source)) = (&self.bridge, source) else { return };
        if is_software {
            checksum::complete(&mut frame);
        }
        match bridge.receive(source, &frame, self.clock.now_ns()) {
            Some(frames) => self.send_copies(frames),
            None => drop(self.shared.refused.fetch_add(1, Relaxed)),
        }
    }

    /// Sends what the bridge has due.
    fn tick_bridge(&mut self) {
        let frames = self.bridge.as_ref().map(|bridge| bridge.tick(self.clock.now_ns())).unwrap_or_default();
        self.send_copies(frames);
    }

    fn send_copies(&mut self, frames: Frames) {
        for (port, frame) in frames {
            let Some((to, _)) = self.egress[port] else { continue };
            let socket = &mut self.sockets[to].socket;
            if frame.len() > socket.info().max_frame {
                self.shared.refused.fetch_add(1, Relaxed);
                continue;
            }
            let Some(copy) = allocate(socket) else { continue };
            socket.frame_mut(&copy)[..frame.len()].copy_from_slice(&frame);
            self.needs_flush[to] = queue(socket, copy, frame.len() as u32) || self.needs_flush[to];
        }
    }

    fn send_due(&mut self) {
        let until_ns = self.clock.now_ns() + EARLY_NS;
        while self.due.peek().is_some_and(|Reverse((due_ns, ..))| *due_ns <= until_ns) {
            let Some(Reverse((_, _, place))) = self.due.pop() else { break };
            let times = if place.flags & DUPLICATED != 0 { 2 } else { 1 };
            for _ in 0..times {
                let sent = if place.flags & EXPIRED != 0 { self.send_time_exceeded(&place) } else { self.send(&place) };
                match sent {
                    Some(socket) => self.needs_flush[socket] = true,
                    None => drop(self.shared.refused.fetch_add(1, Relaxed)),
                }
            }
            self.sockets[place.socket].socket.release(place.frame);
            // A flush returns the free frame to the fill ring.
            self.needs_flush[place.socket] = true;
        }
        for (QueueSocket { socket, .. }, needs_flush) in
            self.sockets.iter_mut().zip(&mut self.needs_flush).filter(|(_, needs_flush)| **needs_flush)
        {
            // A busy kernel sends the rest at the next flush, and a down interface when it is up.
            *needs_flush = socket.flush().is_ok() && socket.frame_counts().tx > 0;
        }
    }

    /// Queues a frame on its egress socket, which is returned; `None` when there is no room.
    fn send(&mut self, place: &DelayedFrame) -> Option<usize> {
        let (first, queues) = (*self.egress.get(place.port as usize)?)?;
        // Frames of a flow arrive by one queue and leave by one.
        let to = first + place.socket % queues;
        // The egress MTU may be smaller than the ingress MTU.
        if place.len as usize > self.sockets[to].socket.info().max_frame + DELAY_HEADER_BYTES {
            return None;
        }
        let copy = allocate(&mut self.sockets[to].socket)?;
        let len = if to == place.socket {
            // The frame leaves by its ingress: a socket cannot be borrowed twice.
            let (_, bytes) = DelayHeader::read(self.sockets[to].socket.frame(&place.frame, place.len))?;
            let bytes = bytes.to_vec();
            self.sockets[to].socket.frame_mut(&copy)[..bytes.len()].copy_from_slice(&bytes);
            bytes.len()
        } else {
            let [from, to] = self.sockets.get_disjoint_mut([place.socket, to]).expect("two sockets");
            let (_, bytes) = DelayHeader::read(from.socket.frame(&place.frame, place.len))?;
            to.socket.frame_mut(&copy)[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        };
        if self.sockets[place.socket].is_software {
            checksum::complete(&mut self.sockets[to].socket.frame_mut(&copy)[..len]);
        }
        if place.flags & CORRUPTED != 0 {
            self.count += 1;
            flip(&mut self.sockets[to].socket.frame_mut(&copy)[..len], mix(self.count));
        }
        queue(&mut self.sockets[to].socket, copy, len as u32).then_some(to)
    }

    /// Queues the ICMP error for an expired frame, if allowed. Returns as [`Worker::send`].
    fn send_time_exceeded(&mut self, place: &DelayedFrame) -> Option<usize> {
        let socket = &mut self.sockets[place.socket].socket;
        let (_, frame) = DelayHeader::read(socket.frame(&place.frame, place.len))?;
        let answer = self.switches.get(place.port as usize).and_then(|switch| time_exceeded::reply(*switch, frame));
        let Some(answer) = answer else { return Some(place.socket) };
        let copy = allocate(socket)?;
        socket.frame_mut(&copy)[..answer.len()].copy_from_slice(&answer);
        queue(socket, copy, answer.len() as u32).then_some(place.socket)
    }

    /// Reads the sockets' drops, at intervals, and flushes all, as an interface may be up again.
    fn count_drops(&mut self, now_ns: u64) {
        if now_ns - self.counted_ns >= COUNT_INTERVAL_NS {
            self.counted_ns = now_ns;
            self.needs_flush.fill(true);
            let stats: DeviceStats = self.sockets.iter().map(|from| from.socket.stats()).sum();
            self.shared.dropped.store(stats.rx_lost() + stats.tx_dropped, Relaxed);
        }
    }

    /// Waits until a frame arrives or is due.
    fn sleep(&mut self) -> io::Result<()> {
        let now_ns = self.clock.now_ns();
        self.count_drops(now_ns);
        let next_ns = self.due.peek().map_or(u64::MAX, |Reverse((due_ns, ..))| *due_ns);
        let longest = if self.needs_flush.contains(&true) { RETRY } else { MAX_SLEEP };
        let sleep = Duration::from_nanos(next_ns.saturating_sub(now_ns)).min(longest);
        if sleep.is_zero() {
            return Ok(());
        }
        // The socket of a removed interface is always ready.
        let there = self.sockets.iter().filter(|from| !from.socket.is_gone());
        let fds = there.filter_map(|from| from.socket.info().wake_fd);
        // SAFETY: the sockets are open for as long as `self` lives.
        let fds = fds.map(|fd| PollFd::new(unsafe { BorrowedFd::borrow_raw(fd) }, PollFlags::POLLIN));
        match ppoll(&mut fds.collect::<Vec<_>>(), Some(TimeSpec::from_duration(sleep)), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Flips one bit behind the Ethernet header, chosen by `random`.
fn flip(frame: &mut [u8], random: u64) {
    let Some(packet) = frame.get_mut(ETHERNET_BYTES..).filter(|packet| !packet.is_empty()) else { return };
    let bit = random as usize % (8 * packet.len());
    packet[bit / 8] ^= 1 << (bit % 8);
}

/// Allocates a frame to send; `None` when there is no room.
fn allocate(socket: &mut XskDevice) -> Option<FrameId> {
    if socket.frame_counts().free == 0 && socket.flush().is_err() {
        return None;
    }
    socket.allocate()
}

/// Queues a frame; returns false when there is no room.
fn queue(socket: &mut XskDevice, frame: FrameId, len: u32) -> bool {
    let Err(frame) = socket.transmit(frame, len) else { return true };
    if socket.flush().is_ok() && socket.frame_counts().tx == 0 {
        return socket.transmit(frame, len).map_err(|frame| socket.release(frame)).is_ok();
    }
    socket.release(frame);
    false
}
