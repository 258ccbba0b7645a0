//! The program of a deployed fabric: it decides in real time, and hands frames to sockets that hold them.

use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use spray_fabric::{ChassisSpec, Port, Tables};
use spray_nic::xdp::{self, AttachMode};
use spray_pipeline::deployment::{Attachment, Cable, KERNEL};
use spray_pipeline::impairment::Impairment;

use super::object::pod_bytes;
use super::{KernelClock, ProgramError, SwitchProgram};

/// Names of the entry points.
const DEPLOYED: &str = "deployed";
const MISSED: &str = "missed";

/// What the program asks of hosts while it runs: whose an address is, and how frames get to it.
#[derive(Debug)]
pub struct Hosts {
    addresses: MapHandle,
    cables: MapHandle,
    attachments: MapHandle,
}

impl SwitchProgram {
    /// As [`SwitchProgram::load`], for a deployed fabric, all frames of which go by `clock`. Behind the fabric's ports come those of the hosts' own
    /// links. With `learned` addresses, no host has one at first, and there is room for so many.
    ///
    /// # Errors
    /// As [`SwitchProgram::load`].
    pub fn load_standing(
        spec: &ChassisSpec<'_>,
        clock: &KernelClock,
        hosts: &[Port],
        learned: Option<usize>,
    ) -> Result<Self, ProgramError> {
        let mut tables = Tables::compile(spec)?;
        tables.ports.extend(hosts.iter().map(|port| spec.port(port)));
        if learned.is_some() {
            tables.hosts.clear();
        }
        let programs: &[&str] = if learned.is_some() { &[DEPLOYED, MISSED] } else { &[DEPLOYED] };
        Self::load_tables(tables, spec.external_ports().collect(), clock, programs, learned.unwrap_or(0))
    }

    /// Attaches to an interface of the calling thread's network namespace. Its frames are lost until [`SwitchProgram::hold`] has a socket
    /// for them.
    ///
    /// # Errors
    /// As [`SwitchProgram::attach`].
    pub fn open_attachment(&mut self, ifindex: u32, attachment: &Attachment) -> Result<AttachMode, ProgramError> {
        self.maps.put("attachments", &ifindex.to_ne_bytes(), pod_bytes(attachment))?;
        self.attach_program(DEPLOYED, ifindex)
    }

    /// Counts from now on what drivers do not send of frames that go on at once, because their rings are full.
    ///
    /// # Errors
    /// When the kernel has no such tracepoint, or no tracefs is mounted.
    pub fn count_missed(&mut self) -> Result<(), ProgramError> {
        let attached = self
            .program(MISSED)?
            .attach_tracepoint(libbpf_rs::TracepointCategory::Custom("xdp".into()), "xdp_devmap_xmit");
        self.missed = Some(attached.map_err(ProgramError::Tracepoint)?);
        Ok(())
    }

    /// Frames that drivers did not send; `None` where they are not counted.
    ///
    /// # Errors
    /// [`xdp::ProgramError::Map`] when the kernel refuses.
    pub fn missed(&self) -> Result<Option<u64>, ProgramError> {
        self.missed.as_ref().map(|_| Ok(self.maps.read_percpu::<u64>("missed_frames", 0)?.iter().sum())).transpose()
    }

    /// Attaches anew where an attachment was opened, after somebody has set the interface down: some drivers forget the program meanwhile.
    ///
    /// # Errors
    /// As [`SwitchProgram::attach`].
    pub fn open_again(&mut self, ifindex: u32) -> Result<(), ProgramError> {
        self.detach(ifindex);
        self.attach_program(DEPLOYED, ifindex).map(drop)
    }

    /// Hands the frames of an attachment's queue to an AF_XDP socket of that queue; `place` is [`Attachment::holder`] and the queue.
    ///
    /// # Errors
    /// [`xdp::ProgramError::Map`] when there is no such place, or it is no such socket.
    pub fn hold(&self, place: u32, socket: BorrowedFd<'_>) -> Result<(), ProgramError> {
        self.maps.put("holders", &place.to_ne_bytes(), &(socket.as_raw_fd() as u32).to_ne_bytes())
    }

    /// Has the link behind a port do this to frames from now on.
    ///
    /// # Errors
    /// [`xdp::ProgramError::Map`] when there is no such port.
    pub fn impair(&self, port: usize, impairment: &Impairment) -> Result<(), ProgramError> {
        self.maps.put("impairments", &(port as u32).to_ne_bytes(), pod_bytes(impairment))
    }

    /// What it asks of hosts.
    ///
    /// # Errors
    /// [`xdp::ProgramError::Map`] when the kernel refuses.
    pub fn hosts(&self) -> Result<Hosts, ProgramError> {
        Ok(Hosts {
            addresses: self.maps.copy("hosts")?,
            cables: self.maps.copy("cables")?,
            attachments: self.maps.copy("attachments")?,
        })
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

impl Hosts {
    /// Has an address be a host's, by its number in the fabric.
    ///
    /// # Errors
    /// [`xdp::ProgramError::Map`] when there is no room.
    pub fn put(&self, address: IpAddr, host: u32) -> Result<(), ProgramError> {
        let put = self.addresses.update(&xdp::mapped(address), &host.to_ne_bytes(), MapFlags::ANY);
        Ok(put.map_err(xdp::ProgramError::map("hosts"))?)
    }

    /// Has an address be the machine's own.
    ///
    /// # Errors
    /// As [`Hosts::put`].
    pub fn put_own(&self, address: IpAddr) -> Result<(), ProgramError> {
        self.put(address, KERNEL)
    }

    /// Has an address be nobody's.
    pub fn remove(&self, address: IpAddr) {
        // It may have gone already.
        let _ = self.addresses.delete(&xdp::mapped(address));
    }

    /// Changes what lies behind an interface.
    ///
    /// # Errors
    /// [`xdp::ProgramError::Map`] when the kernel refuses.
    pub fn put_attachment(&self, ifindex: u32, attachment: &Attachment) -> Result<(), ProgramError> {
        let put = self.attachments.update(&ifindex.to_ne_bytes(), pod_bytes(attachment), MapFlags::ANY);
        Ok(put.map_err(xdp::ProgramError::map("attachments"))?)
    }

    /// Has routed frames that leave by a port have these Ethernet addresses.
    ///
    /// # Errors
    /// [`xdp::ProgramError::Map`] when there is no such port.
    pub fn put_cable(&self, port: usize, cable: &Cable) -> Result<(), ProgramError> {
        let put = self.cables.update(&(port as u32).to_ne_bytes(), pod_bytes(cable), MapFlags::ANY);
        Ok(put.map_err(xdp::ProgramError::map("cables"))?)
    }
}
