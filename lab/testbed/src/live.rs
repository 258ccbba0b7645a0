//! Somebody at the controls of a run: what is shown, and what becomes of orders.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use spray_core::flow::FlowConfig;
use spray_core::path::PathEvs;
use spray_fabric::LinkChange;
use spray_fabric::live::{HostNow, LinkNow, LinkSchedule, Operator, Order, Snapshot};
use spray_nic::endpoint::Senders;
use spray_nic::sys::monotonic_ns;

use super::goal::Report;
use super::hosts::{Book, HostEndpoint, Setup};
use super::rig::Rig;
use spray_switch::RunError;

/// How often the operator looks, in real time: reading all ports' counters takes some of the machine that emulates the fabric.
const EVERY_NS: u64 = 100_000_000;

/// What the threads that poll hosts tell the operator, and are told.
#[derive(Debug)]
pub(super) struct Panel {
    threads: Vec<Mutex<Told>>,
    /// How often the operator has changed settings.
    changes: AtomicUsize,
    /// What they are since then.
    settings: Mutex<Vec<Setting>>,
}

/// What the connection that begins with a flow is to work by.
#[derive(Debug)]
struct Setting {
    first: usize,
    config: FlowConfig,
    /// One entropy value for each path, where its balancer wants to know them.
    paths: Vec<PathEvs>,
}

/// What a thread tells of its hosts, all of it at one time: bytes of one time and the time of another make no rate.
#[derive(Debug, Default)]
struct Told {
    now_ps: u64,
    hosts: Vec<(usize, HostNow)>,
}

impl Panel {
    pub fn new(threads: usize) -> Self {
        let threads = (0..threads).map(|_| Mutex::default()).collect();
        Self { threads, changes: AtomicUsize::new(0), settings: Mutex::default() }
    }

    /// A thread tells the state of its hosts at `now_ps`.
    pub fn tell<'e>(&self, thread: usize, now_ps: u64, hosts: impl Iterator<Item = (usize, &'e HostEndpoint)>) {
        let mut told = self.threads[thread].lock().unwrap_or_else(PoisonError::into_inner);
        told.now_ps = now_ps;
        told.hosts.clear();
        told.hosts.extend(hosts.map(|(host, endpoint)| (host, state_of(endpoint))));
    }

    /// Shows what the threads have told, and since when all of that holds.
    fn show(&self, hosts: &mut [HostNow]) -> u64 {
        let show = |told: &Mutex<Told>| {
            let told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.hosts.iter().for_each(|(host, now)| hosts[*host] = *now);
            told.now_ps
        };
        self.threads.iter().map(show).min().unwrap_or(0)
    }

    /// Gives a host's connections the settings of the latest change, if the host has `seen` fewer changes.
    pub fn hear(&self, seen: &mut usize, endpoint: &mut HostEndpoint, book: &Book) {
        let changes = self.changes.load(Ordering::Acquire);
        if *seen == changes {
            return;
        }
        *seen = changes;
        let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        for Setting { first, config, paths } in settings.iter() {
            if let Some(connection) = book.own.get(first)
                && endpoint.reconfigure(*connection, config)
                && !paths.is_empty()
            {
                endpoint.on_reachable(*connection, paths);
            }
        }
    }

    fn rechoose(&self, settings: Vec<Setting>) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
        self.changes.fetch_add(1, Ordering::Release);
    }
}

fn state_of(endpoint: &HostEndpoint) -> HostNow {
    let (Senders { sending, frozen }, (sender, receiver)) = (endpoint.senders(), endpoint.totals());
    HostNow { received_bytes: receiver.bytes, sending, frozen, retransmits: sender.retransmits }
}

/// The operator of a run.
pub(super) struct Controls<'a> {
    operator: &'a mut dyn Operator,
    setup: &'a Setup<'a>,
    panel: &'a Panel,
    /// By link its port, if that is a switch's: those that lead to hosts are played there.
    ports: Vec<Option<usize>>,
    lead_in_ps: u64,
    schedule: LinkSchedule,
    shown: Snapshot,
    next_ns: u64,
}

impl<'a> Controls<'a> {
    pub fn new(operator: &'a mut dyn Operator, setup: &'a Setup<'a>, panel: &'a Panel, lead_in_ps: u64) -> Self {
        let network = setup.spec.fabric.network;
        let mut numbers = vec![None; network.links.len()];
        let switches = spray_fabric::ports(network).take(setup.fabric.ports.len());
        switches.enumerate().for_each(|(port, link)| numbers[link] = Some(port));
        let (hosts, links) = (vec![HostNow::default(); network.hosts.len()], vec![None; network.links.len()]);
        let shown = Snapshot { hosts, links, ..Snapshot::default() };
        let schedule = LinkSchedule::new(setup.spec.fabric.events);
        Self { operator, setup, panel, ports: numbers, lead_in_ps, schedule, shown, next_ns: 0 }
    }

    /// Shows the state of the run if that is due, and does what is ordered; says whether the run is to end.
    pub fn look(&mut self, rig: &mut Rig, report: &Report) -> Result<bool, RunError> {
        if monotonic_ns() < self.next_ns {
            return Ok(false);
        }
        self.show(rig, report)?;
        let answer = self.operator.look(&self.shown);
        self.next_ns = monotonic_ns() + EVERY_NS;
        for order in &answer.orders {
            self.obey(rig, report.now_ps, order)?;
        }
        Ok(answer.stop)
    }

    /// Shows how the run ended.
    pub fn end(&mut self, rig: &Rig, report: &Report) -> Result<(), RunError> {
        self.shown.over = true;
        self.show(rig, report)?;
        self.operator.look(&self.shown);
        Ok(())
    }

    fn show(&mut self, rig: &Rig, report: &Report) -> Result<(), RunError> {
        let told_ps = self.panel.show(&mut self.shown.hosts);
        self.shown.now_ps = told_ps.cast_signed() - self.lead_in_ps.cast_signed();
        self.shown.arrived = report.arrived;
        let at_ps = report.now_ps.saturating_sub(self.lead_in_ps);
        for (link, (shown, port)) in self.shown.links.iter_mut().zip(&self.ports).enumerate() {
            let Some(port) = *port else { continue };
            let (waiting, counters, can_change) = match &self.setup.ports[port] {
                Some(emulated) => (emulated.queue_bytes(report.now_ps), emulated.counters(), false),
                None => {
                    let program = rig.program(self.setup.fabric.ports[port].switch);
                    (program.queue_bytes(port, report.now_ps)?, program.counters(port)?, true)
                }
            };
            let (waiting_bytes, state) = (waiting[0].max(waiting[1]), self.schedule.state(link, at_ps));
            *shown = Some(LinkNow { waiting_bytes, counters, state, can_change });
        }
        Ok(())
    }

    fn obey(&mut self, rig: &mut Rig, now_ps: u64, order: &Order) -> Result<(), RunError> {
        if matches!(order, Order::Rechoose) {
            let firsts = (0..self.setup.spec.flows.len()).filter(|flow| self.setup.plan.first(*flow) == *flow);
            let mut known = None;
            let setting = |first| {
                let config = self.setup.config(first);
                let paths = self.setup.paths(first, &config, now_ps.saturating_sub(self.lead_in_ps), &mut known);
                Setting { first, config, paths }
            };
            self.panel.rechoose(firsts.map(setting).collect());
            return Ok(());
        }
        let at_ps = now_ps.saturating_sub(self.lead_in_ps);
        for link in self.schedule.enter(at_ps, order) {
            let changes = self.schedule.changes(link, at_ps);
            let Some(port) = self.ports[link].filter(|port| self.setup.ports[*port].is_none()) else { continue };
            let rate_bps = self.setup.fabric.ports[port].rate_bps;
            let virtual_time = |change: &LinkChange| LinkChange { at_ps: change.at_ps + self.lead_in_ps, ..*change };
            let changes: Vec<_> = changes.iter().map(virtual_time).collect();
            rig.change_link(self.setup.fabric.ports[port].switch, port, rate_bps, &changes)?;
        }
        Ok(())
    }
}
