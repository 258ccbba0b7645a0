//! The metrics of an endpoint.

use std::time::{Duration, Instant};

use spray_core::counters::Counter;
use spray_core::loss::RttHistogram;
use spray_nic::Endpoint;
use spray_nic::device::{Device, DeviceStats};

use super::{Labels, Metric, Section};
use crate::session::Freezes;

const EVERY: Duration = Duration::from_millis(200);
const CONNECTIONS: usize = 64;

#[derive(Debug, Default)]
pub struct Session {
    part: Option<Section>,
    next: Option<Instant>,
}

impl Session {
    pub fn new(part: Option<Section>) -> Self {
        Self { part, next: None }
    }

    /// `strays` returns the frames lost on queues without a socket.
    pub fn update<D: Device>(
        &mut self,
        endpoint: &Endpoint<D>,
        freezes: &Freezes,
        strays: impl FnOnce(&Endpoint<D>) -> u64,
        now: Instant,
    ) {
        let Some(part) = self.part.as_ref().filter(|_| self.next.is_none_or(|next| now >= next)) else { return };
        self.next = Some(now + EVERY);
        // The count is of the interface, so only the first shard reports it.
        let strays = if endpoint.config().shard.number() == 0 { strays(endpoint) } else { 0 };
        part.put(all(endpoint, freezes, strays));
    }
}

fn all<D: Device>(endpoint: &Endpoint<D>, freezes: &Freezes, strays: u64) -> Vec<Metric> {
    let (sender, receiver) = endpoint.totals();
    let mut all = frames(endpoint);
    all.extend(sender.iter().map(|counter| total("sender", counter)));
    all.extend(receiver.iter().map(|counter| total("receiver", counter)));
    let order = [("reordered", receiver.order.reordered), ("unexpected", receiver.order.unexpected)];
    let out_of_order = Metric::counter("receiver_order", "Packets that arrived behind a later one, or not next");
    all.push(labelled(out_of_order, "order", order));
    let by = [("timeout", freezes.by_timeout), ("gap", freezes.by_gap), ("probes", freezes.by_probes)];
    all.push(labelled(Metric::counter("freezes", "Times that REPS froze, by what told the failed path"), "by", by));
    all.push(device(endpoint.device().stats(), strays));
    all.push(round_trips(&endpoint.rtts()));
    all.extend(connections(endpoint));
    all
}

/// In octaves from 8 us to 34 s.
fn round_trips(rtts: &RttHistogram) -> Metric {
    let seconds = |ps: u64| if ps == u64::MAX { f64::MAX } else { ps as f64 / 1e12 };
    let buckets = rtts.octaves(1 << 23, 22).map(|(most_ps, count)| (seconds(most_ps), count));
    Metric::histogram("rtt_seconds", "Round-trip times of all connections", rtts.sum_ps() / 1e12, buckets.collect())
}

fn labelled<const N: usize>(metric: Metric, label: &'static str, values: [(&'static str, u64); N]) -> Metric {
    let add =
        |metric: Metric, (word, value): (&'static str, u64)| metric.with(vec![(label, word.into())], value as f64);
    values.into_iter().fold(metric, add)
}

fn total(side: &str, Counter { name, about, value }: Counter) -> Metric {
    // Prometheus uses seconds.
    let (name, value) = match name.strip_suffix("_ps") {
        Some(time) => (format!("{side}_{time}_seconds"), value as f64 / 1e12),
        None => (format!("{side}_{name}"), value as f64),
    };
    Metric::counter(name, about.trim_end_matches('.')).with(Labels::new(), value)
}

fn frames<D: Device>(endpoint: &Endpoint<D>) -> Vec<Metric> {
    let mut frames = Metric::counter("frames", "Frames that were sent, and frames that arrived and parsed");
    let mut events = Metric::counter("endpoint_events", "Frames refused and other events, by name as in EndpointStats");
    for (name, count) in endpoint.stats().iter() {
        let way =
            ["sent", "received"].into_iter().find_map(|way| Some((way, name.strip_prefix(way)?.strip_prefix('_')?)));
        match way {
            Some((way, kind)) => {
                frames = frames.with(vec![("direction", way.into()), ("kind", kind.into())], count as f64);
            }
            None => events = events.with(vec![("event", name)], count as f64),
        }
    }
    vec![frames, events]
}

fn device(stats: DeviceStats, strays: u64) -> Metric {
    let metric = Metric::counter(
        "device_events",
        "Frames and bytes through the interface, and what it lost, by name as in DeviceStats",
    );
    labelled(
        metric,
        "event",
        [
            ("rx", stats.rx),
            ("rx_bytes", stats.rx_bytes),
            ("tx", stats.tx),
            ("tx_bytes", stats.tx_bytes),
            ("rx_dropped_ring_full", stats.rx_dropped_ring_full),
            ("rx_dropped", stats.rx_dropped),
            ("rx_without_socket", strays),
            ("fill_empty", stats.fill_empty),
            ("tx_dropped", stats.tx_dropped),
            ("tx_ring_full", stats.tx_ring_full),
        ],
    )
}

fn connections<D: Device>(endpoint: &Endpoint<D>) -> Vec<Metric> {
    let seconds = |ps: u64| ps as f64 / 1e12;
    let (mut count, shard) = (0, endpoint.config().shard);
    let mut window = Metric::gauge("connection_window_bytes", "The sender's window");
    let mut in_flight = Metric::gauge("connection_in_flight_bytes", "Bytes in flight");
    let mut rtt = Metric::gauge(
        "connection_rtt_seconds",
        "Round-trip times: the least, the median, the 99th percentile, smoothed",
    );
    for (id, peer) in endpoint.open_connections() {
        count += 1;
        let Some(stats) = endpoint.connection_stats(id).filter(|_| count <= CONNECTIONS) else { continue };
        // Shards number their connections independently.
        let name = match shard.count() {
            1 => id.raw().to_string(),
            _ => format!("{}-{}", shard.number(), id.raw()),
        };
        let labels = || -> Labels { vec![("peer", peer.to_string()), ("connection", name.clone())] };
        window = window.with(labels(), stats.window_bytes as f64);
        in_flight = in_flight.with(labels(), stats.in_flight_bytes as f64);
        let times = [
            ("least", stats.rtt_min_ps),
            ("p50", stats.rtt_p50_ps),
            ("p99", stats.rtt_p99_ps),
            ("smoothed", stats.rtt_smoothed_ps),
        ];
        for (statistic, ps) in times {
            let labels = labels().into_iter().chain([("statistic", statistic.to_string())]).collect();
            rtt = rtt.with(labels, seconds(ps));
        }
    }
    let open = Metric::gauge("connections", "Connections that are open").with(Labels::new(), count as f64);
    vec![open, window, in_flight, rtt]
}
