//! Every number of a scenario at and beyond its bounds: accepted values are in force as written,
//! and others are rejected by name.

use std::path::Path;

use serde_json::Value;
use spray_core::flow::FlowConfig;
use spray_core::path::BalancerKind;
use spray_core::units::ByteSize;
use spray_experiments::scenario::{Document, Scenario, Settings};
use spray_experiments::sim::Simulation;
use spray_experiments::workload::Overrides;
use spray_fabric::changes;
use spray_settings::schema;

/// Four hosts on two leaves, flows of one or two packets, and a table of each repeatable kind. Runs
/// are stopped early, so that no number takes long to test.
const BASE: &str = r#"
name = "bounds"
time_limit_us = 60
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
[workload]
kind = "cross-leaf-permutation"
bytes = "4 kB"
[transport]
balancer = "ops"
[[link_event]]
link = "*->h0"
at_us = 1
until_us = 3_600_000_000
action = "rate"
factor = 0.5
[[failure]]
what = "links"
share = 0.1
at_us = 1
until_us = 3_600_000_000
disconnect = true
action = "silent-drop"
"#;

/// Other kinds of tables, so that every number of the schema is in a document.
const OTHERS: [(&str, &str); 20] = [
    ("topology", r#"{kind = "fat-tree", pods = 2, tors_per_pod = 2, aggs_per_pod = 2, cores = 2, hosts_per_tor = 1}"#),
    ("topology", r#"{kind = "dragonfly", groups = 3, routers_per_group = 2, hosts_per_router = 2, global_cables = 1}"#),
    ("topology", GRAPH),
    ("workload", r#"{kind = "permutation", bytes = 4000, part = [{name = "p", share = 0.5}]}"#),
    ("workload", r#"{kind = "all-to-all", bytes = 4000}"#),
    ("workload", r#"{kind = "incast", bytes = 4000}"#),
    ("workload", r#"{kind = "closed-loop", sizes = "uniform", max_bytes = 4000, messages = 2}"#),
    ("workload", r#"{kind = "poisson", sizes = "uniform", max_bytes = 4000, load = 0.5, until_us = 10}"#),
    ("workload", r#"{kind = "all-reduce", bytes = 4000}"#),
    ("workload", r#"{kind = "fsdp", model = "llama-7b"}"#),
    ("workload", r#"{kind = "flows", flow = [{src = "h0", dst = "h2", bytes = 4000}]}"#),
    ("link_event.0", r#"{link = "*->h0", action = "down"}"#),
    ("link_event.0", r#"{link = "*->h0", action = "loss", probability = 0.1}"#),
    ("link_event.0", r#"{link = "*->h0", action = "flap", period_us = 1_000_000, down_us = 0.001}"#),
    ("failure.0", r#"{what = "links", probability = 0.1, disconnect = true, action = "rate", factor = 0.5}"#),
    ("transport.balancer", r#""mptcp""#),
    ("transport.balancer", r#""subflow""#),
    ("transport.balancer", r#""ordered-chaos""#),
    ("transport.balancer", r#""host-dr""#),
    ("transport.balancer", r#""reps""#),
];

const GRAPH: &str = r#"{kind = "graph", hosts = ["h0", "h1", "h2", "h3"], switches = ["leaf0", "leaf1", "spine0"], link = [
{a = "h0", b = "leaf0"}, {a = "h1", b = "leaf0"}, {a = "h2", b = "leaf1"}, {a = "h3", b = "leaf1"},
{a = "leaf0", b = "spine0"}, {a = "leaf1", b = "spine0"}]}"#;

/// A number in a scenario.
#[derive(Debug, Clone, PartialEq)]
struct Number {
    path: String,
    name: String,
    /// The number of decimals.
    decimals: u32,
    /// The minimum and the maximum, in units of the last decimal.
    bounds: [Option<i128>; 2],
}

/// Collects the numbers in the part of `schema` at `path`, for the variants that `document`
/// selects.
fn numbers(schema: &Value, path: &str, given: &Value, found: &mut Vec<Number>) {
    let all = |key: &str| schema[key].as_array().into_iter().flatten();
    let has_words = |variant: &Value| variant["properties"].is_object();
    let chosen = all("oneOf").chain(all("anyOf")).filter(|variant| has_words(variant)).find(|variant| {
        let properties = variant["properties"].as_object().unwrap();
        properties.iter().all(|(name, field)| field["const"].is_null() || field["const"] == given[name])
    });
    if let Some(variant) = chosen {
        return numbers(variant, path, given, found);
    }
    if let Some(properties) = schema["properties"].as_object() {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
        return properties.iter().for_each(|(name, field)| {
            numbers(field, &format!("{prefix}{name}"), &given[name], found);
        });
    }
    let items = [schema].into_iter().chain(all("anyOf")).find(|one| one["type"] == "array");
    if let Some(list) =
        items.filter(|list| list["items"]["properties"].is_object() || list["items"]["oneOf"].is_array())
    {
        let first = if given.is_array() { &given[0] } else { given };
        if !first.is_null() {
            numbers(&list["items"], &format!("{path}.0"), first, found);
        }
        return;
    }
    let number = [schema].into_iter().chain(all("anyOf")).find(|one| is_number(one));
    found.extend(number.map(|number| Number::of(path, number)));
}

fn is_number(schema: &Value) -> bool {
    let kind = &schema["type"];
    let is_bytes = *kind == serde_json::json!(["integer", "string"]);
    schema["x-allowed"].is_null() && (kind == "integer" || is_bytes || has_decimals(schema))
}

/// Returns whether the number has decimals; a ratio may also be text with a percent sign.
fn has_decimals(schema: &Value) -> bool {
    schema["type"] == "number" || schema["type"] == serde_json::json!(["number", "string"])
}

impl Number {
    fn of(path: &str, schema: &Value) -> Self {
        let fewer = schema["x-decimals"].as_u64().unwrap_or(6) as u32;
        let decimals = if has_decimals(schema) { fewer } else { 0 };
        let units = |bound: &Value| {
            let whole = bound.as_u64().map(i128::from).or(bound.as_i64().map(i128::from));
            let scale = 10i128.pow(decimals);
            whole.map(|whole| whole * scale).or(bound.as_f64().map(|bound| (bound * scale as f64).round() as i128))
        };
        let most = units(&schema["maximum"]).or((schema["format"] == "uint32").then_some(u32::MAX.into()));
        let name = path.rsplit('.').find(|part| part.parse::<usize>().is_err()).unwrap_or(path).to_owned();
        Self { path: path.into(), name, decimals, bounds: [units(&schema["minimum"]), most] }
    }

    /// Formats the value as in a file.
    fn text(&self, units: i128) -> String {
        let scale = 10i128.pow(self.decimals);
        let (sign, units) = (if units < 0 { "-" } else { "" }, units.abs());
        let rest =
            if self.decimals > 0 { format!(".{:0>1$}", units % scale, self.decimals as usize) } else { String::new() };
        let text = format!("{sign}{}{rest}", units / scale);
        if rest.is_empty() { text } else { text.trim_end_matches('0').trim_end_matches('.').into() }
    }
}

fn read(document: &Document, number: &Number, value: &str) -> Result<Scenario, String> {
    let mut document = document.clone();
    document.assign(&number.path, value, "written").map_err(|mistake| mistake.to_string())?;
    Scenario::read(&document).map_err(|mistake| mistake.to_string())
}

/// Returns the value of `path` in force in a parsed scenario, in the unit of the setting. `None` if
/// the engine's form of it is not accessible here.
fn in_force(scenario: &Scenario, path: &str) -> Option<f64> {
    let (network, paths) = (&scenario.network, scenario.paths());
    let flow = flow_config(scenario);
    let us = |ps: u64| ps as f64 / 1e6;
    let gbps = |link: usize| network.links[link].rate_bps as f64 / 1e9;
    let of_switches = |link: &usize| network.links[*link].is_uplink();
    let uplink = (0..network.links.len()).find(of_switches)?;
    let queue = scenario.thresholds(&paths, network.links[0].rate_bps);
    let slow = changes(&scenario.link_events, network.links.len()).into_iter().flatten().next();
    let ppm = |ppm: u32| f64::from(ppm) / 1e6;
    Some(match path {
        "seed" => scenario.seed as f64,
        "time_limit_us" => us(scenario.time_limit_ps?),
        "sample_us" => us(scenario.sample_ps),
        "topology.host_gbps" | "topology.link.0.gbps" => gbps(0),
        "topology.uplink_gbps" => gbps(uplink),
        "topology.latency_us" | "topology.host_latency_us" | "topology.link.0.latency_us" => {
            us(network.links[0].latency_ps)
        }
        "topology.switch_latency_us" => us(network.switches[0].latency_ps),
        "topology.leaves" => {
            scenario.network.switches.iter().filter(|switch| switch.name.starts_with("leaf")).count() as f64
        }
        "link_event.0.factor" => ppm(slow?.state.rate_ppm),
        "link_event.0.probability" => ppm(slow?.state.loss_ppm),
        "link_event.0.period_us" => us(slow?.state.flap?.period_ps),
        "link_event.0.down_us" => us(slow?.state.flap?.down_ps),
        "link_event.0.at_us" => us(scenario.link_events[0].at_ps),
        "link_event.0.until_us" => us(scenario.link_events[0].until_ps?),
        "queue.mark_probability" => ppm(queue.mark_ppm),
        "queue.alpha" => ppm(queue.alpha_ppm),
        "queue.shared_buffer" => queue.shared_bytes as f64,
        "workload.0.bytes" | "workload.0.flow.0.bytes" => scenario.flows(1)[0].bytes as f64,
        "workload.0.start_us" | "workload.0.flow.0.start_us" => us(scenario.flows(1)[0].start_ps),
        "transport.payload_bytes" => flow.payload_bytes.into(),
        "transport.ack_every" => flow.ack_every.into(),
        "transport.ack_evs" => flow.ack_evs.into(),
        "transport.ack_delay_us" => us(flow.ack_delay_ps),
        "transport.evs" => flow.path.evs.into(),
        "transport.dscp" => flow.dscp.into(),
        "transport.window_packets" => flow.window_packets.into(),
        "transport.sack_gap_packets" => flow.sack_gap_packets.unwrap_or(0).into(),
        "transport.rto_min_us" => us(flow.rto.min_ps),
        "transport.rto_max_us" => us(flow.rto.max_ps),
        "transport.give_up_us" => us(flow.give_up_ps),
        "transport.initial_window_bytes" => flow.path.initial_window_bytes as f64,
        "transport.max_window_bytes" => flow.path.max_window_bytes as f64,
        _ => return None,
    })
}

fn flow_config(scenario: &Scenario) -> FlowConfig {
    let balancer = scenario.transport.balancer[0];
    scenario.flow_config(
        &scenario.paths(),
        balancer,
        Overrides::default(),
        [0, scenario.network.hosts.len() - 1],
        4_000,
    )
}

/// Returns the value at `path` as parsed by the scenario's types.
fn as_read(document: &Document, number: &Number, value: &str) -> f64 {
    let mut document = document.clone();
    document.assign(&number.path, value, "written").unwrap();
    let settings = serde_json::to_value(document.read::<Settings>().unwrap()).unwrap();
    let value = number.path.split('.').fold(&settings, |value, part| match part.parse::<usize>() {
        Ok(place) => &value[place],
        Err(_) => &value[part],
    });
    let bytes = || value.as_str().and_then(|text| text.parse::<ByteSize>().ok()).map(|bytes| bytes.bytes() as f64);
    value.as_f64().or_else(bytes).unwrap_or_else(|| panic!("{} is {value}", number.path))
}

/// Returns the tables of `document`, which determine the variants.
fn given(document: &Document) -> Value {
    serde_json::to_value(document.read::<Settings>().unwrap()).unwrap()
}

/// Returns the documents, each with the name of the replaced table.
fn documents() -> Vec<(&'static str, Document)> {
    let base = Document::parse(Path::new("bounds.toml"), BASE).unwrap();
    let other = |(path, value): (&'static str, &str)| {
        let mut document = base.clone();
        document.assign(path, value, path).unwrap();
        if value.contains("fsdp") {
            // Eight rings require sixteen hosts.
            document.assign("topology.hosts_per_leaf", "8", path).unwrap();
        }
        (path, document)
    };
    [("", base.clone())].into_iter().chain(OTHERS.map(other)).collect()
}

/// Tries a value of `number` in `document`: returns the error if it is rejected.
fn attempt(document: &Document, number: &Number, text: &str) -> Result<(), String> {
    let scenario = read(document, number, text)?;
    let value: f64 = text.parse().unwrap();
    let read = as_read(document, number, text);
    assert_eq!(read, value, "{} = {text}, as parsed", number.path);
    let flow = flow_config(&scenario);
    assert_eq!(flow, flow.clamped(), "{} = {text}", number.path);
    if let Some(found) = in_force(&scenario, &number.path) {
        // A maximum timeout of 0 means the minimum timeout.
        let is_least = number.name == "rto_max_us" && value == 0.0;
        assert!(found == value || is_least, "{} = {text} is {found} in force", number.path);
    }
    run(&scenario);
    Ok(())
}

/// Runs scenarios that are small enough; the simulator accepts every value that the parser accepts.
fn run(scenario: &Scenario) {
    if scenario.network.hosts.len() <= 64 && scenario.flows(scenario.seed).len() <= 500 {
        let mut scenario = scenario.clone();
        scenario.time_limit_ps = Some(scenario.time_limit_ps.unwrap_or(u64::MAX).min(60_000_000));
        Simulation::new(&scenario).run(BalancerKind::Ops, scenario.seed, &[]).unwrap();
    }
}

/// Values within their bounds that other settings of these documents reject, with the reason.
const REFUSED: [(&str, &str); 35] = [
    ("failure.0.at_us = 3600000000", "allowed: later times"),
    ("failure.0.probability = 0.000001", "allowed: one of the two"),
    ("failure.0.probability = 1", "allowed: one of the two"),
    ("failure.0.until_us = 0", "allowed: later times"),
    ("link_event.0.at_us = 3600000000", "allowed: later times"),
    ("link_event.0.down_us = 1000000", "allowed: less"),
    ("link_event.0.period_us = 0.001", "allowed: less"),
    ("link_event.0.until_us = 0", "allowed: later times"),
    ("queue.shared_buffer = 1", "allowed: from 3106, which is a full packet"),
    ("topology.aggs_per_pod = 128", "allowed: multiples of `aggs_per_pod`, here 128"),
    ("topology.cores = 1", "allowed: multiples of `aggs_per_pod`, here 2"),
    ("topology.global_latency_us = 1000000", "allowed: at most 1000000: shorter or faster cables"),
    ("topology.groups = 1024", "allowed: multiples of 1023"),
    ("topology.host_latency_us = 1000000", "allowed: at most 1000000: shorter or faster cables"),
    ("topology.latency_us = 1000000", "allowed: at most 1000000: shorter or faster cables"),
    ("topology.leaves = 1", "allowed: `permutation`, or another topology"),
    ("topology.link.0.latency_us = 1000000", "allowed: at most 1000000: shorter or faster cables"),
    ("topology.routers_per_group = 1", "allowed: multiples of 2"),
    ("topology.switch_latency_us = 1000000", "allowed: at most 1000000: shorter or faster cables"),
    ("transport.dcqcn.window_bytes = 1", "allowed: from 3106, full packets: 1"),
    ("transport.eqds.request_bytes = 1", "allowed: from 12424, full packets: 4"),
    ("transport.fixed-window.window_bytes = 1", "allowed: from 3106, full packets: 1"),
    ("transport.initial_window_bytes = 1", "allowed: from 3106, full packets: 1"),
    ("transport.irn.cap_packets = 65536", "allowed: at most `window_packets`, here 4096"),
    ("transport.max_window_bytes = 1", "allowed: from 3106, full packets: 1"),
    ("workload.0.draw_hosts = 2", "allowed: `permutation`, or another topology"),
    ("workload.0.draw_hosts = 65536", "allowed: fewer, here or in the workloads before"),
    ("workload.0.flow.0.start_us = 3600000000", "allowed: at most 3600: smaller, fewer or earlier flows"),
    ("workload.0.groups = 32768", "allowed: groups of one size, of at least two hosts"),
    ("workload.0.layers = 100000", "allowed: at most 300000 messages"),
    ("workload.0.load = 0.001", "allowed: at least one: a longer time, or a higher `load`"),
    ("workload.0.messages = 100000", "allowed: at most 75000"),
    ("workload.0.rounds = 100000", "allowed: at most 300000 messages; a round has 12"),
    ("workload.0.senders = 65535", "allowed: at most the 3 other hosts"),
    ("workload.0.start_us = 3600000000", "allowed: at most 3600: smaller, fewer or earlier flows"),
];

#[test]
fn every_number_is_applied_at_its_bounds_and_rejected_beyond() {
    let schema = schema::<Settings>();
    let (mut tried, mut refused) = (Vec::<(String, Number)>::new(), Vec::new());
    for (table, document) in documents() {
        let mut found = Vec::new();
        numbers(&schema, "", &given(&document), &mut found);
        // A balancer may reject settings of connections that another accepts.
        let is_new = |number: &Number| {
            let again = table == "transport.balancer" && number.path.starts_with("transport.");
            again || tried.iter().all(|(_, other)| other != number)
        };
        let fresh: Vec<_> = found.into_iter().filter(is_new).collect();
        for number in fresh {
            for (bound, step) in number.bounds.into_iter().zip([-1, 1]) {
                let Some(bound) = bound else { continue };
                refuses(&document, &number, &number.text(bound + step));
                let text = number.text(bound);
                if let Err(why) = attempt(&document, &number, &text) {
                    refused.push((format!("{} = {text}", number.path), why));
                }
            }
            tried.push((table.into(), number));
        }
    }
    assert!(tried.len() > 250, "{}", tried.len());
    for (what, why) in &refused {
        let known = REFUSED.iter().any(|(path, words)| path == what && why.contains(words));
        assert!(known, "{what} is rejected: {why}");
    }
    let is_refused = |(path, _): &&(&str, &str)| refused.iter().any(|(what, _)| what == path);
    assert_eq!(REFUSED.iter().filter(is_refused).count(), REFUSED.len());
}

/// Checks that a value beyond the bounds is rejected with its position, its name and the allowed
/// range.
fn refuses(document: &Document, number: &Number, text: &str) {
    let why = read(document, number, text).err();
    let why = why.unwrap_or_else(|| panic!("{} = {text} is accepted", number.path));
    let is_named = why.contains(&format!("`{}` is {text}", number.name));
    assert!(is_named && why.starts_with("written: ") && why.contains("allowed: "), "{}: {why}", number.path);
}

/// Queue lengths have units, and bounds that follow from the packet: 3,106 bytes here, and 106 of
/// the largest control frame.
#[test]
fn queue_lengths_are_applied_in_whole_bytes() {
    let base = Document::parse(Path::new("bounds.toml"), BASE).unwrap();
    let read = |assignments: &[&str]| {
        let mut document = base.clone();
        document.assign("queue.marking", "false", "marking").unwrap();
        for assignment in assignments {
            let (path, value) = assignment.split_once('=').unwrap();
            document.assign(path, value, "written").unwrap();
        }
        Scenario::read(&document).map_err(|mistake| mistake.to_string())
    };
    for (limit, bytes) in [
        ("3106", 3_106),
        ("3107", 3_107),
        ("\"1 packets\"", 3_106),
        ("\"1.5 packets\"", 4_659),
        ("\"100 kB\"", 100_000),
        ("4294967294", 4_294_967_294),
    ] {
        let scenario = read(&[&format!("queue.limit={limit}")]).unwrap();
        let found = scenario.thresholds(&scenario.paths(), scenario.network.links[0].rate_bps).limit_bytes;
        assert_eq!(found, bytes, "{limit}");
        run(&scenario);
    }
    for limit in
        ["0", "1", "\"1 B\"", "\"2000 B\"", "3105", "\"0.999 packets\"", "\"0.01 bdp\"", "4294967295", "\"4 GiB\""]
    {
        let why = read(&[&format!("queue.limit={limit}")]).unwrap_err();
        assert!(why.starts_with("written: `limit` is ") && why.contains("allowed: "), "{limit}: {why}");
    }
    let least = read(&[]).unwrap().largest_control_bytes();
    assert!(read(&[&format!("queue.control_limit={least}")]).is_ok());
    for limit in [format!("{}", least - 1), "4294967295".into()] {
        let why = read(&[&format!("queue.control_limit={limit}")]).unwrap_err();
        assert!(why.starts_with("written: `control_limit` is "), "{limit}: {why}");
    }
}

/// A cable carries its configured rate: a message takes the time of its bytes at that rate, without
/// retransmissions.
#[test]
fn links_have_the_configured_rate() {
    let alone = |assignments: &[(&str, &str)], bytes: u64| {
        let mut document = Document::parse(Path::new("bounds.toml"), BASE).unwrap();
        document.assign("time_limit_us", "auto", "limit").unwrap();
        document
            .assign(
                "workload",
                &format!("{{kind = \"flows\", flow = [{{src = \"h0\", dst = \"h2\", bytes = {bytes}}}]}}"),
                "flow",
            )
            .unwrap();
        document.assign("failure", "[]", "none").unwrap();
        document.assign("link_event", "[]", "none").unwrap();
        assignments.iter().for_each(|(path, value)| document.assign(path, value, path).unwrap());
        let scenario = Scenario::read(&document).unwrap();
        let result = Simulation::new(&scenario).run(BalancerKind::Ecmp, 1, &[]).unwrap();
        let packets = bytes.div_ceil(scenario.transport.payload_bytes.into());
        let wire = bytes + packets * u64::from(scenario.header_bytes());
        let flow = result.flows[0].clone();
        assert_eq!(flow.sender.retransmits, 0);
        (flow.fct_us.unwrap(), wire as f64 * 8.0)
    };
    let check = |assignments: &[(&str, &str)], gbps: f64| {
        let [short, long] = [100_000, 300_000].map(|bytes| alone(assignments, bytes));
        // The difference of two messages excludes latencies and the time of the first packet.
        let (took_us, exact_us) = (long.0 - short.0, (long.1 - short.1) / gbps / 1e3);
        assert!((took_us / exact_us - 1.0).abs() < 0.001, "{gbps} Gb/s: {took_us} us for {exact_us}");
    };
    for gbps in [0.01, 1.0, 1_000.0, 1_600.0, 7_200.0, 10_000.0] {
        check(&[("topology.host_gbps", &gbps.to_string())], gbps);
    }
    // Frames over a link at a thousandth of its rate wait for long: no timeout may be shorter.
    for link in ["h0->*", "leaf0->spine*", "*->h2"] {
        let event = format!("{{link = \"{link}\", action = \"rate\", factor = 0.001}}");
        let patience = [("transport.rto_min_us", "10_000_000"), ("transport.give_up_us", "100_000_000")];
        let deep = [("topology.host_gbps", "1"), ("queue.limit", "\"1 MB\""), ("link_event.0", event.as_str())];
        check(&[deep.as_slice(), &patience, &[("time_limit_us", "100_000_000")]].concat(), 0.001);
    }
}
