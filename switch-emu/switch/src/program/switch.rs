//! The switch program: a chassis of one or more switches.

use super::KernelClock;
use super::ProgramError;
use super::maps::{self, Maps};
use super::object::{self, pod_bytes};
use libbpf_rs::{Link, Object, ProgramMut};
use spray_fabric::{ChassisCounters, ChassisSpec, LinkChange, PortCounters, PortSamples, Tables};
use spray_nic::xdp::{self, AttachMode, Attachment};
use spray_pipeline::scheme::SchemeCounters;
use std::os::fd::AsFd;

/// A loaded switch program; dropping it detaches it.
#[derive(Debug)]
pub struct SwitchProgram {
    object: Object,
    pub(super) maps: Maps,
    pub(super) tables: Tables,
    /// Ports of cables that leave the chassis.
    pub(super) external: Vec<usize>,
    /// By interface index.
    pub(super) attached: Vec<(u32, Attachment)>,
    /// The tracepoint program that counts frames dropped by drivers.
    pub(super) missed: Option<Link>,
}

impl SwitchProgram {
    /// Loads the program, with maps sized and written for the fabric, without attaching it. Frames
    /// without a virtual time use `clock`.
    ///
    /// # Errors
    /// The kernel rejects the program (privileges, features), or the fabric does not fit.
    pub fn load(spec: &ChassisSpec<'_>, clock: &KernelClock) -> Result<Self, ProgramError> {
        Self::load_programs(spec, clock, &[SWITCH])
    }

    pub(super) fn load_programs(
        spec: &ChassisSpec<'_>,
        clock: &KernelClock,
        programs: &[&str],
    ) -> Result<Self, ProgramError> {
        Self::load_tables(Tables::compile(spec)?, spec.external_ports().collect(), clock, programs, 0)
    }

    /// Loads `programs` with these tables, and room for `addresses` further addresses of hosts.
    pub(super) fn load_tables(
        tables: Tables,
        external: Vec<usize>,
        clock: &KernelClock,
        programs: &[&str],
        addresses: usize,
    ) -> Result<Self, ProgramError> {
        let object = object::load(object::SWITCH, |open| {
            object::only(open, programs);
            maps::size(open, &tables, addresses)
        })?;
        let maps = Maps::of(&object)?;
        maps.write(&tables)?;
        maps.put(".data.origin", &[0; 4], &clock.origin_ns.to_ne_bytes())?;
        Ok(Self { object, maps, tables, external, attached: Vec::new(), missed: None })
    }

    /// Replaces the tables, and clears queues and counters, for another run of the same shape.
    ///
    /// Interfaces stay attached; frames in flight may see old and new entries mixed.
    ///
    /// # Errors
    /// [`xdp::ProgramError::Map`] when the new tables are larger than those loaded first.
    pub fn configure(&mut self, spec: &ChassisSpec<'_>) -> Result<(), ProgramError> {
        let tables = Tables::compile(spec)?;
        self.maps.forget_hosts(&self.tables)?;
        self.maps.write(&tables)?;
        self.external = spec.external_ports().collect();
        self.tables = tables;
        self.reset()
    }

    /// Sets a port's link state from `change` on, and drops scheduled changes.
    ///
    /// # Errors
    /// [`ProgramError::Fabric`] when there is no such port.
    pub fn change_link(&mut self, port: usize, rate_bps: u64, change: &LinkChange) -> Result<(), ProgramError> {
        let config = self.tables.ports.get_mut(port);
        let config = config.ok_or_else(|| ProgramError::Fabric(format!("there is no port {port}")))?;
        config.amend(rate_bps, change);
        self.maps.put("ports", &(port as u32).to_ne_bytes(), pod_bytes(config))
    }

    /// Attaches to an interface of this thread's network namespace; its frames enter at `ingress`.
    ///
    /// [`AttachMode::Generic`] is much slower and worth a warning.
    ///
    /// # Errors
    /// [`xdp::ProgramError::Attach`] when another program is attached, or the MTU is too large.
    pub fn attach(&mut self, ifindex: u32, ingress: usize) -> Result<AttachMode, ProgramError> {
        self.maps.set_ingress(ifindex, ingress)?;
        self.attach_program(SWITCH, ifindex)
    }

    pub(super) fn attach_program(&mut self, name: &'static str, ifindex: u32) -> Result<AttachMode, ProgramError> {
        let attached = xdp::attach(self.program(name)?.as_fd(), ifindex)?;
        let mode = attached.mode;
        self.attached.push((ifindex, attached));
        Ok(mode)
    }

    /// Returns why the driver attached last does not run the program natively; `None` if it does.
    pub fn refusal(&self) -> Option<&str> {
        self.attached.last()?.1.native_error.as_deref()
    }

    /// Sets the interface of the calling thread's network namespace that a port sends on.
    ///
    /// The interface's peer needs an XDP program too, else veth drops redirected frames silently.
    pub fn egress(&self, port: usize, ifindex: u32) -> Result<(), ProgramError> {
        // struct bpf_devmap_val: the interface, then no program to run on it
        let value = [ifindex.to_ne_bytes(), [0; 4]].concat();
        self.maps.put("egress", &(port as u32).to_ne_bytes(), &value)
    }

    /// Reads a port's counters.
    pub fn counters(&self, port: usize) -> Result<PortCounters, ProgramError> {
        self.maps.sum("counters", port, PortCounters::add)
    }

    /// Reads the time series of all ports in a run that ends at `end_ps`; empty if they are off.
    pub fn samples(&self, end_ps: u64) -> Result<Vec<PortSamples>, ProgramError> {
        let scale = &self.tables.globals.bins;
        if !scale.is_on() {
            return Ok(Vec::new());
        }
        let cells = self.maps.bins()?;
        let ports = (0..self.tables.ports.len()).zip(cells.chunks(scale.cells()));
        Ok(ports.map(|(port, cells)| PortSamples::of(port, scale, cells.iter().copied(), end_ps)).collect())
    }

    /// Reads the counters of the switches' schemes.
    pub fn counted(&self) -> SchemeCounters {
        SchemeCounters::of(self.tables.switches.iter().map(|switch| (switch, None)), &|index| self.maps.word(index))
    }

    /// Reads the chassis's own counters.
    pub fn chassis_counters(&self) -> Result<ChassisCounters, ProgramError> {
        self.maps.sum("chassis", 0, ChassisCounters::add)
    }

    /// Empties all queues and resets all counters and scheme states, for the next run.
    pub fn reset(&self) -> Result<(), ProgramError> {
        self.maps.clear(&self.tables)
    }

    pub(super) fn program(&self, name: &'static str) -> Result<ProgramMut<'_>, ProgramError> {
        Ok(xdp::program(&self.object, name)?)
    }

    /// Test runs arrive on the loopback interface; ports without an interface send there too.
    pub(super) fn prepare_test(&self, ingress: usize) -> Result<(), ProgramError> {
        const LOOPBACK: u32 = 1;
        self.maps.set_ingress(LOOPBACK, ingress)?;
        let has_egress = |port| self.maps.get("egress", port).is_ok_and(|value| value.iter().any(|byte| *byte != 0));
        self.external.iter().filter(|port| !has_egress(**port)).try_for_each(|port| self.egress(*port, LOOPBACK))
    }
}

pub(super) const SWITCH: &str = "switch";
