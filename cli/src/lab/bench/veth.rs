//! `spray bench veth`: the transport against bare frames, the kernel's transports and QUIC, interleaved: ratios of each round, and medians.

use std::time::Duration;

use serde_json::{Map, Value, json};
use spray_benches::net::{Latency, Throughput, VethBench};
use spray_experiments::results;
use spray_experiments::switch::RunError;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::progress::Progress;
use spray_tools::say;
use spray_tools::stop::Stop;

use super::median::median;
use super::peers::{BARE, PEERS, Way};
use crate::lab::args;

/// Name in JSON, words, the two peers, and what the project aims at.
const RATIOS: [(&str, &str, [&str; 2], f64); 3] = [
    ("ratio_bare_4to1", "REPS, an ACK per 4 packets / bare frames", ["spray_4to1", BARE], 0.9),
    ("ratio_bare_1to1", "REPS, an ACK per packet / bare frames", ["spray_1to1", BARE], 0.85),
    ("ratio_udp_4to1", "REPS, an ACK per 4 packets / kernel UDP", ["spray_4to1", "udp_xdp"], 2.0),
];

/// Ratios of round trips, idle: name in JSON, quantile, words.
pub(super) const LATENCIES: [(&str, &str, &str); 2] = [
    ("ratio_latency_p50", "p50", "a round trip by REPS, frames wait for no others / bare frames, p50"),
    ("ratio_latency_p99_9", "p99_9", "the same, p99.9"),
];

/// Quantiles of round trips, by name.
pub(super) const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99_9", 0.999)];

impl Way {
    fn throughput(self, bench: &mut VethBench, duration: Duration) -> Result<Throughput, RunError> {
        match self {
            Self::Transport(transport) => bench.transport(transport, duration),
            Self::Bare => bench.bare(duration),
            Self::Kernel(kernel) => bench.kernel(kernel, duration),
            #[cfg(feature = "quic")]
            Self::Quic(library) => bench.quic(library, duration),
        }
    }

    /// Round trips; `None` for bare frames beside others, of which nobody keeps a window.
    fn latency(self, bench: &mut VethBench, loaded: bool, duration: Duration) -> Result<Option<Latency>, RunError> {
        match self {
            Self::Transport(transport) => bench.transport_latency(transport, loaded, duration).map(Some),
            Self::Bare if loaded => Ok(None),
            Self::Bare => bench.bare_latency(duration).map(Some),
            Self::Kernel(kernel) => bench.kernel_latency(kernel, loaded, duration).map(Some),
            #[cfg(feature = "quic")]
            Self::Quic(library) => bench.quic_latency(library, loaded, duration).map(Some),
        }
    }
}

/// What a peer has come to so far: a value for each round, and the round trips of all, idle and under load.
#[derive(Debug, Default)]
struct Figures {
    goodput_gbps: Vec<f64>,
    cpu_s_per_gb: Vec<f64>,
    latency: [Option<Latency>; 2],
}

/// A peer and its figures.
type Row = (&'static str, &'static str, Figures);

/// Measures everything in turn, as often as asked, and prints medians and ratios.
///
/// # Errors
/// 2 when the machine does not allow it, 1 when a measurement failed, 130 after Ctrl-C.
pub fn veth(arguments: &args::BenchVeth) -> Outcome {
    let stop = Stop::on_signals()?;
    let mut progress = Progress::on_stderr();
    progress.phase("setting up namespaces, links and programs");
    let mut bench = VethBench::new(arguments.payload).map_err(failed)?;
    let chosen = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    let peers: Vec<_> = PEERS.iter().filter(|(name, ..)| chosen(name)).collect();
    let mut rows: Vec<Row> = peers.iter().map(|(name, words, _)| (*name, *words, Figures::default())).collect();
    for round in 1..=arguments.repeat {
        for ((_, words, way), (.., figures)) in peers.iter().zip(&mut rows) {
            if stop.is_set() {
                return Err(Failure::interrupted());
            }
            progress.phase(&format!("[{round}/{}] {words}", arguments.repeat));
            figures.add(*way, &mut bench, arguments).map_err(failed)?;
        }
    }
    progress.clear();
    say::object(&json(arguments, &rows))?;
    say!("{}", text(arguments, &rows));
    Ok(())
}

/// All ratios: names in JSON and words.
pub(super) fn ratios() -> impl Iterator<Item = (&'static str, &'static str)> {
    RATIOS.iter().map(|(name, words, ..)| (*name, *words))
}

fn failed(error: RunError) -> Failure {
    if error.is_usage() { Failure::refused(error) } else { Failure::failed(error) }
}

impl Figures {
    /// One more round.
    fn add(&mut self, way: Way, bench: &mut VethBench, arguments: &args::BenchVeth) -> Result<(), RunError> {
        let duration = Duration::from_secs_f64(arguments.seconds);
        let mut measured = way.throughput(bench, duration)?;
        if way == Way::Bare {
            measured.bytes = arguments.payload as usize;
        }
        self.goodput_gbps.push(measured.received_gbps());
        self.cpu_s_per_gb.push(measured.cpu_s_per_gb());
        if arguments.no_latency {
            return Ok(());
        }
        for (loaded, sum) in [false, true].into_iter().zip(&mut self.latency) {
            match (way.latency(bench, loaded, duration / 2)?, sum) {
                (Some(took), Some(sum)) => *sum += took,
                (took, sum) => *sum = took,
            }
        }
        Ok(())
    }

    /// Idle and under load, by quantile.
    fn latency_us(&self) -> [Option<[f64; 3]>; 2] {
        let quantiles = |took: &Latency| QUANTILES.map(|(_, at)| took.value_at_quantile(at) as f64 / 1e3);
        self.latency.each_ref().map(|took| took.as_ref().filter(|took| !took.is_empty()).map(quantiles))
    }
}

/// The middle of the rounds' ratios of goodput, and the least and the largest; `None` where a peer was not measured.
fn ratio(rows: &[Row], [over, under]: [&str; 2]) -> Option<[f64; 3]> {
    let of = |wanted: &str| rows.iter().find(|(name, ..)| *name == wanted).map(|(.., figures)| &figures.goodput_gbps);
    let ratios: Vec<f64> = of(over)?.iter().zip(of(under)?).map(|(over, under)| over / under).collect();
    Some(spread(&ratios))
}

/// Median, least and most.
fn spread(values: &[f64]) -> [f64; 3] {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    [median(values), least, values.iter().copied().fold(0.0, f64::max)]
}

/// The figures as one object.
fn json(arguments: &args::BenchVeth, rows: &[Row]) -> Value {
    let by_peer = |value: &dyn Fn(&Figures) -> Value| -> Value {
        rows.iter().map(|(name, _, figures)| ((*name).to_string(), value(figures))).collect::<Map<_, _>>().into()
    };
    let latency = |figures: &Figures| {
        let quantiles = |us: [f64; 3]| -> Value {
            QUANTILES
                .iter()
                .zip(us)
                .map(|((name, _), us)| ((*name).to_string(), json!(us)))
                .collect::<Map<_, _>>()
                .into()
        };
        let [idle, load] = figures.latency_us().map(|us| us.map_or(Value::Null, quantiles));
        json!({ "idle": idle, "load": load })
    };
    let mut object = json!({
        "payload_bytes": arguments.payload,
        "seconds": arguments.seconds,
        "repeat": arguments.repeat,
        "goodput_gbps": by_peer(&|figures| json!(median(&figures.goodput_gbps))),
        "goodput_gbps_least": by_peer(&|figures| json!(spread(&figures.goodput_gbps)[1])),
        "goodput_gbps_most": by_peer(&|figures| json!(spread(&figures.goodput_gbps)[2])),
        "cpu_s_per_gb": by_peer(&|figures| json!(median(&figures.cpu_s_per_gb))),
        "latency_us": by_peer(&latency),
    });
    for (name, quantile, _) in LATENCIES {
        let of = |peer: &str| object["latency_us"][peer]["idle"][quantile].as_f64();
        object[name] = of("spray_prompt").zip(of(BARE)).map(|(ours, bare)| ours / bare).into();
    }
    for (name, _, peers, target) in RATIOS {
        let [median, least, most] =
            ratio(rows, peers).map_or([Value::Null, Value::Null, Value::Null], |ratio| ratio.map(Value::from));
        object[name] = median;
        object[format!("{name}_least")] = least;
        object[format!("{name}_most")] = most;
        object[format!("{name}_target")] = target.into();
    }
    object
}

/// The figures as tables, and the ratios that the project aims at.
fn text(arguments: &args::BenchVeth, rows: &[Row]) -> String {
    let args::BenchVeth { payload, repeat, seconds, .. } = arguments;
    let mut out = format!("{payload}-byte payloads, {repeat} times {seconds} s each, medians\n\n");
    let cells = |(_, words, figures): &Row| {
        let [gbps, least, most] = spread(&figures.goodput_gbps).map(|gbps| format!("{gbps:.2}"));
        let mut cells = vec![(*words).to_string(), gbps, least, most, format!("{:.2}", median(&figures.cpu_s_per_gb))];
        for us in figures.latency_us() {
            cells.extend(us.map_or(["-"; 3].map(String::from), |us| us.map(|us| format!("{us:.0}"))));
        }
        cells
    };
    const HEADER: [&str; 11] = [
        "payload received",
        "Gb/s",
        "least",
        "most",
        "CPU s/GB",
        "idle us p50",
        "p99",
        "p99.9",
        "loaded us p50",
        "p99",
        "p99.9",
    ];
    out += &results::align(&HEADER, 1, &rows.iter().map(cells).collect::<Vec<_>>());
    let cells = |(_, words, peers, target): &(_, &str, _, f64)| {
        let [median, least, most] = ratio(rows, *peers)?.map(|ratio| format!("{ratio:.2}"));
        Some(vec![(*words).to_string(), median, least, most, format!("at least {target:.2}")])
    };
    let ratios: Vec<_> = RATIOS.iter().filter_map(cells).collect();
    if !ratios.is_empty() {
        out.push('\n');
        out += &results::align(&["ratio of a round", "median", "least", "most", "target"], 1, &ratios);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments() -> args::BenchVeth {
        args::BenchVeth { payload: 3000, seconds: 2.0, repeat: 3, only: Vec::new(), no_latency: false }
    }

    /// Bare frames get faster while the machine is free. The rounds' ratios are the same, those of medians are not.
    fn rows() -> [Row; 2] {
        let mut took = Latency::new(3).expect("3 digits are allowed");
        (1..=1000).for_each(|us| took.record(us * 1_000).expect("it grows"));
        let figures = |goodput_gbps: &[f64], latency| Figures {
            goodput_gbps: goodput_gbps.to_vec(),
            cpu_s_per_gb: vec![1.5; 3],
            latency,
        };
        [
            ("spray_4to1", "REPS", figures(&[4.0, 8.0, 7.2], [Some(took), None])),
            (BARE, "frames", figures(&[5.0, 10.0, 8.0], [None, None])),
        ]
    }

    #[test]
    fn ratios_are_those_of_rounds() {
        let object = json(&arguments(), &rows());
        assert_eq!(object["ratio_bare_4to1"], 0.8);
        assert_eq!((&object["ratio_bare_4to1_least"], &object["ratio_bare_4to1_most"]), (&json!(0.8), &json!(0.9)));
        assert_eq!((&object["ratio_bare_1to1"], &object["ratio_bare_1to1_target"]), (&Value::Null, &json!(0.85)));
        assert_eq!(object["goodput_gbps"], json!({ "spray_4to1": 7.2, "bare": 8.0 }));
        assert_eq!(object["goodput_gbps_least"]["bare"], 5.0);
        let idle = &object["latency_us"]["spray_4to1"]["idle"];
        assert!((499.0..502.0).contains(&idle["p50"].as_f64().expect("measured")), "{idle}");
        assert!((999.0..1002.0).contains(&idle["p99_9"].as_f64().expect("measured")), "{idle}");
        assert_eq!(object["latency_us"]["bare"], json!({ "idle": null, "load": null }));
    }

    #[test]
    fn the_report_shows_what_was_measured() {
        let text = text(&arguments(), &rows());
        let expected = "\
3000-byte payloads, 3 times 2 s each, medians

payload received  Gb/s  least   most  CPU s/GB  idle us p50  p99  p99.9  loaded us p50  p99  p99.9
----------------  ----  -----  -----  --------  -----------  ---  -----  -------------  ---  -----
REPS              7.20   4.00   8.00      1.50          500  990    999              -    -      -
frames            8.00   5.00  10.00      1.50            -    -      -              -    -      -

ratio of a round                          median  least  most         target
----------------------------------------  ------  -----  ----  -------------
REPS, an ACK per 4 packets / bare frames    0.80   0.80  0.90  at least 0.90
";
        assert_eq!(text, expected);
    }
}
