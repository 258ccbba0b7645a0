//! The main loop: parts run in parallel during windows in which no part can affect another. Link
//! changes, route changes and samples are handled between windows.

use std::cmp::Reverse;
use std::sync::{Arc, PoisonError, RwLock};

use spray_fabric::{Action, EvRecorder, FlowScheduler, LinkState, Node, PortOutcome, PortSamples, WATCHED};
use spray_fabric::{changes, first_flows, ports};
use spray_pipeline::config::NEVER;
use spray_pipeline::routes::Routes;
use spray_pipeline::scheme::{Forwarding, SchemeCounters};
use spray_pipeline::word::Word;

use super::arena::{Kind, Phase};
use super::common::{Common, PortPlace};
use super::hosts::End;
use super::mailboxes::{Mailboxes, PanicGuard, WindowBarrier};
use super::net::Net;
use super::observer::{Catalogue, Observer, PartObserver};
use super::part::Part;
use super::spec::{FlowOutcome, SimOutcome};
use super::switches::Switches;

#[cfg(test)]
mod tests;

pub(super) struct Engine<'a, W> {
    common: &'a Common<'a>,
    threads: usize,
    parts: Vec<Part<'a, W>>,
    mailboxes: Mailboxes,
    watched: Vec<(u32, EvRecorder)>,
    /// (time, link, state), in descending order.
    changes: Vec<(u64, usize, LinkState)>,
    /// Time of the next link change, route change or end of the run.
    next_special_ps: u64,
    /// Time at which the run was stopped at its limit, else 0.
    stopped_ps: u64,
    /// Number of windows before the work is distributed again.
    stretch: usize,
    /// The next window and its earliest start, if the last pass ended only to redistribute work.
    window: usize,
    begin_ps: u64,
}

impl<'a, W: Observer + Clone> Engine<'a, W> {
    pub(super) fn new(common: &'a Common<'a>, threads: usize, watch: &W) -> Self {
        let spec = common.spec;
        let mut links = vec![Vec::new(); common.partition.len()];
        ports(spec.network).for_each(|link| links[common.locate(link).part].push(link));
        let catalogue = Arc::new(if W::ACTIVE { Catalogue::new(common, ends(common).0) } else { Catalogue::default() });
        let part = |(number, (links, ends)): (usize, (&Vec<usize>, Vec<End>))| {
            let eyes = PartObserver::new(watch.clone(), &catalogue, common.partition.len() == 1);
            Part::new(common, number, Switches::new(common, number, links), eyes, ends)
        };
        let mut changes: Vec<_> = (0..)
            .zip(changes(spec.events, spec.network.links.len()))
            .flat_map(|(link, changes)| changes.into_iter().map(move |change| (change.at_ps, link, change.state)))
            .collect();
        changes.sort_by_key(|(at_ps, link, _)| Reverse((*at_ps, *link)));
        let (ends, senders) = ends(common);
        let mut parts: Vec<_> = links.iter().zip(ends).enumerate().map(part).collect();
        let watched = if spec.sample_ps > 0 { watch_evs(common, &mut parts, &senders) } else { Vec::new() };
        begin(common, &mut parts, senders);
        Self {
            common,
            threads: threads.clamp(1, common.partition.len()),
            parts,
            mailboxes: Mailboxes::new(&common.partition),
            watched,
            changes,
            next_special_ps: 0,
            stopped_ps: 0,
            stretch: FIRST_STRETCH,
            window: 0,
            begin_ps: 0,
        }
    }

    pub(super) fn run(mut self) -> SimOutcome {
        self.special(0);
        loop {
            let (next_ps, open) = self.windows();
            self.parts[0].net.eyes.watch.settle(next_ps);
            let over = open == 0 || next_ps == NEVER;
            if over || (next_ps >= self.next_special_ps && !self.special_until(next_ps)) {
                break;
            }
        }
        self.outcome()
    }

    /// Runs windows until a link or route change is due, all flows have ended, or the work has to
    /// be redistributed. Returns the earliest time of the next event and the number of open flows.
    fn windows(&mut self) -> (u64, usize) {
        let shares = shares(&self.parts, self.threads);
        let most = (self.window + self.stretch).min(WINDOWS);
        self.stretch = (2 * self.stretch).min(WINDOWS);
        let windows = Windows {
            window: self.window,
            most,
            begin_ps: self.begin_ps,
            lookahead_ps: if self.parts.len() == 1 { NEVER } else { self.common.partition.lookahead_ps },
            end_ps: self.next_special_ps,
            mailboxes: &self.mailboxes,
            barrier: WindowBarrier::new(shares.len()),
        };
        let mut rest = self.parts.as_mut_slice();
        // Each thread waits for all others, so none begins before all have been started.
        let begins = RwLock::new(false);
        let done = std::thread::scope(|scope| {
            let mut gate = begins.write().unwrap_or_else(PoisonError::into_inner);
            let (own, others) = rest.split_at_mut(shares[0]);
            rest = others;
            let mut first = shares[0];
            for (thread, share) in shares.iter().enumerate().skip(1) {
                let (theirs, others) = std::mem::take(&mut rest).split_at_mut(*share);
                rest = others;
                let (windows, begins) = (&windows, &begins);
                let work = move || {
                    if *begins.read().unwrap_or_else(PoisonError::into_inner) {
                        windows.run(thread, first, theirs);
                    }
                };
                // An early return opens the gate.
                std::thread::Builder::new().spawn_scoped(scope, work).map_err(|_| thread)?;
                first += share;
            }
            *gate = true;
            drop(gate);
            Ok(windows.run(0, 0, own))
        });
        let (next_ps, open) = match done {
            Ok(done) => done,
            Err(threads) => {
                self.threads = threads;
                return self.windows();
            }
        };
        // Redistribution must not change when windows begin.
        self.window = if next_ps < self.next_special_ps { most % WINDOWS } else { 0 };
        self.begin_ps = if self.window > 0 { next_ps } else { 0 };
        (next_ps, open)
    }

    /// Applies the changes due up to `now_ps`; returns `false` once the run is past its time limit.
    #[cold]
    fn special_until(&mut self, now_ps: u64) -> bool {
        while self.next_special_ps <= now_ps {
            if self.next_special_ps >= self.common.spec.until_ps {
                self.stopped_ps = self.common.spec.until_ps;
                return false;
            }
            self.special(self.next_special_ps);
        }
        true
    }

    fn special(&mut self, at_ps: u64) {
        self.change_links(at_ps);
        self.common.routes.advance(at_ps);
        //= docs/specs/host-dr.md#HDR-3 reachable paths
        if self.common.ev_paths.get().is_some_and(|known| known.epoch_starts().contains(&at_ps)) {
            self.parts.iter_mut().for_each(|part| part.update_paths(at_ps));
        }
        let change_ps = self.changes.last().map_or(NEVER, |(at_ps, ..)| *at_ps);
        let next_ps = change_ps.min(self.common.routes.next_epoch_ps());
        self.next_special_ps = next_ps.min(self.common.spec.until_ps.max(at_ps + 1));
    }

    fn change_links(&mut self, now_ps: u64) {
        while let Some((at_ps, link, state)) = self.changes.pop_if(|(at_ps, ..)| *at_ps <= now_ps) {
            let PortPlace { part, place } = self.common.locate(link);
            let net = &mut self.parts[part].net;
            let port = &mut net.switches.ports[place];
            port.change(at_ps, &state);
            if let Node::Host(host) = self.common.spec.network.links[link].from {
                let rate_bps = state.rate_bps(port.rate_bps);
                let host = self.common.partition.place_of_host[host];
                net.uplinks[host as usize].link.set_rate(rate_bps);
            }
        }
    }

    /// Collects the results, and asserts that the simulator itself lost no frame.
    fn outcome(self) -> SimOutcome {
        let Self { common, mut parts, watched, stopped_ps, .. } = self;
        let end_ps = parts.iter().map(|part| part.net.now_ps).max().unwrap_or(0).max(stopped_ps);
        parts.iter_mut().for_each(Part::close);
        let flows = flows(common, &parts);
        let start_ps = flows.iter().filter_map(|outcome| outcome.started_ps).min().unwrap_or(0);
        let layers = common.spec.network.layers();
        let span_ps = end_ps.saturating_sub(start_ps);
        let ports: Vec<_> = ports(common.spec.network)
            .map(|link| {
                let switches = &mut parts[common.locate(link).part].net.switches;
                port(switches, link, layers[link].clone(), end_ps, span_ps)
            })
            .collect();
        let frames_in_flight = parts.iter_mut().map(|part| part.net.frames_in_flight()).sum::<u64>();
        let frames_sent = parts.iter().map(|part| part.net.frames_sent).sum();
        let frames_delivered: u64 = parts.iter().map(|part| part.frames_delivered).sum();
        let no_route: u64 = parts.iter().map(|part| part.net.switches.no_route).sum();
        let frames_dropped = ports.iter().map(|port| port.counters.drops()).sum::<u64>() + no_route;
        let ends = frames_delivered + frames_dropped + frames_in_flight;
        assert_eq!(frames_sent, ends, "frames sent are delivered, dropped or in flight");
        let pfc = parts[0].net.switches.pfc.as_ref();
        SimOutcome {
            packet_hops: ports.iter().map(|port| port.counters.frames).sum(),
            flows,
            ports,
            samples: samples(common, &parts, end_ps),
            delivered: delivered(common, &parts, end_ps),
            deadlock: pfc.and_then(|pfc| pfc.deadlock(common.spec.network, &common.port_of_link)),
            scheme_counters: counted(common, &parts),
            events: events(&mut parts),
            ev_lives: watched.iter().map(|(flow, watch)| (*flow, watch.life())).collect(),
            end_ps,
            frames_sent,
            frames_delivered,
            frames_dropped,
            frames_in_flight,
        }
    }
}

fn counted<W>(common: &Common<'_>, parts: &[Part<'_, W>]) -> SchemeCounters {
    let switch = |switch: u32| {
        let part = *common.partition.of_switch.get(switch as usize)?;
        Some((common.routes.switch(switch)?, parts[part as usize].net.switches.state(switch)))
    };
    SchemeCounters::of((0..).map_while(switch), &|index| common.words.get(index as usize).map_or(0, Word::load))
}

/// Windows of all parts; each thread runs several parts in turn.
struct Windows<'a> {
    /// The number of the first window, and the limit of the numbers.
    window: usize,
    most: usize,
    /// Earliest start of the first window.
    begin_ps: u64,
    lookahead_ps: u64,
    /// Exclusive limit of event times.
    end_ps: u64,
    mailboxes: &'a Mailboxes,
    barrier: WindowBarrier,
}

impl Windows<'_> {
    /// Runs the parts of a thread, the first of which has number `first`. Returns the earliest time
    /// of the next event of any part and the number of open flows.
    fn run<W: Observer>(&self, thread: usize, first: usize, parts: &mut [Part<'_, W>]) -> (u64, usize) {
        let _guard = PanicGuard(&self.barrier);
        let Self { mailboxes, end_ps, .. } = *self;
        let (mut out_ps, mut spare) = (NEVER, Vec::new());
        for window in self.window.. {
            let next_ps = parts.iter().map(|part| part.net.next_ps()).fold(out_ps, u64::min);
            let open = parts.iter().map(|part| part.net.open).sum();
            let (mut start_ps, open) = self.barrier.wait(thread, next_ps, open);
            if window == self.window {
                start_ps = start_ps.max(self.begin_ps);
            }
            let numbered = (first..).zip(parts.iter_mut());
            if open == 0 || start_ps >= end_ps || window == self.most {
                numbered.for_each(|(number, part)| mailboxes.receive(window + 1, number, &mut part.net, &mut spare));
                return (start_ps, open);
            }
            let end_ps = start_ps.saturating_add(self.lookahead_ps).min(end_ps);
            out_ps = NEVER;
            for (number, part) in numbered {
                mailboxes.receive(window + 1, number, &mut part.net, &mut spare);
                if part.net.next_ps() < end_ps {
                    part.net.outbox.iter_mut().for_each(|mail| *mail = spare.pop().unwrap_or_default());
                    part.run(end_ps);
                    out_ps = out_ps.min(mailboxes.send_outbox(window, number, &mut part.net, &mut spare));
                }
            }
        }
        unreachable!("windows end")
    }
}

/// Maximum number of windows between redistributions. The window after it starts when the calendars
/// say, which may be slightly earlier.
const WINDOWS: usize = 256;
/// Windows before the first redistribution, since the first shares are guesses. Doubled each time.
const FIRST_STRETCH: usize = 4;

/// Returns the number of consecutive parts of each thread, balanced by the work measured so far.
fn shares<W: Observer>(parts: &[Part<'_, W>], threads: usize) -> Vec<usize> {
    // A part without measured work counts by its connections and ports.
    let work = |part: &Part<'_, W>| part.work + (part.ends.len() + part.net.switches.ports.len()) as u64 + 1;
    let total: u64 = parts.iter().map(work).sum();
    let mut shares = vec![0; threads];
    let mut before = 0;
    for (number, part) in parts.iter().enumerate() {
        // A part is assigned by its middle; every thread gets at least one.
        let middle = before + work(part) / 2;
        let thread = (u128::from(middle) * threads as u128 / u128::from(total)) as usize;
        let least = (number + threads).saturating_sub(parts.len());
        let most = shares.iter().rposition(|share| *share > 0).map_or(0, |last| last + 1);
        shares[thread.max(least).min(most)] += 1;
        before += work(part);
    }
    shares
}

/// Returns the ends of connections by part, and by flow the index of its sender in its part.
fn ends(common: &Common<'_>) -> (Vec<Vec<End>>, Vec<u32>) {
    let flows = common.spec.flows;
    let mut ends: Vec<Vec<End>> = (0..common.partition.len()).map(|_| Vec::new()).collect();
    let mut senders = Vec::with_capacity(flows.len());
    for (flow, first) in first_flows(flows.iter().map(|flow| flow.connection)).into_iter().enumerate() {
        let setting = &flows[flow];
        let [from, to] = [setting.src, setting.dst].map(|host| common.part_of_host(host) as usize);
        if first < flow {
            let sender = senders[first];
            let receiver = ends[from][sender as usize].peer;
            ends[from][sender as usize].add(flow as u32, setting.bytes);
            ends[to][receiver as usize].add(flow as u32, setting.bytes);
            senders.push(sender);
            continue;
        }
        let sender = ends[from].len() as u32;
        let receiver = ends[to].len() as u32 + u32::from(from == to);
        ends[from].push(End::new(common, flow, false, receiver));
        ends[to].push(End::new(common, flow, true, sender));
        senders.push(sender);
    }
    for ends in &mut ends {
        let mut next = 0;
        for end in ends {
            end.outcome = next;
            next += end.messages();
        }
    }
    (ends, senders)
}

/// Schedules the flows with known start times; `senders` has the senders' ends by flow.
fn begin<W: Observer>(common: &Common<'_>, parts: &mut [Part<'_, W>], senders: Vec<u32>) {
    let flows = common.spec.flows;
    let mut starts = FlowScheduler::new(flows.iter().map(|flow| (flow.start, flow.connection)), common.spec.triggers);
    starts.begin(&mut |at_ps, due| {
        if let Action::StartFlow(flow) = due {
            let part = common.part_of_host(flows[flow].src) as usize;
            parts[part].net.schedule(at_ps, Phase::Start, Kind::Start, senders[flow]);
        }
    });
    if !common.spec.triggers.is_empty() {
        parts[0].net.on_triggers(starts, senders);
    }
}

fn flows<W: Observer>(common: &Common<'_>, parts: &[Part<'_, W>]) -> Vec<FlowOutcome> {
    let mut flows = vec![FlowOutcome::default(); common.spec.flows.len()];
    for part in parts {
        for end in &part.ends {
            for (number, found) in (0..).zip(end.own(&part.net.outcomes)) {
                let outcome = &mut flows[end.message(number).flow as usize];
                if end.receives {
                    (outcome.received_ps, outcome.receiver) = (found.received_ps, found.receiver);
                } else {
                    let FlowOutcome { received_ps, receiver, .. } = *outcome;
                    *outcome = FlowOutcome { received_ps, receiver, ..*found };
                }
            }
        }
    }
    flows
}

fn port(switches: &mut Switches<'_>, link: usize, layer: String, end_ps: u64, span_ps: u64) -> PortOutcome {
    let PortPlace { place, .. } = switches.common.locate(link);
    switches.ports[place].apply_pause(end_ps);
    let port = &switches.ports[place];
    let counters = port.counters_until(end_ps);
    let (pauses, paused_ps) = switches.pfc.as_ref().map_or((0, 0), |pfc| pfc.pauses(place, port, end_ps));
    let entry = &switches.common.spec.network.links[link];
    PortOutcome {
        name: entry.name.clone(),
        layer,
        uplink: entry.is_uplink(),
        rate_bps: port.rate_bps,
        queue_mean_bytes: counters.queue_mean_bytes(span_ps),
        counters,
        pauses,
        paused_ps,
    }
}

fn samples<W: Observer>(common: &Common<'_>, parts: &[Part<'_, W>], end_ps: u64) -> Vec<PortSamples> {
    let of = |(port, link)| {
        let PortPlace { part, place } = common.locate(link);
        Some(parts[part].net.switches.bins.get(place)?.samples(port, end_ps))
    };
    ports(common.spec.network).enumerate().filter_map(of).collect()
}

/// Returns the payload bytes delivered by the end of each bin.
fn delivered<W: Observer>(common: &Common<'_>, parts: &[Part<'_, W>], end_ps: u64) -> Vec<(u64, u64)> {
    let mut sums = vec![0; common.arrived.cells()];
    for part in parts {
        sums.iter_mut().zip(part.arrivals.counted()).for_each(|(sum, bytes)| *sum += bytes);
    }
    spray_fabric::delivered(&common.arrived, sums.into_iter(), end_ps)
}

/// Observes the entropy values of the first connections; returns each with its first flow.
fn watch_evs<W: Observer>(common: &Common<'_>, parts: &mut [Part<'_, W>], senders: &[u32]) -> Vec<(u32, EvRecorder)> {
    let (mut places, mut watched) = (Vec::new(), Vec::new());
    for (flow, (spec, end)) in (0..).zip(common.spec.flows.iter().zip(senders)) {
        let place = (common.part_of_host(spec.src) as usize, *end);
        if places.len() < WATCHED && !places.contains(&place) {
            places.push(place);
            let watch = EvRecorder::new(0);
            parts[place.0].net.log.tap_choices(*end, Box::new(watch.clone()));
            watched.push((flow, watch));
        }
    }
    watched
}

fn events<W: Observer>(parts: &mut [Part<'_, W>]) -> Vec<(u64, u32, spray_core::event::Event)> {
    let mut events = Vec::new();
    for part in parts {
        let Part { ends, net: Net { log, outcomes, .. }, .. } = part;
        let flow = |at, number: u32| ends[number as usize].flow_at(at, outcomes);
        events.extend(log.drain().map(|entry| (entry.at.ps(), flow(entry.at, entry.connection), entry.event)));
    }
    events.sort_by_key(|(at_ps, ..)| *at_ps);
    events
}
