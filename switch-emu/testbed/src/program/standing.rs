//! The program of a fabric that stands for anybody's traffic: it decides in real time, and hands frames to sockets that hold them.

use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use spray_fabric::{ChassisSpec, Port, Tables};
use spray_nic::xdp::{self, AttachMode};
use spray_pipeline::standing::{Door, KERNEL};

use super::{ProgramError, SwitchProgram};

/// Name of the entry point.
const STANDING: &str = "standing";

/// The addresses of hosts, which the program asks for the destination of each packet.
#[derive(Debug)]
pub struct Addresses(MapHandle);

impl SwitchProgram {
    /// As [`SwitchProgram::load`], for a fabric that stands. Behind the fabric's ports come those of the hosts' own links. With `learned`
    /// addresses, no host has one at first, and there is room for so many.
    ///
    /// # Errors
    /// As [`SwitchProgram::load`].
    pub fn load_standing(spec: &ChassisSpec<'_>, hosts: &[Port], learned: Option<usize>) -> Result<Self, ProgramError> {
        let mut tables = Tables::compile(spec)?;
        tables.ports.extend(hosts.iter().map(|port| spec.port(port)));
        if learned.is_some() {
            tables.hosts.clear();
        }
        Self::load_tables(tables, spec.outside_ports().collect(), (&[STANDING], learned.unwrap_or(0)))
    }

    /// Attaches to an interface of the calling thread's network namespace. Its frames are lost until [`SwitchProgram::hold`] has a socket
    /// for them. Returns how the program sits there, and why the driver has refused it where it has.
    ///
    /// # Errors
    /// As [`SwitchProgram::attach`].
    pub fn open_door(&mut self, ifindex: u32, door: &Door) -> Result<(AttachMode, Option<&str>), ProgramError> {
        self.maps.set_door(ifindex, door)?;
        let mode = self.attach_program(STANDING, ifindex)?;
        Ok((mode, self.refusal()))
    }

    /// Attaches anew where a door was opened, after somebody has set the interface down: some drivers forget the program meanwhile.
    ///
    /// # Errors
    /// As [`SwitchProgram::attach`].
    pub fn open_again(&mut self, ifindex: u32) -> Result<(), ProgramError> {
        self.detach(ifindex);
        self.attach_program(STANDING, ifindex).map(drop)
    }

    /// Hands the frames of a door's queue to an AF_XDP socket of that queue; `place` is [`Door::holder`] and the queue.
    ///
    /// # Errors
    /// [`xdp::ProgramError::Map`] when there is no such place, or it is no such socket.
    pub fn hold(&self, place: u32, socket: BorrowedFd<'_>) -> Result<(), ProgramError> {
        self.maps.set_holder(place, socket)
    }

    /// The addresses of hosts.
    ///
    /// # Errors
    /// [`xdp::ProgramError::Map`] when the kernel refuses.
    pub fn addresses(&self) -> Result<Addresses, ProgramError> {
        self.maps.copy("hosts").map(Addresses)
    }

    /// Takes the routes of `spec`'s fabric, of the same shape. Links, queues and counters stay as they are.
    ///
    /// Frames in flight meanwhile may see old and new entries mixed.
    ///
    /// # Errors
    /// As [`SwitchProgram::configure`].
    pub fn reroute(&mut self, spec: &ChassisSpec<'_>) -> Result<(), ProgramError> {
        let mut tables = Tables::compile(spec)?;
        self.maps.write_routes(&tables, &self.tables)?;
        tables.ports = std::mem::take(&mut self.tables.ports);
        self.tables = tables;
        Ok(())
    }
}

impl Addresses {
    /// Has an address be a host's, by its number in the fabric.
    ///
    /// # Errors
    /// [`xdp::ProgramError::Map`] when there is no room.
    pub fn put(&self, address: IpAddr, host: u32) -> Result<(), ProgramError> {
        let put = self.0.update(&key(address), &host.to_ne_bytes(), MapFlags::ANY);
        Ok(put.map_err(xdp::ProgramError::map("hosts"))?)
    }

    /// Has an address be the machine's own.
    ///
    /// # Errors
    /// As [`Addresses::put`].
    pub fn put_own(&self, address: IpAddr) -> Result<(), ProgramError> {
        self.put(address, KERNEL)
    }

    /// Has an address be nobody's.
    pub fn remove(&self, address: IpAddr) {
        // It may have gone already.
        let _ = self.0.delete(&key(address));
    }
}

fn key(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}
