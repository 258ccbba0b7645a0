//! A program's maps: sizes, contents, counters.

use super::ProgramError;
use super::object::{Pod, pod_bytes, pod_from};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, OpenObject};
use spray_fabric::{Bin, ChassisCounters, PortCounters, Scheme, Tables};
use spray_pipeline::config::{self as table, Globals, PortConfig};
use spray_pipeline::deployment::{Attachment, MacRewrite};
use spray_pipeline::impairment::Impairment;
use spray_pipeline::queue::QUEUE_WORDS;
use spray_pipeline::routes::{Group, SwitchConfig};
use std::collections::HashMap;

/// UMEM frames of a host's socket: 16 MiB, and 4 MiB where many hosts share the memory.
const FRAMES: u32 = 4096;
const FRAMES_OF_MANY: u32 = 1024;
const MANY_HOSTS: usize = 32;

/// Returns the UMEM frames of each host's socket in a fabric of this number of hosts.
pub const fn socket_frames(hosts: usize) -> u32 {
    if hosts > MANY_HOSTS { FRAMES_OF_MANY } else { FRAMES }
}

/// Sizes the maps before loading, with room for `addresses` further addresses of hosts.
pub(super) fn size(open: &mut OpenObject, tables: &Tables, addresses: usize) -> Result<(), ProgramError> {
    let (ports, switches) = (tables.ports.len(), tables.switches.len());
    let hosts = tables.globals.hosts as usize;
    // The most frames that can be between switches.
    let trails = if tables.globals.hop_by_hop == 0 { 0 } else { hosts * socket_frames(hosts) as usize };
    let sizes = [
        ("trails", trails),
        ("hosts", tables.hosts.len() + addresses),
        ("switches", switches),
        // Room for a reconfiguration with other epochs, other groups in them, and other schemes.
        ("groups", table::MAX_EPOCHS * switches * hosts),
        ("members", table::MAX_EPOCHS * (tables.members.len() + Scheme::most_orders(switches) * ports + switches)),
        ("words", tables.words.len().max(tables.most_words)),
        ("ports", ports),
        ("queues", ports),
        ("counters", ports),
        ("bins", ports * tables.globals.bins.cells()),
        ("egress", ports),
        ("attachments", ports),
        ("cables", ports),
        ("impairments", ports),
        ("holders", ports * MAX_QUEUES as usize),
    ];
    for (name, entries) in sizes {
        let mut map = open.maps_mut().find(|map| map.name() == name).ok_or_else(|| missing(name))?;
        map.set_max_entries(entries.max(1) as u32).map_err(ProgramError::map(name))?;
    }
    Ok(())
}

/// Maximum number of receive queues of an interface in a deployed fabric.
pub const MAX_QUEUES: u32 = 64;

fn missing(name: &str) -> ProgramError {
    ProgramError::Fabric(format!("the object has no map `{name}`"))
}

/// Handles on all maps of a loaded object, by name.
#[derive(Debug)]
pub(super) struct Maps(HashMap<String, MapHandle>);

impl Maps {
    pub(super) fn of(object: &Object) -> Result<Self, ProgramError> {
        let handle = |map: libbpf_rs::Map<'_>| {
            let name = map.name().to_string_lossy().into_owned();
            let handle = MapHandle::try_from(&map).map_err(ProgramError::map(&name))?;
            Ok((name, handle))
        };
        object.maps().map(handle).collect::<Result<_, _>>().map(Self)
    }

    fn map(&self, name: &str) -> Result<&MapHandle, ProgramError> {
        self.0.get(name).ok_or_else(|| missing(name))
    }

    pub(super) fn put(&self, name: &str, key: &[u8], value: &[u8]) -> Result<(), ProgramError> {
        self.map(name)?.update(key, value, MapFlags::ANY).map_err(ProgramError::map(name))
    }

    /// Sets the first entry of a per-CPU map to `value` of each CPU's number.
    pub(super) fn put_percpu(&self, name: &str, value: impl Fn(usize) -> Vec<u8>) -> Result<(), ProgramError> {
        let cpus = libbpf_rs::num_possible_cpus().map_err(ProgramError::map(name))?;
        let values: Vec<Vec<u8>> = (0..cpus).map(value).collect();
        self.map(name)?.update_percpu(&[0; 4], &values, MapFlags::ANY).map_err(ProgramError::map(name))
    }

    pub(super) fn get(&self, name: &str, index: usize) -> Result<Vec<u8>, ProgramError> {
        let value = self.map(name)?.lookup(&(index as u32).to_ne_bytes(), MapFlags::ANY);
        value.map_err(ProgramError::map(name))?.ok_or_else(|| missing(name))
    }

    fn fill<T: Pod>(&self, name: &str, values: &[T]) -> Result<(), ProgramError> {
        (0u32..).zip(values).try_for_each(|(index, value)| self.put(name, &index.to_ne_bytes(), pod_bytes(value)))
    }

    pub(super) fn write(&self, tables: &Tables) -> Result<(), ProgramError> {
        self.fill("globals", std::slice::from_ref(&tables.globals))?;
        self.fill("switches", &tables.switches)?;
        self.fill("groups", &tables.groups)?;
        self.fill("ports", &tables.ports)?;
        self.fill("members", &tables.members)?;
        self.fill("words", &tables.words)?;
        tables.hosts.iter().try_for_each(|(address, number)| self.put("hosts", address, &number.to_ne_bytes()))
    }

    /// Writes what depends on routes; of the words, which schemes change, only new ones.
    pub(super) fn write_routes(&self, tables: &Tables, before: &Tables) -> Result<(), ProgramError> {
        self.fill("members", &tables.members)?;
        self.fill("switches", &tables.switches)?;
        let known = if tables.words.starts_with(&before.words) { before.words.len() } else { 0 };
        for (index, word) in (0u32..).zip(&tables.words).skip(known) {
            self.put("words", &index.to_ne_bytes(), pod_bytes(word))?;
        }
        self.fill("groups", &tables.groups)?;
        self.fill("globals", std::slice::from_ref(&tables.globals))
    }

    /// Duplicates the handles on these maps.
    pub(super) fn copies(&self, names: &[&str]) -> Result<Self, ProgramError> {
        let copy = |name: &&str| {
            let handle = MapHandle::try_from(self.map(name)?).map_err(ProgramError::map(name))?;
            Ok((name.to_string(), handle))
        };
        names.iter().map(copy).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn delete(&self, name: &str, key: &[u8]) -> Result<(), ProgramError> {
        self.map(name)?.delete(key).map_err(ProgramError::map(name))
    }

    pub(super) fn forget_hosts(&self, tables: &Tables) -> Result<(), ProgramError> {
        tables.hosts.iter().try_for_each(|(address, _)| self.delete("hosts", address))
    }

    pub(super) fn set_ingress(&self, ifindex: u32, switch: usize) -> Result<(), ProgramError> {
        self.put("ingress", &ifindex.to_ne_bytes(), &(switch as u32).to_ne_bytes())
    }

    /// Sums an entry of a per-CPU map over all CPUs.
    pub(super) fn sum<T: Pod + Default>(
        &self,
        name: &str,
        index: usize,
        add: fn(&mut T, &T),
    ) -> Result<T, ProgramError> {
        let mut sum = T::default();
        self.read_percpu(name, index)?.iter().for_each(|cpu| add(&mut sum, cpu));
        Ok(sum)
    }

    /// A word of the switches' memory; 0 beyond its end.
    pub(super) fn word(&self, index: u32) -> u64 {
        self.get("words", index as usize).ok().and_then(|value| pod_from(&value)).unwrap_or(0)
    }

    /// The words of a port's queues: data, then control.
    #[cfg(test)]
    pub(super) fn queue_words(&self, port: usize) -> Result<[[u64; QUEUE_WORDS]; 2], ProgramError> {
        pod_from(&self.get("queues", port)?).ok_or_else(|| missing("queues"))
    }

    pub(super) fn clear(&self, tables: &Tables) -> Result<(), ProgramError> {
        self.fill("words", &tables.words)?;
        let empty = vec![0; self.map("queues")?.value_size() as usize];
        for port in 0..tables.ports.len() as u32 {
            self.put("queues", &port.to_ne_bytes(), &empty)?;
            self.clear_percpu("counters", port)?;
        }
        // Of frames lost in the testbed.
        let trails = self.map("trails")?;
        trails.keys().try_for_each(|number| trails.delete(&number)).map_err(ProgramError::map("trails"))?;
        self.clear_bins(tables.ports.len() * tables.globals.bins.cells())?;
        self.clear_percpu("chassis", 0)
    }

    fn clear_bins(&self, cells: usize) -> Result<(), ProgramError> {
        let keys: Vec<u8> = (0..cells as u32).flat_map(u32::to_ne_bytes).collect();
        let zeros = vec![0; cells * size_of::<Bin>()];
        if cells == 0 {
            return Ok(());
        }
        let cleared = self.map("bins")?.update_batch(&keys, &zeros, cells as u32, MapFlags::ANY, MapFlags::ANY);
        cleared.map_err(ProgramError::map("bins"))
    }

    pub(super) fn bins(&self) -> Result<Vec<Bin>, ProgramError> {
        let cells = self.map("bins")?.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY);
        let cells = cells.map_err(ProgramError::map("bins"))?;
        cells.map(|(_, value)| pod_from(&value).ok_or_else(|| missing("bins"))).collect()
    }

    pub(super) fn read_percpu<T: Pod>(&self, name: &str, index: usize) -> Result<Vec<T>, ProgramError> {
        let values = self.map(name)?.lookup_percpu(&(index as u32).to_ne_bytes(), MapFlags::ANY);
        let values = values.map_err(ProgramError::map(name))?.ok_or_else(|| missing(name))?;
        values.iter().map(|value| pod_from(value).ok_or_else(|| missing(name))).collect()
    }

    fn clear_percpu(&self, name: &str, index: u32) -> Result<(), ProgramError> {
        let map = self.map(name)?;
        let cpus = libbpf_rs::num_possible_cpus().map_err(ProgramError::map(name))?;
        let zeros = vec![vec![0; map.value_size() as usize]; cpus];
        map.update_percpu(&index.to_ne_bytes(), &zeros, MapFlags::ANY).map_err(ProgramError::map(name))
    }
}

const BATCH: u32 = 4096;

macro_rules! pod {
    ($($type:ty),+) => {
        // SAFETY: integers, their arrays and `repr(C)` structs without padding, as asserted below.
        $(unsafe impl Pod for $type {})+
    };
}

pod!(u32, u64, [[u64; QUEUE_WORDS]; 2], Globals, Group, SwitchConfig, PortConfig, PortCounters, ChassisCounters);
pod!(Attachment, MacRewrite, Impairment, Bin);

const _: () = assert!(size_of::<Globals>() == 8 + 64 + 8 + 8 + 3 * 8);
const _: () = assert!(size_of::<PortConfig>() == 48 + 9 * 48);
const _: () = assert!(size_of::<Impairment>() == 8 + 4 * 4 + 8);
const _: () = assert!(size_of::<PortCounters>() == 15 * 8);
const _: () = assert!(size_of::<ChassisCounters>() == 7 * 8);
const _: () = assert!(size_of::<Bin>() == 7 * 8);
const _: () = assert!(size_of::<Attachment>() == 6 * 4 + 8);
const _: () = assert!(size_of::<MacRewrite>() == 2 * 6);
