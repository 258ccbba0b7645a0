//! Holds frames until their time has come: what an XDP program cannot do.
//!
//! One thread has a socket on every queue of every interface of the switches. It takes the frames that the program has decided, each behind
//! its ticket, and sends each by the interface of its port when it is due. Frames that the switches do not take it hands to the bridge.

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
use spray_pipeline::deployment::{CORRUPTED, EXPIRED, TICKET_BYTES, TWICE, Ticket};
use spray_pipeline::hash::mix;
use spray_pipeline::scheme::NO_PORT;
use spray_wire::offsets::ETHERNET_BYTES;

use super::bridge::{Behind, Bridge, Frames};
use super::{checksum, expired};
use crate::RunError;
use crate::program::KernelClock;

/// Where frames of a port go: the socket of its interface's queue 0, and how many queues there are.
pub type Exit = (usize, usize);

/// A socket, as frames come by it.
#[derive(Debug)]
pub struct Entry {
    pub socket: XskDevice,
    /// The sender behind its interface, if that was given.
    pub behind: Option<Behind>,
    /// Frames come with checksums that nobody has written yet.
    pub is_software: bool,
}

/// The thread that holds frames; dropping it ends it, and closes its sockets.
#[derive(Debug)]
pub struct Holder {
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Frames for which there was no room where they were to be sent, or of which a host sent too many to nobody.
    refused: AtomicU64,
    /// Frames that the sockets lost.
    dropped: AtomicU64,
}

/// Frames taken from a socket at a time.
const BATCH: usize = 256;
/// How long the thread sleeps at most: so long may its end take.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);
/// It mostly sleeps, and takes a core from no one for long.
const NICENESS: libc::c_int = -15;
/// How long it waits for a busy kernel.
const RETRY: Duration = Duration::from_micros(100);
/// How often sockets are asked what they lost.
const COUNT_NS: u64 = 500_000_000;
/// What a frame may be early: less than a sleep can be told.
const EARLY_NS: u64 = 5_000;

impl Holder {
    /// Begins to hold what comes by the sockets of `entries`, until it is due by `clock`. `exits` has where each port leads, if by one of them.
    /// `switches` has the switch of each port; it is empty where switches tell nobody of expired packets.
    pub fn new(
        clock: KernelClock,
        entries: Vec<Entry>,
        exits: Vec<Option<Exit>>,
        bridge: Option<Bridge>,
        switches: Vec<usize>,
    ) -> Result<Self, RunError> {
        let shared = Arc::new(Shared::default());
        let touched = vec![false; entries.len()];
        let held = Held {
            clock,
            entries,
            touched,
            exits,
            bridge,
            switches,
            due: BinaryHeap::new(),
            count: 0,
            counted_ns: 0,
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new().name("spray-hold".into()).spawn(move || held.run());
        let thread = thread.map_err(|source| RunError::io("starting a thread", source))?;
        Ok(Self { thread: Some(thread), shared })
    }

    /// Frames that could not be sent on in time: this machine carries no more.
    pub fn lost(&self) -> u64 {
        self.shared.refused.load(Relaxed) + self.shared.dropped.load(Relaxed)
    }

    /// Whether the thread has ended by itself.
    pub fn is_gone(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        // A panic in there has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A frame and when it is due; of frames that are due at once the first one comes first.
type Waiting = Reverse<(u64, u64, DelayedFrame)>;

/// Where a frame waits, and where it is to go.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DelayedFrame {
    socket: usize,
    frame: FrameId,
    len: u32,
    port: u32,
    effects: u32,
}

struct Held {
    clock: KernelClock,
    entries: Vec<Entry>,
    /// The sockets that are to be flushed.
    touched: Vec<bool>,
    exits: Vec<Option<Exit>>,
    bridge: Option<Bridge>,
    /// As [`Holder::new`] takes them.
    switches: Vec<usize>,
    due: BinaryHeap<Waiting>,
    /// Frames that have come, and bits that were flipped.
    count: u64,
    /// When the sockets were last asked what they lost.
    counted_ns: u64,
    shared: Arc<Shared>,
}

impl Held {
    fn run(mut self) {
        // Sleeps would end 50 us late, and beside busy programs milliseconds. Where either is refused, frames are later.
        let _ = nix::sys::prctl::set_timerslack(1);
        // SAFETY: plain arguments; 0 is the calling thread.
        let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) };
        let mut arrivals = Vec::with_capacity(BATCH);
        while !self.shared.stop.load(Relaxed) {
            self.tell_boxes();
            self.take(&mut arrivals);
            self.pass_on();
            if self.sleep().is_err() {
                std::thread::sleep(LONGEST_SLEEP);
            }
        }
    }

    /// Takes what has arrived. Nothing does by an interface that is down or gone, and the others go on.
    fn take(&mut self, arrivals: &mut Vec<Received>) {
        let now_ns = self.clock.now_ns();
        for from in 0..self.entries.len() {
            if self.entries[from].socket.receive(arrivals, BATCH).is_ok_and(|count| count == 0) {
                continue;
            }
            for Received { frame, len, .. } in arrivals.drain(..) {
                match Ticket::read(self.entries[from].socket.frame(&frame, len)) {
                    Some((Ticket { due_ps, port, effects }, _)) if port != NO_PORT => {
                        self.count += 1;
                        let place = DelayedFrame { socket: from, frame, len, port, effects };
                        // What its sender is told takes as long again on the way back.
                        let back_ns = if effects & EXPIRED != 0 { (due_ps / 1000).saturating_sub(now_ns) } else { 0 };
                        self.due.push(Reverse((due_ps / 1000 + back_ns, self.count, place)));
                        continue;
                    }
                    Some((_, bytes)) => {
                        let bytes = bytes.to_vec();
                        self.bridge(from, bytes);
                    }
                    None => {}
                }
                self.entries[from].socket.release(frame);
            }
            self.touched[from] = true;
        }
    }

    /// Passes a frame on that the switches did not take.
    fn bridge(&mut self, from: usize, mut frame: Vec<u8>) {
        let Entry { behind, is_software, .. } = self.entries[from];
        let (Some(bridge), Some(behind)) = (&self.bridge, behind) else { return };
        if is_software {
            checksum::complete(&mut frame);
        }
        match bridge.hear(behind, &frame, self.clock.now_ns()) {
            Some(frames) => self.send_copies(frames),
            None => drop(self.shared.refused.fetch_add(1, Relaxed)),
        }
    }

    /// Tells other boxes what they are to know, if it is time.
    fn tell_boxes(&mut self) {
        let frames = self.bridge.as_ref().map(|bridge| bridge.tick(self.clock.now_ns())).unwrap_or_default();
        self.send_copies(frames);
    }

    fn send_copies(&mut self, frames: Frames) {
        for (port, frame) in frames {
            let Some((to, _)) = self.exits[port] else { continue };
            let socket = &mut self.entries[to].socket;
            if frame.len() > socket.info().max_frame {
                self.shared.refused.fetch_add(1, Relaxed);
                continue;
            }
            let Some(copy) = room(socket) else { continue };
            socket.frame_mut(&copy)[..frame.len()].copy_from_slice(&frame);
            self.touched[to] = queue(socket, copy, frame.len() as u32) || self.touched[to];
        }
    }

    /// Sends what is due.
    fn pass_on(&mut self) {
        let until_ns = self.clock.now_ns() + EARLY_NS;
        while self.due.peek().is_some_and(|Reverse((due_ns, ..))| *due_ns <= until_ns) {
            let Some(Reverse((_, _, place))) = self.due.pop() else { break };
            let times = if place.effects & TWICE != 0 { 2 } else { 1 };
            for _ in 0..times {
                let sent = if place.effects & EXPIRED != 0 { self.tell_sender(&place) } else { self.send(&place) };
                match sent {
                    Some(socket) => self.touched[socket] = true,
                    None => drop(self.shared.refused.fetch_add(1, Relaxed)),
                }
            }
            self.entries[place.socket].socket.release(place.frame);
            // What is free again is to be received into.
            self.touched[place.socket] = true;
        }
        for (Entry { socket, .. }, touched) in
            self.entries.iter_mut().zip(&mut self.touched).filter(|(_, touched)| **touched)
        {
            // A busy kernel takes the rest at the next flush, and an interface that is down when it is up.
            *touched = socket.flush().is_ok() && socket.census().tx > 0;
        }
    }

    /// Queues a frame for sending. Returns the socket that sends it; `None` when there is no room.
    fn send(&mut self, place: &DelayedFrame) -> Option<usize> {
        let (first, queues) = (*self.exits.get(place.port as usize)?)?;
        // Frames of a flow come by one queue and go by one.
        let to = first + place.socket % queues;
        // Its interface may take shorter ones than that by which it came.
        if place.len as usize > self.entries[to].socket.info().max_frame + TICKET_BYTES {
            return None;
        }
        let copy = room(&mut self.entries[to].socket)?;
        let len = if to == place.socket {
            // A frame that turns back: one socket both lends and takes.
            let (_, bytes) = Ticket::read(self.entries[to].socket.frame(&place.frame, place.len))?;
            let bytes = bytes.to_vec();
            self.entries[to].socket.frame_mut(&copy)[..bytes.len()].copy_from_slice(&bytes);
            bytes.len()
        } else {
            let [from, to] = self.entries.get_disjoint_mut([place.socket, to]).expect("two sockets of this holder");
            let (_, bytes) = Ticket::read(from.socket.frame(&place.frame, place.len))?;
            to.socket.frame_mut(&copy)[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        };
        if self.entries[place.socket].is_software {
            checksum::complete(&mut self.entries[to].socket.frame_mut(&copy)[..len]);
        }
        if place.effects & CORRUPTED != 0 {
            self.count += 1;
            flip(&mut self.entries[to].socket.frame_mut(&copy)[..len], mix(self.count));
        }
        queue(&mut self.entries[to].socket, copy, len as u32).then_some(to)
    }

    /// Queues what the switch where a frame expired tells its sender, unless it may tell nothing. Returns the socket as [`Held::send`].
    fn tell_sender(&mut self, place: &DelayedFrame) -> Option<usize> {
        let socket = &mut self.entries[place.socket].socket;
        let (_, frame) = Ticket::read(socket.frame(&place.frame, place.len))?;
        let told = self.switches.get(place.port as usize).and_then(|switch| expired::answer(*switch, frame));
        let Some(told) = told else { return Some(place.socket) };
        let copy = room(socket)?;
        socket.frame_mut(&copy)[..told.len()].copy_from_slice(&told);
        queue(socket, copy, told.len() as u32).then_some(place.socket)
    }

    /// Asks the sockets now and then what they lost: each answer is a system call. Flushes those whose interfaces were down.
    fn count_drops(&mut self, now_ns: u64) {
        if now_ns - self.counted_ns >= COUNT_NS {
            self.counted_ns = now_ns;
            self.touched.fill(true);
            let stats: DeviceStats = self.entries.iter().map(|entry| entry.socket.stats()).sum();
            self.shared.dropped.store(stats.rx_lost() + stats.tx_dropped, Relaxed);
        }
    }

    /// Waits for a frame to come, or to be due.
    fn sleep(&mut self) -> io::Result<()> {
        let now_ns = self.clock.now_ns();
        self.count_drops(now_ns);
        let next_ns = self.due.peek().map_or(u64::MAX, |Reverse((due_ns, ..))| *due_ns);
        let longest = if self.touched.contains(&true) { RETRY } else { LONGEST_SLEEP };
        let sleep = Duration::from_nanos(next_ns.saturating_sub(now_ns)).min(longest);
        if sleep.is_zero() {
            return Ok(());
        }
        // One whose interface is gone would never let us sleep.
        let there = self.entries.iter().filter(|entry| !entry.socket.is_gone());
        let fds = there.filter_map(|entry| entry.socket.info().wake_fd);
        // SAFETY: the sockets are open for as long as `self` lives.
        let fds = fds.map(|fd| PollFd::new(unsafe { BorrowedFd::borrow_raw(fd) }, PollFlags::POLLIN));
        match ppoll(&mut fds.collect::<Vec<_>>(), Some(TimeSpec::from_duration(sleep)), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Flips one bit behind a frame's Ethernet header, which `random` chooses.
fn flip(frame: &mut [u8], random: u64) {
    let Some(packet) = frame.get_mut(ETHERNET_BYTES..).filter(|packet| !packet.is_empty()) else { return };
    let bit = random as usize % (8 * packet.len());
    packet[bit / 8] ^= 1 << (bit % 8);
}

/// A frame of a socket to send; `None` when there is no room.
fn room(socket: &mut XskDevice) -> Option<FrameId> {
    if socket.census().free == 0 && socket.flush().is_err() {
        return None;
    }
    socket.allocate()
}

/// Queues a frame; false when there is no room.
fn queue(socket: &mut XskDevice, frame: FrameId, len: u32) -> bool {
    let Err(frame) = socket.transmit(frame, len) else { return true };
    if socket.flush().is_ok() && socket.census().tx == 0 {
        return socket.transmit(frame, len).map_err(|frame| socket.release(frame)).is_ok();
    }
    socket.release(frame);
    false
}
