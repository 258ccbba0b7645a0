//! Properties of every balancer under every congestion control, for any settings and feedback.

mod history;

use std::cell::Cell;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use history::{History, Step};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use rand_core::RngCore;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::pair::{Channel, Outage, Pair};
use super::*;
use crate::cc::CcSchemes;
use crate::path::Schemes;
use crate::rng;

/// Cases per balancer and congestion control.
const CASES: u32 = 20;

/// Draws about half of the settings of `schemes` from their ranges, more often than not the ends;
/// the others have their defaults.
fn scatter<All: Default + Serialize + DeserializeOwned + JsonSchema>(schemes: &[&str], rng: &mut impl RngCore) -> All {
    let schema = serde_json::to_value(schemars::schema_for!(All)).unwrap();
    let mut all = serde_json::to_value(All::default()).unwrap();
    for &scheme in schemes {
        for (name, field) in schema["properties"][scheme]["properties"].as_object().into_iter().flatten() {
            if rng.next_u32().is_multiple_of(2) {
                all[scheme][name] = draw(field, rng);
            }
        }
    }
    serde_json::from_value(all).unwrap()
}

/// Draws a value of one setting.
fn draw(field: &Value, rng: &mut impl RngCore) -> Value {
    let optional = field["default"].is_null();
    let choices = field["oneOf"].as_array().or(field["anyOf"][0]["oneOf"].as_array());
    if optional && rng.next_u32().is_multiple_of(8) {
        return Value::Null;
    }
    if let Some(choices) = choices {
        return choices[rng.next_u32() as usize % choices.len()]["const"].clone();
    }
    let is_type = |name: &str| {
        field["type"] == name || field["type"].as_array().is_some_and(|types| types.contains(&json!(name)))
    };
    if is_type("boolean") {
        return json!(rng.next_u32().is_multiple_of(2));
    }
    let (min, max) = (field["minimum"].as_f64().unwrap(), field["maximum"].as_f64().unwrap());
    let between = (max - min) * f64::from(rng.next_u32()) / f64::from(u32::MAX);
    let value = match rng.next_u32() % 5 {
        0 => min,
        1 => max,
        2 => min + between,
        // In a range over many powers of ten small values matter most.
        _ => (min + between / (1u64 << (rng.next_u32() % 40)) as f64).min(max),
    };
    let scale = 10f64.powi(field["x-decimals"].as_i64().unwrap_or(6) as i32);
    if is_type("integer") { json!(value as u64) } else { json!((value * scale).round() / scale) }
}

/// Draws all settings within their ranges.
fn config(balancer: BalancerKind, cc: CcKind, evs: u16, seed: u64) -> FlowConfig {
    let mut rng = rng::stream(seed, 7);
    let (mut schemes, mut cc_schemes) = (Schemes::default(), CcSchemes::default());
    if !seed.is_multiple_of(4) {
        schemes = scatter(balancer.settings_names(), &mut rng);
        cc_schemes = scatter(cc.settings_names(), &mut rng);
    }
    let path = Path {
        evs,
        bdp_packets: 12,
        trimming: rng.next_u32().is_multiple_of(2),
        seed: (rng.next_u32().is_multiple_of(2)).then(|| rng.next_u64()),
        ..Path::new(BASE_RTT_PS, 10_000_000_000, PAYLOAD + HEADER)
    };
    FlowConfig {
        window_packets: 1 << (rng.next_u32() % 8),
        ack_every: 1 + rng.next_u32() % 16,
        ack_marked: rng.next_u32().is_multiple_of(2),
        ack_delay_ps: u64::from(rng.next_u32() % 20) * US,
        rto: RtoConfig { initial_ps: 100 * US, min_ps: 50 * US, max_ps: 800 * US },
        sack_gap_packets: (rng.next_u32().is_multiple_of(2)).then(|| 1 + rng.next_u32() % 20),
        give_up_ps: 20_000 * US,
        receiver: RECEIVERS[rng.next_u32() as usize % 3].into(),
        max_data_bytes: 200_000,
        max_message_bytes: 20_000,
        cc: cc.config(&cc_schemes),
        ..FlowConfig::new(balancer.config(&schemes), path, HEADER)
    }
}

fn evs() -> impl Strategy<Value = u16> {
    prop_oneof![2 => Just(65_535u16), 1 => Just(1), 1 => 2u16..9, 2 => 1u16..=65_535]
}

fn channel() -> impl Strategy<Value = Channel> {
    let shares = (0u32..=300, 0u32..=300, 0u32..=200, 0u32..=200, 0u32..=1000);
    let outage = (0u64..400, 1u64..2000, any::<bool>());
    let outage = outage.prop_map(|(at, long, ends)| Outage {
        at_ps: at * US,
        until_ps: if ends { (at + long) * US } else { u64::MAX },
    });
    let times = (1u64..20, 0u64..60, 0u64..200, prop::option::of(outage), 0u32..=8);
    (prop::option::weighted(0.8, shares), times).prop_map(|(shares, (delay, jitter, lag, outage, dead))| {
        let (loss, ack_loss, duplicate, trim, mark) = shares.unwrap_or_default();
        Channel {
            loss,
            ack_loss,
            duplicate,
            trim,
            mark,
            delay_ps: delay * US,
            jitter_ps: jitter * US,
            ack_jitter_ps: jitter * US,
            lag_ps: lag * US,
            outage,
            dead_paths: dead,
            ..Channel::default()
        }
    })
}

/// Runs both ends, a third of them with known paths. Returns whether the sender gave up.
fn gives_up(config: FlowConfig, channel: Channel, messages: &[u64], seed: u64) -> Result<bool, TestCaseError> {
    let mut pair = Pair::new(config, channel, messages, seed);
    if seed.is_multiple_of(3) {
        pair.name_paths();
    }
    pair.run().map_err(TestCaseError::fail)?;
    Ok(pair.gave_up)
}

/// Runs `cases` cases through `run` and returns the minimised failure, if any.
fn failure<S: Strategy>(
    cases: u32,
    strategy: &S,
    run: impl Fn(S::Value) -> Result<(), TestCaseError>,
) -> Option<String> {
    let config = ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 50, ..ProptestConfig::default() };
    TestRunner::new(config).run(strategy, run).err().map(|error| error.to_string())
}

/// Panics with the failures of all pairs of balancer and congestion control.
fn all_pairs(failure: impl Fn(BalancerKind, CcKind) -> Option<String>) {
    let pairs = BalancerKind::ALL.into_iter().flat_map(|balancer| CcKind::ALL.map(|cc| (balancer, cc)));
    let failures =
        pairs.filter_map(|(balancer, cc)| Some(format!("{balancer} under {cc}: {}", failure(balancer, cc)?)));
    let failures: Vec<String> = failures.collect();
    assert!(failures.is_empty(), "{} pairs:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_connection_completes_or_gives_up() {
    let (completed, given_up) = (Cell::new(0), Cell::new(0));
    let messages = prop::collection::vec(0u64..20_000, 1..8);
    let cases = (channel(), evs(), any::<u64>(), messages);
    all_pairs(|balancer, cc| {
        failure(CASES, &cases, |(channel, evs, seed, messages)| {
            let gave_up = gives_up(config(balancer, cc, evs, seed), channel, &messages, seed)?;
            let count = if gave_up { &given_up } else { &completed };
            count.set(count.get() + 1);
            Ok(())
        })
    });
    assert!(completed.get() > 4 * given_up.get(), "{completed:?} completed, {given_up:?} gave up");
}

/// On a channel that only delays, the sender must not give up.
#[test]
fn every_connection_completes_where_nothing_is_lost() {
    let cases = (any::<u64>(), evs(), 1u64..20, 0u64..3, prop::collection::vec(0u64..20_000, 1..8));
    all_pairs(|balancer, cc| {
        failure(CASES, &cases, |(seed, evs, delay, jitter, messages)| {
            let jitter_ps = jitter * US;
            let channel = Channel { delay_ps: delay * US, jitter_ps, ack_jitter_ps: jitter_ps, ..Channel::default() };
            // The default settings.
            let config = config(balancer, cc, evs, seed / 4 * 4);
            prop_assert!(!gives_up(config, channel, &messages, seed)?, "gave up on a channel without losses");
            Ok(())
        })
    });
}

#[test]
fn no_feedback_makes_a_balancer_leave_its_set_or_block() {
    let cases = (prop::collection::vec(Step::any(), 1..400), evs(), any::<u64>());
    let failures = BalancerKind::ALL.into_iter().filter_map(|balancer| {
        let failure = failure(200, &cases, |(steps, evs, seed)| {
            let mut history = History::new(&config(balancer, CcKind::Dctcp, evs, seed), seed);
            let done = steps.iter().try_for_each(|step| history.step(step)).and_then(|()| history.finish());
            done.map_err(TestCaseError::fail)
        });
        Some(format!("{balancer}: {}", failure?))
    });
    let failures: Vec<String> = failures.collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
