//! Measurements of an interval, one for each direction.

use serde::Serialize;
use spray_core::flow::{ReceiverStats, SenderStats};
use spray_core::link::PS_PER_S;
use spray_nic::device::Device;
use spray_nic::{ConnectionId, Endpoint, Time};

use super::format::What;
use crate::transfer::gbps;

#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    pub at: Time,
    sender: SenderStats,
    receiver: ReceiverStats,
    rtt_p50_us: f64,
    rtt_p99_us: f64,
}

impl Snapshot {
    /// Subtracts `overhead`; round-trip times are the largest of `connections`.
    pub fn new<D: Device>(endpoint: &Endpoint<D>, connections: &[ConnectionId], overhead: Overhead, at: Time) -> Self {
        let (mut sender, mut receiver) = endpoint.totals();
        sender.bytes_acked -= overhead.acked;
        receiver.bytes -= overhead.received;
        let stats = connections.iter().filter_map(|connection| endpoint.connection_stats(*connection));
        let rtt = |us: (f64, f64), (p50_ps, p99_ps): (u64, u64)| {
            (us.0.max(p50_ps as f64 / 1e6), us.1.max(p99_ps as f64 / 1e6))
        };
        let (rtt_p50_us, rtt_p99_us) = stats.map(|stats| (stats.rtt_p50_ps, stats.rtt_p99_ps)).fold((0.0, 0.0), rtt);
        Self { at, sender, receiver, rtt_p50_us, rtt_p99_us }
    }

    pub fn bytes(&self) -> u64 {
        self.sender.bytes_acked + self.receiver.bytes
    }

    pub fn seen_at(self, at: Time) -> Self {
        Self { at, ..self }
    }

    pub fn plus(mut self, other: &Self) -> Self {
        self.at = self.at.max(other.at);
        self.sender.add(&other.sender);
        self.receiver.add(&other.receiver);
        self.rtt_p50_us = self.rtt_p50_us.max(other.rtt_p50_us);
        self.rtt_p99_us = self.rtt_p99_us.max(other.rtt_p99_us);
        self
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Overhead {
    pub acked: u64,
    pub received: u64,
}

/// One direction. The fields are those of `--json`, by iperf3's names where it has them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Interval {
    pub start: f64,
    pub end: f64,
    pub seconds: f64,
    pub bytes: u64,
    pub bits_per_second: f64,
    /// This side sends (`up`).
    pub sender: bool,
    /// Up only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retransmit_percent: Option<f64>,
    /// Up only: the fraction of ACKs with a mark.
    #[serde(skip_serializing_if = "Option::is_none")]
    marked_share: Option<f64>,
    /// Up only: since the connection began.
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_p50_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_p99_us: Option<f64>,
    /// Down only: packets that arrived behind a later one.
    #[serde(skip_serializing_if = "Option::is_none")]
    reordered: Option<u64>,
}

pub const HEAD: &str = "seconds        way       Gb/s  sent again  marked  RTT p50 us  p99 us  reordered";

impl Interval {
    /// Times count from `begun_at`.
    pub fn between(what: What, begun_at: Time, from: &Snapshot, to: &Snapshot) -> Vec<Self> {
        let up = matches!(what, What::Up | What::Both).then(|| Self::up(begun_at, from, to));
        let down = matches!(what, What::Down | What::Both).then(|| Self::down(begun_at, from, to));
        up.into_iter().chain(down).collect()
    }

    fn new(sender: bool, begun_at: Time, from: &Snapshot, to: &Snapshot, bytes: u64) -> Self {
        let seconds = |at: Time| at.since(begun_at) as f64 / PS_PER_S as f64;
        let (start, end) = (seconds(from.at), seconds(to.at));
        let (seconds, bits_per_second) = (end - start, gbps(bytes, end - start) * 1e9);
        Self { start, end, seconds, bytes, bits_per_second, sender, ..Self::default() }
    }

    fn up(begun_at: Time, from: &Snapshot, to: &Snapshot) -> Self {
        let counted = from.sender.delta_to(&to.sender);
        Self {
            retransmits: Some(counted.retransmits),
            packets: Some(counted.packets_sent),
            retransmit_percent: Some(100.0 * counted.retransmits as f64 / counted.packets_sent.max(1) as f64),
            marked_share: Some(counted.marked_acks as f64 / counted.acks.max(1) as f64),
            rtt_p50_us: Some(to.rtt_p50_us),
            rtt_p99_us: Some(to.rtt_p99_us),
            ..Self::new(true, begun_at, from, to, counted.bytes_acked)
        }
    }

    fn down(begun_at: Time, from: &Snapshot, to: &Snapshot) -> Self {
        let counted = from.receiver.delta_to(&to.receiver);
        Self { reordered: Some(counted.order.reordered), ..Self::new(false, begun_at, from, to, counted.bytes) }
    }

    pub fn line(&self) -> String {
        let Self { start, end, .. } = self;
        let (way, gbps) = (if self.sender { "up" } else { "down" }, self.bits_per_second / 1e9);
        let [again, reordered] =
            [self.retransmits, self.reordered].map(|count| or_dash(count.map(|it| it.to_string())));
        let [p50, p99] = [self.rtt_p50_us, self.rtt_p99_us].map(|us| or_dash(us.map(|us| format!("{us:.1}"))));
        let marked = or_dash(self.marked_share.map(|share| format!("{:.1} %", 100.0 * share)));
        let columns = format!("{again:>10}  {marked:>6}  {p50:>10}  {p99:>6}  {reordered:>9}");
        format!("{start:5.1} - {end:5.1}  {way:<4}{gbps:10.3}  {columns}")
    }
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".into())
}
