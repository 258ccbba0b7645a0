//! Holds frames until their time has come: what an XDP program cannot do.
//!
//! One thread has a socket on every interface of the switches. It takes the frames that the program has decided, each with its ticket,
//! and sends each by the interface of its port when it is due.

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
use spray_nic::device::{Device, DeviceStats, FrameId, Received, XskDevice};
use spray_nic::sys::monotonic_ns;
use spray_pipeline::standing::{TICKET_BYTES, Ticket};

use crate::RunError;

/// Where frames of a port go.
#[derive(Clone, Copy, Debug)]
pub struct Exit {
    /// The socket that sends them.
    pub socket: usize,
    /// The Ethernet address at the far end of its cable.
    pub to: [u8; 6],
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
    /// Frames for which there was no room where they were to be sent.
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
    /// Begins to hold what comes by `sockets`. `exits` has where each port leads, if by one of them.
    pub fn new(sockets: Vec<XskDevice>, exits: Vec<Option<Exit>>) -> Result<Self, RunError> {
        let shared = Arc::new(Shared::default());
        let touched = vec![false; sockets.len()];
        let held = Held {
            sockets,
            touched,
            exits,
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
type Waiting = Reverse<(u64, u64, usize, u32, FrameId, u32)>;

struct Held {
    sockets: Vec<XskDevice>,
    /// Those that are to be flushed.
    touched: Vec<bool>,
    exits: Vec<Option<Exit>>,
    due: BinaryHeap<Waiting>,
    /// Frames that have come.
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
            if self.take(&mut arrivals).and_then(|()| self.pass_on()).is_err() || self.sleep().is_err() {
                // The interfaces are being removed.
                std::thread::sleep(LONGEST_SLEEP);
            }
        }
    }

    /// Takes what has arrived.
    fn take(&mut self, arrivals: &mut Vec<Received>) -> io::Result<()> {
        for from in 0..self.sockets.len() {
            let socket = &mut self.sockets[from];
            if socket.receive(arrivals, BATCH)? == 0 {
                continue;
            }
            for Received { frame, len, .. } in arrivals.drain(..) {
                let Some(ticket) = Ticket::read(socket.frame(&frame, len)) else {
                    socket.release(frame);
                    continue;
                };
                self.count += 1;
                self.due.push(Reverse((ticket.due_ps / 1000, self.count, from, ticket.port, frame, len)));
            }
            socket.flush()?;
        }
        Ok(())
    }

    /// Sends what is due.
    fn pass_on(&mut self) -> io::Result<()> {
        let until_ns = monotonic_ns() + EARLY_NS;
        while self.due.peek().is_some_and(|Reverse((due_ns, ..))| *due_ns <= until_ns) {
            let Some(Reverse((_, _, from, port, frame, len))) = self.due.pop() else { break };
            match self.exits.get(port as usize).copied().flatten() {
                Some(exit) if self.send(from, &frame, len, exit) => self.touched[exit.socket] = true,
                _ => drop(self.shared.refused.fetch_add(1, Relaxed)),
            }
            self.sockets[from].release(frame);
            // What is free again is to be received into.
            self.touched[from] = true;
        }
        for (socket, touched) in self.sockets.iter_mut().zip(&mut self.touched).filter(|(_, touched)| **touched) {
            socket.flush()?;
            // A busy kernel takes the rest at the next flush.
            *touched = socket.census().tx > 0;
        }
        Ok(())
    }

    /// Queues a frame that `from` holds for sending; false when there is no room.
    fn send(&mut self, from: usize, frame: &FrameId, len: u32, exit: Exit) -> bool {
        if self.sockets[exit.socket].census().free == 0 && self.sockets[exit.socket].flush().is_err() {
            return false;
        }
        let Some(copy) = self.sockets[exit.socket].allocate() else { return false };
        let [from, to] = if from == exit.socket {
            // A frame that turns back: one socket both lends and takes.
            let bytes = self.sockets[from].frame(frame, len).to_vec();
            self.sockets[from].frame_mut(&copy)[..len as usize].copy_from_slice(&bytes);
            return self.finish(copy, len, exit);
        } else {
            self.sockets.get_disjoint_mut([from, exit.socket]).expect("two sockets of this holder")
        };
        to.frame_mut(&copy)[..len as usize].copy_from_slice(from.frame(frame, len));
        self.finish(copy, len, exit)
    }

    /// Writes the addresses where the ticket was, and queues the frame.
    fn finish(&mut self, frame: FrameId, len: u32, exit: Exit) -> bool {
        let socket = &mut self.sockets[exit.socket];
        let addresses = &mut socket.frame_mut(&frame)[..TICKET_BYTES];
        addresses[..6].copy_from_slice(&exit.to);
        addresses[6..].copy_from_slice(&SWITCH_MAC);
        let Err(frame) = socket.transmit(frame, len) else { return true };
        if socket.flush().is_ok() && socket.census().tx == 0 {
            return socket.transmit(frame, len).map_err(|frame| socket.release(frame)).is_ok();
        }
        socket.release(frame);
        false
    }

    /// Asks the sockets now and then what they lost: each answer is a system call.
    fn count_drops(&mut self, now_ns: u64) {
        if now_ns - self.counted_ns >= COUNT_NS {
            self.counted_ns = now_ns;
            let stats: DeviceStats = self.sockets.iter().map(Device::stats).sum();
            self.shared.dropped.store(stats.rx_lost() + stats.tx_dropped, Relaxed);
        }
    }

    /// Waits for a frame to come, or to be due.
    fn sleep(&mut self) -> io::Result<()> {
        let now_ns = monotonic_ns();
        self.count_drops(now_ns);
        let next_ns = self.due.peek().map_or(u64::MAX, |Reverse((due_ns, ..))| *due_ns);
        let longest = if self.touched.contains(&true) { RETRY } else { LONGEST_SLEEP };
        let sleep = Duration::from_nanos(next_ns.saturating_sub(now_ns)).min(longest);
        if sleep.is_zero() {
            return Ok(());
        }
        let fds = self.sockets.iter().filter_map(Device::wake_fd);
        // SAFETY: the sockets are open for as long as `self` lives.
        let fds = fds.map(|fd| PollFd::new(unsafe { BorrowedFd::borrow_raw(fd) }, PollFlags::POLLIN));
        match ppoll(&mut fds.collect::<Vec<_>>(), Some(TimeSpec::from_duration(sleep)), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Where held frames say that they come from: no switch has an address that anybody would write to.
const SWITCH_MAC: [u8; 6] = [0x02, 0x53, 0x57, 0, 0, 0];
