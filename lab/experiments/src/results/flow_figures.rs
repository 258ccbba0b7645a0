//! Measures of a set of flows: all of a run, or those of a workload.

use std::collections::HashMap;

use spray_core::flow::{ReceiverStats, SenderStats};

use super::field::figures;
use super::statistics::{Censored, Statistic, jain, mean, round3, share};
use super::{FlowResult, Incomplete, us};

figures! {
    /// Measures of a set of flows. Times cover the flows that started: an incomplete one counts
    /// with its elapsed time, and measures that depend on it are lower bounds. Null if no flow
    /// started.
    #[serde(default)]
    FlowFigures;
    /// Number of flows.
    flows_total: u64, "flows", "Flows", "", 0, Neither;
    /// Number of flows that completed.
    flows_completed: u64, "flows completed", "Flows completed", "", 0, Neither;
    /// Share of the flows that completed.
    completed_percent: f64, "completed %", "Share of the flows that completed", "%", 3, More;
    /// Incomplete flows on connections that gave up, after `give_up_us` without an acknowledgement.
    flows_given_up: u64, "given up", "Flows of connections given up", "", 0, Less;
    /// Time at which the first of these gave up.
    given_up_first_us: Option<f64>, "first given up us", "First connection given up at", "us", 1, Neither;
    /// Time at which the last of these gave up.
    given_up_last_us: Option<f64>, "last given up us", "Last connection given up at", "us", 1, Neither;
    /// Flows that had started when the time limit ended the run.
    flows_cut_off: u64, "cut off", "Flows cut off by the end of the run", "", 0, Less;
    /// Flows that did not start, as they wait for an incomplete flow or a later time.
    flows_not_started: u64, "not started", "Flows not started", "", 0, Less;
    /// Mean flow completion time.
    fct_mean_us: Option<f64>, "mean us", "Mean completion time", "us", 1, Less;
    /// Median of the flow completion times.
    fct_p50_us: Option<f64>, "p50 us", "Median completion time", "us", 1, Less;
    /// 99th percentile of the flow completion times; with fewer than 100 flows the maximum.
    fct_p99_us: Option<f64>, "p99 us", "99th percentile of the completion time", "us", 1, Less;
    /// 99.9th percentile of the flow completion times; null with fewer than 10,000 flows.
    fct_p99_9_us: Option<f64>, "p99.9 us", "99.9th percentile of the completion time", "us", 1, Less;
    /// Maximum flow completion time.
    fct_max_us: Option<f64>, "max us", "Slowest flow's completion time", "us", 1, Less;
    /// Coefficient of variation of the completion times; null unless all that started completed.
    fct_cv: Option<f64>, "FCT CV", "Coefficient of variation of the completion times", "", 3, Less;
    /// Makespan, from the first start to the last end: the job completion time (JCT).
    makespan_us: Option<f64>, "makespan us", "Makespan (JCT)", "us", 1, Less;
    /// JCT ratio: the makespan over the least possible one, limited by the hosts' links alone: the
    /// busiest link's transmission time plus the least latency of a message. 1 is ideal. Waiting of
    /// flows that start after others counts too.
    jct_ratio: Option<f64>, "JCT ratio", "JCT ratio", "", 3, Less;
    /// Delivered payload, including that of incomplete flows, over the makespan, or until the end
    /// of the run if not all flows completed.
    goodput_gbps: f64, "Gb/s", "Goodput", "Gb/s", 1, More;
    /// Mean slowdown: completion time over that of the same message alone in the fabric.
    slowdown_mean: Option<f64>, "slowdown", "Mean slowdown", "", 2, Less;
    /// 99th percentile of the slowdown.
    slowdown_p99: Option<f64>, "slowdown p99", "99th percentile of the slowdown", "", 2, Less;
    /// Jain's fairness index of the rates of flows that started: 1 is equal, 1/n the worst.
    jain: Option<f64>, "Jain", "Jain's index over the flows", "", 3, More;
    /// Data packets sent, including retransmissions.
    packets_sent: u64, "packets", "Packets sent", "packets", 0, Neither;
    /// Retransmitted data packets.
    retransmits: u64, "retx", "Packets sent again", "packets", 0, Less;
    /// Retransmitted packets in per cent of the packets sent.
    resent_percent: f64, "retx %", "Share of packets sent again", "%", 3, Less;
    /// Retransmission timers that expired.
    timeouts: u64, "timeouts", "Retransmission timeouts", "", 0, Less;
    /// Data packets that arrived after a later one, except retransmissions, duplicates (TRN-58).
    reordered_packets: u64, "reordered", "Packets reordered", "packets", 0, Less;
    /// Out-of-order rate: reordered packets in per cent of the packets sent.
    reordered_percent: f64, "reordered %", "Out-of-order rate", "%", 3, Less;
    /// Data packets that did not follow the previous packet's sequence number (TRN-60).
    unexpected_packets: u64, "out of sequence", "Packets out of sequence", "packets", 0, Less;
    /// Packets out of sequence, in per cent of the packets sent.
    unexpected_percent: f64, "out of sequence %", "Share of packets out of sequence", "%", 3, Less;
    /// Data packets that arrived more than once.
    duplicates: u64, "duplicates", "Packets that arrived twice", "packets", 0, Less;
    /// Mean share of a flow's completion or elapsed time for which it paused to change its path.
    drain_percent_of_fct: f64, "drain % of FCT", "Share of the completion time spent draining", "%", 2, Less;
}

/// Minimum for ten flows beyond the 99.9th percentile.
const FOR_P99_9: usize = 10_000;

impl FlowFigures {
    /// Returns the measures of `flows` in a run until `end_us`, and the keys of lower bounds.
    pub(super) fn of<'a>(flows: impl Iterator<Item = &'a FlowResult> + Clone, end_us: f64) -> (Self, Vec<String>) {
        let started = || flows.clone().filter(|flow| flow.time_us().is_some());
        let count = |of: fn(&FlowResult) -> bool| flows.clone().filter(|flow| of(flow)).count() as u64;
        let (flows_total, flows_completed) = (count(|_| true), count(|flow| flow.fct_us.is_some()));
        let (sender, receiver) = counted(flows.clone());
        let (fcts, slowdowns) = (times(started()), Censored::new(started().filter_map(slowdown)));
        let given_up = Censored::new(flows.clone().filter_map(|flow| Some((flow.given_up_us?, false))));
        let span_us = span_us(started(), end_us, flows_completed == flows_total);
        let mean_of = |of: fn(&FlowResult) -> Option<f64>| mean(&started().filter_map(of).collect::<Vec<_>>());
        let of_sent = |count| round3(share(count, sender.packets_sent));
        let order = receiver.order;
        let mut bounds = Bounds::default();
        let figures = Self {
            flows_total,
            flows_completed,
            completed_percent: round3(share(flows_completed, flows_total)),
            flows_given_up: count(|flow| flow.incomplete == Some(Incomplete::GivenUp)),
            given_up_first_us: given_up.percentile(0.0).map(|first| round3(first.value)),
            given_up_last_us: given_up.percentile(1.0).map(|last| round3(last.value)),
            flows_cut_off: count(|flow| flow.incomplete == Some(Incomplete::CutOff)),
            flows_not_started: count(|flow| flow.incomplete == Some(Incomplete::NotStarted)),
            fct_mean_us: bounds.note("fct_mean_us", fcts.mean()),
            fct_p50_us: bounds.note("fct_p50_us", fcts.percentile(0.5)),
            fct_p99_us: bounds.note("fct_p99_us", fcts.percentile(0.99)),
            fct_p99_9_us: bounds.note("fct_p99_9_us", fcts.percentile(0.999).filter(|_| fcts.len() >= FOR_P99_9)),
            fct_max_us: bounds.note("fct_max_us", fcts.percentile(1.0)),
            fct_cv: fcts.coefficient_of_variation().map(round3),
            makespan_us: bounds.note("makespan_us", span_us),
            jct_ratio: bounds.note("jct_ratio", span_us.zip(ideal_us(started())).map(|(span, ideal)| span.over(ideal))),
            goodput_gbps: round3(gbps(
                started().map(FlowResult::delivered_bytes).sum(),
                span_us.map_or(0.0, |span| span.value),
            )),
            slowdown_mean: bounds.note("slowdown_mean", slowdowns.mean()),
            slowdown_p99: bounds.note("slowdown_p99", slowdowns.percentile(0.99)),
            jain: jain(started().filter_map(rate)).map(round3),
            packets_sent: sender.packets_sent,
            retransmits: sender.retransmits,
            resent_percent: of_sent(sender.retransmits),
            timeouts: sender.timeouts,
            reordered_packets: order.reordered,
            reordered_percent: of_sent(order.reordered),
            unexpected_packets: order.unexpected,
            unexpected_percent: of_sent(order.unexpected),
            duplicates: receiver.duplicates,
            drain_percent_of_fct: mean_of(drain_percent).map_or(0.0, round3),
        };
        (figures, bounds.0)
    }
}

/// Keys of measures that are lower bounds.
#[derive(Default)]
pub(super) struct Bounds(pub Vec<String>);

impl Bounds {
    /// Returns the value of the measure `key`, and records whether it is a lower bound.
    pub fn note(&mut self, key: &str, statistic: Option<Statistic>) -> Option<f64> {
        let Statistic { value, is_bound } = statistic?;
        self.0.extend(is_bound.then(|| key.to_string()));
        Some(round3(value))
    }
}

/// Returns the completion or elapsed times of flows that started, in us.
pub(crate) fn times<'a>(flows: impl Iterator<Item = &'a FlowResult>) -> Censored {
    Censored::new(flows.filter_map(|flow| Some((flow.time_us()?, flow.fct_us.is_none()))))
}

/// Returns the slowdown, and whether it is a lower bound.
pub(crate) fn slowdown(flow: &FlowResult) -> Option<(f64, bool)> {
    let us = flow.time_us().filter(|_| flow.unloaded_fct_us > 0.0)?;
    Some((us / flow.unloaded_fct_us, flow.fct_us.is_none()))
}

/// Bytes per microsecond.
fn rate(flow: &FlowResult) -> Option<f64> {
    Some(flow.delivered_bytes() as f64 / flow.time_us().filter(|us| *us > 0.0)?)
}

fn drain_percent(flow: &FlowResult) -> Option<f64> {
    Some(100.0 * us(flow.sender.drained_ps) / flow.time_us().filter(|us| *us > 0.0)?)
}

/// Sums the counters of the flows' senders and receivers.
pub(super) fn counted<'a>(flows: impl Iterator<Item = &'a FlowResult>) -> (SenderStats, ReceiverStats) {
    flows.fold(Default::default(), |(mut sender, mut receiver): (SenderStats, ReceiverStats), flow| {
        sender.add(&flow.sender);
        receiver.add(&flow.receiver);
        (sender, receiver)
    })
}

/// Returns the makespan, or up to the end of the run as a lower bound if not all flows completed.
fn span_us<'a>(
    started: impl Iterator<Item = &'a FlowResult> + Clone,
    end_us: f64,
    all_completed: bool,
) -> Option<Statistic> {
    let start = started.clone().map(|flow| flow.start_us).min_by(f64::total_cmp)?;
    let last = started.filter_map(|flow| flow.end_us).fold(start, f64::max);
    let end = if all_completed { last } else { last.max(end_us) };
    Some(Statistic { value: end - start, is_bound: !all_completed })
}

/// Returns the least makespan, see `jct_ratio`; `None` if no flow started.
fn ideal_us<'a>(started: impl Iterator<Item = &'a FlowResult>) -> Option<f64> {
    let mut busy: HashMap<(bool, &str), f64> = HashMap::new();
    let mut last_bit_us = f64::INFINITY;
    for flow in started {
        *busy.entry((false, &flow.src)).or_default() += flow.link_us;
        *busy.entry((true, &flow.dst)).or_default() += flow.link_us;
        last_bit_us = last_bit_us.min(flow.last_bit_us);
    }
    let busiest = busy.into_values().fold(0.0, f64::max);
    (busiest > 0.0).then_some(busiest + last_bit_us)
}

/// Returns bytes over microseconds as Gb/s; 0 over no time.
pub(crate) fn gbps(bytes: u64, time_us: f64) -> f64 {
    if time_us > 0.0 { bytes as f64 * 8.0 / (time_us * 1e3) } else { 0.0 }
}
