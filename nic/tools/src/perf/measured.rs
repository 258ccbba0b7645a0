//! Results of a measurement, as text and as JSON with iperf3's names.

use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::{Map, Value, json};
use spray_core::link::PS_PER_S;

use super::cpu;
use super::format::{Figures, What};
use super::interval::Interval;
use super::plan::Plan;
use crate::{say, transfer};

/// An hour: the connection has failed by then.
const LONGEST_NS: u64 = 3_600_000_000_000;
const QUANTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999), ("p99_99", 0.9999)];

pub(super) struct Measured {
    pub plan: Plan,
    pub intervals: Vec<Value>,
    pub total: Vec<Interval>,
    pub round_trips: Histogram<u64>,
    pub cpu: [f64; 3],
    pub server: Option<Figures>,
}

impl Measured {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            plan,
            intervals: Vec::new(),
            total: Vec::new(),
            round_trips: Histogram::new_with_max(LONGEST_NS, 3).expect("the range holds values of three digits"),
            cpu: [0.0; 3],
            server: None,
        }
    }

    pub(super) fn plus(mut self, other: &Self) -> Self {
        // They have the same bounds.
        let _ = self.round_trips.add(&other.round_trips);
        other.server.into_iter().for_each(|figures| self.add(figures));
        self
    }

    pub(super) fn add(&mut self, figures: Figures) {
        self.server = Some(self.server.map_or(figures, |sum| sum.plus(figures)));
    }

    pub(super) fn take(&mut self, ways: &[Interval]) {
        if ways.is_empty() {
            return;
        }
        ways.iter().for_each(|way| say!("{}", way.line()));
        self.intervals.push(sums("sum", ways.iter().map(|way| json!(way))).into());
    }

    fn start(&self, server: &str) -> Value {
        let Plan { request, parallel, load, time_ps, .. } = self.plan;
        json!({
            "version": concat!("spray ", env!("CARGO_PKG_VERSION")),
            "connecting_to": { "host": server },
            "test_start": {
                "protocol": "SPRAY",
                "num_streams": parallel,
                "blksize": request.bytes,
                "duration": time_ps / PS_PER_S,
                "reverse": u8::from(request.what == What::Down),
                "bidir": u8::from(request.what == What::Both),
                "target_bitrate": request.rate_bps,
                "latency": request.what == What::Latency,
                "load": load,
            },
        })
    }

    fn end(&self) -> Value {
        let ends = self.total.iter().map(|own| {
            let theirs = self.server.map(|server| theirs(server, own.sender));
            if own.sender { (json!(own), json!(theirs)) } else { (json!(theirs), json!(own)) }
        });
        let (sent, received): (Vec<_>, Vec<_>) = ends.unzip();
        let mut end = sums("sum_sent", sent.into_iter());
        end.extend(sums("sum_received", received.into_iter()));
        // Of both ends, by iperf3's names; null if the server reported none.
        let server = self.server.map(server_percent);
        let remote = |at: usize| server.map(|percent| percent[at]);
        let cpu = json!({
            "host_total": self.cpu[0], "host_user": self.cpu[1], "host_system": self.cpu[2],
            "remote_total": remote(0), "remote_user": remote(1), "remote_system": remote(2),
        });
        let latency = (self.plan.request.what == What::Latency).then(|| self.latency());
        end.extend([("cpu_utilization_percent".into(), cpu), ("latency_us".into(), json!(latency))]);
        end.into()
    }

    pub(super) fn json(&self, server: &str) -> Value {
        json!({ "start": self.start(server), "intervals": self.intervals, "end": self.end() })
    }

    /// Prints the totals, if a connection has opened. Returns all results as JSON.
    pub(super) fn report(&self, server: &str, interface: &impl Serialize) -> Value {
        let mut object = self.json(server);
        object["interface"] = json!(interface);
        if self.total.is_empty() && self.round_trips.is_empty() {
            return object;
        }
        if self.plan.request.what == What::Latency {
            let (us, bytes) = (self.latency(), self.plan.request.bytes);
            say!("{} round trips of {bytes} bytes, in us: {}", us["count"], in_words(&us));
        }
        if !self.total.is_empty() {
            say!("in all");
            self.total.iter().for_each(|total| say!("{}", total.line()));
            self.payload().iter().for_each(|line| say!("{line}"));
        }
        let percent =
            |[all, user, system]: [f64; 3]| format!("{all:.0} % of a core (user {user:.0}, system {system:.0})");
        let theirs = self.server.map_or_else(|| "not reported".into(), |server| percent(server_percent(server)));
        say!("processor: here {}, server {theirs}", percent(self.cpu));
        object
    }

    /// Without retransmissions and protocol messages.
    fn payload(&self) -> Vec<String> {
        let line = |own: &Interval| {
            let server = self.server.map(|server| if own.sender { server.received_bytes } else { server.sent_bytes });
            let [way, mine, theirs] =
                if own.sender { ["up", "sent", "received"] } else { ["down", "received", "sent"] };
            let server = server.map_or_else(|| "unknown".into(), |bytes| format!("{bytes} {theirs}"));
            format!("payload {way}, each byte once: here {} {mine}, server {server}", own.bytes)
        };
        self.total.iter().map(line).collect()
    }

    pub(super) fn latency(&self) -> Value {
        let us = |ns: u64| ns as f64 / 1e3;
        let trips = &self.round_trips;
        let mut all =
            json!({ "count": trips.len(), "min": us(trips.min()), "mean": trips.mean() / 1e3, "max": us(trips.max()) });
        QUANTILES.iter().for_each(|(name, quantile)| all[name] = us(trips.value_at_quantile(*quantile)).into());
        all
    }
}

fn in_words(us: &Value) -> String {
    let number = |name: &str| us[name].as_f64().unwrap_or_default();
    let named = QUANTILES.iter().map(|(name, _)| format!("{} {:.1}", name.replace('_', "."), number(name)));
    let ends = [("mean", "mean"), ("max", "max")].map(|(title, name)| format!("{title} {:.1}", number(name)));
    named.chain(ends).collect::<Vec<_>>().join(", ")
}

fn theirs(server: Figures, client_sends: bool) -> Value {
    let seconds = server.elapsed_us as f64 / 1e6;
    let bytes = if client_sends { server.received_bytes } else { server.sent_bytes };
    let mut sum = json!({ "start": 0.0, "end": seconds, "seconds": seconds, "bytes": bytes, "sender": client_sends,
                          "bits_per_second": transfer::gbps(bytes, seconds) * 1e9 });
    if !client_sends {
        sum["retransmits"] = server.retransmits.into();
        sum["packets"] = server.packets_sent.into();
    }
    sum
}

fn server_percent(server: Figures) -> [f64; 3] {
    let Figures { user_us, system_us, elapsed_us, .. } = server;
    cpu::Cpu { user_us, system_us }.percent(elapsed_us)
}

/// `name`, and with `--bidir` the reverse direction.
fn sums(name: &str, ways: impl Iterator<Item = Value>) -> Map<String, Value> {
    [name.to_owned(), format!("{name}_bidir_reverse")].into_iter().zip(ways).collect()
}
