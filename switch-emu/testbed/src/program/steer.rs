//! The host end: frames of the transport go to the AF_XDP socket of their queue, the rest to the kernel.

use super::ProgramError;
use super::maps::Maps;
use super::object::{self, AttachMode};
use libbpf_rs::Object;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The steering program; dropping it detaches it.
#[derive(Debug)]
pub struct SteerProgram {
    object: Object,
    maps: Maps,
    links: Vec<OwnedFd>,
}

impl SteerProgram {
    /// Most receive queues of an interface.
    pub const QUEUES: u32 = 64;

    /// Loads the program, attached nowhere.
    ///
    /// # Errors
    /// The object is missing, or the kernel refuses it (rights, features).
    pub fn load() -> Result<Self, ProgramError> {
        let object = object::load("steer", |_| Ok(()))?;
        Ok(Self { maps: Maps::of(&object)?, object, links: Vec::new() })
    }

    /// Attaches to an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// [`ProgramError::Attach`], for instance when another program sits there.
    pub fn attach(&mut self, ifindex: u32) -> Result<AttachMode, ProgramError> {
        let program = self.object.progs().find(|program| program.name() == "steer");
        let program = program.ok_or(ProgramError::Missing("steer"))?;
        let (link, mode) = object::attach(program.as_fd(), ifindex)?;
        self.links.push(link);
        Ok(mode)
    }

    /// Sends the frames of a receive queue to an AF_XDP socket bound to that queue.
    ///
    /// # Errors
    /// [`ProgramError::Map`] when the queue is out of range or the descriptor is no bound AF_XDP socket.
    pub fn register(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), ProgramError> {
        let fd = socket.as_raw_fd() as u32;
        self.maps.put("sockets", &queue.to_ne_bytes(), &fd.to_ne_bytes())
    }

    /// Frames of the transport that came by a queue without a socket. The kernel got them, so they are lost to the transport.
    ///
    /// # Errors
    /// [`ProgramError::Map`] when the kernel refuses to tell.
    pub fn strays(&self) -> Result<u64, ProgramError> {
        Ok(self.maps.read_percpu::<u64>("strays", 0)?.iter().sum())
    }
}
