//! Prints the costs of all schemes in Markdown, as measured by `cargo bench -p spray-benches
//! --bench path --bench cc`; used by `cargo xtask results`.

use std::path::Path;

use spray_core::cc::CcKind;
use spray_core::path::BalancerKind;

const ABOUT: &str = "## State and cost

*State* is the memory that a NIC needs per connection, without settings. A *decision* is the work of a balancer for one packet: choosing an entropy value, and
processing the acknowledgement that echoes it. A *packet* of a congestion control is three calls: the check whether it may be sent, its transmission, and its
acknowledgement. The connection is in its steady state, with a window in flight, varying round-trip times and one mark in sixteen. The figures are medians on
the machine that ran `cargo xtask results`. The harness itself takes about ten nanoseconds, as shown by `ecmp`, which does nothing.
";

fn main() {
    let criterion = std::env::args().nth(1).unwrap_or_else(|| "target/criterion".into());
    let cost = |group: &str, name: &str| {
        let file = Path::new(&criterion).join(group).join(name).join("new/estimates.json");
        let estimates: Option<serde_json::Value> =
            std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let median = estimates.and_then(|own| own["median"]["point_estimate"].as_f64());
        median.map_or_else(|| "-".into(), |ns| format!("{ns:.1}"))
    };
    println!("{ABOUT}\n| balancer | state bytes | decision ns |\n|---|--:|--:|");
    for balancer in BalancerKind::ALL {
        println!("| {balancer} | {} | {} |", balancer.state_bytes(), cost("path", balancer.name()));
    }
    println!("\n| congestion control | state bytes | packet ns |\n|---|--:|--:|");
    for cc in CcKind::ALL {
        println!("| {cc} | {} | {} |", cc.state_bytes(), cost("cc", cc.name()));
    }
}
