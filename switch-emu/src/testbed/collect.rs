//! From what endpoints, programs and samples hold to the result of a run.

use std::collections::HashMap;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use spray_core::event::Event;
use spray_core::path::BalancerKind;
use spray_nic::device::{Device, DeviceStats};
use spray_nic::endpoint::{ConnectionStats, Lateness};
use spray_nic::{ConnectionId, Peer};

use super::RunError;
use super::drive::Outcome;
use super::hosts::{Arrived, Running, Setup};
use super::rig::Rig;
use super::sample::Samples;
use crate::fabric::Node;
use crate::program::PortCounters;
use crate::results::{EventKind, EventRow, FlowResult, PortResult, RunResult, TestbedLosses, TransportTotals};
use crate::topology::{LinkAction, LinkEvent};
use crate::workload::Flow;

/// A run that is over.
pub(super) struct Collect<'a> {
    pub setup: &'a Setup<'a>,
    pub balancer: BalancerKind,
    pub lead_in_ps: u64,
    pub payloads: &'a [Bytes],
    pub connections: &'a [ConnectionId],
    pub outcome: &'a Outcome,
}

type Hash = [u8; 32];

impl Collect<'_> {
    /// The whole result.
    pub fn result(&self, rig: &Rig, samples: Samples, testbed_losses: TestbedLosses) -> Result<RunResult, RunError> {
        let scenario = self.setup.scenario;
        let (flows, payload_verified) = self.flows();
        let counters: Vec<_> = self.counters(rig)?;
        let mut lateness = Lateness::default();
        self.outcome.hosts.iter().for_each(|running| lateness.merge(running.endpoint.lateness()));
        Ok(RunResult {
            engine: "xdp".into(),
            scenario: scenario.name.clone(),
            condition: scenario.condition.clone(),
            balancer: self.balancer.to_string(),
            congestion_control: scenario.transport.cc.to_string(),
            seed: self.setup.seed,
            dilation: self.outcome.dilation,
            wall_s: self.outcome.wall.as_secs_f64(),
            ports: self.ports(&counters, &samples),
            port_samples: samples.ports,
            delivered: samples.delivered,
            events: self.events(&counters),
            transport: self.transport(),
            testbed_losses,
            late_packets: lateness.late_frames(),
            lateness_p99_us: lateness.quantile_ps(0.99) as f64 / 1e6,
            payload_verified,
            sim: None,
            recovery_us: self.recovery(&counters).map(|(_, us)| us),
            flows,
        })
    }

    /// Scenario time in microseconds.
    fn us(&self, ps: u64) -> f64 {
        (ps as f64 - self.lead_in_ps as f64) / 1e6
    }

    fn host_name(&self, host: usize) -> &str {
        &self.setup.fabric.hosts[host].name
    }

    fn counters(&self, rig: &Rig) -> Result<Vec<PortCounters>, RunError> {
        let ports = self.setup.fabric.ports.iter().enumerate();
        Ok(ports.map(|(number, port)| rig.program(port.switch).counters(number)).collect::<Result<_, _>>()?)
    }

    /// Every flow, and whether each message that arrived is one that was sent.
    ///
    /// Which connection is whose is told by what came on it: of the messages from the flow's sender, the one with its
    /// hash, the earliest of several.
    fn flows(&self) -> (Vec<FlowResult>, bool) {
        let mut arrivals: Vec<Vec<(Peer, Hash, &Arrived)>> =
            self.outcome.hosts.iter().map(|running| arrivals(running)).collect();
        arrivals.iter_mut().for_each(|arrivals| arrivals.sort_by_key(|(.., arrived)| arrived.started_ps));
        let flow = |((flow, payload), connection): ((&Flow, &Bytes), &ConnectionId)| {
            let (peer, hash): (_, Hash) = (self.setup.peer(flow.src), Sha256::digest(payload).into());
            let candidates = &mut arrivals[flow.dst];
            let found =
                candidates.iter().position(|(from, arrived, _)| from.address == peer.address && *arrived == hash);
            let arrived = found.map(|index| candidates.remove(index).2);
            self.flow(flow, *connection, arrived)
        };
        let flows = self.setup.flows.iter().zip(self.payloads).zip(self.connections).map(flow).collect();
        // Whatever is left over arrived otherwise than it was sent.
        (flows, arrivals.iter().all(Vec::is_empty))
    }

    fn flow(&self, flow: &Flow, connection: ConnectionId, arrived: Option<&Arrived>) -> FlowResult {
        let sender = self.outcome.hosts[flow.src].endpoint.connection_stats(connection);
        let receiver = |arrived: &Arrived| self.outcome.hosts[flow.dst].endpoint.connection_stats(arrived.connection);
        let start_us = flow.start_ps as f64 / 1e6;
        let end_us = arrived.map(|arrived| self.us(arrived.completed_ps));
        FlowResult {
            flow: flow.flow,
            src: self.host_name(flow.src).into(),
            dst: self.host_name(flow.dst).into(),
            bytes: flow.bytes,
            start_us,
            end_us,
            fct_us: end_us.map(|end| end - start_us),
            retransmits: sender.map_or(0, |stats| stats.sender.retransmits),
            reordered: arrived.and_then(receiver).map_or(0, |stats| stats.receiver.reordered),
        }
    }

    fn ports(&self, counters: &[PortCounters], samples: &Samples) -> Vec<PortResult> {
        let peak = |name: &str| {
            let series = samples.ports.iter().find(|series| series.name == name);
            series.into_iter().flat_map(|series| &series.samples).map(|sample| sample.queue_bytes).max().unwrap_or(0)
        };
        let ports = self.setup.fabric.ports.iter().zip(counters);
        let result = |(port, counters): (&crate::fabric::Port, &PortCounters)| PortResult {
            name: port.name.clone(),
            uplink: matches!(port.to, Node::Switch(_)),
            rate_gbps: port.rate_bps as f64 / 1e9,
            frames: counters.frames,
            bytes: counters.bytes,
            control_frames: counters.control_frames,
            ecn_marks: counters.marks,
            trims: counters.trims,
            drops_queue: counters.drops_queue,
            drops_link: counters.drops_link,
            drops_random: counters.drops_random,
            drops_ttl: counters.drops_ttl,
            peak_queue_bytes: peak(&port.name),
        };
        ports.map(result).collect()
    }

    /// Statistics of all connections, senders' and receivers'.
    fn connections(&self) -> impl Iterator<Item = ConnectionStats> + '_ {
        let own = self.setup.flows.iter().zip(self.connections).map(|(flow, connection)| (flow.src, *connection));
        let hosts = self.outcome.hosts.iter();
        let accepted =
            hosts.flat_map(|running| running.book.accepted.iter().map(|(connection, _)| (running.host, *connection)));
        own.chain(accepted)
            .filter_map(|(host, connection)| self.outcome.hosts[host].endpoint.connection_stats(connection))
    }

    fn transport(&self) -> TransportTotals {
        let mut totals = TransportTotals::default();
        for stats in self.connections() {
            totals.packets_sent += stats.sender.packets_sent;
            totals.retransmits += stats.sender.retransmits;
            totals.timeouts += stats.sender.timeouts;
            totals.reordered_packets += stats.receiver.reordered;
            totals.duplicates += stats.receiver.duplicates;
        }
        for running in &self.outcome.hosts {
            let stats = running.endpoint.stats();
            totals.invalid_frames +=
                stats.malformed + stats.checksum + stats.wrong_cookie + stats.unknown_connection + stats.invalid;
            let frozen = running.book.log.iter().filter(|entry| entry.event == Event::FreezeEntered);
            totals.freeze_entries += frozen.count() as u64;
        }
        totals
    }

    /// What the testbed itself lost: at interfaces (`drops`), at sockets since `before`, and in the endpoints.
    ///
    /// An interface also counts what the socket behind it had no room for.
    pub fn losses(&self, drops: u64, before: &[DeviceStats]) -> TestbedLosses {
        let mut losses = TestbedLosses::default();
        let mut at_sockets = 0;
        for (running, before) in self.outcome.hosts.iter().zip(before) {
            let (stats, device) = (running.endpoint.stats(), running.endpoint.device().stats());
            let fill_empty = device.fill_empty - before.fill_empty;
            let ring_full = device.rx_dropped_ring_full - before.rx_dropped_ring_full;
            // The kernel counts a frame that found the fill ring empty in both.
            let otherwise = (device.rx_dropped - before.rx_dropped).saturating_sub(fill_empty);
            at_sockets += fill_empty + ring_full + otherwise;
            losses.rx_ring_full += ring_full;
            losses.fill_ring_empty += fill_empty;
            losses.other += otherwise;
            losses.other += stats.hold_overflow + stats.control_dropped + stats.too_early + stats.device_errors;
        }
        losses.veth = drops.saturating_sub(at_sockets);
        losses
    }

    fn events(&self, counters: &[PortCounters]) -> Vec<EventRow> {
        let end_us = self.us(self.outcome.end_ps);
        let mut rows = Vec::new();
        for event in &self.setup.scenario.link_events {
            let (kind, detail) = (event.action.name(), event.action.detail());
            let row = |ps: u64, kind, detail: &str| EventRow {
                time_us: ps as f64 / 1e6,
                kind,
                subject: event.name.clone(),
                detail: detail.into(),
            };
            rows.push(row(event.at_ps, EventKind::Failure, &format!("{kind}{detail}")));
            rows.extend(event.until_ps.map(|until| row(until, EventKind::Recovered, kind)));
        }
        for epoch in self.setup.fabric.routes.iter().skip(1) {
            let (subject, detail) = ("routing".into(), String::new());
            rows.push(EventRow { time_us: self.us(epoch.valid_from_ps), kind: EventKind::Reroute, subject, detail });
        }
        rows.retain(|row| row.time_us <= end_us);
        if let Some((port, us)) = self.recovery(counters) {
            let time_us = self.us(counters[port].last_link_drop_ps);
            let detail = format!("{us:.1} us after the failure began");
            rows.push(EventRow {
                time_us,
                kind: EventKind::LastDrop,
                subject: self.setup.fabric.ports[port].name.clone(),
                detail,
            });
        }
        rows.extend(self.log());
        rows.sort_by(|a, b| a.time_us.total_cmp(&b.time_us));
        rows
    }

    /// What the hosts' algorithms and connections reported.
    fn log(&self) -> Vec<EventRow> {
        let mut subjects = HashMap::new();
        for (flow, connection) in self.setup.flows.iter().zip(self.connections) {
            subjects
                .insert((flow.src, *connection), format!("{}->{}", self.host_name(flow.src), self.host_name(flow.dst)));
        }
        let mut rows = Vec::new();
        for running in &self.outcome.hosts {
            let subject = |connection| {
                let known = subjects.get(&(running.host, connection));
                known.cloned().unwrap_or_else(|| self.host_name(running.host).to_string())
            };
            for entry in &running.book.log {
                let (kind, detail) = match entry.event {
                    Event::FreezeEntered => (EventKind::FreezeEntered, String::new()),
                    Event::FreezeExited => (EventKind::FreezeExited, String::new()),
                    Event::Timeout { psn } => (EventKind::Timeout, format!("packet {psn}")),
                    _ => continue,
                };
                rows.push(EventRow { time_us: self.us(entry.at_ps), kind, subject: subject(entry.connection), detail });
            }
            for (connection, error, at_ps) in &running.book.failed {
                let (kind, detail) = (EventKind::Failure, error.to_string());
                rows.push(EventRow { time_us: self.us(*at_ps), kind, subject: subject(*connection), detail });
            }
        }
        rows
    }

    /// The port with the last drop that a failure caused, and how long after that failure's beginning it was, in us.
    fn recovery(&self, counters: &[PortCounters]) -> Option<(usize, f64)> {
        let scenario = self.setup.scenario;
        let ports = self.setup.fabric.ports.iter().zip(counters).enumerate();
        let dropped = ports.filter(|(_, (_, counters))| counters.last_link_drop_ps > 0);
        let (port, (config, counters)) = dropped.max_by_key(|(_, (_, counters))| counters.last_link_drop_ps)?;
        let hits = |event: &&LinkEvent| {
            event.links.iter().any(|link| scenario.network.links[*link].name == config.name)
                && !matches!(event.action, LinkAction::Rate { .. })
        };
        let begun_ps = scenario.link_events.iter().filter(hits).map(|event| event.at_ps).min()?;
        Some((port, self.us(counters.last_link_drop_ps) - begun_ps as f64 / 1e6))
    }
}

/// A host's messages with their senders and hashes.
fn arrivals(running: &Running) -> Vec<(Peer, Hash, &Arrived)> {
    let peer = |arrived: &Arrived| {
        let mut accepted = running.book.accepted.iter();
        accepted.find(|(connection, _)| *connection == arrived.connection).map(|(_, peer)| *peer)
    };
    let arrived = running.book.arrived.iter();
    arrived.filter_map(|arrived| Some((peer(arrived)?, Sha256::digest(&arrived.data).into(), arrived))).collect()
}
