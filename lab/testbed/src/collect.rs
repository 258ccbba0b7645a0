//! Collects the outcome of a run from endpoints, programs and samples.

use std::sync::Arc;

use spray_core::flow::{ReceiverStats, SenderStats};
use spray_fabric::EvLife;
use spray_fabric::{FlowOutcome, Port, PortCounters, PortOutcome, PortSamples};
use spray_nic::ConnectionId;
use spray_nic::device::{DeviceHealth, DeviceStats};

use super::drive::Outcome;
use super::emulation::Lateness;
use super::host_port::TimedHostLink;
use super::hosts::Setup;
use super::rig::Rig;
use super::{Losses, Report, ReportKind, Subject, TestbedOutcome};
use spray_switch::RunError;

pub(super) struct Collect<'a> {
    pub setup: &'a Setup<'a>,
    pub outcome: &'a Outcome,
}

impl Collect<'_> {
    pub fn outcome(&self, rig: &Rig, delivered: Vec<(u64, u64)>, losses: Losses) -> Result<TestbedOutcome, RunError> {
        let (flows, payload_verified) = self.setup.plan.outcomes(|first| self.counted(first));
        let mut lateness = Lateness::default();
        let of_hosts = self.outcome.hosts.iter().filter_map(|running| running.endpoint.device().lateness());
        of_hosts.for_each(|of_host| lateness.merge(of_host));
        let epochs = self.setup.fabric.routes.iter().skip(1);
        let stats = self.outcome.hosts.iter().map(|running| running.endpoint.stats());
        Ok(TestbedOutcome {
            scheme_counters: rig.program(0).counted(),
            payload_verified,
            samples: self.samples(rig)?,
            delivered,
            ev_lives: self.ev_lives(),
            lead_in_ps: self.setup.plan.lead_in_ps,
            log: self.log(&flows),
            ports: self.ports(rig, &flows)?,
            flows,
            reroutes_ps: epochs.map(|epoch| epoch.valid_from_ps.saturating_sub(self.setup.plan.lead_in_ps)).collect(),
            end_ps: self.outcome.end_ps.saturating_sub(self.setup.plan.lead_in_ps),
            invalid_frames: stats
                .map(|of| of.malformed + of.checksum + of.wrong_cookie + of.unknown_connection + of.invalid)
                .sum(),
            losses,
            late_frames: lateness.late_frames(),
            lateness_p99_ps: lateness.quantile_ps(0.99),
            wall: self.outcome.wall,
            dilation: self.outcome.dilation,
        })
    }

    fn samples(&self, rig: &Rig) -> Result<Vec<PortSamples>, RunError> {
        if self.setup.spec.sample_ps == 0 {
            return Ok(Vec::new());
        }
        let end_ps = self.outcome.end_ps;
        let programs: Vec<_> =
            rig.chassis.iter().map(|chassis| chassis.program.samples(end_ps)).collect::<Result<_, _>>()?;
        let of = |(number, port): (usize, &Port)| match &self.setup.ports[number] {
            Some(emulated) => emulated.bins.samples(number, end_ps),
            None => programs[rig.chassis_of(port.switch)][number].clone(),
        };
        Ok(self.setup.fabric.ports.iter().enumerate().map(of).collect())
    }

    /// Returns the counters of the connection that begins with `first`; 0 if not established.
    fn counted(&self, first: usize) -> (SenderStats, ReceiverStats) {
        let flow = &self.setup.spec.flows[first];
        let [from, to] = [flow.src, flow.dst].map(|host| &self.outcome.hosts[host]);
        let own = from.book.own.get(&first);
        let accepted = to.book.accepted.iter().find(|(_, of)| **of == first).map(|(connection, _)| connection);
        let sender = own.and_then(|connection| from.endpoint.connection_stats(*connection));
        let receiver = accepted.and_then(|connection| to.endpoint.connection_stats(*connection));
        (sender.unwrap_or_default().sender, receiver.unwrap_or_default().receiver)
    }

    fn ports(&self, rig: &Rig, flows: &[FlowOutcome]) -> Result<Vec<PortOutcome>, RunError> {
        let spec = self.setup.spec;
        let start_ps = flows.iter().filter_map(|flow| flow.started_ps).min().unwrap_or(0);
        let span_ps = self.outcome.end_ps.saturating_sub(self.setup.plan.lead_in_ps + start_ps);
        let network = spec.fabric.network;
        let of_links = network.layers();
        let layers = of_links.iter().zip(&network.links).filter(|(_, link)| link.from.switch().is_some());
        let layers = layers.map(|(layer, _)| layer.clone());
        // 0 means that there was none.
        let after_lead_in = |ps: u64| if ps > 0 { ps.saturating_sub(self.setup.plan.lead_in_ps).max(1) } else { 0 };
        let outcome = |((number, port), layer): ((usize, &Port), String)| {
            let mut counters: PortCounters = match &self.setup.ports[number] {
                Some(emulated) => emulated.port.counters_until(self.outcome.end_ps),
                None => rig.program(port.switch).counters(number)?,
            };
            counters.last_link_drop_ps = after_lead_in(counters.last_link_drop_ps);
            Ok(PortOutcome {
                name: port.name.clone(),
                layer,
                uplink: port.to.switch().is_some(),
                rate_bps: port.rate_bps,
                queue_mean_bytes: counters.queue_mean_bytes(span_ps),
                counters,
                ..PortOutcome::default()
            })
        };
        // Hosts' own links that dropped something, as in the simulator.
        let own = |(host, link): (usize, &Option<Arc<TimedHostLink>>)| {
            let (index, mut counters) = (network.uplink(host), link.as_ref()?.counters.read());
            counters.last_link_drop_ps = after_lead_in(counters.last_link_drop_ps);
            (counters.drops_link() + counters.drops_random > 0).then(|| {
                Ok(PortOutcome {
                    name: network.links[index].name.clone(),
                    layer: of_links[index].clone(),
                    rate_bps: network.links[index].rate_bps,
                    counters,
                    ..PortOutcome::default()
                })
            })
        };
        let own = self.setup.links.iter().enumerate().filter_map(own);
        self.setup.fabric.ports.iter().enumerate().zip(layers).map(outcome).chain(own).collect()
    }

    /// Counts the testbed's own losses: at interfaces (`drops`), at sockets since `before`, and in
    /// endpoints. Interfaces also count what the socket behind them dropped.
    pub fn losses(&self, drops: u64, before: &[DeviceStats]) -> Losses {
        let mut losses = Losses::default();
        let mut at_sockets = 0;
        for (running, before) in self.outcome.hosts.iter().zip(before) {
            let (stats, device) = (running.endpoint.stats(), running.endpoint.device().stats());
            let fill_empty = device.fill_empty - before.fill_empty;
            let ring_full = device.rx_dropped_ring_full - before.rx_dropped_ring_full;
            // The kernel counts a frame for which the fill ring was empty in both.
            let otherwise = (device.rx_dropped - before.rx_dropped).saturating_sub(fill_empty);
            at_sockets += fill_empty + ring_full + otherwise;
            losses.rx_ring_full += ring_full;
            losses.fill_ring_empty += fill_empty;
            losses.other += otherwise;
            losses.other += running.endpoint.device().lost() + stats.control_dropped + stats.device_errors;
        }
        losses.veth = drops.saturating_sub(at_sockets);
        losses
    }

    fn ev_lives(&self) -> Vec<(usize, EvLife)> {
        let watched = self.outcome.hosts.iter().flat_map(|running| &running.book.watched);
        let mut lives: Vec<_> = watched.map(|(flow, watch)| (*flow, watch.life())).collect();
        lives.sort_by_key(|(flow, _)| *flow);
        lives
    }

    /// Returns the reports, each for the first flow of its connection that was in progress.
    fn log(&self, flows: &[FlowOutcome]) -> Vec<Report> {
        let plan = self.setup.plan;
        let flow_at = |first: usize, at_ps: i64| {
            let goes_on = |flow: &&usize| flows[**flow].acked_ps.is_none_or(|acked_ps| acked_ps.cast_signed() >= at_ps);
            let series = &plan.series[first];
            *series.iter().find(goes_on).or(series.last()).unwrap_or(&first)
        };
        let mut log = Vec::new();
        for running in &self.outcome.hosts {
            let report = |at_ps: u64, connection: ConnectionId, kind: ReportKind| {
                let at_ps = at_ps.cast_signed() - self.setup.plan.lead_in_ps.cast_signed();
                let first = running.book.first.get(&connection);
                let subject = first.map_or(Subject::Host(running.host), |first| Subject::Flow(flow_at(*first, at_ps)));
                Report { at_ps, subject, kind }
            };
            let entries = running.book.log.iter();
            log.extend(entries.map(|entry| report(entry.at.ps(), entry.connection, ReportKind::Event(entry.event))));
            let failed = running.book.failed.iter();
            log.extend(
                failed.map(|(connection, why, at)| report(at.ps(), *connection, ReportKind::Failed(why.to_string()))),
            );
        }
        log
    }
}
