//! The host end: frames of the transport to this host go to the AF_XDP socket of their queue, the rest to the kernel.

use super::ProgramError;
use super::maps::Maps;
use super::object::{self, AttachMode, Pod, pod_bytes};
use libbpf_rs::Object;
use spray_wire::switch_view::{Addressee, addressee};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The steering program; dropping it detaches it.
#[derive(Debug)]
pub struct SteerProgram {
    pub(super) object: Object,
    maps: Maps,
    links: Vec<OwnedFd>,
}

impl SteerProgram {
    /// Most receive queues of an interface.
    pub const QUEUES: u32 = 64;

    /// Most IP addresses of an interface.
    pub const ADDRESSES: usize = 4;

    /// Loads the program, attached nowhere, for an interface with this Ethernet address and these IP addresses: frames to any
    /// others go to the kernel.
    ///
    /// # Errors
    /// The object is missing, the kernel refuses it (rights, features), or there are more than [`SteerProgram::ADDRESSES`].
    pub fn load(mac: [u8; 6], addresses: &[IpAddr]) -> Result<Self, ProgramError> {
        if addresses.len() > Self::ADDRESSES {
            let most = Self::ADDRESSES;
            return Err(ProgramError::Fabric(format!("{} addresses of a host; allowed: {most}", addresses.len())));
        }
        let object = object::load("steer", |_| Ok(()))?;
        let maps = Maps::of(&object)?;
        let mut own: [Addressee; Self::ADDRESSES] = Default::default();
        for (place, address) in own.iter_mut().zip(addresses) {
            *place = addressee(mac, mapped(*address));
        }
        maps.put("own", &0u32.to_ne_bytes(), pod_bytes(&own))?;
        Ok(Self { maps, object, links: Vec::new() })
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

/// An address as programs compare it: IPv4 mapped into IPv6.
fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

// SAFETY: integers of one size, without padding.
unsafe impl Pod for [Addressee; SteerProgram::ADDRESSES] {}
