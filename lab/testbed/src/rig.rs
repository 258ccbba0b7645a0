//! Machine resources of a fabric: namespaces, veth pairs, programs and sockets.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use spray_fabric::{BinScale, ChassisSpec, Fabric, FabricHost};
use spray_nic::device::{Device, XskConfig, XskDevice};
use spray_switch::netns_nodes::{Chassis, NetnsNode, attach_switch, create};
use spray_switch::program::{HostProgram, KernelClock, SwitchProgram};
use spray_switch::{FabricSpec, RunError};
use tracing::debug_span;

/// Resources of a testbed. Fields drop in order: sockets, programs, namespaces.
#[derive(Debug)]
pub struct Rig {
    /// The hosts' sockets; `None` during a run.
    pub devices: Vec<Option<XskDevice>>,
    /// The switches' programs.
    pub chassis: Vec<Chassis>,
    /// The number of time series in the programs: one per port and program.
    pub series: usize,
    _programs: Vec<HostProgram>,
    nodes: Vec<NetnsNode>,
}

/// The fabric is empty if nothing arrives for this long: softirq waits less for a core.
const QUIET_LOOKS: u32 = 4;
const QUIET_LOOK: Duration = Duration::from_millis(2);

impl Rig {
    /// Creates the resources for `spec` and `fabric`, with `frames` UMEM frames per host.
    pub fn with_frames(spec: &FabricSpec<'_>, fabric: &Fabric, frames: u32) -> Result<Self, RunError> {
        let hosts = fabric.hosts.len();
        let nodes = create(spec, fabric, &[])?;
        let (host_nodes, switch_nodes) = nodes.split_at(hosts);
        let span = debug_span!("switch programs", count = switch_nodes.len()).entered();
        let mut chassis = Vec::with_capacity(switch_nodes.len());
        let series = fabric.ports.len() * switch_nodes.len();
        let (frame_bytes, bins) = (spec.packet_bytes, BinScale::new(0, 1, 1, series, BINS_BYTES));
        let clock = KernelClock::new()?;
        for (number, node) in switch_nodes.iter().enumerate() {
            let switch = spec.per_switch.then_some(number);
            let mut program =
                SwitchProgram::load(&ChassisSpec { fabric, switch, frame_bytes, hop_by_hop: true, bins }, &clock)?;
            node.namespace.run(|| attach_switch(&mut program, &node.interfaces))??;
            chassis.push(Chassis { program, switch });
        }
        drop(span);
        let _span = debug_span!("sockets", count = hosts).entered();
        let mut devices = Vec::with_capacity(hosts);
        let mut programs = Vec::with_capacity(hosts);
        for (node, host) in host_nodes.iter().zip(&fabric.hosts) {
            let (device, program) = open_host(node, host, frames)?;
            devices.push(Some(device));
            programs.push(program);
        }
        Ok(Self { devices, chassis, series, _programs: programs, nodes })
    }

    /// Loads `fabric`, of the same shape, into all switches; clears queues and counters.
    pub fn configure(&mut self, fabric: &Fabric, frame_bytes: u32, bins: BinScale) -> Result<(), RunError> {
        for chassis in &mut self.chassis {
            let switch = chassis.switch;
            chassis.program.configure(&ChassisSpec { fabric, switch, frame_bytes, hop_by_hop: true, bins })?;
        }
        Ok(())
    }

    /// Returns the bins of the ports' time series from `begin_ps` on, at least `asked_ps` long.
    pub fn bins(&self, begin_ps: u64, asked_ps: u64, span_ps: u64) -> BinScale {
        BinScale::new(begin_ps, asked_ps, span_ps, self.series, BINS_BYTES)
    }

    /// Discards frames of an earlier run until nothing has arrived for a while.
    pub fn drain(&mut self) -> Result<(), RunError> {
        let mut arrivals = Vec::with_capacity(64);
        let mut quiet = 0;
        while quiet < QUIET_LOOKS {
            std::thread::sleep(QUIET_LOOK);
            quiet += 1;
            for device in self.devices.iter_mut().flatten() {
                let doing = "draining a host's socket";
                while device.receive(&mut arrivals, 64).map_err(|error| RunError::io(doing, error))? > 0 {
                    arrivals.drain(..).for_each(|arrival| device.release(arrival.frame));
                    quiet = 0;
                }
                device.flush().map_err(|error| RunError::io(doing, error))?;
            }
        }
        Ok(())
    }

    /// Returns the index of the chassis that emulates `switch`.
    pub fn chassis_of(&self, switch: usize) -> usize {
        let chassis = self.chassis.iter().position(|chassis| chassis.runs(switch));
        chassis.expect("every switch is in a chassis")
    }

    /// Returns the program that emulates `switch`.
    pub fn program(&self, switch: usize) -> &SwitchProgram {
        &self.chassis[self.chassis_of(switch)].program
    }

    /// Returns the number of frames dropped by the interfaces since they were created.
    pub fn interface_drops(&self) -> Result<u64, RunError> {
        let mut drops = 0;
        for node in &self.nodes {
            let read = || std::fs::read_to_string("/proc/thread-self/net/dev");
            let text = node.namespace.run(read)?.map_err(|error| RunError::io("reading interface counters", error))?;
            drops += node.interfaces.iter().map(|interface| drops_of(&text, &interface.name)).sum::<u64>();
        }
        Ok(drops)
    }
}

/// Memory limit of the bins in all programs, exceeded only if the least number of bins takes more.
const BINS_BYTES: usize = 64 << 20;

/// Returns receive plus send drops of interface `name`, from the text of `/proc/net/dev`.
fn drops_of(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'));
    let columns: Vec<u64> = line.unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // Eight columns each way; the fourth is the drops.
    [3, 11].iter().filter_map(|column| columns.get(*column)).sum()
}

fn open_host(node: &NetnsNode, host: &FabricHost, frames: u32) -> Result<(XskDevice, HostProgram), RunError> {
    let mut program = HostProgram::load()?;
    let interface = &node.interfaces[0];
    let config = XskConfig::with_frames(interface.name.clone(), 0, frames);
    node.namespace.run(|| {
        program.attach(interface.index)?;
        let device = XskDevice::open(&config).map_err(RunError::host(&host.name))?;
        // SAFETY: the device is alive, and so is its descriptor for the length of this call.
        program.register(unsafe { BorrowedFd::borrow_raw(device.fd()) })?;
        Ok((device, program))
    })?
}

#[cfg(test)]
mod tests {
    use super::drops_of;

    #[test]
    fn drops_are_read_from_both_directions() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes ...\n\
                    eth0: 1 2 3 40 5 6 7 8 9 10 11 200 13 14 15 16\n    lo: 0 0 0 7 0 0 0 0 0 0 0 0 0 0 0 0\n";
        assert_eq!((drops_of(text, "eth0"), drops_of(text, "lo"), drops_of(text, "eth")), (240, 7, 0));
    }
}
