//! Draws the events of failure processes: which devices fail, and when.

use rand_core::RngCore;
use rand_xoshiro::Xoshiro256PlusPlus;
use spray_core::link::serialisation_floor_ps;
use spray_core::rng::stream;

use super::file::{Device, DrawError, Failure, FailureFile, Process};
use super::outages::{Candidate, FailureContext, Outages, draw_one};
use super::random::tier_pair;
use crate::FileError;
use crate::fabric::DropEvery;
use crate::node::Node;
use crate::{Link, LinkAction, LinkEvent, Network, ShortestPaths};

/// RNG stream of the first process; the others follow.
const STREAM: u64 = 1 << 34;
/// Maximum failures of a process, and their product with the number of links.
const MAX_FAILURES: usize = 100_000;
const MAX_LOOKS: usize = 1_000_000_000;
const MILLION: f64 = 1e6;

impl FailureFile {
    /// Returns the events of this file, with failing devices drawn from the seed.
    ///
    /// Devices are drawn one after another, uniformly among those that work. A device is not drawn
    /// if a leaf would lose all paths to another leaf; NICs are exempt. At any time as many devices
    /// fail as the share requires.
    ///
    /// # Errors
    /// A process with too many failures, or a random failure with too few devices.
    pub fn events(&self, context: &FailureContext<'_>) -> Result<Vec<LinkEvent>, DrawError> {
        if self.processes.is_empty() && self.random.is_empty() && self.random_ppm == 0 {
            return Ok(Vec::new());
        }
        let routes = ShortestPaths::new(context.network, |_| true);
        let mut outages = Outages::new(context.network, &routes);
        let mut events = self.listed(context, &mut outages).map_err(DrawError::Line)?;
        for (index, failure) in self.random.iter().enumerate() {
            let drawn = failure.events(context, index as u64, &mut outages);
            events.extend(drawn.map_err(|message| DrawError::Random { index, message })?);
        }
        events.sort_by_key(|event| event.at_ps);
        Ok(events)
    }

    fn listed(&self, context: &FailureContext<'_>, outages: &mut Outages<'_>) -> Result<Vec<LinkEvent>, FileError> {
        let network = context.network;
        let until_ps = self.stop_ps.map_or(context.until_ps, |stop| stop.min(context.until_ps));
        let context = FailureContext { until_ps, ..*context };
        let mut events = Vec::new();
        for (number, process) in self.processes.iter().enumerate() {
            let rng = stream(context.seed, STREAM + number as u64);
            let mut draw = Draw { process, context, rng, upper_only: self.upper_only };
            let drawn = match process.failure {
                Failure::BitErrors if process.period_ps == 0 => draw.corrupt_all(),
                Failure::BitErrors => draw.corrupt_one_by_one()?,
                _ => draw.draw_failures(outages)?,
            };
            events.extend(drawn);
        }
        if self.random_ppm > 0 {
            let links = (0..network.hosts.len()).map(|host| network.downlink(host)).collect();
            let action = LinkAction::Loss { ppm: self.random_ppm };
            events.push(LinkEvent { name: "hosts".into(), links, at_ps: 0, until_ps: None, action });
        }
        for event in &mut events {
            event.until_ps = event.until_ps.or(self.stop_ps).map(|until| until.min(self.stop_ps.unwrap_or(u64::MAX)));
        }
        events.retain(|event| event.until_ps.is_none_or(|until| until > event.at_ps));
        Ok(events)
    }
}

struct Draw<'a> {
    process: &'a Process,
    context: FailureContext<'a>,
    rng: Xoshiro256PlusPlus,
    upper_only: bool,
}

impl Draw<'_> {
    /// Draws devices that fail one after another, temporarily or permanently.
    fn draw_failures(&mut self, outages: &mut Outages<'_>) -> Result<Vec<LinkEvent>, FileError> {
        let process = self.process;
        let mut candidates = self.candidates();
        let limit = self.limit();
        let (mut events, mut active): (Vec<LinkEvent>, Vec<(u64, Candidate)>) = (Vec::new(), Vec::new());
        let mut at_ps = process.start_ps;
        outages.begin();
        while at_ps < self.context.until_ps {
            let end_ps = process.duration_ps.map(|duration| at_ps.saturating_add(duration));
            let (back, out): (Vec<_>, Vec<_>) = active.into_iter().partition(|(until, _)| *until <= at_ps);
            active = out;
            candidates.extend(back.into_iter().map(|(_, candidate)| candidate));
            // Failures of NICs take no path from others.
            let removes_paths = process.device != Device::Nic;
            let mut paths = removes_paths.then(|| outages.paths(at_ps, end_ps));
            let mut needed = Vec::new();
            let mut failed = false;
            while active.len() < limit && !(failed && process.period_ps > 0) {
                let drawn = draw_one(&mut self.rng, &mut candidates, &mut needed, paths.as_mut());
                let Some(candidate) = drawn else { break };
                failed = true;
                if removes_paths {
                    outages.add(&candidate.links, at_ps, end_ps);
                }
                events.extend(self.actions().into_iter().map(|action| candidate.event(at_ps, end_ps, action)));
                active.push((end_ps.unwrap_or(u64::MAX), candidate));
            }
            candidates.append(&mut needed);
            self.check_count(events.len())?;
            // Starts after a period, or when fewer devices than the limit are out.
            let free_ps = active.iter().map(|(until, _)| *until).min().unwrap_or(u64::MAX);
            let due_ps = at_ps.saturating_add(process.period_ps.max(1));
            at_ps = if failed && active.len() < limit && process.period_ps > 0 { due_ps } else { free_ps.max(due_ps) };
        }
        Ok(events)
    }

    fn corrupt_all(&self) -> Vec<LinkEvent> {
        let process = self.process;
        let name = match process.device {
            Device::Cable => "cables",
            Device::Switch => "switches",
            Device::Nic => "hosts",
        };
        let links = self.candidates().into_iter().flat_map(|candidate| candidate.links).collect();
        let until_ps = process.duration_ps.map(|duration| process.start_ps.saturating_add(duration));
        let action = LinkAction::Loss { ppm: (process.share * MILLION).round() as u32 };
        vec![LinkEvent { name: name.into(), links, at_ps: process.start_ps, until_ps, action }]
    }

    /// Corrupts single frames: a random device drops everything for the duration of a full frame.
    fn corrupt_one_by_one(&mut self) -> Result<Vec<LinkEvent>, FileError> {
        let (process, network) = (self.process, self.context.network);
        let candidates = self.candidates();
        let last_ps = process.duration_ps.map_or(u64::MAX, |duration| process.start_ps.saturating_add(duration));
        let mut events = Vec::new();
        let mut at_ps = process.start_ps;
        while at_ps < self.context.until_ps.min(last_ps) {
            let index = (u64::from(self.rng.next_u32()) * candidates.len() as u64) >> 32;
            let victim = &candidates[index as usize];
            let rate_bps = network.links[victim.links[0]].rate_bps;
            let frame_ps = serialisation_floor_ps(u64::from(self.context.packet_bytes), rate_bps);
            events.push(victim.event(at_ps, Some(at_ps + frame_ps), LinkAction::SilentDrop));
            self.check_count(events.len())?;
            at_ps += process.period_ps;
        }
        Ok(events)
    }

    fn check_count(&self, failures: usize) -> Result<(), FileError> {
        let most = MAX_FAILURES.min(MAX_LOOKS / self.context.network.links.len().max(1));
        if failures <= most {
            return Ok(());
        }
        let message = format!("more than {most} failures in the run; allowed: a longer period or duration");
        Err(FileError { line: self.process.line, column: 1, message })
    }

    /// Returns the least number of devices that reaches the share. A share of 1 means one device.
    fn limit(&self) -> usize {
        let network = self.context.network;
        let all = match self.process.device {
            Device::Cable => network.links.len() / 2,
            Device::Switch => network.switches.len(),
            Device::Nic => network.hosts.len(),
        };
        let share = self.process.share;
        if share >= 1.0 { 1 } else { (share * all as f64 - 1e-9).ceil().max(1.0) as usize }
    }

    fn actions(&mut self) -> Vec<LinkAction> {
        let process = self.process;
        let loss = |percent: u32| LinkAction::Loss { ppm: percent * 10_000 };
        match (process.failure, process.device) {
            (Failure::Fail | Failure::BitErrors, _) => vec![LinkAction::SilentDrop],
            (Failure::Periodic, _) => {
                vec![LinkAction::Periodic(DropEvery { pass: process.pass, lose: process.lose })]
            }
            (Failure::Degradation, Device::Nic) => vec![loss(5)],
            (Failure::Degradation, Device::Switch) => {
                let ppm = (MILLION / (100.0 * process.slowdown)).round() as u32;
                if ppm < 1_000_000 { vec![LinkAction::Rate { ppm }, loss(10)] } else { vec![loss(10)] }
            }
            (Failure::Degradation, Device::Cable) => match self.rng.next_u32() % 100 {
                0..90 => vec![loss(33)],
                90..99 => vec![loss(66)],
                _ => vec![loss(100)],
            },
        }
    }

    fn candidates(&self) -> Vec<Candidate> {
        let network = self.context.network;
        match self.process.device {
            Device::Cable => {
                let links = cables(network, self.upper_only && self.process.failure != Failure::BitErrors);
                let candidate = |link: usize| Candidate { name: network.links[link].name.clone(), links: vec![link] };
                links.into_iter().map(candidate).collect()
            }
            Device::Switch => {
                let leaving = |switch: usize| {
                    let links = network.links.iter().enumerate();
                    links.filter(move |(_, link)| link.from == Node::Switch(switch)).map(|(index, _)| index).collect()
                };
                let named = network.switches.iter().enumerate();
                named.map(|(switch, its)| Candidate { name: its.name.clone(), links: leaving(switch) }).collect()
            }
            Device::Nic => (0..network.hosts.len()).map(|host| Candidate::host(network, host)).collect(),
        }
    }
}

fn cables(network: &Network, upper_only: bool) -> Vec<usize> {
    let tiers = network.tiers().tier;
    let top = tiers.iter().copied().max().unwrap_or(0);
    let fits = |(index, link): (usize, &Link)| {
        let [low, high] = tier_pair(&tiers, link)?;
        (!upper_only || (high == top && low != high)).then_some(index)
    };
    network.links.iter().enumerate().filter_map(fits).collect()
}
