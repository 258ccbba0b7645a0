//! What has come out of a measurement, as lines and as JSON by iperf3's names.

use std::fmt::Arguments;

use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::{Value, json};
use spray_core::link::PS_PER_S;

use super::bare::Frames;
use super::cpu;
use super::format::{Figures, What};
use super::interval::Interval;
use super::plan::Plan;
use super::shares::{self, Share};
use crate::{say, transfer};

/// Longest round trip that is told from longer ones: an hour, beyond which the connection has failed.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// The quantiles of round trips, with their names.
const QUANTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999), ("p99_99", 0.9999)];

/// Of one thread, or of all.
pub(super) struct Measured {
    pub plan: Plan,
    /// Each an object with the sum of each way.
    pub intervals: Vec<Value>,
    pub total: Vec<Interval>,
    /// Bare frames, where such are sent.
    pub sent: Frames,
    /// Most bits a second of an interval, both ways together.
    pub peak_bps: f64,
    /// Round trips of messages, in ns.
    pub round_trips: Histogram<u64>,
    /// The processor's time of this process, as percent of a core.
    pub cpu: [f64; 3],
    /// Of all connections that have answered.
    pub server: Option<Figures>,
    /// What each path has carried, if that is asked for.
    pub shares: Option<Vec<Share>>,
}

impl Measured {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            plan,
            intervals: Vec::new(),
            total: Vec::new(),
            sent: Frames::default(),
            peak_bps: 0.0,
            round_trips: Histogram::new_with_max(LONGEST_NS, 3).expect("the range holds values of three digits"),
            cpu: [0.0; 3],
            server: None,
            shares: None,
        }
    }

    /// The first thread's, with what another one has measured by itself.
    pub(super) fn plus(mut self, other: &Self) -> Self {
        // They have the same bounds.
        let _ = self.round_trips.add(&other.round_trips);
        self.sent = self.sent.plus(other.sent);
        other.server.into_iter().for_each(|figures| self.add(figures));
        self
    }

    /// Adds the server's figures of a connection.
    pub(super) fn add(&mut self, figures: Figures) {
        self.server = Some(self.server.map_or(figures, |sum| sum.plus(figures)));
    }

    /// Takes the ways of an interval, and says them.
    pub(super) fn take(&mut self, ways: &[Interval]) {
        let bps: f64 = ways.iter().map(|way| way.bits_per_second).sum();
        let half_ps = self.plan.interval_ps as f64 / 2.0;
        if ways.iter().all(|way| !way.omitted && way.seconds * PS_PER_S as f64 >= half_ps) {
            self.peak_bps = self.peak_bps.max(bps);
        }
        if ways.is_empty() || self.plan.is_row {
            return;
        }
        ways.iter().for_each(|way| self.line(format_args!("{}", way.line())));
        let sums = sums("sum", ways.iter().map(|way| json!(way)));
        if self.plan.streams {
            event("interval", &sums);
        }
        self.intervals.push(sums);
    }

    /// A line of text.
    pub(super) fn line(&self, text: Arguments<'_>) {
        if !self.plan.streams {
            say::line(text);
        }
    }

    /// What was asked for, by iperf3's names.
    pub(super) fn start(&self, server: &str) -> Value {
        let Plan { request, parallel, load, time_ps, omit_ps, number, .. } = self.plan;
        let reverse = matches!(request.what, What::Down | What::LatencyDown);
        json!({
            "version": concat!("spray ", env!("CARGO_PKG_VERSION")),
            "connecting_to": { "host": server },
            "test_start": {
                "protocol": "SPRAY",
                "num_streams": parallel,
                "blksize": request.bytes,
                "omit": omit_ps / PS_PER_S,
                "duration": if number.is_some() { 0 } else { time_ps / PS_PER_S },
                "bytes": number.unwrap_or(0),
                "reverse": u8::from(reverse),
                "bidir": u8::from(request.what == What::Both),
                "target_bitrate": request.rate_bps,
                "latency": request.what.is_latency(),
                "bare": request.what == What::Bare,
                "load": load,
            },
        })
    }

    /// The sums, by iperf3's names.
    pub(super) fn end(&self) -> Value {
        let ends = self.total.iter().map(|own| {
            if self.plan.request.what == What::Bare {
                return (json!(own.clone().of(self.sent)), json!(self.arrived()));
            }
            let theirs = self.server.map(|server| theirs(server, own.sender));
            if own.sender { (json!(own), json!(theirs)) } else { (json!(theirs), json!(own)) }
        });
        let (sent, received): (Vec<_>, Vec<_>) = ends.unzip();
        let mut end = sums("sum_sent", sent.into_iter());
        let also = [
            sums("sum_received", received.into_iter()),
            json!({ "cpu_utilization_percent": cpu::utilization(self.cpu, self.server.map(server_percent)) }),
            self.shares.as_ref().map_or(Value::Null, |shares| json!({ "paths": shares })),
            json!({ "latency_us": (self.plan.request.what.is_latency()).then(|| self.latency()) }),
        ];
        if let Value::Object(end) = &mut end {
            also.into_iter().filter_map(|part| part.as_object().cloned()).for_each(|part| end.extend(part));
        }
        end
    }

    pub(super) fn json(&self, server: &str) -> Value {
        let mut all = json!({ "start": self.start(server), "intervals": self.intervals, "end": self.end() });
        if self.plan.server_output {
            all["server_output_json"] = json!(self.server);
        }
        all
    }

    /// Says the sums as text, or as the last event; nothing where no connection has opened. Returns all as JSON.
    pub(super) fn report(&self, server: &str, interface: &impl Serialize) -> Value {
        let mut object = self.json(server);
        object["interface"] = json!(interface);
        if self.plan.streams {
            if self.plan.server_output {
                event("server_output_json", &object["server_output_json"]);
            }
            event("end", &object["end"]);
            return object;
        }
        if self.total.is_empty() && self.round_trips.is_empty() {
            return object;
        }
        if self.plan.request.what.is_latency() {
            let (us, bytes) = (self.latency(), self.plan.request.bytes);
            say!("{} round trips of {bytes} bytes, in us: {}", us["count"], in_words(&us));
        }
        if !self.total.is_empty() {
            say!("in all");
            self.sums().iter().for_each(|total| say!("{}", total.line()));
            self.total.iter().filter_map(Interval::sent_again).for_each(|line| say!("{line}"));
            self.payload().iter().for_each(|line| say!("{line}"));
        }
        if let Some(shares) = &self.shares {
            say!("{}", shares::HEAD);
            shares.iter().for_each(|share| say!("{}", share.line()));
        }
        let percent =
            |[all, user, system]: [f64; 3]| format!("{all:.0} % of a core (user {user:.0}, system {system:.0})");
        let theirs = self.server.map_or_else(|| "not reported".into(), |server| percent(server_percent(server)));
        say!("processor: here {}, server {theirs}", percent(self.cpu));
        if self.plan.server_output {
            say!("server output: {}", self.server.map_or_else(|| "none".into(), super::format::Figures::line));
        }
        object
    }

    /// The sums of all ways; of bare frames what has arrived, too.
    fn sums(&self) -> Vec<Interval> {
        match (self.plan.request.what, &self.total[..]) {
            (What::Bare, [own]) => [Some(own.clone().of(self.sent)), self.arrived()].into_iter().flatten().collect(),
            (_, ways) => ways.to_vec(),
        }
    }

    /// What both sides have counted of each way: payload, each byte once, without the messages by which they agree what to measure.
    fn payload(&self) -> Vec<String> {
        let line = |own: &Interval| {
            let server = self.server.map(|server| if own.sender { server.received_bytes } else { server.sent_bytes });
            let [way, mine, theirs] =
                if own.sender { ["up", "sent", "received"] } else { ["down", "received", "sent"] };
            let server = server.map_or_else(|| "unknown".into(), |bytes| format!("{bytes} {theirs}"));
            format!("payload {way}, each byte once: here {} {mine}, server {server}", own.bytes)
        };
        let is_bare = self.plan.request.what == What::Bare;
        self.total.iter().filter(|_| !is_bare).map(line).collect()
    }

    /// Bare frames that have arrived, in the time that they were sent in: the server's clock knows nothing of that.
    fn arrived(&self) -> Option<Interval> {
        let (own, server) = (self.total.first()?, self.server?);
        Some(own.clone().arrived(self.sent, self.sent.with_payload(server.received_bytes)))
    }

    /// The round trips, in microseconds.
    pub(super) fn latency(&self) -> Value {
        let us = |ns: u64| ns as f64 / 1e3;
        let trips = &self.round_trips;
        let mut all =
            json!({ "count": trips.len(), "min": us(trips.min()), "mean": trips.mean() / 1e3, "max": us(trips.max()) });
        QUANTILES.iter().for_each(|(name, quantile)| all[name] = us(trips.value_at_quantile(*quantile)).into());
        all
    }
}

/// Percentiles as text.
fn in_words(us: &Value) -> String {
    let number = |name: &str| us[name].as_f64().unwrap_or_default();
    let named = QUANTILES.iter().map(|(name, _)| format!("{} {:.1}", name.replace('_', "."), number(name)));
    let ends = [("mean", "mean"), ("max", "max")].map(|(title, name)| format!("{title} {:.1}", number(name)));
    named.chain(ends).collect::<Vec<_>>().join(", ")
}

/// What the server has counted of one way.
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

/// The ways by iperf3's names: the second one is the reverse of `--bidir`.
fn sums(name: &str, ways: impl Iterator<Item = Value>) -> Value {
    let names = [name.to_owned(), format!("{name}_bidir_reverse")];
    names.into_iter().zip(ways).collect::<serde_json::Map<_, _>>().into()
}

/// A line of `--json-stream`.
pub(super) fn event(name: &str, data: &Value) {
    say::print(json!({ "event": name, "data": data }));
}

/// The table of a sweep, row by row.
pub(super) struct Table {
    plan: Plan,
    rows: Vec<Value>,
}

impl Table {
    pub(super) fn new(plan: Plan) -> Self {
        Self { plan, rows: Vec::new() }
    }

    /// Says a row, below the heading where it is the first.
    pub(super) fn add(&mut self, measured: &Measured) {
        let row = measured.row();
        let number = |name: &str| row[name].as_f64().unwrap_or_default();
        // A value of JSON pads no text.
        let text = |name: &str| row[name].to_string();
        let is_latency = self.plan.request.what.is_latency();
        if self.plan.streams {
            event("size", &row);
        } else if is_latency {
            if self.rows.is_empty() {
                say!(
                    "{:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
                    "bytes",
                    "messages",
                    "p50 us",
                    "p99",
                    "p99.9",
                    "p99.99",
                    "max"
                );
            }
            let us = ["p50", "p99", "p99_9", "p99_99", "max"].map(|name| format!("{:>10.1}", number(name)));
            say!("{:>9} {:>10} {}", text("bytes"), text("count"), us.join(" "));
        } else {
            if self.rows.is_empty() {
                say!("{:>9} {:>10} {:>11} {:>14} {:>10}", "bytes", "messages", "peak Gb/s", "average Gb/s", "Mpps");
            }
            let [peak, average] = ["peak_bits_per_second", "bits_per_second"].map(|name| number(name) / 1e9);
            let mpps = number("messages_per_second") / 1e6;
            say!("{:>9} {:>10} {peak:>11.3} {average:>14.3} {mpps:>10.6}", text("bytes"), text("messages"));
        }
        self.rows.push(row);
    }

    pub(super) fn report(&self, start: Value, interface: &impl Serialize) -> Value {
        if self.plan.streams {
            event("end", &json!({ "sizes": self.rows }));
        }
        json!({ "start": start, "sizes": self.rows, "interface": interface })
    }
}

impl Measured {
    /// A row of a sweep.
    pub(super) fn row(&self) -> Value {
        let size = self.plan.request.bytes;
        if self.plan.request.what.is_latency() {
            let mut row = self.latency();
            row["bytes"] = size.into();
            return row;
        }
        let bytes: u64 = self.total.iter().map(|way| way.bytes).sum();
        let bps: f64 = self.total.iter().map(|way| way.bits_per_second).sum();
        json!({
            "bytes": size,
            "messages": bytes / u64::from(size),
            "peak_bits_per_second": self.peak_bps.max(bps),
            "bits_per_second": bps,
            "messages_per_second": bps / 8.0 / f64::from(size),
        })
    }
}
