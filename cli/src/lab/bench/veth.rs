//! `spray bench veth`: the transport compared with bare frames, in interleaved rounds.

use std::time::Duration;

use serde_json::{Map, Value, json};
use spray_benches::net::{Latency, Throughput, Transport, VethBench};
use spray_experiments::results;
use spray_experiments::switch::RunError;
use spray_tools::failure::{Failure, Outcome};
use spray_tools::progress::Progress;
use spray_tools::say;
use spray_tools::stop::Stop;

use super::median::{median, spread};
use super::variants::{BARE, VARIANTS};
use crate::lab::args;

/// Name in JSON, description, the two variants, and the project's target.
const RATIOS: [(&str, &str, [&str; 2], f64); 2] = [
    ("ratio_bare_4to1", "REPS, an ACK per 4 packets / bare frames", ["spray_4to1", BARE], 0.9),
    ("ratio_bare_1to1", "REPS, an ACK per packet / bare frames", ["spray_1to1", BARE], 0.85),
];

/// Ratios of round-trip times: name in JSON, quantile, description.
const LATENCIES: [(&str, &str, &str); 2] = [
    ("ratio_latency_p50", "p50", "a round trip by REPS, frames are not batched / bare frames, p50"),
    ("ratio_latency_p99_9", "p99_9", "the same, p99.9"),
];
/// Maximum of these ratios.
const LATENCY_TARGET: f64 = 1.2;

const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99_9", 0.999)];

/// A goodput per round, and the round trips of all rounds.
#[derive(Debug, Default)]
struct Figures {
    goodput_gbps: Vec<f64>,
    latency: Option<Latency>,
}

type Row = (&'static str, &'static str, Figures);

/// Fails with 2 when the machine does not allow it, 1 when a measurement failed.
pub fn veth(arguments: &args::BenchVeth) -> Outcome {
    let stop = Stop::on_signals()?;
    let mut progress = Progress::on_stderr();
    progress.phase("setting up namespaces, links and programs");
    let mut bench = VethBench::new(arguments.payload).map_err(failed)?;
    let chosen = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    let variants: Vec<_> = VARIANTS.iter().filter(|(name, ..)| chosen(name)).collect();
    let mut rows: Vec<Row> = variants.iter().map(|(name, words, _)| (*name, *words, Figures::default())).collect();
    for round in 1..=arguments.repeat {
        for ((_, words, variant), (.., figures)) in variants.iter().zip(&mut rows) {
            if stop.is_set() {
                return Err(Failure::interrupted());
            }
            progress.phase(&format!("[{round}/{}] {words}", arguments.repeat));
            figures.add(*variant, &mut bench, arguments).map_err(failed)?;
        }
    }
    progress.clear();
    say::object(&json(arguments, &rows))?;
    say!("{}", text(arguments, &rows));
    Ok(())
}

fn failed(error: RunError) -> Failure {
    if error.is_usage() { Failure::refused(error) } else { Failure::failed(error) }
}

impl Figures {
    fn add(
        &mut self,
        variant: Option<Transport>,
        bench: &mut VethBench,
        arguments: &args::BenchVeth,
    ) -> Result<(), RunError> {
        let duration = Duration::from_secs_f64(arguments.seconds);
        let measured = match variant {
            Some(transport) => bench.transport(transport, duration)?,
            None => Throughput { bytes: arguments.payload as usize, ..bench.bare(duration)? },
        };
        self.goodput_gbps.push(measured.received_gbps());
        if !arguments.no_latency {
            let took = match variant {
                Some(transport) => bench.transport_latency(transport, duration / 2)?,
                None => bench.bare_latency(duration / 2)?,
            };
            match &mut self.latency {
                Some(sum) => *sum += took,
                none => *none = Some(took),
            }
        }
        Ok(())
    }

    fn latency_us(&self) -> Option<[f64; 3]> {
        let took = self.latency.as_ref().filter(|took| !took.is_empty())?;
        Some(QUANTILES.map(|(_, at)| took.value_at_quantile(at) as f64 / 1e3))
    }
}

/// Median, minimum and maximum of the goodput ratios of the rounds; `None` if not measured.
fn ratio(rows: &[Row], [over, under]: [&str; 2]) -> Option<[f64; 3]> {
    let of = |wanted: &str| rows.iter().find(|(name, ..)| *name == wanted).map(|(.., figures)| &figures.goodput_gbps);
    let ratios: Vec<f64> = of(over)?.iter().zip(of(under)?).map(|(over, under)| over / under).collect();
    Some(spread(&ratios))
}

/// Ratio of round-trip times, of unbatched transport frames to bare ones.
fn latency_ratio(rows: &[Row], quantile: &str) -> Option<f64> {
    let place = QUANTILES.iter().position(|(name, _)| *name == quantile)?;
    let of = |wanted| Some(rows.iter().find(|(name, ..)| *name == wanted)?.2.latency_us()?[place]);
    Some(of("spray_prompt")? / of(BARE)?)
}

fn json(arguments: &args::BenchVeth, rows: &[Row]) -> Value {
    let by_way = |value: &dyn Fn(&Figures) -> Value| -> Value {
        rows.iter().map(|(name, _, figures)| ((*name).to_string(), value(figures))).collect::<Map<_, _>>().into()
    };
    let latency = |figures: &Figures| -> Value {
        let named = |us: [f64; 3]| QUANTILES.iter().zip(us).map(|((name, _), us)| ((*name).to_string(), json!(us)));
        figures.latency_us().map(|us| named(us).collect::<Map<_, _>>()).into()
    };
    let mut object = json!({
        "payload_bytes": arguments.payload,
        "seconds": arguments.seconds,
        "repeat": arguments.repeat,
        "goodput_gbps": by_way(&|figures| json!(median(&figures.goodput_gbps))),
        "goodput_gbps_least": by_way(&|figures| json!(spread(&figures.goodput_gbps)[1])),
        "goodput_gbps_most": by_way(&|figures| json!(spread(&figures.goodput_gbps)[2])),
        "latency_us": by_way(&latency),
    });
    for (name, quantile, _) in LATENCIES {
        object[name] = latency_ratio(rows, quantile).into();
    }
    for (name, _, variants, target) in RATIOS {
        let [median, least, most] =
            ratio(rows, variants).map_or([Value::Null, Value::Null, Value::Null], |ratio| ratio.map(Value::from));
        object[name] = median;
        object[format!("{name}_least")] = least;
        object[format!("{name}_most")] = most;
        object[format!("{name}_target")] = target.into();
    }
    object
}

fn text(arguments: &args::BenchVeth, rows: &[Row]) -> String {
    let args::BenchVeth { payload, repeat, seconds, .. } = arguments;
    let mut out = format!("{payload}-byte payloads, {repeat} times {seconds} s each, medians\n\n");
    let cells = |(_, words, figures): &Row| {
        let [gbps, least, most] = spread(&figures.goodput_gbps).map(|gbps| format!("{gbps:.2}"));
        let us = figures.latency_us().map_or(["-"; 3].map(String::from), |us| us.map(|us| format!("{us:.0}")));
        [vec![(*words).to_string(), gbps, least, most], us.to_vec()].concat()
    };
    const HEADER: [&str; 7] = ["payload received", "Gb/s", "least", "most", "round trip us p50", "p99", "p99.9"];
    out += &results::align(&HEADER, 1, &rows.iter().map(cells).collect::<Vec<_>>());
    let cells = |(_, words, variants, target): &(_, &str, _, f64)| {
        let [median, least, most] = ratio(rows, *variants)?.map(|ratio| format!("{ratio:.2}"));
        Some(vec![(*words).to_string(), median, least, most, format!("at least {target:.2}")])
    };
    let mut ratios: Vec<_> = RATIOS.iter().filter_map(cells).collect();
    ratios.extend(LATENCIES.iter().filter_map(|(_, quantile, words)| {
        let ratio = format!("{:.2}", latency_ratio(rows, quantile)?);
        Some(vec![(*words).to_string(), ratio, String::new(), String::new(), format!("at most {LATENCY_TARGET:.2}")])
    }));
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

    /// Bare frames get faster as the machine becomes idle: the ratios of rounds are equal, while
    /// those of medians are not.
    fn rows() -> [Row; 2] {
        let mut took = Latency::new(3).expect("3 digits are allowed");
        (1..=1000).for_each(|us| took.record(us * 1_000).expect("a growing histogram"));
        let figures = |goodput_gbps: &[f64], latency| Figures { goodput_gbps: goodput_gbps.to_vec(), latency };
        [
            ("spray_4to1", "REPS", figures(&[4.0, 8.0, 7.2], Some(took))),
            (BARE, "frames", figures(&[5.0, 10.0, 8.0], None)),
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
        let idle = &object["latency_us"]["spray_4to1"];
        assert!((499.0..502.0).contains(&idle["p50"].as_f64().expect("measured")), "{idle}");
        assert!((999.0..1002.0).contains(&idle["p99_9"].as_f64().expect("measured")), "{idle}");
        assert_eq!(object["latency_us"]["bare"], Value::Null);
    }

    #[test]
    fn the_report_shows_what_was_measured() {
        let text = text(&arguments(), &rows());
        let expected = "\
3000-byte payloads, 3 times 2 s each, medians

payload received  Gb/s  least   most  round trip us p50  p99  p99.9
----------------  ----  -----  -----  -----------------  ---  -----
REPS              7.20   4.00   8.00                500  990    999
frames            8.00   5.00  10.00                  -    -      -

ratio of a round                          median  least  most         target
----------------------------------------  ------  -----  ----  -------------
REPS, an ACK per 4 packets / bare frames    0.80   0.80  0.90  at least 0.90
";
        assert_eq!(text, expected);
    }
}
