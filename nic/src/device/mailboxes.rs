//! Mailboxes by which the shards of a host forward frames that arrived on the wrong queue.
//!
//! A NIC selects queues by rules or hashes that do not depend on the shard. The shard that receives
//! a frame for another one puts it into that shard's inbox, and wakes it.

use std::io;
#[cfg(feature = "xdp")]
use std::os::fd::RawFd;
use std::sync::Arc;
#[cfg(feature = "xdp")]
use std::sync::atomic::AtomicU64;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_queue::ArrayQueue;
use spray_wire::{Ports, switch_view};

use crate::endpoint::Shard;
use crate::waker::Waker;

#[derive(Debug)]
pub(super) struct ShardMailboxes<P> {
    inboxes: Box<[Inbox<P>]>,
}

/// The frames for one shard. Has its own cache line, since all shards write to it.
#[derive(Debug)]
#[repr(align(128))]
struct Inbox<P> {
    parcels: ArrayQueue<P>,
    waker: Waker,
    /// Frames that arrived on the shard's queues.
    #[cfg(feature = "xdp")]
    arrived: AtomicU64,
    /// The shard has ended and accepts no frames.
    is_closed: AtomicBool,
}

impl<P> ShardMailboxes<P> {
    /// Creates inboxes for `shards` shards, each with room for `room` frames.
    pub(super) fn new(shards: usize, room: usize) -> io::Result<Self> {
        let inbox = |_| {
            Ok(Inbox {
                parcels: ArrayQueue::new(room.max(1)),
                waker: Waker::new()?,
                #[cfg(feature = "xdp")]
                arrived: AtomicU64::new(0),
                is_closed: AtomicBool::new(false),
            })
        };
        Ok(Self { inboxes: (0..shards).map(inbox).collect::<io::Result<_>>()? })
    }
}

/// A shard's inbox, and its access to the others.
#[derive(Debug)]
pub(super) struct Mailbox<P> {
    shard: Shard,
    ports: Ports,
    mailboxes: Arc<ShardMailboxes<P>>,
    /// Consecutive polls that found the inbox empty.
    quiet: u32,
    /// Bit mask of the shards with new frames since they were last woken.
    to_wake: u64,
}

/// Empty polls after which a shard is woken by new frames: fewer than the rounds before a driver
/// sleeps.
const QUIET_LOOKS: u32 = 64;

impl<P> Mailbox<P> {
    pub(super) fn new(shard: Shard, ports: Ports, mailboxes: Arc<ShardMailboxes<P>>) -> Self {
        Self { shard, ports, mailboxes, quiet: 0, to_wake: 0 }
    }

    /// Returns the shard that a frame is for, if it is another one and the frame is of the
    /// transport.
    //= docs/specs/endpoint.md#END-44 Several endpoints of a host
    #[inline]
    pub(super) fn owner_of(&self, frame: &[u8]) -> Option<u8> {
        let port = self.ports.number(switch_view::udp_port(frame)?.1)?;
        Some(self.shard.shard_of_port(port)).filter(|shard| *shard != self.shard.number())
    }

    /// Forwards a frame to another shard, or returns one to its owner; [`wake`](Self::wake)
    /// follows.
    ///
    /// # Errors
    /// Returns the frame when the inbox is full or its shard has ended.
    #[inline]
    pub(super) fn forward(&mut self, shard: u8, parcel: P) -> Result<(), P> {
        let inbox = &self.mailboxes.inboxes[usize::from(shard)];
        if inbox.is_closed.load(Ordering::Relaxed) {
            return Err(parcel);
        }
        inbox.parcels.push(parcel)?;
        self.to_wake |= 1 << shard;
        Ok(())
    }

    /// Wakes the shards that have new frames.
    #[inline]
    pub(super) fn wake(&mut self) {
        while self.to_wake != 0 {
            self.mailboxes.inboxes[self.to_wake.trailing_zeros() as usize].waker.wake();
            self.to_wake &= self.to_wake - 1;
        }
    }

    /// Returns the next frame from other shards.
    #[inline]
    pub(super) fn take(&mut self) -> Option<P> {
        let inbox = &self.mailboxes.inboxes[usize::from(self.shard.number())];
        let mut parcel = inbox.parcels.pop();
        if parcel.is_some() {
            self.quiet = 0;
            return parcel;
        }
        self.quiet = self.quiet.saturating_add(1);
        if self.quiet == QUIET_LOOKS {
            // From now on, the sender of a frame wakes this shard.
            inbox.waker.rearm();
            parcel = inbox.parcels.pop();
        }
        parcel
    }
}

/// Used by AF_XDP sockets only.
#[cfg(feature = "xdp")]
impl<P> Mailbox<P> {
    pub(super) fn shard(&self) -> Shard {
        self.shard
    }

    /// Accepts no more frames. One that is sent at this moment stays in the inbox.
    pub(super) fn close(&self) {
        self.mailboxes.inboxes[usize::from(self.shard.number())].is_closed.store(true, Ordering::Relaxed);
    }

    /// Publishes the number of frames that have arrived on this shard's queues.
    pub(super) fn count(&self, arrived: u64) {
        self.mailboxes.inboxes[usize::from(self.shard.number())].arrived.store(arrived, Ordering::Relaxed);
    }

    /// Returns the number of frames that have arrived on the queues of all shards.
    pub(super) fn arrived(&self) -> u64 {
        self.mailboxes.inboxes.iter().map(|inbox| inbox.arrived.load(Ordering::Relaxed)).sum()
    }

    /// Returns a file descriptor that is readable when there are frames and the shard may sleep.
    pub(super) fn wake_fd(&self) -> RawFd {
        self.mailboxes.inboxes[usize::from(self.shard.number())].waker.fd()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// One round under Miri, which tries other interleavings by its seeds.
    const ROUNDS: u32 = if cfg!(miri) { 1 } else { 2_000 };
    const EACH: u32 = 3;

    fn mailboxes(room: usize) -> Vec<Mailbox<u32>> {
        let mailboxes = Arc::new(ShardMailboxes::new(3, room).unwrap());
        Shard::all(3).map(|shard| Mailbox::new(shard, Ports::DEFAULT, Arc::clone(&mailboxes))).collect()
    }

    /// Receives until the shard may sleep, as a driver does.
    fn drain(mailbox: &mut Mailbox<u32>) -> Vec<u32> {
        let mut quiet = 0;
        let looks = std::iter::from_fn(|| {
            let parcel = mailbox.take();
            quiet = if parcel.is_some() { 0 } else { quiet + 1 };
            (quiet <= QUIET_LOOKS).then_some(parcel)
        });
        looks.flatten().collect()
    }

    /// Two shards forward frames while the third goes to sleep: every frame that it has not
    /// received by then has woken it.
    #[test]
    fn no_shard_sleeps_with_frames_in_its_inbox() {
        for _ in 0..ROUNDS {
            let mut mailboxes = mailboxes(2 * EACH as usize);
            let mut taker = mailboxes.remove(0);
            let mut taken = thread::scope(|scope| {
                for (mailbox, first) in mailboxes.iter_mut().zip([0, EACH]) {
                    scope.spawn(move || {
                        for parcel in first..first + EACH {
                            mailbox.forward(0, parcel).unwrap();
                            mailbox.wake();
                        }
                    });
                }
                drain(&mut taker)
            });
            let inbox = &taker.mailboxes.inboxes[0];
            assert!(
                inbox.parcels.is_empty() || inbox.waker.is_woken(),
                "asleep with {} frames unread",
                inbox.parcels.len()
            );
            taken.extend(drain(&mut taker));
            assert!([0, EACH].iter().all(|first| {
                let from = first..&(first + EACH);
                taken.iter().filter(|parcel| from.contains(parcel)).is_sorted()
            }));
            taken.sort_unstable();
            assert!(taken.iter().copied().eq(0..2 * EACH), "{taken:?}");
            assert!(!taker.mailboxes.inboxes[0].waker.is_woken(), "woken with an empty inbox");
        }
    }

    #[test]
    fn a_full_inbox_returns_the_frame() {
        let mut mailboxes = mailboxes(1);
        assert_eq!((mailboxes[1].forward(0, 7), mailboxes[2].forward(0, 8)), (Ok(()), Err(8)));
        assert_eq!((mailboxes[0].take(), mailboxes[0].take()), (Some(7), None));
    }

    #[cfg(feature = "xdp")]
    #[test]
    fn the_inbox_of_a_closed_shard_returns_the_frame() {
        let mut mailboxes = mailboxes(1);
        mailboxes[0].close();
        assert_eq!(mailboxes[1].forward(0, 7), Err(7));
    }
}
