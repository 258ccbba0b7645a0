//! An in-memory chassis: the pipeline over vectors, as a reference for the kernel program.

use spray_fabric::{Bin, ChassisCounters, ChassisSpec, PortCounters, PortSamples, Tables, TablesError};
use spray_pipeline::config::{Globals, PortConfig};
use spray_pipeline::frame::Frame;
use spray_pipeline::queue::PortQueues;
use spray_pipeline::routes::{Group, SwitchConfig};
use spray_pipeline::scheme::{self, LoadQuery, NO_PORT, Step, Subprograms};
use spray_pipeline::trail::{Trail, WORDS};
use spray_pipeline::{Verdict, View};
use spray_wire::switch_view::{Address, address_words};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

/// An in-memory chassis. Several threads may use it, except with schemes that keep state.
#[derive(Debug)]
pub struct NativeSwitch {
    tables: Tables,
    hosts: HashMap<Address, u32>,
    words: Vec<AtomicU64>,
    queues: Vec<PortQueues<AtomicU64>>,
    counters: Vec<PortCounters<AtomicU64>>,
    bins: Vec<Bin<AtomicU64>>,
    chassis: ChassisCounters<AtomicU64>,
    trail: Trail<AtomicU64>,
    /// Trails of frames between two switches.
    stored: Mutex<Vec<[u64; WORDS]>>,
}

impl NativeSwitch {
    /// Builds the chassis; fails when the fabric does not fit the tables.
    pub fn new(spec: &ChassisSpec<'_>) -> Result<Self, TablesError> {
        let tables = Tables::compile(spec)?;
        let ports = tables.ports.len();
        Ok(Self {
            hosts: tables.hosts.iter().map(|(address, number)| (address_words(*address), *number)).collect(),
            words: tables.words.iter().copied().map(AtomicU64::new).collect(),
            queues: (0..ports).map(|_| PortQueues::default()).collect(),
            counters: (0..ports).map(|_| PortCounters::default()).collect(),
            bins: (0..ports * tables.globals.bins.cells()).map(|_| Bin::default()).collect(),
            chassis: ChassisCounters::default(),
            trail: Trail::default(),
            stored: Mutex::default(),
            tables,
        })
    }

    /// Passes a frame that enters at switch `ingress` through the chassis. A redirected frame is
    /// changed in place and must be cut to the verdict's `trimmed_len`.
    pub fn process(&self, frame: &mut [u8], ingress: usize, now_ps: u64) -> Verdict {
        spray_pipeline::process(self, frame, ingress as u32, || now_ps)
    }

    /// Returns the counters of a port. Panics when there is no such port.
    pub fn counters(&self, port: usize) -> PortCounters {
        self.counters[port].read()
    }

    /// Returns the time series of a port in a run until `end_ps`; panics if they are disabled.
    pub fn samples(&self, port: usize, end_ps: u64) -> PortSamples {
        let scale = &self.tables.globals.bins;
        let cells = &self.bins[port * scale.cells()..][..scale.cells()];
        PortSamples::of(port, scale, cells.iter().map(Bin::read), end_ps)
    }

    /// Returns the counters of the chassis.
    pub fn chassis_counters(&self) -> ChassisCounters {
        self.chassis.read()
    }

    /// Returns the bytes queued at a port at virtual time `now_ps`: of both classes, and of the
    /// control class. Advances the bookkeeping of the queues, so it is exact only for times that
    /// frames have reached. Panics when there is no such port.
    pub fn queue_bytes(&self, port: usize, now_ps: u64) -> [u64; 2] {
        let drain = self.tables.ports[port].drain(now_ps);
        let PortQueues { total, control } = &self.queues[port];
        [total, control].map(|queue| queue.locate(now_ps, &drain).bytes())
    }
}

impl spray_pipeline::Tables for NativeSwitch {
    type Word = AtomicU64;
    type Count = AtomicU64;
    type TrailWord = AtomicU64;

    fn globals(&self) -> Option<&Globals> {
        Some(&self.tables.globals)
    }
    fn host(&self, address: &Address) -> Option<u32> {
        self.hosts.get(address).copied()
    }
    fn switch(&self, switch: u32) -> Option<&SwitchConfig> {
        self.tables.switches.get(switch as usize)
    }
    fn group(&self, index: u32) -> Option<&Group> {
        self.tables.groups.get(index as usize)
    }
    fn member(&self, index: u32) -> Option<u32> {
        self.tables.members.get(index as usize).copied()
    }
    fn word(&self, index: u32) -> Option<&AtomicU64> {
        self.words.get(index as usize)
    }
    fn trail(&self) -> Option<&Trail<AtomicU64>> {
        Some(&self.trail)
    }
    fn store_trail(&self) -> Option<u32> {
        let mut stored = self.stored.lock().ok()?;
        stored.push(self.trail.words());
        Some(stored.len() as u32)
    }
    fn take_trail(&self, number: u32) -> bool {
        let stored = self.stored.lock().expect("no test panics while holding it");
        stored.get(number as usize - 1).map(|words| self.trail.resume(*words)).is_some()
    }
    fn port(&self, port: u32) -> Option<&PortConfig> {
        self.tables.ports.get(port as usize)
    }
    fn queues(&self, port: u32) -> Option<&PortQueues<AtomicU64>> {
        self.queues.get(port as usize)
    }
    fn counters(&self, port: u32) -> Option<&PortCounters<AtomicU64>> {
        self.counters.get(port as usize)
    }
    fn chassis(&self) -> Option<&ChassisCounters<AtomicU64>> {
        Some(&self.chassis)
    }
    fn bin(&self, index: u32) -> Option<&Bin<AtomicU64>> {
        self.bins.get(index as usize)
    }
}

impl spray_pipeline::Stages for NativeSwitch {}

impl Subprograms for NativeSwitch {
    fn step(&self, step: Step, frame: &mut Frame, host: u32, port: u32) -> u32 {
        View::of(self).map_or(NO_PORT, |view| scheme::step(&view, step, frame, host, port))
    }
    fn least(&self, group: &Group, t_ps: u64, query: &LoadQuery) -> u32 {
        View::of(self).map_or(0, |view| scheme::least(&view, group, t_ps, query, u32::MAX))
    }
    fn score(&self, member: u32, t_ps: u64, query: &LoadQuery, place: u32) -> u64 {
        View::of(self).map_or(u64::MAX, |view| scheme::score(&view, member, t_ps, query, place))
    }
    fn look_up(&self, first: u32, words: u32, head: u64) -> u64 {
        View::of(self).map_or(0, |view| scheme::reunion::look_up(&view, first, words, head))
    }
}
