//! Several queues of an interface as one device.
//!
//! Packet path: T6 and R1 of `docs/architecture.md`, between `any` and the socket of a queue.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    sync::Arc,
};

use spray_wire::Ports;

use super::{OpenError, XskConfig, XskDevice, sharing::Sharing, taken_over::NicState};
use crate::device::mailboxes::{Mailbox, ShardMailboxes};
use crate::device::{Device, DeviceHealth, DeviceInfo, DeviceStats, FrameCounts, FrameId, Received};
use crate::endpoint::Shard;
use crate::net::ethtool::{Channels, Ethtool};
use crate::sys::any_readable;

/// An interface with the steering program attached, or a shard of one with some of its queues: the device of
/// [`Host::open`](crate::Host::open). Frames of the transport to its address arrive here, all others in the kernel. Dropping
/// the last shard detaches the program; each closes its sockets.
///
/// Frames arrive on all queues and leave by the first. A NIC assigns a packet to a queue by a hash of its ports, and each
/// packet of a sprayed connection has its own source port, so all queues need a socket, unless a rule in the NIC directs
/// these packets to one. A shard hands over frames that are for another one.
#[derive(Debug)]
pub struct XskInterface {
    // Fields drop in order: the program is detached before its sockets are closed.
    /// `None` in tests that attach a program of their own.
    pub(super) taken: Option<Arc<NicState>>,
    queues: Box<[XskDevice]>,
    /// Maximum number of frames of a queue. Frame `i` of the interface's queue `n` has the number
    /// `n * frames + i`.
    frames: u32,
    /// Selects this shard's queues, see [`Shard::serving`].
    shard: Shard,
    /// The queue to receive from first, in turn, so that none starves.
    next: usize,
    /// Readable while any queue is, or another shard has forwarded a frame; `None` with a single
    /// queue.
    wake: Option<OwnedFd>,
    /// `None` with a single shard.
    sharing: Option<Sharing>,
    /// Arrivals of a queue that are not yet sorted by shard.
    arrivals: Vec<Received>,
}

/// The number of queues with rings and frames of full size. With more, each gets a part.
const FULL_SIZE: usize = 8;
/// Minimum ring, in slots.
const MIN_RING: u32 = 64;

impl XskInterface {
    /// Opens `queues` of an interface in this thread's network namespace, and divides them among
    /// `shards` shards, at most one per queue. `config` has all but the queue; with more than eight
    /// queues, each gets a half, a quarter, ... of the ring slots and frames.
    ///
    /// # Errors
    /// As [`XskDevice::open`].
    ///
    /// # Panics
    /// Without any queue.
    pub(super) fn open_some(
        config: &XskConfig,
        queues: &[u32],
        shards: usize,
        ports: Ports,
    ) -> Result<Vec<Self>, OpenError> {
        Self::open_each(config, queues, shards, ports).map_err(|(_, error)| error)
    }

    /// As [`open_some`](Self::open_some), for all receive queues of an interface, `most` at most. A
    /// shard sends from its first queue.
    ///
    /// # Errors
    /// [`OpenError::QueuesUnavailable`] when one of several cannot be opened or there are too many,
    /// otherwise as [`XskDevice::open`].
    pub(super) fn open_all(config: &XskConfig, most: u32, shards: usize, ports: Ports) -> Result<Vec<Self>, OpenError> {
        let (queues, one) = receive_queues(config)?;
        let fail = |why: String| OpenError::QueuesUnavailable { interface: config.interface.clone(), queues, one, why };
        if queues > most {
            return Err(fail(format!("`{}` has {queues} queues, and {most} can be served", config.interface)));
        }
        Self::open_each(config, &(0..queues).collect::<Vec<_>>(), shards, ports).map_err(|(at, error)| match at {
            // With one queue, opening that alone would fail too.
            0 => error,
            _ => fail(error.to_string()),
        })
    }

    /// As [`open_some`](Self::open_some). An error has the number of queues that were opened
    /// before.
    fn open_each(
        config: &XskConfig,
        queues: &[u32],
        shards: usize,
        ports: Ports,
    ) -> Result<Vec<Self>, (usize, OpenError)> {
        assert!(!queues.is_empty(), "a device has at least one queue");
        let config = share(config, queues.len());
        let mut devices = Vec::with_capacity(queues.len());
        for (at, &queue) in queues.iter().enumerate() {
            let device = XskDevice::open(&XskConfig { queue, ..config.clone() });
            devices.push(device.map_err(|error| (at, error))?);
        }
        let shards = shards.clamp(1, devices.len());
        Self::deal(devices, shards, ports).map_err(|error| (0, config.failed("waiting for several queues", error)))
    }

    fn deal(devices: Vec<XskDevice>, shards: usize, ports: Ports) -> io::Result<Vec<Self>> {
        let frames = devices.iter().map(|device| device.config.frames).max().unwrap_or(1);
        let memories: Arc<[_]> = devices.iter().map(|device| Arc::clone(&device.umem)).collect();
        let mailboxes = match shards {
            1 => None,
            // Every frame is in at most one inbox, so that none is ever full.
            _ => Some(Arc::new(ShardMailboxes::new(shards, memories.len() * frames as usize)?)),
        };
        let mut hands: Vec<(Shard, Vec<XskDevice>)> = Shard::all(shards).map(|shard| (shard, Vec::new())).collect();
        for (place, device) in devices.into_iter().enumerate() {
            let server = hands[0].0.shard_of_queue(place);
            hands[usize::from(server)].1.push(device);
        }
        hands
            .into_iter()
            .map(|(shard, queues)| {
                let sharing = mailboxes.as_ref().map(|mailboxes| {
                    let mailbox = Mailbox::new(shard, ports, Arc::clone(mailboxes));
                    Sharing::new(mailbox, Arc::clone(&memories), frames)
                });
                let wakers = queues.iter().map(XskDevice::fd).chain(sharing.as_ref().map(Sharing::wake_fd));
                let wake =
                    if queues.len() + usize::from(sharing.is_some()) > 1 { Some(any_readable(wakers)?) } else { None };
                let (queues, arrivals) = (queues.into(), Vec::with_capacity(BATCH));
                Ok(Self { taken: None, queues, frames, shard, next: 0, wake, sharing, arrivals })
            })
            .collect()
    }

    /// Returns the queues in the order of opening.
    #[must_use]
    pub fn queues(&self) -> &[XskDevice] {
        &self.queues
    }

    /// Returns the queue of this shard that a handle belongs to, and that queue's handle; `None`
    /// for a frame of another shard.
    #[inline]
    fn find(&self, id: &FrameId) -> Option<(usize, FrameId)> {
        let (place, index) = ((id.0 / self.frames) as usize, FrameId(id.0 % self.frames));
        if self.shard == Shard::SINGLE {
            return Some((place, index));
        }
        let is_ours = self.shard.shard_of_queue(place) == self.shard.number();
        is_ours.then(|| (place / usize::from(self.shard.count()), index))
    }

    /// Returns the number of a queue's handle among all frames of the interface.
    #[inline]
    fn number(&self, queue: usize, id: &FrameId) -> u32 {
        (queue as u32 * u32::from(self.shard.count()) + u32::from(self.shard.number())) * self.frames + id.0
    }

    /// Receives from a queue, and forwards frames that are for other shards.
    fn receive_from(&mut self, queue: usize, out: &mut Vec<Received>, budget: usize) -> io::Result<()> {
        let first = self.number(queue, &FrameId(0));
        let Self { queues, sharing, arrivals, .. } = self;
        let (device, at) = (&mut queues[queue], out.len());
        let Some(sharing) = sharing else {
            let received = device.receive(out, budget);
            out[at..].iter_mut().for_each(|arrival| arrival.frame.0 += first);
            return received.map(drop);
        };
        let received = device.receive(arrivals, budget.min(BATCH));
        for Received { frame, len, misrouted } in arrivals.drain(..) {
            let (number, begin) = (first + frame.0, device.begins[frame.index()]);
            if !sharing.forward(number, begin, device.frame(&frame, len)) {
                out.push(Received { frame: FrameId(number), len, misrouted });
            }
        }
        received.map(drop)
    }

    /// Takes frames that other shards have forwarded, and frames of this shard that they return.
    fn take_forwarded(&mut self, out: &mut Vec<Received>, budget: usize) {
        let Self { queues, sharing, frames, shard, .. } = self;
        let Some(sharing) = sharing else { return };
        sharing.take_forwarded(out, budget, |number| {
            queues[(number / *frames) as usize / usize::from(shard.count())].release(FrameId(number % *frames));
        });
    }
}

/// A frame of another shard implies several shards.
const OTHERS: &str = "a single shard has all queues";

/// Frames of one receive on a queue of several shards.
const BATCH: usize = 64;

/// Returns the number of receive queues of an interface, and the arguments of `ethtool -L` that
/// leave one. A driver that reports no channels has one queue.
fn receive_queues(config: &XskConfig) -> Result<(u32, &'static str), OpenError> {
    let channels = match Ethtool::open(&config.interface).and_then(|ethtool| ethtool.channels()) {
        Ok(channels) => channels,
        Err(error) => match error.raw_os_error() {
            Some(libc::EOPNOTSUPP) => Channels::default(),
            Some(libc::ENODEV) => return Err(config.no_interface()),
            _ => return Err(config.failed("asking for the number of queues", error)),
        },
    };
    let one = match (channels.combined, channels.rx) {
        (0, _) => "rx 1",
        (_, 0) => "combined 1",
        _ => "combined 1 rx 0",
    };
    Ok((channels.rx_queues().max(1), one))
}

/// Returns the configuration of each of `queues` queues.
pub(super) fn share(config: &XskConfig, queues: usize) -> XskConfig {
    let parts = (queues.div_ceil(FULL_SIZE)).next_power_of_two() as u32;
    let ring = |slots: u32| (slots / parts).max(MIN_RING.min(slots));
    XskConfig {
        frames: (config.frames / parts).max((2 * MIN_RING).min(config.frames)),
        fill_ring: ring(config.fill_ring),
        completion_ring: ring(config.completion_ring),
        rx_ring: ring(config.rx_ring),
        tx_ring: ring(config.tx_ring),
        ..config.clone()
    }
}

impl Device for XskInterface {
    fn receive(&mut self, out: &mut Vec<Received>, budget: usize) -> io::Result<usize> {
        let (begun, first, count) = (out.len(), self.next, self.queues.len());
        let budget = budget.min(out.capacity() - begun);
        self.next = (first + 1) % count;
        self.take_forwarded(out, budget);
        for queue in (first..count).chain(0..first) {
            let room = budget - (out.len() - begun);
            if room == 0 {
                break;
            }
            self.receive_from(queue, out, room)?;
        }
        self.sharing.iter_mut().for_each(Sharing::settle);
        Ok(out.len() - begun)
    }

    fn frame(&self, id: &FrameId, len: u32) -> &[u8] {
        match (self.find(id), &self.sharing) {
            (Some((queue, id)), _) => self.queues[queue].frame(&id, len),
            (None, sharing) => sharing.as_ref().expect(OTHERS).frame(id, len),
        }
    }

    fn frame_mut(&mut self, id: &FrameId) -> &mut [u8] {
        match (self.find(id), &mut self.sharing) {
            (Some((queue, id)), _) => self.queues[queue].frame_mut(&id),
            (None, sharing) => sharing.as_mut().expect(OTHERS).frame_mut(id),
        }
    }

    fn release(&mut self, id: FrameId) {
        match (self.find(&id), &mut self.sharing) {
            (Some((queue, id)), _) => self.queues[queue].release(id),
            (None, sharing) => sharing.as_mut().expect(OTHERS).return_frame(&id),
        }
    }

    fn allocate(&mut self) -> Option<FrameId> {
        let id = self.queues[0].allocate()?;
        Some(FrameId(self.number(0, &id)))
    }

    fn transmit(&mut self, id: FrameId, len: u32) -> Result<(), FrameId> {
        if let Some((queue, id)) = self.find(&id) {
            return self.queues[queue].transmit(id, len).map_err(|id| FrameId(self.number(queue, &id)));
        }
        // A frame of another shard's memory cannot be sent from here: a copy is.
        let Some(copy) = self.queues[0].allocate() else { return Err(id) };
        let sharing = self.sharing.as_mut().expect(OTHERS);
        self.queues[0].frame_mut(&copy)[..len as usize].copy_from_slice(sharing.frame(&id, len));
        match self.queues[0].transmit(copy, len) {
            Ok(()) => {
                sharing.return_frame(&id);
                Ok(())
            }
            Err(copy) => {
                self.queues[0].release(copy);
                Err(id)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sharing.iter_mut().for_each(Sharing::settle);
        // An error of one queue does not keep the others from flushing.
        self.queues.iter_mut().map(Device::flush).fold(Ok(()), Result::and)
    }

    fn info(&self) -> DeviceInfo {
        let wake_fd = self.wake.as_ref().map_or_else(|| self.queues[0].fd(), AsRawFd::as_raw_fd);
        DeviceInfo { wake_fd: Some(wake_fd), ..self.queues[0].info() }
    }
}

impl DeviceHealth for XskInterface {
    fn stats(&self) -> DeviceStats {
        let stats: DeviceStats = self.queues.iter().map(DeviceHealth::stats).sum();
        DeviceStats { handed_over: self.sharing.as_ref().map_or(0, Sharing::handed_over), ..stats }
    }

    fn interface_rx_frames(&self) -> u64 {
        self.sharing.as_ref().map_or_else(|| self.stats().rx, Sharing::interface_rx_frames)
    }

    fn frame_counts(&self) -> FrameCounts {
        self.queues.iter().map(DeviceHealth::frame_counts).sum()
    }

    fn audit(&self) -> Result<(), String> {
        let audit = |queue: &XskDevice| queue.audit().map_err(|error| format!("queue {}: {error}", queue.queue()));
        self.queues.iter().try_for_each(audit)
    }

    fn is_gone(&self) -> bool {
        self.queues.iter().any(DeviceHealth::is_gone)
            || self.taken.as_ref().is_some_and(|taken| !taken.steer().is_attached())
    }

    fn lost_program(&self) -> bool {
        self.queues.iter().all(DeviceHealth::lost_program)
    }

    fn restart(&mut self) -> io::Result<()> {
        let Some(taken) = &self.taken else { return Ok(()) };
        let mut steer = taken.steer();
        steer.detach();
        steer.attach(taken.how.interface.index).map(drop).map_err(io::Error::other)
    }

    fn set_mac(&mut self, mac: [u8; 6]) -> io::Result<()> {
        let Some(taken) = &self.taken else { return Ok(()) };
        let (address, ports) = taken.at;
        taken.steer().set_own(mac, &[address], ports).map_err(io::Error::other)
    }
}
