//! Shards of a host hand each other the frames that came by the wrong queue.
//!
//! A NIC puts frames on its queues by rules or hashes that need not know which shard a frame is for. Whoever finds one for another shard
//! puts it into that shard's inbox, and wakes it if it sleeps.

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

/// The inboxes of a host's shards.
#[derive(Debug)]
pub(super) struct ShardMailboxes<P> {
    inboxes: Box<[Inbox<P>]>,
}

/// What others have for a shard. A cache line of its own, since all of them write to it.
#[derive(Debug)]
#[repr(align(128))]
struct Inbox<P> {
    parcels: ArrayQueue<P>,
    waker: Waker,
    /// Frames that came to the shard's queues so far.
    #[cfg(feature = "xdp")]
    arrived: AtomicU64,
    /// The shard has ended, and takes nothing more.
    is_closed: AtomicBool,
}

impl<P> ShardMailboxes<P> {
    /// For so many shards, each of whose inboxes holds `room` frames.
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

/// A shard's inbox, and its access to those of the others.
#[derive(Debug)]
pub(super) struct Mailbox<P> {
    shard: Shard,
    ports: Ports,
    mailboxes: Arc<ShardMailboxes<P>>,
    /// Looks into the inbox in a row that found nothing.
    quiet: u32,
    /// Shards that have been handed something since they were woken last, a bit each.
    to_wake: u64,
}

/// Looks in a row after which a shard that may go to sleep has itself woken: fewer than rounds before a driver sleeps.
const QUIET_LOOKS: u32 = 64;

impl<P> Mailbox<P> {
    pub(super) fn new(shard: Shard, ports: Ports, mailboxes: Arc<ShardMailboxes<P>>) -> Self {
        Self { shard, ports, mailboxes, quiet: 0, to_wake: 0 }
    }

    /// The other shard that a frame is for; `None` if it is ours, or no frame of the transport.
    //= docs/specs/endpoint.md#END-44 Several endpoints of a host
    #[inline]
    pub(super) fn owner_of(&self, frame: &[u8]) -> Option<u8> {
        let port = self.ports.number(switch_view::udp_port(frame)?.1)?;
        Some(self.shard.taking(port)).filter(|shard| *shard != self.shard.number())
    }

    /// Hands a frame over, or back; [`wake`](Self::wake) tells its new owner.
    ///
    /// # Errors
    /// The frame, when the inbox is full or its shard has ended.
    #[inline]
    pub(super) fn hand(&mut self, shard: u8, parcel: P) -> Result<(), P> {
        let inbox = &self.mailboxes.inboxes[usize::from(shard)];
        if inbox.is_closed.load(Ordering::Relaxed) {
            return Err(parcel);
        }
        inbox.parcels.push(parcel)?;
        self.to_wake |= 1 << shard;
        Ok(())
    }

    /// Wakes the shards that have been handed something.
    #[inline]
    pub(super) fn wake(&mut self) {
        while self.to_wake != 0 {
            self.mailboxes.inboxes[self.to_wake.trailing_zeros() as usize].waker.wake();
            self.to_wake &= self.to_wake - 1;
        }
    }

    /// The next frame from others.
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
            // Whoever hands one over from now on wakes us.
            inbox.waker.rearm();
            parcel = inbox.parcels.pop();
        }
        parcel
    }
}

/// What sockets of the kernel need besides.
#[cfg(feature = "xdp")]
impl<P> Mailbox<P> {
    pub(super) fn shard(&self) -> Shard {
        self.shard
    }

    /// Takes nothing more from others. What one of them hands over at this very moment, a frame at most, stays in the inbox.
    pub(super) fn close(&self) {
        self.mailboxes.inboxes[usize::from(self.shard.number())].is_closed.store(true, Ordering::Relaxed);
    }

    /// Tells the other shards how many frames have come to our queues so far.
    pub(super) fn count(&self, arrived: u64) {
        self.mailboxes.inboxes[usize::from(self.shard.number())].arrived.store(arrived, Ordering::Relaxed);
    }

    /// Frames that came to the queues of all shards.
    pub(super) fn arrived(&self) -> u64 {
        self.mailboxes.inboxes.iter().map(|inbox| inbox.arrived.load(Ordering::Relaxed)).sum()
    }

    /// Readable when there is a frame for a shard that may sleep.
    pub(super) fn wake_fd(&self) -> RawFd {
        self.mailboxes.inboxes[usize::from(self.shard.number())].waker.fd()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// So few under Miri, which tries other interleavings by its seeds.
    const ROUNDS: u32 = if cfg!(miri) { 1 } else { 2_000 };
    const EACH: u32 = 3;

    fn mailboxes(room: usize) -> Vec<Mailbox<u32>> {
        let mailboxes = Arc::new(ShardMailboxes::new(3, room).unwrap());
        Shard::all(3).map(|shard| Mailbox::new(shard, Ports::DEFAULT, Arc::clone(&mailboxes))).collect()
    }

    /// Takes until the shard may sleep, as a driver does.
    fn drain(mailbox: &mut Mailbox<u32>) -> Vec<u32> {
        let mut quiet = 0;
        let looks = std::iter::from_fn(|| {
            let parcel = mailbox.take();
            quiet = if parcel.is_some() { 0 } else { quiet + 1 };
            (quiet <= QUIET_LOOKS).then_some(parcel)
        });
        looks.flatten().collect()
    }

    /// Two shards hand frames over while the third goes to sleep: whatever it has not seen by then has woken it.
    #[test]
    fn nothing_that_is_handed_over_is_slept_through() {
        for _ in 0..ROUNDS {
            let mut mailboxes = mailboxes(2 * EACH as usize);
            let mut taker = mailboxes.remove(0);
            let mut taken = thread::scope(|scope| {
                for (mailbox, first) in mailboxes.iter_mut().zip([0, EACH]) {
                    scope.spawn(move || {
                        for parcel in first..first + EACH {
                            mailbox.hand(0, parcel).unwrap();
                            mailbox.wake();
                        }
                    });
                }
                drain(&mut taker)
            });
            let inbox = &taker.mailboxes.inboxes[0];
            assert!(inbox.parcels.is_empty() || inbox.waker.is_woken(), "it sleeps on {} frames", inbox.parcels.len());
            taken.extend(drain(&mut taker));
            assert!([0, EACH].iter().all(|first| {
                let from = first..&(first + EACH);
                taken.iter().filter(|parcel| from.contains(parcel)).is_sorted()
            }));
            taken.sort_unstable();
            assert!(taken.iter().copied().eq(0..2 * EACH), "{taken:?}");
            assert!(!taker.mailboxes.inboxes[0].waker.is_woken(), "nothing is left to wake for");
        }
    }

    #[test]
    fn a_full_inbox_hands_back() {
        let mut mailboxes = mailboxes(1);
        assert_eq!((mailboxes[1].hand(0, 7), mailboxes[2].hand(0, 8)), (Ok(()), Err(8)));
        assert_eq!((mailboxes[0].take(), mailboxes[0].take()), (Some(7), None));
    }

    #[cfg(feature = "xdp")]
    #[test]
    fn a_shard_that_has_ended_hands_back() {
        let mut mailboxes = mailboxes(1);
        mailboxes[0].close();
        assert_eq!(mailboxes[1].hand(0, 7), Err(7));
    }
}
