//! Configuration of an AF_XDP device, and the errors of the kernel.

use std::{io, str::FromStr};

use super::OpenError;

/// Bytes that the kernel reserves before a packet for the XDP program: `XDP_PACKET_HEADROOM`.
pub(super) const HEADROOM: u32 = 256;
pub(super) const ETHERNET_HEADER: u32 = 14;

/// Returns the bytes of a frame that a packet may use.
pub(super) fn capacity(config: &XskConfig) -> u32 {
    config.frame_size - HEADROOM
}

/// The kernel's smallest frame (`XDP_UMEM_MIN_CHUNK_SIZE`) and its largest, a page.
const FRAME_SIZES: [u32; 2] = [2048, 4096];

/// The longest receive ring that is filled completely.
const MOST_NIC_SLOTS: u32 = 16_384;

/// The kernel's internal error number, which some drivers return.
const ENOTSUPP: i32 = 524;

/// How frames are transferred between the driver and the device's memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BindMode {
    /// Zero-copy if the driver supports it, otherwise copy.
    #[default]
    Auto,
    /// The kernel copies each frame. Supported by every driver.
    Copy,
    /// The driver accesses the frames directly, or opening fails.
    ZeroCopy,
}

impl FromStr for BindMode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            "copy" => Ok(Self::Copy),
            "zero-copy" => Ok(Self::ZeroCopy),
            other => Err(format!("unknown mode `{other}`; one of auto, copy, zero-copy")),
        }
    }
}

/// Busy polling: the thread that uses a socket also runs the driver's routines, with interrupts
/// off. It saves a second core, and costs a system call for each poll of an empty ring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BusyPoll {
    /// Where published measurements show a gain: in zero-copy mode, with the drivers of
    /// [`busy_poll_is_faster`](crate::net::drivers::busy_poll_is_faster), and with more CPUs than
    /// queues.
    #[default]
    Auto,
    /// In any mode. Opening fails where the driver cannot be polled or the kernel is older than
    /// 5.11.
    On,
    /// Never.
    Off,
}

impl FromStr for BusyPoll {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            other => Err(format!("unknown `{other}`; one of auto, on, off")),
        }
    }
}

/// The configuration of an [`XskDevice`](super::XskDevice).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XskConfig {
    /// The interface's name, in the calling thread's network namespace.
    pub interface: String,
    /// The queue number, from 0.
    pub queue: u32,
    /// The number of frames, at least 1. They are pinned: `frames * frame_size` bytes count against
    /// the memlock limit.
    pub frames: u32,
    /// Bytes of a frame: 2,048 or 4,096. The kernel uses 256 of them.
    pub frame_size: u32,
    /// Slots of the fill ring, a power of two: the maximum number of frames that wait to be
    /// received.
    pub fill_ring: u32,
    /// Slots of the completion ring, a power of two. Limits, with `tx_ring`, the frames in the tx
    /// ring.
    pub completion_ring: u32,
    /// Slots of the rx ring, a power of two. With at least `fill_ring` slots it cannot overflow.
    pub rx_ring: u32,
    /// Slots of the tx ring, a power of two.
    pub tx_ring: u32,
    /// Copy or zero-copy.
    pub mode: BindMode,
    /// Whether the driver sleeps until it is woken instead of polling: better where it shares cores
    /// with the program.
    pub need_wakeup: bool,
    /// Busy polling.
    pub busy_poll: BusyPoll,
}

impl XskConfig {
    /// Returns the configuration of one queue, with defaults:
    ///
    /// - 4,096-byte frames: the smallest that hold the 3,498 bytes of veth with XDP, and the
    ///   kernel's largest;
    /// - 2,048 slots per ring: 6 ms of arrivals at the 320,000 frames/s of copy mode, longer than a
    ///   SCHED_IDLE thread waits for its core;
    /// - 4,096 frames (16 MiB): a fill ring, and the same number to hold or to send.
    #[must_use]
    pub fn new(interface: impl Into<String>, queue: u32) -> Self {
        Self {
            interface: interface.into(),
            queue,
            frames: 4096,
            frame_size: 4096,
            fill_ring: 2048,
            completion_ring: 2048,
            rx_ring: 2048,
            tx_ring: 2048,
            mode: BindMode::Auto,
            need_wakeup: true,
            busy_poll: BusyPoll::Auto,
        }
    }

    /// As [`new`](Self::new) with another number of frames, a power of two; each ring has half as
    /// many slots.
    #[must_use]
    pub fn with_frames(interface: impl Into<String>, queue: u32, frames: u32) -> Self {
        let ring = frames / 2;
        Self {
            frames,
            fill_ring: ring,
            completion_ring: ring,
            rx_ring: ring,
            tx_ring: ring,
            ..Self::new(interface, queue)
        }
    }

    /// Returns the configuration with a fill ring for a NIC's receive ring of `nic_ring` slots:
    /// some drivers never return to a slot for which there was no frame.
    pub(super) fn filling(&self, nic_ring: u32) -> Self {
        let fill_ring = self.fill_ring.max(nic_ring.min(MOST_NIC_SLOTS).next_power_of_two());
        Self {
            frames: self.frames + (fill_ring - self.fill_ring),
            fill_ring,
            rx_ring: self.rx_ring.max(fill_ring),
            ..self.clone()
        }
    }

    pub(super) fn check(&self) -> Result<(), OpenError> {
        if !FRAME_SIZES.contains(&self.frame_size) {
            return Err(OpenError::Config(format!("frame_size is {}; 2048 or 4096 are possible", self.frame_size)));
        }
        let rings = [
            ("fill_ring", self.fill_ring),
            ("completion_ring", self.completion_ring),
            ("rx_ring", self.rx_ring),
            ("tx_ring", self.tx_ring),
        ];
        for (name, slots) in rings {
            if !slots.is_power_of_two() {
                return Err(OpenError::Config(format!("{name} is {slots}; a power of two is needed")));
            }
        }
        if self.frames < 64 {
            return Err(OpenError::Config(format!("frames is {}; at least 64 are needed", self.frames)));
        }
        Ok(())
    }

    /// Checks that a frame holds a packet of this MTU, or has the largest possible size. Then the
    /// kernel drops longer frames; peers agree on a payload that fits.
    pub(super) fn check_mtu(&self, mtu: u32) -> Result<(), OpenError> {
        let (needed, capacity) = (mtu.saturating_add(ETHERNET_HEADER), capacity(self));
        if needed <= capacity || self.frame_size == FRAME_SIZES[1] {
            return Ok(());
        }
        let interface = self.interface.clone();
        Err(OpenError::FrameTooSmall { interface, frame_size: self.frame_size, capacity, mtu, needed })
    }

    pub(super) fn no_interface(&self) -> OpenError {
        OpenError::NoInterface { interface: self.interface.clone() }
    }

    pub(super) fn no_zero_copy(&self, why: String) -> OpenError {
        OpenError::NoZeroCopy { interface: self.interface.clone(), queue: self.queue, why }
    }

    pub(super) fn failed(&self, operation: &'static str, source: io::Error) -> OpenError {
        OpenError::Io { operation, interface: self.interface.clone(), queue: self.queue, source }
    }

    pub(super) fn umem_failed(&self, source: io::Error) -> OpenError {
        match source.raw_os_error() {
            // ENOBUFS is the kernel's error for the memlock limit.
            Some(libc::ENOMEM | libc::ENOBUFS) => {
                OpenError::NoMemory { bytes: u64::from(self.frames) * u64::from(self.frame_size) }
            }
            Some(libc::EPERM | libc::EACCES) => OpenError::NotPermitted { interface: self.interface.clone() },
            Some(libc::EAFNOSUPPORT) => OpenError::NoAfXdp,
            _ => self.failed("registering frames", source),
        }
    }

    pub(super) fn bind_failed(&self, source: io::Error, zero_copy: bool) -> OpenError {
        let (interface, queue) = (self.interface.clone(), self.queue);
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => OpenError::NotPermitted { interface },
            Some(libc::EBUSY) => OpenError::QueueBusy { interface, queue },
            Some(libc::ENODEV | libc::ENXIO) => OpenError::NoInterface { interface },
            Some(libc::EAFNOSUPPORT) => OpenError::NoAfXdp,
            // Rings and frames were checked before, so that the queue is invalid, or a limit of the
            // driver is exceeded with zero-copy.
            Some(libc::EOPNOTSUPP | ENOTSUPP | libc::EINVAL) if zero_copy => {
                self.no_zero_copy("its driver has none, or none with this set-up".into())
            }
            Some(libc::EINVAL) => OpenError::NoQueue { interface, queue },
            _ => self.failed("binding", source),
        }
    }
}
