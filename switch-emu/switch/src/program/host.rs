//! The host end of a link: redirects emulated frames to the host's AF_XDP socket.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libbpf_rs::Object;
use spray_nic::xdp::{self, AttachMode, Attachment};

use super::ProgramError;
use super::maps::Maps;
use super::object;

/// The program of one host; dropping it detaches it.
#[derive(Debug)]
pub struct HostProgram {
    object: Object,
    maps: Maps,
    attached: Option<Attachment>,
}

impl HostProgram {
    /// Loads the program, without attaching it.
    pub fn load() -> Result<Self, ProgramError> {
        let object = object::load(object::HOST, |_| Ok(()))?;
        Ok(Self { maps: Maps::of(&object)?, object, attached: None })
    }

    /// Attaches to an interface of the calling thread's network namespace.
    pub fn attach(&mut self, ifindex: u32) -> Result<AttachMode, ProgramError> {
        let attached = xdp::attach(xdp::program(&self.object, "host")?.as_fd(), ifindex)?;
        let mode = attached.mode;
        self.attached = Some(attached);
        Ok(mode)
    }

    /// Redirects frames to an AF_XDP socket on the interface's only queue.
    ///
    /// # Errors
    /// [`xdp::ProgramError::Map`] when the descriptor is no bound AF_XDP socket.
    pub fn register(&self, socket: BorrowedFd<'_>) -> Result<(), ProgramError> {
        self.maps.put("sockets", &0u32.to_ne_bytes(), &(socket.as_raw_fd() as u32).to_ne_bytes())
    }
}
