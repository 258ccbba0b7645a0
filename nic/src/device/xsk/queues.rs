//! Several queues of an interface as one device.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
};

use super::{OpenError, XskConfig, XskDevice, sys};
use crate::device::{Device, DeviceStats, FrameCensus, FrameId, Received};
use crate::net::ethtool::{Channels, Ethtool};

/// Several queues of an interface: frames arrive on all of them and leave by the first.
///
/// A NIC puts a packet on a queue by a hash of its ports, and each packet of a sprayed connection has a source port of its own. So all
/// queues need a socket, unless a rule in the NIC puts all of these packets on one.
#[derive(Debug)]
pub struct XskQueues {
    queues: Box<[XskDevice]>,
    /// Most frames of a queue. Frame `i` of queue `n` has the number `n * frames + i`.
    frames: u32,
    /// The queue to receive from next: each is the first one in turn, so that none starves.
    next: usize,
    /// Readable while any queue is; `None` with a single one.
    wake: Option<OwnedFd>,
}

/// Queues that get rings and frames in full size. With more, each gets less, so that all frames together take no more.
const FULL_SIZE: usize = 8;
/// Smallest ring, in slots.
const MIN_RING: u32 = 64;

impl XskQueues {
    /// Opens these queues of an interface in this thread's network namespace; `config` gives everything but the queue.
    ///
    /// The settings hold for each of up to eight queues. Of more queues each has a half, a quarter, ... of the ring slots and frames.
    ///
    /// # Errors
    /// As [`XskDevice::open`].
    ///
    /// # Panics
    /// Without any queue.
    pub fn open(config: &XskConfig, queues: &[u32]) -> Result<Self, OpenError> {
        Self::open_each(config, queues).map_err(|(_, error)| error)
    }

    /// Opens all receive queues of an interface, `most` at most; the first one sends.
    ///
    /// # Errors
    /// [`OpenError::NotAll`] when one of several cannot be opened or there are too many, otherwise as [`XskDevice::open`].
    pub fn open_all(config: &XskConfig, most: u32) -> Result<Self, OpenError> {
        let (queues, one) = receive_queues(config)?;
        let not_all = |why: String| OpenError::NotAll { interface: config.interface.clone(), queues, one, why };
        if queues > most {
            return Err(not_all(format!("`{}` has {queues} queues, and {most} can be served", config.interface)));
        }
        Self::open_each(config, &(0..queues).collect::<Vec<_>>()).map_err(|(at, error)| match at {
            // With one queue it would be the same.
            0 => error,
            _ => not_all(error.to_string()),
        })
    }

    /// As [`open`](Self::open); an error comes with the number of queues that were opened before it.
    fn open_each(config: &XskConfig, queues: &[u32]) -> Result<Self, (usize, OpenError)> {
        assert!(!queues.is_empty(), "a device has at least one queue");
        let config = share(config, queues.len());
        let mut devices = Vec::with_capacity(queues.len());
        for (at, &queue) in queues.iter().enumerate() {
            let device = XskDevice::open(&XskConfig { queue, ..config.clone() });
            devices.push(device.map_err(|error| (at, error))?);
        }
        let wake = (devices.len() > 1).then(|| sys::any_readable(devices.iter().map(XskDevice::fd))).transpose();
        let wake = wake.map_err(|error| (0, config.failed("waiting for several queues", error)))?;
        let frames = devices.iter().map(|device| device.config.frames).max().unwrap_or(config.frames);
        Ok(Self { queues: devices.into(), frames, next: 0, wake })
    }

    /// The queues, in the order of opening.
    #[must_use]
    pub fn queues(&self) -> &[XskDevice] {
        &self.queues
    }

    /// The queue that a handle belongs to, and that queue's own handle.
    fn find(&self, id: &FrameId) -> (usize, FrameId) {
        ((id.0 / self.frames) as usize, FrameId(id.0 % self.frames))
    }

    /// The number of a queue's handle among all.
    fn number(&self, queue: usize, id: &FrameId) -> u32 {
        queue as u32 * self.frames + id.0
    }
}

/// How many receive queues an interface has, and the arguments of `ethtool -L` that leave one. A driver that does not tell has one.
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
    Ok((channels.receiving().max(1), one))
}

/// The settings of each of `queues` queues.
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

impl Device for XskQueues {
    fn receive(&mut self, out: &mut Vec<Received>, budget: usize) -> io::Result<usize> {
        let (begun, first, count) = (out.len(), self.next, self.queues.len());
        self.next = (first + 1) % count;
        for queue in (first..count).chain(0..first) {
            let at = out.len();
            if at - begun == budget {
                break;
            }
            let received = self.queues[queue].receive(out, budget - (at - begun));
            for arrival in &mut out[at..] {
                arrival.frame = FrameId(self.number(queue, &arrival.frame));
            }
            received?;
        }
        Ok(out.len() - begun)
    }

    fn frame(&self, id: &FrameId, len: u32) -> &[u8] {
        let (queue, id) = self.find(id);
        self.queues[queue].frame(&id, len)
    }

    fn frame_mut(&mut self, id: &FrameId) -> &mut [u8] {
        let (queue, id) = self.find(id);
        self.queues[queue].frame_mut(&id)
    }

    fn release(&mut self, id: FrameId) {
        let (queue, id) = self.find(&id);
        self.queues[queue].release(id);
    }

    fn allocate(&mut self) -> Option<FrameId> {
        // Frames of the first queue have the same numbers here and there.
        self.queues[0].allocate()
    }

    fn transmit(&mut self, id: FrameId, len: u32) -> Result<(), FrameId> {
        let (queue, id) = self.find(&id);
        self.queues[queue].transmit(id, len).map_err(|id| FrameId(self.number(queue, &id)))
    }

    fn flush(&mut self) -> io::Result<()> {
        // Every queue gets its turn, whatever another says.
        self.queues.iter_mut().map(Device::flush).fold(Ok(()), Result::and)
    }

    fn max_frame(&self) -> usize {
        self.queues[0].max_frame()
    }

    fn stats(&self) -> DeviceStats {
        self.queues.iter().map(Device::stats).sum()
    }

    fn census(&self) -> FrameCensus {
        self.queues.iter().map(Device::census).sum()
    }

    fn audit(&self) -> Result<(), String> {
        let audit = |queue: &XskDevice| queue.audit().map_err(|error| format!("queue {}: {error}", queue.queue()));
        self.queues.iter().try_for_each(audit)
    }

    fn is_gone(&self) -> bool {
        self.queues.iter().any(Device::is_gone)
    }

    fn is_deaf(&self) -> bool {
        self.queues.iter().all(Device::is_deaf)
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(self.wake.as_ref().map_or_else(|| self.queues[0].fd(), AsRawFd::as_raw_fd))
    }
}
