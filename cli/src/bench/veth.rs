//! `spray bench veth`: the transport against bare frames and kernel UDP, interleaved, as ratios of medians.

use std::time::Duration;

use spray_experiments::results;
use spray_testbed::bench::Throughput;
use spray_testbed::{RunError, VethBench};

use super::median;
use crate::args;
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::say::say;
use crate::stop::Stop;

/// What is measured, in the order of each repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Transport { ack_every: u32 },
    Bare,
    KernelUdp { programs: bool },
}

const WAYS: [Way; 5] = [
    Way::Transport { ack_every: 4 },
    Way::Transport { ack_every: 1 },
    Way::Bare,
    Way::KernelUdp { programs: true },
    Way::KernelUdp { programs: false },
];

impl Way {
    fn name(self) -> String {
        match self {
            Self::Transport { ack_every: 1 } => "REPS connection, an ACK per packet".into(),
            Self::Transport { ack_every } => format!("REPS connection, an ACK per {ack_every} packets"),
            Self::Bare => "bare AF_XDP frames, same path".into(),
            Self::KernelUdp { programs: true } => "kernel UDP on such a veth, sendmmsg/recvmmsg".into(),
            Self::KernelUdp { programs: false } => "the same on a veth without XDP programs".into(),
        }
    }

    fn measure(self, bench: &mut VethBench, duration: Duration) -> Result<Throughput, RunError> {
        match self {
            Self::Transport { ack_every } => bench.transport(ack_every, duration),
            Self::Bare => bench.bare(duration),
            Self::KernelUdp { programs } => bench.kernel_udp(programs, duration),
        }
    }
}

/// Measures everything in turn, as often as asked, and prints medians and ratios.
///
/// # Errors
/// 2 when the machine does not allow it, 1 when a measurement failed, 130 after Ctrl-C.
pub fn veth(arguments: &args::BenchVeth) -> Outcome {
    let stop = Stop::on_signals()?;
    let mut progress = Progress::new();
    progress.phase("setting up namespaces, links and programs");
    let mut bench = VethBench::new(arguments.payload).map_err(failed)?;
    let mut figures: [Vec<f64>; WAYS.len()] = Default::default();
    for round in 1..=arguments.repeat {
        for (way, figures) in WAYS.iter().zip(&mut figures) {
            if stop.is_set() {
                return Err(Failure::interrupted());
            }
            progress.phase(&format!("[{round}/{}] {}", arguments.repeat, way.name()));
            let measured = way.measure(&mut bench, Duration::from_secs(arguments.seconds)).map_err(failed)?;
            figures.push(payload_gbps(*way, &measured, arguments.payload));
        }
    }
    progress.clear();
    say!(
        "{}-byte payloads, Gb/s of payload received, {} times {} s each\n",
        arguments.payload,
        arguments.repeat,
        arguments.seconds
    );
    say!("{}", report(&figures));
    Ok(())
}

fn failed(error: RunError) -> Failure {
    if error.is_usage() { Failure::refused(error) } else { Failure::failed(error) }
}

/// Received payload, without headers.
fn payload_gbps(way: Way, measured: &Throughput, payload_bytes: u32) -> f64 {
    match way {
        Way::Bare => measured.received_pps() * f64::from(payload_bytes) * 8e-9,
        _ => measured.received_gbps(),
    }
}

/// The figures as a table, and the ratios that the project aims at.
fn report(figures: &[Vec<f64>; WAYS.len()]) -> String {
    let medians = figures.each_ref().map(|values| median(values));
    let row = |(way, (values, median)): (&Way, (&Vec<f64>, f64))| {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        vec![way.name(), format!("{median:.2}"), format!("{least:.2}"), format!("{most:.2}")]
    };
    let rows: Vec<Vec<String>> = WAYS.iter().zip(figures.iter().zip(medians)).map(row).collect();
    let mut out = results::align(&["Gb/s", "median", "least", "most"], 1, &rows);
    let [ack4, ack1, bare, udp, _plain_udp] = medians;
    let ratios = [
        ("REPS, an ACK per 4 packets / bare frames", ack4 / bare, 0.85),
        ("REPS, an ACK per packet / bare frames", ack1 / bare, 0.6),
        ("REPS, an ACK per 4 packets / kernel UDP", ack4 / udp, 2.0),
    ];
    let rows: Vec<Vec<String>> = ratios
        .iter()
        .map(|(name, ratio, target)| vec![(*name).into(), format!("{ratio:.2}"), format!("at least {target:.2}")])
        .collect();
    out.push('\n');
    out + &results::align(&["ratio of medians", "", "target"], 1, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_holds_medians_and_ratios() {
        let text = report(&[vec![6.0, 5.0, 7.0], vec![4.0], vec![8.0], vec![2.0], vec![3.0]]);
        let expected = "\
Gb/s                                          median  least  most
--------------------------------------------  ------  -----  ----
REPS connection, an ACK per 4 packets           6.00   5.00  7.00
REPS connection, an ACK per packet              4.00   4.00  4.00
bare AF_XDP frames, same path                   8.00   8.00  8.00
kernel UDP on such a veth, sendmmsg/recvmmsg    2.00   2.00  2.00
the same on a veth without XDP programs         3.00   3.00  3.00

ratio of medians                                       target
----------------------------------------  ----  -------------
REPS, an ACK per 4 packets / bare frames  0.75  at least 0.85
REPS, an ACK per packet / bare frames     0.50  at least 0.60
REPS, an ACK per 4 packets / kernel UDP   3.00  at least 2.00
";
        assert_eq!(text, expected);
    }
}
