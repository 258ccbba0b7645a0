//! What came of some flows: all of a run, or those of a workload.

use std::collections::HashMap;

use spray_core::flow::{ReceiverStats, SenderStats};

use super::measures::figures;
use super::statistics::{coefficient_of_variation, jain, mean, percentile, round3, share};
use super::{FlowResult, us};

figures! {
    /// Figures of some flows. Times and rates are of those that completed, and null where none did.
    #[serde(default)]
    FlowFigures as MEASURES, run |run| Some(run.flows), workload Some(|own| Some(own.flows));
    /// Flows.
    flows_total: u64, "flows", "Flows", "", 0, Neither;
    /// Flows that completed.
    flows_completed: u64, "flows completed", "Flows completed", "", 0, Neither;
    /// Mean flow completion time.
    fct_mean_us: Option<f64>, "mean us", "Mean completion time", "us", 1, Less;
    /// Median of the flow completion times.
    fct_p50_us: Option<f64>, "p50 us", "Median completion time", "us", 1, Less;
    /// 99th percentile of the flow completion times: with fewer than 100 flows the slowest.
    fct_p99_us: Option<f64>, "p99 us", "99th percentile of the completion time", "us", 1, Less;
    /// 99.9th percentile of the flow completion times; null with fewer than 10,000 flows, of which fewer than ten are beyond it.
    fct_p99_9_us: Option<f64>, "p99.9 us", "99.9th percentile of the completion time", "us", 1, Less;
    /// The slowest flow's completion time.
    fct_max_us: Option<f64>, "max us", "Slowest flow's completion time", "us", 1, Less;
    /// Coefficient of variation of the flow completion times: their standard deviation over their mean.
    fct_cv: Option<f64>, "FCT CV", "Coefficient of variation of the completion times", "", 3, Less;
    /// From the first start to the last end: the job completion time (JCT).
    makespan_us: Option<f64>, "makespan us", "From the first start to the last end", "us", 1, Less;
    /// JCT ratio: the makespan over the least possible one, in which only the hosts' own links are limits: the time that the busiest of them
    /// needs for its bytes, and the least latency of a message. 1 is ideal. Where flows start one by one, waiting for their start counts too.
    jct_ratio: Option<f64>, "JCT ratio", "JCT ratio", "", 3, Less;
    /// Payload of the completed flows over the makespan.
    goodput_gbps: f64, "Gb/s", "Goodput", "Gb/s", 1, More;
    /// Mean slowdown: completion time over that of the same message alone in the fabric.
    slowdown_mean: Option<f64>, "slowdown", "Mean slowdown", "", 2, Less;
    /// 99th percentile of the slowdown.
    slowdown_p99: Option<f64>, "slowdown p99", "99th percentile of the slowdown", "", 2, Less;
    /// Jain's index of fairness over the flows' rates: 1 when all had the same, 1/n when one of n had everything.
    jain: Option<f64>, "Jain", "Jain's index over the flows", "", 3, More;
    /// Data packets sent, retransmissions among them.
    packets_sent: u64, "packets", "Packets sent", "packets", 0, Neither;
    /// Data packets sent again.
    retransmits: u64, "retx", "Packets sent again", "packets", 0, Less;
    /// Packets sent again, in per cent of the packets sent.
    resent_percent: f64, "retx %", "Share of packets sent again", "%", 3, Less;
    /// Retransmission timers that ran out.
    timeouts: u64, "timeouts", "Retransmission timeouts", "", 0, Less;
    /// Data packets that arrived after one with a higher sequence number. Retransmissions and duplicates do not count (TRN-58).
    reordered_packets: u64, "reordered", "Packets reordered", "packets", 0, Less;
    /// Out-of-order rate: reordered packets in per cent of the packets sent.
    reordered_percent: f64, "reordered %", "Out-of-order rate", "%", 3, Less;
    /// Data packets whose sequence number is not one more than that of the packet before (TRN-60).
    unexpected_packets: u64, "out of sequence", "Packets out of sequence", "packets", 0, Less;
    /// Packets out of sequence, in per cent of the packets sent.
    unexpected_percent: f64, "out of sequence %", "Share of packets out of sequence", "%", 3, Less;
    /// Data packets that arrived more than once.
    duplicates: u64, "duplicates", "Packets that arrived twice", "packets", 0, Less;
    /// Share of its completion time for which a flow was held back to change its path; mean over the completed flows.
    drain_percent_of_fct: f64, "drain % of FCT", "Share of the completion time spent draining", "%", 2, Less;
}

/// Flows of which ten are beyond the 99.9th percentile.
const FOR_P99_9: usize = 10_000;

impl FlowFigures {
    /// The figures of `flows`.
    pub(super) fn of<'a>(flows: impl Iterator<Item = &'a FlowResult> + Clone) -> Self {
        let (fcts, slowdowns) = (ascending(&flows, |f| f.fct_us), ascending(&flows, |f| f.slowdown));
        let (sender, receiver) = counted(flows.clone());
        let rate = |f: &FlowResult| Some(f.bytes as f64 / f.fct_us.filter(|us| *us > 0.0)?);
        let drain = |f: &FlowResult| Some(100.0 * us(f.sender.drained_ps) / f.fct_us.filter(|us| *us > 0.0)?);
        let drains: Vec<f64> = flows.clone().filter_map(drain).collect();
        let makespan_us = (!fcts.is_empty()).then(|| makespan_us(flows.clone()));
        let bytes = flows.clone().filter(|f| f.fct_us.is_some()).map(|f| f.bytes).sum();
        let of_sent = |count| round3(share(count, sender.packets_sent));
        let of = |values: &[f64], part| percentile(values, part).map(round3);
        let order = receiver.order;
        Self {
            flows_total: flows.clone().count() as u64,
            flows_completed: fcts.len() as u64,
            fct_mean_us: mean(&fcts).map(round3),
            fct_p50_us: of(&fcts, 0.5),
            fct_p99_us: of(&fcts, 0.99),
            fct_p99_9_us: of(&fcts, 0.999).filter(|_| fcts.len() >= FOR_P99_9),
            fct_max_us: of(&fcts, 1.0),
            fct_cv: coefficient_of_variation(&fcts).map(round3),
            makespan_us: makespan_us.map(round3),
            jct_ratio: makespan_us.and_then(|us| Some(round3(us / ideal_us(flows.clone())?))),
            goodput_gbps: round3(gbps(bytes, makespan_us.unwrap_or(0.0))),
            slowdown_mean: mean(&slowdowns).map(round3),
            slowdown_p99: of(&slowdowns, 0.99),
            jain: jain(flows.filter_map(rate)).map(round3),
            packets_sent: sender.packets_sent,
            retransmits: sender.retransmits,
            resent_percent: of_sent(sender.retransmits),
            timeouts: sender.timeouts,
            reordered_packets: order.reordered,
            reordered_percent: of_sent(order.reordered),
            unexpected_packets: order.unexpected,
            unexpected_percent: of_sent(order.unexpected),
            duplicates: receiver.duplicates,
            drain_percent_of_fct: mean(&drains).map_or(0.0, round3),
        }
    }
}

/// What the flows' two ends have counted.
pub(super) fn counted<'a>(flows: impl Iterator<Item = &'a FlowResult>) -> (SenderStats, ReceiverStats) {
    flows.fold(Default::default(), |(mut sender, mut receiver): (SenderStats, ReceiverStats), flow| {
        sender.add(&flow.sender);
        receiver.add(&flow.receiver);
        (sender, receiver)
    })
}

/// The values of the flows that have one, the least first.
pub(crate) fn ascending<'a>(
    flows: &(impl Iterator<Item = &'a FlowResult> + Clone),
    of: impl Fn(&FlowResult) -> Option<f64>,
) -> Vec<f64> {
    let mut values: Vec<f64> = flows.clone().filter_map(of).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// From the first flow's start to the last completed flow's end; 0 when none completed.
fn makespan_us<'a>(flows: impl Iterator<Item = &'a FlowResult> + Clone) -> f64 {
    let start = flows.clone().map(|f| f.start_us).fold(f64::INFINITY, f64::min);
    let end = flows.filter_map(|f| f.end_us).fold(f64::NEG_INFINITY, f64::max);
    if end > start { end - start } else { 0.0 }
}

/// The least makespan, see `jct_ratio`; `None` where no flow completed.
fn ideal_us<'a>(flows: impl Iterator<Item = &'a FlowResult>) -> Option<f64> {
    let mut busy: HashMap<(bool, &str), f64> = HashMap::new();
    let mut way_us = f64::INFINITY;
    for flow in flows.filter(|flow| flow.fct_us.is_some()) {
        *busy.entry((false, &flow.src)).or_default() += flow.link_us;
        *busy.entry((true, &flow.dst)).or_default() += flow.link_us;
        way_us = way_us.min(flow.alone_us - flow.link_us);
    }
    let busiest = busy.into_values().fold(0.0, f64::max);
    (busiest > 0.0).then_some(busiest + way_us.max(0.0))
}

/// Bytes over microseconds as Gb/s; 0 over no time.
pub(crate) fn gbps(bytes: u64, time_us: f64) -> f64 {
    if time_us > 0.0 { bytes as f64 * 8.0 / (time_us * 1e3) } else { 0.0 }
}
