//! `spray bench hostile`: what hostile frames cost an endpoint, and what it sends back.

use serde_json::json;
use spray_benches::{Cost, hostile_costs};
use spray_experiments::results::align;
use spray_tools::failure::Outcome;
use spray_tools::say;

use super::median::median;
use crate::lab::args;

/// Batches of 64 frames of each kind.
const BATCHES: u64 = 100;

/// Measures every kind of hostile frame.
///
/// # Errors
/// None: it needs nothing but a processor.
pub fn hostile(arguments: &args::BenchHostile) -> Outcome {
    let rounds: Vec<Vec<Cost>> = (0..arguments.repeat).map(|_| hostile_costs(BATCHES)).collect();
    let cost = |(at, cost): (usize, &Cost)| {
        let times: Vec<f64> = rounds.iter().map(|round| round[at].ns).collect();
        Cost { ns: median(&times), ..*cost }
    };
    let costs: Vec<Cost> = rounds[0].iter().enumerate().map(cost).collect();
    let frames: Vec<_> = costs.iter().map(object).collect();
    say::object(&json!({ "repeat": arguments.repeat, "frames": frames }))?;
    let rows: Vec<_> = costs.iter().map(row).collect();
    let head = ["frame", "its sender", "bytes", "ns", "frames sent for it", "bytes sent for one received"];
    say!("{}", align(&head, 2, &rows));
    Ok(())
}

fn object(cost: &Cost) -> serde_json::Value {
    json!({
        "name": cost.name,
        "sender": cost.sender.name(),
        "bytes": cost.bytes,
        "ns": cost.ns.round(),
        "answers": cost.answers,
        "amplification": amplification(cost),
    })
}

fn row(cost: &Cost) -> Vec<String> {
    vec![
        cost.name.into(),
        cost.sender.name().into(),
        cost.bytes.to_string(),
        format!("{:.0}", cost.ns),
        format!("{:.2}", cost.answers),
        format!("{:.2}", amplification(cost)),
    ]
}

/// Bytes sent for a byte received.
fn amplification(cost: &Cost) -> f64 {
    cost.answer_bytes / cost.bytes as f64
}

#[cfg(test)]
mod tests {
    use spray_benches::Hostile;

    use super::*;

    /// What `docs/security.md` promises of answers, for every kind.
    //= docs/specs/endpoint.md#END-8 answers to strangers
    #[test]
    fn a_stranger_gets_less_than_he_sends_and_nobody_much_more() {
        for cost in hostile_costs(20) {
            let (most, frames) = match cost.sender {
                Hostile::Stranger => (0.9, 1.0),
                Hostile::Addressee | Hostile::Observer => (1.3, 1.0),
                // NACKs for a trailer, which are shorter, and ACKs.
                Hostile::Peer => (3.0, 3.3),
            };
            assert!(amplification(&cost) <= most && cost.answers <= frames, "{cost:?}");
            assert!(cost.ns > 0.0, "{cost:?}");
        }
    }
}
