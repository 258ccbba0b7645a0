//! What `spray perf` measures, in each mode: a process of its own for each measurement, as users start it, since it gives its rights up.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::process::Command;

use serde_json::{Value, json};

use crate::args::ReportHardware;
use crate::info;

/// How sockets are opened.
const MODES: [(&str, &[&str]); 4] = [
    ("copy", &["--copy", "--busy-poll=off"]),
    ("copy, busy polling", &["--copy", "--busy-poll=on"]),
    ("zero-copy", &["--zero-copy", "--busy-poll=off"]),
    ("zero-copy, busy polling", &["--zero-copy", "--busy-poll=on"]),
];

/// Both ways and round trips in all modes, as a table.
pub(super) fn sections(text: &mut String, arguments: &ReportHardware, interface: &str, peer: IpAddr) {
    text.push_str(
        "\n## spray perf\n\nOne connection with 1 MiB messages; round trips of 64 bytes. The peer's `spray serve` keeps its own mode.\n\n\
         | mode | up Gb/s | sent again | RTT p50 us | down Gb/s | round trip p50 us | p99 us | how |\n|---|--:|--:|--:|--:|--:|--:|---|\n",
    );
    for (mode, options) in MODES {
        info!("spray: measuring with {mode}");
        let measure = |what: &[&str]| measure(arguments, interface, peer, &[options, what].concat());
        let row = measure(&[]).and_then(|up| Ok(row(&up, &measure(&["--reverse"])?, &measure(&["--latency"])?)));
        let _ = match row {
            Ok(row) => writeln!(text, "| {mode} | {row} |"),
            Err(why) => writeln!(text, "| {mode} | - | - | - | - | - | - | {} |", cell(&why)),
        };
    }
}

/// What one `spray perf` prints, or says where it fails.
fn measure(arguments: &ReportHardware, interface: &str, peer: IpAddr, options: &[&str]) -> Result<Value, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(own);
    // Attaching takes the link of some drivers down for seconds.
    command.args(["perf", &peer.to_string(), "--json", "--quiet", "--interface", interface, "--timeout", "20"]);
    command.args(["--time", &arguments.seconds.to_string()]).args(options);
    match &arguments.key {
        Some(key) => command.arg("--key").arg(key),
        None => command.arg("--insecure"),
    };
    let output = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(said.into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("it printed no JSON: {error}"))
}

fn row(up: &Value, down: &Value, latency: &Value) -> String {
    let number = |value: &Value| value.as_f64().map_or_else(|| "-".into(), |number| format!("{number:.2}"));
    let gbps = |sum: &Value| number(&json!(sum["bits_per_second"].as_f64().map(|bps| bps / 1e9)));
    let (sum, taken) = (&up["end"]["sum_sent"], &up["interface"]);
    let us = &latency["end"]["latency_us"];
    let polls = match taken["busy_polls_alone"].as_bool() {
        None => "",
        Some(true) => ", interrupts off",
        Some(false) => ", interrupts beside",
    };
    [
        gbps(sum),
        sum["retransmits"].to_string(),
        number(&sum["rtt_p50_us"]),
        gbps(&down["end"]["sum_received"]),
        number(&us["p50"]),
        number(&us["p99"]),
        format!("{} XDP, {} queues{polls}", taken["xdp"].as_str().unwrap_or("-"), taken["queues"]),
    ]
    .join(" | ")
}

/// The text as one cell of a table.
pub(super) fn cell(text: &str) -> String {
    text.trim().replace('|', "/").replace('\n', "; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_both_ways_and_what_is_missing_is_a_dash() {
        let up = json!({ "end": { "sum_sent": { "bits_per_second": 9.876e9, "retransmits": 3, "rtt_p50_us": 20.0 } },
                         "interface": { "xdp": "native", "queues": 4, "busy_polls_alone": true } });
        let latency = json!({ "end": { "latency_us": { "p50": 12.5, "p99": 40.0 } } });
        let expected = "9.88 | 3 | 20.00 | - | 12.50 | 40.00 | native XDP, 4 queues, interrupts off";
        assert_eq!(row(&up, &json!({}), &latency), expected);
    }
}
