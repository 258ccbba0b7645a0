//! Processes frames in real time, and redirects them to sockets that delay them.

use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use spray_fabric::{ChassisSpec, Port, Tables};
use spray_nic::xdp::{self, AttachMode};
use spray_pipeline::deployment::{Attachment, MacRewrite};
use spray_pipeline::impairment::Impairment;

use super::maps::Maps;
use super::object::pod_bytes;
use super::{KernelClock, ProgramError, SwitchProgram};

const DEPLOYED: &str = "deployed";
const MISSED: &str = "missed";

/// The program's maps of hosts: by address, and how to reach them.
#[derive(Debug)]
pub struct Hosts(Maps);

impl SwitchProgram {
    /// Loads as [`SwitchProgram::load`], for a deployed fabric on `clock`. The `hosts`' own links
    /// follow the fabric's ports. At most `learned` addresses are learned at run time.
    pub fn load_deployed(
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

    /// Attaches to an interface of the calling thread's network namespace. Frames are dropped until
    /// [`SwitchProgram::register_socket`] has a socket for them.
    pub fn attach_interface(&mut self, ifindex: u32, attachment: &Attachment) -> Result<AttachMode, ProgramError> {
        self.maps.put("attachments", &ifindex.to_ne_bytes(), pod_bytes(attachment))?;
        self.attach_program(DEPLOYED, ifindex)
    }

    /// Starts to count frames forwarded at once that drivers drop because their rings are full.
    ///
    /// # Errors
    /// When the kernel has no such tracepoint, or no tracefs is mounted.
    pub fn count_driver_drops(&mut self) -> Result<(), ProgramError> {
        let attached = self
            .program(MISSED)?
            .attach_tracepoint(libbpf_rs::TracepointCategory::Custom("xdp".into()), "xdp_devmap_xmit");
        self.missed = Some(attached.map_err(ProgramError::Tracepoint)?);
        Ok(())
    }

    /// Returns the number of frames that drivers dropped; `None` if they are not counted.
    pub fn driver_drops(&self) -> Result<Option<u64>, ProgramError> {
        self.missed.as_ref().map(|_| Ok(self.maps.read_percpu::<u64>("missed_frames", 0)?.iter().sum())).transpose()
    }

    /// Attaches again after the interface was down, as some drivers detach the program then.
    pub fn reattach(&mut self, ifindex: u32) -> Result<(), ProgramError> {
        self.attached.retain(|(other, _)| *other != ifindex);
        self.attach_program(DEPLOYED, ifindex).map(drop)
    }

    /// Redirects a queue's frames to a socket; `place` is [`Attachment::socket`] plus the queue.
    ///
    /// # Errors
    /// [`xdp::ProgramError::Map`] when there is no such place, or the socket is of another queue.
    pub fn register_socket(&self, place: u32, socket: BorrowedFd<'_>) -> Result<(), ProgramError> {
        self.maps.put("holders", &place.to_ne_bytes(), &(socket.as_raw_fd() as u32).to_ne_bytes())
    }

    /// Sets the impairment of the link behind a port.
    pub fn impair(&self, port: usize, impairment: &Impairment) -> Result<(), ProgramError> {
        self.maps.put("impairments", &(port as u32).to_ne_bytes(), pod_bytes(impairment))
    }

    /// Returns handles on the maps of hosts.
    pub fn hosts(&self) -> Result<Hosts, ProgramError> {
        self.maps.copies(&["hosts", "cables", "attachments"]).map(Hosts)
    }

    /// Replaces the routes by those of a fabric of the same shape. All else is unchanged.
    ///
    /// Frames in flight meanwhile may see old and new entries mixed.
    pub fn reroute(&mut self, spec: &ChassisSpec<'_>) -> Result<(), ProgramError> {
        let mut tables = Tables::compile(spec)?;
        self.maps.write_routes(&tables, &self.tables)?;
        tables.ports = std::mem::take(&mut self.tables.ports);
        self.tables = tables;
        Ok(())
    }
}

impl Hosts {
    /// Maps an address to a host, by its number in the fabric, or `KERNEL`.
    pub fn put(&self, address: IpAddr, host: u32) -> Result<(), ProgramError> {
        self.0.put("hosts", &xdp::v6_mapped(address), &host.to_ne_bytes())
    }

    /// Removes an address.
    pub fn remove(&self, address: IpAddr) {
        // It may be absent.
        let _ = self.0.delete("hosts", &xdp::v6_mapped(address));
    }

    /// Replaces the attachment of an interface.
    pub fn put_attachment(&self, ifindex: u32, attachment: &Attachment) -> Result<(), ProgramError> {
        self.0.put("attachments", &ifindex.to_ne_bytes(), pod_bytes(attachment))
    }

    /// Sets the MAC addresses of routed frames that leave by a port.
    pub fn set_mac_rewrite(&self, port: usize, cable: &MacRewrite) -> Result<(), ProgramError> {
        self.0.put("cables", &(port as u32).to_ne_bytes(), pod_bytes(cable))
    }
}
