//! The program of a fabric that stands for anybody's traffic: it decides in real time, and hands frames to sockets that hold them.

use std::os::fd::BorrowedFd;

use spray_fabric::{ChassisSpec, Port, Tables};
use spray_nic::xdp::AttachMode;
use spray_pipeline::standing::Door;

use super::{ProgramError, SwitchProgram};

/// Name of the entry point.
const STANDING: &str = "standing";

impl SwitchProgram {
    /// As [`SwitchProgram::load`], for a fabric that stands. Behind the fabric's ports come those of the hosts' own links.
    ///
    /// # Errors
    /// As [`SwitchProgram::load`].
    pub fn load_standing(spec: &ChassisSpec<'_>, hosts: &[Port]) -> Result<Self, ProgramError> {
        let mut tables = Tables::compile(spec)?;
        tables.ports.extend(hosts.iter().map(|port| spec.port(port)));
        Self::load_tables(tables, spec.outside_ports().collect(), &[STANDING])
    }

    /// Attaches to an interface of the calling thread's network namespace; frames that come by it go to `socket` once they are decided.
    ///
    /// # Errors
    /// As [`SwitchProgram::attach`], and when `socket` is no AF_XDP socket of that interface.
    pub fn open_door(&mut self, ifindex: u32, door: &Door, socket: BorrowedFd<'_>) -> Result<AttachMode, ProgramError> {
        self.maps.set_door(ifindex, door, socket)?;
        self.attach_program(STANDING, ifindex)
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
