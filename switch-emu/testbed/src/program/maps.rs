//! The switch program's maps: sizes, contents, counters.

use super::ProgramError;
use super::object::{self, Pod, pod_bytes, words};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, OpenObject};
use spray_fabric::{ChassisCounters, PortCounters, Tables};
use spray_pipeline::config::{self as table, Globals, PortConfig};
use spray_pipeline::queue::QUEUE_WORDS;
use spray_pipeline::routes::{Group, SwitchConfig};

/// Handles on all maps.
#[derive(Debug)]
pub(super) struct Maps {
    globals: MapHandle,
    hosts: MapHandle,
    switches: MapHandle,
    groups: MapHandle,
    members: MapHandle,
    ports: MapHandle,
    queues: MapHandle,
    counters: MapHandle,
    chassis: MapHandle,
    ingress: MapHandle,
    egress: MapHandle,
}

/// Sizes the maps of an object that is not loaded yet.
pub(super) fn size(open: &mut OpenObject, tables: &Tables) -> Result<(), ProgramError> {
    let ports = tables.ports.len();
    let sizes = [
        ("hosts", tables.hosts.len()),
        ("switches", tables.switches.len()),
        // Room for a reconfiguration with other epochs and other groups in them.
        ("groups", table::MAX_EPOCHS * tables.switches.len() * tables.globals.hosts as usize),
        ("members", table::MAX_EPOCHS * (tables.members.len() + tables.switches.len())),
        ("ports", ports),
        ("queues", ports),
        ("counters", ports),
        ("egress", ports),
    ];
    for (name, entries) in sizes {
        let mut map = open.maps_mut().find(|map| map.name() == name).ok_or_else(|| missing(name))?;
        map.set_max_entries(entries.max(1) as u32).map_err(ProgramError::map(name))?;
    }
    Ok(())
}

fn missing(name: &str) -> ProgramError {
    ProgramError::Fabric(format!("the object has no map `{name}`"))
}

impl Maps {
    pub(super) fn of(object: &Object) -> Result<Self, ProgramError> {
        Ok(Self {
            globals: object::map(object, "globals")?,
            hosts: object::map(object, "hosts")?,
            switches: object::map(object, "switches")?,
            groups: object::map(object, "groups")?,
            members: object::map(object, "members")?,
            ports: object::map(object, "ports")?,
            queues: object::map(object, "queues")?,
            counters: object::map(object, "counters")?,
            chassis: object::map(object, "chassis")?,
            ingress: object::map(object, "ingress")?,
            egress: object::map(object, "egress")?,
        })
    }

    pub(super) fn write(&self, tables: &Tables) -> Result<(), ProgramError> {
        fill(&self.globals, "globals", std::slice::from_ref(&tables.globals))?;
        fill(&self.switches, "switches", &tables.switches)?;
        fill(&self.groups, "groups", &tables.groups)?;
        fill(&self.ports, "ports", &tables.ports)?;
        let members: Vec<Member> = tables.members.iter().map(|port| Member(*port)).collect();
        fill(&self.members, "members", &members)?;
        for (address, number) in &tables.hosts {
            put(&self.hosts, "hosts", address, &number.to_ne_bytes())?;
        }
        Ok(())
    }

    pub(super) fn forget_hosts(&self, tables: &Tables) -> Result<(), ProgramError> {
        tables.hosts.iter().try_for_each(|(address, _)| self.hosts.delete(address).map_err(ProgramError::map("hosts")))
    }

    pub(super) fn set_ingress(&self, ifindex: u32, switch: usize) -> Result<(), ProgramError> {
        put(&self.ingress, "ingress", &ifindex.to_ne_bytes(), &(switch as u32).to_ne_bytes())
    }

    pub(super) fn set_egress(&self, port: usize, ifindex: u32) -> Result<(), ProgramError> {
        // struct bpf_devmap_val: the interface, then no program to run on it
        let value = [ifindex.to_ne_bytes(), [0; 4]].concat();
        put(&self.egress, "egress", &(port as u32).to_ne_bytes(), &value)
    }

    pub(super) fn has_egress(&self, port: usize) -> bool {
        let value = self.egress.lookup(&(port as u32).to_ne_bytes(), MapFlags::ANY);
        value.ok().flatten().is_some_and(|value| value.iter().any(|byte| *byte != 0))
    }

    pub(super) fn port_counters(&self, port: usize) -> Result<PortCounters, ProgramError> {
        let mut sum = PortCounters::default();
        read_percpu(&self.counters, "counters", port)?.iter().for_each(|cpu| sum.add(cpu));
        Ok(sum)
    }

    pub(super) fn chassis_counters(&self) -> Result<ChassisCounters, ProgramError> {
        let mut sum = ChassisCounters::default();
        read_percpu(&self.chassis, "chassis", 0)?.iter().for_each(|cpu| sum.add(cpu));
        Ok(sum)
    }

    /// The words of a port's two queues.
    pub(super) fn queue_words(&self, port: usize) -> Result<Vec<u64>, ProgramError> {
        let key = (port as u32).to_ne_bytes();
        let value = self.queues.lookup(&key, MapFlags::ANY).map_err(ProgramError::map("queues"))?;
        let words = value.map(|value| words(&value)).filter(|words| words.len() == 2 * QUEUE_WORDS);
        words.ok_or_else(|| missing("queues"))
    }

    pub(super) fn clear(&self, ports: usize) -> Result<(), ProgramError> {
        let empty = vec![0; self.queues.value_size() as usize];
        for port in 0..ports as u32 {
            put(&self.queues, "queues", &port.to_ne_bytes(), &empty)?;
            clear_percpu(&self.counters, "counters", port)?;
        }
        clear_percpu(&self.chassis, "chassis", 0)
    }
}

/// A port number as a map value.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Member(u32);

// SAFETY: one integer.
unsafe impl Pod for Member {}
// SAFETY: (all six) `repr(C)` structs of integers laid out without padding, pinned by the assertions below.
unsafe impl Pod for Globals {}
// SAFETY: as above.
unsafe impl Pod for Group {}
// SAFETY: as above.
unsafe impl Pod for SwitchConfig {}
// SAFETY: as above.
unsafe impl Pod for PortConfig {}
// SAFETY: as above.
unsafe impl Pod for PortCounters {}
// SAFETY: as above.
unsafe impl Pod for ChassisCounters {}

const _: () = assert!(size_of::<Globals>() == 8 + 64 + 8);
const _: () = assert!(size_of::<PortConfig>() == 40 + 9 * 48);
const _: () = assert!(size_of::<PortCounters>() == 12 * 8);
const _: () = assert!(size_of::<ChassisCounters>() == 7 * 8);

fn put(map: &MapHandle, name: &'static str, key: &[u8], value: &[u8]) -> Result<(), ProgramError> {
    map.update(key, value, MapFlags::ANY).map_err(ProgramError::map(name))
}

fn fill<T: Pod>(map: &MapHandle, name: &'static str, values: &[T]) -> Result<(), ProgramError> {
    (0u32..).zip(values).try_for_each(|(index, value)| put(map, name, &index.to_ne_bytes(), pod_bytes(value)))
}

fn read_percpu<T: Pod>(map: &MapHandle, name: &'static str, index: usize) -> Result<Vec<T>, ProgramError> {
    let values = map.lookup_percpu(&(index as u32).to_ne_bytes(), MapFlags::ANY).map_err(ProgramError::map(name))?;
    let values = values.ok_or_else(|| missing(name))?;
    values.iter().map(|value| object::pod_from(value).ok_or_else(|| missing(name))).collect()
}

fn clear_percpu(map: &MapHandle, name: &'static str, index: u32) -> Result<(), ProgramError> {
    let cpus = libbpf_rs::num_possible_cpus().map_err(ProgramError::map(name))?;
    let zeros = vec![vec![0; map.value_size() as usize]; cpus];
    map.update_percpu(&index.to_ne_bytes(), &zeros, MapFlags::ANY).map_err(ProgramError::map(name))
}
