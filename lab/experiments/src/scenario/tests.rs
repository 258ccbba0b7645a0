use std::collections::HashMap;
use std::path::Path;

use spray_core::path::BalancerKind;

use super::*;
use crate::workload::Overrides;
use spray_settings::assignment;
use spray_test_support::root;

const WORKLOAD: &str = "[workload]\nkind = \"tornado\"\nbytes = 1\n";

const MINIMAL: &str = r#"name = "small"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 4
[workload]
kind = "cross-leaf-permutation"
bytes = "1 MiB"
"#;

fn parse(text: &str) -> Result<Scenario, Error> {
    Scenario::parse(Path::new("dir/small.toml"), text)
}

/// Assigns what `text` says: `path=value`.
fn set(document: &mut Document, text: &str) -> Result<(), Error> {
    let (path, value) = assignment(text)?;
    document.assign(path, value, &format!("--set {text}"))
}

#[test]
fn the_minimal_scenario_has_the_defaults_of_the_papers() {
    let scenario = parse(MINIMAL).unwrap();
    assert_eq!((scenario.seed, scenario.condition.as_str()), (1, "healthy"));
    assert_eq!(scenario.transport, Transport::default());
    // 8 links of 1 us, 4 times 3106 bytes and 4 times an ACK at 100 Gb/s.
    let rtt = 8_000_000 + 4 * 3_106 * 80 + 4 * 134 * 80;
    assert_eq!(scenario.base_rtt_ps(&scenario.paths()), rtt);
    let queue = scenario.thresholds(&scenario.paths(), 100_000_000_000);
    let bdp = (rtt / 80) as u32;
    assert_eq!((queue.limit_bytes, queue.mark_min_bytes, queue.mark_max_bytes), (bdp, bdp / 5, bdp * 4 / 5));
    let config = scenario.flow_config(&scenario.paths(), BalancerKind::Reps, Overrides::default(), [0, 4], 0);
    assert_eq!((config.path.evs, config.path.base_rtt_ps, config.path.trimming), (65_535, rtt, true));
    assert_eq!(config.path.max_window_bytes, u64::from(bdp) + u64::from(bdp) / 2);
    let near = scenario.flow_config(&scenario.paths(), BalancerKind::Reps, Overrides::default(), [0, 1], 0);
    assert_eq!(near.path.base_rtt_ps, 4_000_000 + 2 * (3_106 + 134) * 80);
}

#[test]
fn a_balancer_is_accepted_by_its_former_name() {
    let named = |value: &str| parse(&format!("{MINIMAL}[transport]\nbalancer = {value}\n")).unwrap().transport.balancer;
    assert_eq!(named("\"arcane\""), [BalancerKind::Reps]);
    assert_eq!(named("[\"arcane\", \"ops\"]"), [BalancerKind::Reps, BalancerKind::Ops]);
    let mut document = Document::parse(Path::new("dir/small.toml"), MINIMAL).unwrap();
    document.assign("transport.balancer", "arcane", "--balancer arcane").unwrap();
    assert_eq!(Scenario::read(&document).unwrap().transport.balancer, [BalancerKind::Reps]);
}

#[test]
fn the_reference_fabric_has_the_reference_round_trip() {
    let text = MINIMAL.replace("hosts_per_leaf = 4", "hosts_per_leaf = 4\nhost_gbps = 400");
    let mut scenario = parse(&text).unwrap();
    scenario.transport.payload_bytes = 4_150 - scenario.header_bytes();
    let acks = 4 * (134 - 64) * 20;
    assert_eq!((scenario.base_rtt_ps(&scenario.paths()) - acks) / 1000, 8_337, "8.337 us with 64-byte ACKs");
}

//= docs/specs/transport.md#TRN-31 bounds of the timeout
#[test]
fn the_minimum_timeout_covers_the_queue_of_every_switch_on_the_path() {
    let counts = "kind = \"fat-tree\"\npods = 2\ntors_per_pod = 2\naggs_per_pod = 2\ncores = 2\nhosts_per_tor = 2\nhost_gbps = 400\n";
    let scenario =
        parse(&format!("name = \"x\"\n[topology]\n{counts}[workload]\nkind = \"permutation\"\nbytes = 1\n")).unwrap();
    let paths = scenario.paths();
    let limit = u64::from(scenario.thresholds(&paths, 400_000_000_000).limit_bytes);
    for (to, queues) in [(1, 4), (2, 4), (4, 5)] {
        let config = scenario.flow_config(&paths, BalancerKind::Reps, Overrides::default(), [0, to], 0);
        let floor_ps = config.path.base_rtt_ps + queues * limit * 20;
        assert_eq!((config.rto.min_ps, config.rto.initial_ps), (floor_ps, floor_ps), "to host {to}");
    }
}

/// A setting in the file is in force, and a default that would limit it is adapted to it.
//= docs/specs/transport.md#TRN-31 bounds of the timeout
#[test]
fn defaults_adapt_to_explicit_settings() {
    let flow = |rest: &str| {
        let scenario = parse(&format!("{MINIMAL}[transport]\n{rest}\n")).unwrap();
        scenario.flow_config(&scenario.paths(), BalancerKind::Reps, Overrides::default(), [0, 7], 0)
    };
    let short = flow("rto_max_us = 10").rto;
    assert_eq!([short.initial_ps, short.min_ps, short.max_ps], [10_000_000; 3]);
    let path = flow("initial_window_bytes = \"1 GB\"").path;
    assert_eq!([path.initial_window_bytes, path.max_window_bytes], [1_000_000_000; 2]);
    let path = flow("initial_window_bytes = 5000").path;
    assert!(path.initial_window_bytes == 5_000 && path.max_window_bytes > 100_000, "{path:?}");
}

#[test]
fn every_error_has_a_position_and_the_allowed_values() {
    let event = |rest: &str| format!("{MINIMAL}[[link_event]]\n{rest}\n");
    let failure = |rest: &str| format!("{MINIMAL}[[failure]]\n{rest}\n");
    let transport = |rest: &str| format!("{MINIMAL}[transport]\n{rest}\n");
    let window = |rest: &str| format!("{MINIMAL}[transport]\nfixed-window.{rest}\n");
    let queue = |rest: &str| format!("{MINIMAL}[queue]\n{rest}\n");
    let switch = |rest: &str| format!("{MINIMAL}[switch]\n{rest}\n");
    let host_dr = |rest: &str| format!("{MINIMAL}[switch]\n{rest}\n[transport]\nbalancer = \"host-dr\"\n");
    let tree = |rest: &str| {
        let counts = "kind = \"fat-tree\"\npods = 2\ntors_per_pod = 2\naggs_per_pod = 2\nhosts_per_tor = 2\n";
        format!("name = \"t\"\n[topology]\n{counts}{rest}\n{WORKLOAD}")
    };
    let cases = [
        (
            MINIMAL.replace("leaves = 2", "leafs = 2"),
            "4:1",
            "unknown field `leafs` in [topology] (did you mean `leaves`?); allowed: kind, leaves,",
        ),
        (
            MINIMAL.replace("leaves = 2", ""),
            "2:1",
            "missing field `leaves` in [topology]; allowed: a whole number from 1 to 1024",
        ),
        (MINIMAL.replace("leaves = 2", "leaves = 0"), "4:10", "`leaves` is 0; allowed: a whole number from 1 to 1024"),
        (MINIMAL.replace("leaves = 2", "leaves = \"two\""), "4:10", "is \"two\"; allowed: a whole number"),
        (MINIMAL.replace("leaves = 2", "leaves = "), "4:10", "not TOML: "),
        (
            MINIMAL.replace("\"leaf-spine\"", "\"ring\""),
            "3:8",
            "allowed: \"leaf-spine\", \"fat-tree\", \"dragonfly\", \"graph\", \"file\"",
        ),
        (
            MINIMAL.replace("leaves = 2", "leaves = 2\nfile = \"x\""),
            "5:1",
            "`file` does not apply to kind `leaf-spine`; allowed: kind,",
        ),
        (MINIMAL.replace("leaves = 2", "leaves = 1"), "8:8", "more than half"),
        (tree("cores = 5"), "8:9", "multiples of `aggs_per_pod`, here 2"),
        (tree("cores = 4\nleaves = 2"), "9:1", "does not apply to kind `fat-tree`"),
        (tree(""), "2:1", "missing field `cores`"),
        (
            format!(
                "name = \"d\"\n[topology]\nkind = \"dragonfly\"\ngroups = 6\nrouters_per_group = 4\n\
                 hosts_per_router = 1\nglobal_cables = 1\n{WORKLOAD}"
            ),
            "7:17",
            "allowed: multiples of 5",
        ),
        (
            format!("{MINIMAL}[switch]\nscheme = \"ugal\"\n"),
            "11:10",
            "scheme `ugal` needs groups for its detours; allowed: dragonflies",
        ),
        (MINIMAL.replace("1 MiB", "1 mib"), "9:9", "is \"1 mib\" (did you mean `1 MiB`?); allowed: \"auto\", or 1 to"),
        (MINIMAL.replace("bytes = \"1 MiB\"", ""), "7:1", "needs `bytes`"),
        (MINIMAL.replace("\"small\"", "\"../small\""), "1:8", "`name` is `../small`; allowed: letters"),
        (
            transport("balancer = \"rpes\""),
            "11:12",
            "`balancer` is \"rpes\" (did you mean `reps`?); allowed: one or a list of \"ecmp\", ",
        ),
        (transport("balancer = [\"ecmp\", \"x\"]"), "11:21", "`balancer` is \"x\"; allowed: \"ecmp\", "),
        (transport("balancer = []"), "11:12", "allowed: one or a list"),
        (transport("cc = \"bbr\""), "11:6", "allowed: \"dctcp\", "),
        (transport("ip = 5"), "11:6", "allowed: \"4\", \"6\""),
        (transport("fixed-window = 3"), "11:16", "`fixed-window` is 3; allowed: a table"),
        (transport("plain.x = 1"), "11:1", "unknown field `plain` in [transport]; allowed: balancer, "),
        (
            transport("fixed_window.window_bytes = 1"),
            "11:1",
            "unknown field `fixed_window` in [transport] (did you mean `fixed-window`?); allowed: ",
        ),
        (window("x = 1"), "11:14", "unknown field `x` in [transport.fixed-window]; allowed: window_bytes"),
        (window("window_bytes = 0"), "11:29", "`window_bytes` is 0; allowed: \"auto\", or 1 to"),
        (window("window_bytes = 1.5"), "11:29", "is 1.5; allowed: \"auto\", or 1 to"),
        (window("window_bytes = -1"), "11:29", "is -1; allowed: \"auto\", or 1 to"),
        (window("window_bytes = \"2 mb\""), "11:29", "is \"2 mb\" (did you mean `2 MB`?); allowed: \"auto\", or 1 to"),
        (window("window_bytes = true"), "11:29", "is true; allowed: \"auto\", or 1 to"),
        (window("window_bytes = [1]"), "11:29", "is [1]; allowed: \"auto\", or 1 to"),
        (window("window_bytes.x = 1"), "11:14", "allowed: \"auto\", or 1 to"),
        (transport("give_up_us = 0"), "11:14", "`give_up_us` is 0; allowed: \"auto\", or 0.000001 to"),
        (transport("erasure = 1"), "11:11", "`erasure` is 1; allowed: true, false"),
        (transport("payload_bytes = 65001"), "11:17", "64 to 65000"),
        (transport("window_packets = 1000"), "11:18", "powers of two"),
        (transport("rto_min_us = 50\nrto_max_us = 40"), "12:14", "not below"),
        (transport("rto_min_us = 0.0000001"), "11:14", "with at most 6 decimals"),
        (transport("initial_window_bytes = 1000"), "11:24", "allowed: from 3106, full packets: 1"),
        (transport("max_window_bytes = 1000"), "11:20", "allowed: from 3106, full packets: 1"),
        (transport("initial_window_bytes = 9000\nmax_window_bytes = 8000"), "11:24", "allowed: not above"),
        (transport("eqds.request_bytes = 9000"), "11:22", "allowed: from 12424, full packets: 4"),
        (transport("dcqcn.window_bytes = 9"), "11:22", "allowed: from 3106, full packets: 1"),
        (transport("irn.cap_packets = 4097"), "11:19", "allowed: at most `window_packets`, here 4096"),
        (transport("irn = { rto_low_us = 5, rto_high_us = 4 }"), "11:39", "allowed: not below"),
        (transport("ordered-chaos.subflows = 6"), "11:26", "allowed: powers of two, 1 to 64"),
        (transport("balancer = \"subflow\"\nevs = 4\nsubflow.subflows = 5"), "13:20", "at most `evs`, which is 4"),
        (transport("mprdma.probe_share = 0.0001"), "11:22", "allowed: 0 to 1, with at most 3 decimals"),
        (transport("payload_bytes = 65000\n[simulation]\nheader_bytes = 600"), "11:17", "allowed: at most 65535"),
        (MINIMAL.replace("leaves = 2", "leaves = 2\nlatency_us = 1_000_000"), "2:1", "the longest base RTT is"),
        (MINIMAL.replace("leaves = 2", "leaves = 2\nhost_gbps = 100_001"), "5:13", "allowed: 0.01 to 100000"),
        (
            event(
                "link = \"leaf0->spine1\"\naction = \"rate\"\nfactor = 0.01\n[[link_event]]\nlink = \"leaf*->spine1\"\naction = \"rate\"\nfactor = 0.01",
            ),
            "15:8",
            "to 100 millionths of its rate; allowed: at least 1000",
        ),
        (
            event(
                "link = \"leaf0->spine1\"\naction = \"rate\"\nfactor = 0.001\n[simulation]\nshort_slow_queues = true",
            ),
            "15:21",
            "bytes are left of the queue of leaf0->spine1; allowed: from 3106",
        ),
        (queue("limit = \"20 %\""), "11:9", "percentage of itself"),
        (queue("limit = \"4 GiB\""), "11:9", "4 GiB or more"),
        (queue("limit = \"2000000 packets\""), "11:9", "4 GiB or more"),
        (queue("limit = 0"), "11:9", "`limit` is 0 bytes at h0->leaf0; allowed: from 3106, which is a full packet"),
        (queue("limit = 1"), "11:9", "allowed: from 3106, which is a full packet"),
        (queue("limit = \"1 B\""), "11:9", "allowed: from 3106, which is a full packet"),
        (queue("limit = \"2000 B\""), "11:9", "`limit` is 2000 bytes"),
        (queue("limit = \"0.9 packets\""), "11:9", "`limit` is 2795 bytes"),
        (queue("control_limit = 10"), "11:17", "the largest control frame"),
        (queue("control_limit = \"5 GiB\""), "11:17", "`control_limit` is 4 GiB or more"),
        (queue("pfc = true\nmark_max = \"5 GiB\""), "12:12", "`mark_max` is 4 GiB or more"),
        (queue("shared_buffer = 1"), "11:17", "allowed: from 3106, which is a full packet"),
        (queue("alpha = 1.0000001"), "11:9", "allowed: 0.001 to 1000, with at most 6 decimals"),
        (queue("mark_min = \"90 %\""), "10:1", "allowed: ascending"),
        (queue("mark_probability = 1.5"), "11:20", "`mark_probability` is 1.5; allowed: 0.001 to 1"),
        (queue("mark_at = \"leaving\""), "11:11", "allowed: \"arrival\", \"departure\""),
        (queue("alpha = 0"), "11:9", "`alpha` is 0; allowed: 0.001 to 1000"),
        (queue("trimming = 1"), "11:12", "allowed: true, false"),
        (switch("hash = \"crc8\""), "11:8", "allowed: \"ideal\", \"crc16\", \"crc32\", \"xor\""),
        (switch("hash_seed = \"link\""), "11:13", "allowed: \"switch\", \"tier\", \"same\""),
        (switch("hash_fields = \"flow-label\""), "11:15", "IPv4 has no flow label; allowed: `ip = 6`"),
        (host_dr("hash_fields = \"addresses\""), "11:15", "switches hash addresses alone, but the balancer `host-dr`"),
        (host_dr("scheme = \"rr\""), "11:10", "switches with `rr`, but the balancer `host-dr`"),
        (event("link = \"leaf0->spine9\"\naction = \"down\""), "11:8", "allowed: h0->leaf0, leaf0->h0"),
        (event("link = \"leaf0->spine1\"\naction = \"explode\""), "12:10", "allowed: \"down\", \"silent-drop\""),
        (
            event("link = \"leaf0->spine1\"\naction = \"rate\""),
            "10:1",
            "missing field `factor` in [[link_event]]; allowed: 0.001 to 0.999",
        ),
        (event("link = \"leaf0->spine1\"\naction = \"down\"\nfactor = 0.5"), "13:1", "does not apply to action `down`"),
        (event("link = \"leaf0->spine1\"\naction = \"loss\"\nprobability = 2"), "13:15", "allowed: 0.000001 to 1"),
        (event("link = \"leaf0->spine1\"\naction = \"flap\"\nperiod_us = 5\ndown_us = 5"), "14:11", "allowed: less"),
        (event("link = \"leaf0->spine1\"\nat_us = 5\nuntil_us = 5\naction = \"down\""), "13:12", "later times"),
        (
            event("link = \"leaf*->h9\"\naction = \"down\""),
            "11:8",
            "no link `leaf*->h9` (did you mean `leaf1->h7`?); allowed: h0->leaf0",
        ),
        (
            event("link = \"spine1\"\naction = \"down\""),
            "11:8",
            "no link `spine1` (it is a node: `node = \"spine1\"`); allowed: ",
        ),
        (
            event("node = \"leaf0->spine1\"\naction = \"down\""),
            "11:8",
            "no node `leaf0->spine1` (it is a link: `link = \"leaf0->spine1\"`); allowed: leaf0, leaf1",
        ),
        (event("node = \"core*\"\naction = \"down\""), "11:8", "no node `core*`; allowed: leaf0, leaf1, spine0"),
        (event("node = \"leaf0\"\nlink = \"leaf0->h0\"\naction = \"down\""), "11:8", "`link` and `node`; allowed: one"),
        (event("action = \"down\""), "11:10", "needs `link` or `node`; allowed: one of the two"),
        (failure("share = 0.1\naction = \"down\""), "10:1", "needs `what`, `link` or `node`; allowed: one of them"),
        (failure("what = \"agg\"\nnode = \"spine*\"\nshare = 0.1\naction = \"down\""), "11:8", "allowed: one of them"),
        (failure("link = \"leaf*-core*\"\nshare = 0.1\naction = \"down\""), "11:8", "no link `leaf*-core*`; allowed: "),
        (failure("node = \"leaf*\"\nshare = 1\naction = \"down\""), "11:8", "2 of 2 leaf* are to fail, but only 0"),
        (failure("what = \"links\"\naction = \"down\""), "11:8", "needs `share` or `probability`; allowed: one of"),
        (failure("what = \"links\"\nshare = 0.1\nprobability = 0.1\naction = \"down\""), "11:8", "one of the two"),
        (failure("what = \"cables\"\nshare = 0.1\naction = \"down\""), "11:8", "\"links\", \"tor-agg\", "),
        (
            failure("what = \"core\"\nshare = 0.1\naction = \"down\""),
            "11:8",
            "the fabric has no cores; allowed: \"links\"",
        ),
        (
            failure("what = \"agg\"\nshare = 1\naction = \"silent-drop\""),
            "11:8",
            "only 3 working ones can without disconnecting hosts",
        ),
        (failure("what = \"agg\"\nshare = 0\naction = \"down\""), "12:9", "`share` is 0; allowed: "),
        (failure("what = \"agg\"\nshare = 0.2\naction = \"rate\""), "10:1", "missing field `factor`"),
        (
            failure("what = \"agg\"\nshare = 0.2\naction = \"down\"\nfactor = 0.5"),
            "14:1",
            "does not apply to action `down`",
        ),
        (failure("what = \"agg\"\nshare = 0.2\naction = \"down\"\nat_us = 3\nuntil_us = 2"), "15:12", "later times"),
        (format!("{MINIMAL}[routing]\nconvergence_us = \"soon\""), "11:18", "allowed: 0 to 3600000000, or \"never\""),
        (format!("{MINIMAL}[routing]\nconvergence_us = -1"), "11:18", "allowed: 0 to 3600000000, or \"never\""),
        (format!("{MINIMAL}[emulation]\ndilation = \"fast\""), "11:12", "allowed: \"auto\", or 1 to 1000000"),
        (format!("{MINIMAL}[emulation]\nchassis = \"box\""), "11:11", "allowed: \"fabric\", \"per-switch\""),
        (
            format!("{MINIMAL}staart_us = 1"),
            "10:1",
            "(did you mean `start_us`?); allowed: kind, name, hosts, draw_hosts, balancer, cc, dscp, payload, part, bytes, start_us",
        ),
        (format!("{MINIMAL}flow = []"), "10:1", "does not apply to kind `cross-leaf-permutation`"),
        (format!("x = 1\n{MINIMAL}"), "1:1", "unknown field `x` at the top level; allowed: name, "),
        (format!("{MINIMAL}[simulation]\nfct_end = \"sent\""), "11:11", "allowed: \"received\", \"acked\""),
        (format!("{MINIMAL}[simulation]\ndead_cables_percent = 100"), "11:23", "or 0.001 to 99.999"),
        (format!("{MINIMAL}[simulation]\nfailures = \"nowhere\""), "11:12", "`dir/nowhere` cannot be read"),
        (format!("{MINIMAL}[simulation]\nfailures = \"x\"\ndead_cables_percent = 1"), "11:12", "one of the two"),
    ];
    for (text, at, message) in cases {
        let error = parse(&text).expect_err(&text);
        let shown = error.to_string();
        assert!(shown.starts_with(&format!("dir/small.toml:{at}: ")), "{text}\n{shown}");
        assert!(shown.contains(message), "{text}\n{shown}");
        assert!(shown.contains("allowed: "), "{shown}");
    }
}

#[test]
fn settings_of_schemes_are_in_tables_of_their_names() {
    let set = |rest: &str| {
        let scenario = parse(&format!("{MINIMAL}[transport]\n{rest}\n")).unwrap();
        scenario.transport.cc_schemes.fixed_window.window_bytes.map(|bytes| bytes.bytes())
    };
    assert_eq!(set("fixed-window.window_bytes = 2_500_000"), Some(2_500_000));
    assert_eq!(set("cc = \"fixed-window\"\nfixed-window.window_bytes = \"2.5 MB\""), Some(2_500_000));
    assert_eq!(set("[transport.fixed-window]\nwindow_bytes = 0x10000"), Some(65_536));
    assert_eq!(set("[transport.fixed-window]\nwindow_bytes = \"auto\""), None);
}

#[test]
fn conweave_waits_longer_with_more_tiers() {
    //= docs/specs/conweave.md#CWV-18 settings
    let tree = "name = \"x\"\n[topology]\nkind = \"fat-tree\"\npods = 2\ntors_per_pod = 2\naggs_per_pod = 2\ncores = 2\n\
                hosts_per_tor = 2\n[workload]\nkind = \"permutation\"\nbytes = 1\n";
    let waits = |text: &str, rest: &str| {
        let conweave = parse(&format!("{text}{rest}\n")).unwrap().network.switching.conweave;
        [conweave.inactive_ps, conweave.resume_extra_ps, conweave.resume_default_ps].map(|ps| ps / 1_000_000)
    };
    assert_eq!(waits(MINIMAL, ""), [300, 16, 200]);
    assert_eq!(waits(MINIMAL, "[queue]\npfc = true"), [300, 16, 200]);
    assert_eq!(waits(tree, ""), [1_000, 16, 300]);
    assert_eq!(waits(tree, "[queue]\npfc = true"), [1_000, 64, 600]);
    assert_eq!(waits(tree, "[switch.conweave]\ninactive_us = 50\nresume_default_us = 7"), [50, 16, 7]);
    let all = "[switch.conweave]\nreply_extra_us = 1\npath_busy_us = 2\nqueues = 3\nreorder_buffer = \"1 kB\"";
    let conweave = parse(&format!("{MINIMAL}{all}\n")).unwrap().network.switching.conweave;
    assert_eq!((conweave.reply_extra_ps, conweave.path_busy_ps), (1_000_000, 2_000_000));
    assert_eq!((conweave.queues, conweave.held_bytes), (3, 1_000));
}

#[test]
fn assignments_support_everything_that_a_file_supports() {
    let read = |assignments: &[&str]| {
        let mut document = Document::parse(Path::new("dir/small.toml"), MINIMAL).unwrap();
        assignments.iter().try_for_each(|assignment| set(&mut document, assignment))?;
        Scenario::read(&document)
    };
    let scenario = read(&[
        "topology.spines=2",
        "workload.bytes=2 kB",
        "transport.balancer=[\"ops\", \"reps\"]",
        "transport.reps.buffer=4",
        "queue.limit=100 packets",
        "link_event.0={link = \"leaf0->spine1\", action = \"silent-drop\"}",
        "link_event.0.at_us=5",
        "simulation.fct_end=acked",
    ])
    .unwrap();
    assert_eq!(scenario.network.switches.len(), 4);
    assert_eq!((scenario.flows(1)[0].bytes, scenario.queue.limit), (2_000, QueueLength::Packets(100.0)));
    assert_eq!((scenario.transport.balancer.len(), scenario.transport.schemes.reps.buffer), (2, 4));
    assert_eq!((scenario.link_events[0].at_ps, scenario.condition.as_str()), (5_000_000, "leaf0->spine1 silent-drop"));
    for (assignment, message) in [
        ("transport.reps.buffer=9", "`buffer` is 9; allowed: a whole number from 1 to 8"),
        (
            "link_event.+={link = \"leaf0->spine9\", action = \"down\"}",
            "there is no link `leaf0->spine9` (did you mean `leaf0->spine3`?); allowed: ",
        ),
        (
            "link_event.+={link = \"leaf0\", action = \"down\"}",
            "there is no link `leaf0` (it is a node: `node = \"leaf0\"`); ",
        ),
        ("topology.leaves=1", "more than half"),
        ("topology={kind = \"file\", file = \"x.topo\"}", "`x.topo` cannot be read"),
        ("transport.window_packets=1000", "powers of two"),
    ] {
        let shown = read(&[assignment]).unwrap_err().to_string();
        assert!(shown.contains(message), "{assignment}\n{shown}");
        assert!(
            shown.starts_with(&format!("--set {assignment}: ")) || assignment.starts_with("topology.leaves"),
            "{shown}"
        );
    }
}

#[test]
fn a_condition_with_other_events_has_another_description() {
    let text = format!("condition = \"fine\"\n{MINIMAL}");
    let mut document = Document::parse(Path::new("dir/small.toml"), &text).unwrap();
    assert_eq!(Scenario::read(&document).unwrap().condition, "fine");
    set(&mut document, "simulation.dead_cables_percent=10").unwrap();
    assert_eq!(Scenario::read(&document).unwrap().condition, "10 % of cables dead");
    set(&mut document, "condition=bad").unwrap();
    assert_eq!(Scenario::read(&document).unwrap().condition, "bad");
}

#[test]
fn routing_converges_as_configured() {
    //= docs/specs/switching.md#SWC-22 routing converges after G
    let convergence = |rest: &str| {
        let scenario = parse(&format!("{MINIMAL}{rest}")).unwrap();
        let drawn = scenario.drawn_failures(3, 1_000_000_000).unwrap();
        match scenario.link_events.iter().chain(&drawn).next().unwrap().action {
            LinkAction::Down { convergence_ps } => convergence_ps,
            other => panic!("{other:?}"),
        }
    };
    let (event, failure) = (
        "[[link_event]]\nlink = \"leaf0-spine1\"\naction = \"down\"\n",
        "[[failure]]\nwhat = \"links\"\nshare = 0.1\naction = \"down\"\n",
    );
    for down in [event, failure] {
        assert_eq!(convergence(down), 50_000_000);
        assert_eq!(convergence(&format!("[routing]\nconvergence_us = 0\n{down}")), 0);
        assert_eq!(convergence(&format!("[routing]\nconvergence_us = 7.5\n{down}")), 7_500_000);
        assert_eq!(convergence(&format!("[routing]\nconvergence_us = \"never\"\n{down}")), u64::MAX);
    }
    assert_eq!(convergence(&format!("[routing]\nconvergence_us = \"never\"\n{event}convergence_us = 2\n")), 2_000_000);
}

#[test]
fn failures_are_drawn_from_the_seed_of_the_run() {
    //= docs/specs/switching.md#SWC-20 selection of failures
    let text = format!("{MINIMAL}[[failure]]\nwhat = \"links\"\nshare = 0.2\naction = \"rate\"\nfactor = 0.1\n");
    let scenario = parse(&text).unwrap();
    assert_eq!(scenario.condition, "20 % of links at 10 % rate");
    let names = |seed| -> Vec<String> {
        scenario.drawn_failures(seed, 1_000_000).unwrap().into_iter().map(|event| event.name).collect()
    };
    assert_eq!(names(1), names(1));
    assert!((2..20).any(|seed| names(seed) != names(1)));
}

#[test]
fn defaults_are_within_their_own_ranges() {
    let read = |settings: &serde_json::Value| -> Transport {
        let mut document = Document::parse(Path::new("defaults"), "").unwrap();
        for (name, value) in settings.as_object().unwrap() {
            let tables =
                value.as_object().map(|table| table.iter().map(|(key, value)| (format!("{name}.{key}"), value)));
            let one = value.as_object().is_none().then(|| (name.clone(), value));
            for (path, value) in tables.into_iter().flatten().chain(one).filter(|(_, value)| !value.is_null()) {
                set(&mut document, &format!("transport.{path}={value}")).unwrap();
            }
        }
        Transport::read(&document).unwrap()
    };
    let defaults = Transport::default();
    assert_eq!(read(&serde_json::to_value(&defaults).unwrap()), defaults);
}

#[test]
fn a_link_that_changes_too_often_is_named() {
    let event = "[[link_event]]\nlink = \"leaf0-spine1\"\naction = \"silent-drop\"\n";
    let events = (0..9).map(|n| format!("{event}at_us = {}\nuntil_us = {}\n", 20 * n + 1, 20 * n + 11));
    let error = parse(&format!("{MINIMAL}{}", events.collect::<String>())).unwrap_err();
    assert!(error.message.contains("allowed: at most"), "{error}");
}

#[test]
fn loss_recovery_is_as_configured() {
    use spray_core::loss::{IrnConfig, ReceiverConfig, SackRule};
    let with = |lines: &str| parse(&format!("{MINIMAL}[transport]\n{lines}"));
    let scenario = with("sack_gap_packets = 32\nsack_rule = \"plain\"\nerasure = true").unwrap();
    let config = scenario.flow_config(&scenario.paths(), BalancerKind::Ops, Overrides::default(), [0, 4], 0);
    assert_eq!((config.sack_gap_packets, config.sack_rule), (Some(32), SackRule::Plain));
    assert!(scenario.transport.erasure);
    let message = with("sack_rule = \"rack\"").unwrap_err().to_string();
    assert!(message.contains("\"patient\", \"plain\""), "{message}");
    let scenario = with("receiver = \"irn\"\n[transport.irn]\nnacks = 3\n").unwrap();
    let config = scenario.flow_config(&scenario.paths(), BalancerKind::Ops, Overrides::default(), [0, 4], 0);
    assert_eq!(config.receiver, ReceiverConfig::Irn(IrnConfig { nacks: 3, ..IrnConfig::default() }));
    let message = with("receiver = \"go-back-n\"\nerasure = true").unwrap_err().to_string();
    assert!(message.contains("allowed: `receiver = \"selective\"`"), "{message}");
}

#[test]
fn conditions_are_described() {
    let condition = |events: &str| parse(&format!("{MINIMAL}{events}")).unwrap().condition;
    let rate = "[[link_event]]\nlink = \"leaf0->spine0\"\naction = \"rate\"\nfactor = 0.5\n";
    assert_eq!(condition(rate), "leaf0->spine0 at 50 % rate");
    assert_eq!(condition(&rate.replace("0.5", "\"50%\"")), condition(rate));
    assert_eq!(
        condition(&format!("{rate}[[link_event]]\nlink = \"leaf0-spine1\"\naction = \"down\"\n")),
        "leaf0->spine0 at 50 % rate and 1 more"
    );
}

#[test]
fn every_example_parses_and_its_fabric_compiles() {
    let mut examples = 0;
    for entry in std::fs::read_dir(root().join("tests/scenarios")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{error}"));
            let (paths, plan) = (scenario.paths(), scenario.plan(scenario.seed));
            assert!(!plan.flows.is_empty());
            assert!(scenario.time_limit_ps(&paths, &plan) > scenario.ideal_ps(&paths, &plan.flows), "{path:?}");
            assert_eq!(path.file_stem().unwrap().to_str(), Some(scenario.name.as_str()));
            examples += 1;
        }
    }
    assert!(examples >= 9, "{examples} examples");
}

#[test]
fn the_examples_of_the_documentation_parse() {
    let doc = std::fs::read_to_string(root().join("docs/scenario.md")).unwrap();
    let blocks: Vec<_> = doc.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 3);
    for block in blocks {
        // A block without a name shows one table, which replaces that of the minimal scenario.
        let whole = if block.contains("name = ") { block.to_string() } else { merge(block) };
        // The path is in the folder of the examples, because blocks may name files of it.
        let file = root().join("tests/scenarios/from-the-documentation.toml");
        Scenario::parse(&file, &whole).unwrap_or_else(|error| panic!("{error}\n{whole}"));
    }
}

#[test]
fn documents_show_the_current_content_of_files() {
    for (page, file) in [("tutorial", "flapping"), ("deployment", "pod")] {
        let page = std::fs::read_to_string(root().join(format!("docs/{page}.md"))).unwrap();
        let file = std::fs::read_to_string(root().join(format!("tests/scenarios/{file}.toml"))).unwrap();
        let body = &file[file.find("name = ").unwrap()..];
        assert!(page.contains(&format!("```toml\n{body}```")), "{body}");
    }
}

fn merge(block: &str) -> String {
    let mut tables: Vec<_> = MINIMAL.split_inclusive('\n').collect();
    for header in ["[topology]", "[workload]"] {
        if block.contains(header) {
            let start = tables.iter().position(|line| line.trim() == header).unwrap();
            let length =
                tables[start + 1..].iter().position(|line| line.starts_with('[')).unwrap_or(tables.len() - start - 1);
            tables.drain(start..=start + length);
        }
    }
    format!("{}{block}", tables.concat())
}

#[test]
fn seeds_and_lists_give_several_runs() {
    let axes = "seeds = [\"3..5\", 9]\n";
    let text = format!("{axes}{MINIMAL}[transport]\npayload_bytes = [1000, 3000]\nevs = [32, 256, 65535]\n");
    let document = Document::parse(Path::new("s.toml"), &text).unwrap();
    let all = Scenario::read_all(&document).unwrap();
    assert_eq!(all.len(), 6);
    assert!(all.iter().all(|scenario| scenario.seeds == [3, 4, 5, 9] && scenario.seed == 3));
    assert_eq!((all[4].transport.payload_bytes, all[4].transport.evs), (3000, Some(256)));
    let axis = |path: &str, value| Axis { path: path.into(), value: AxisValue::Whole(value) };
    assert_eq!(all[4].settings.axes, [axis("transport.payload_bytes", 3000), axis("transport.evs", 256)]);
    let message = parse(&format!("seed = 1\n{axes}{MINIMAL}")).unwrap_err().to_string();
    assert!(message.contains(":2:9: `seed` and `seeds`; allowed: one of the two"), "{message}");
    let message = parse(&format!("seeds = \"9..3\"\n{MINIMAL}")).unwrap_err().to_string();
    assert!(message.contains(":1:9: `seeds` is \"9..3\"; allowed: one or a list of a number, or a range"), "{message}");
    assert!(message.contains("the smaller end first"), "{message}");
    let mut document = Document::parse(Path::new("s.toml"), &format!("seed = 1\n{MINIMAL}")).unwrap();
    set(&mut document, "seeds=[4, \"6..7\"]").unwrap();
    assert_eq!(Scenario::read(&document).unwrap().seeds, [4, 6, 7], "the command line replaces the file's seed");
}

/// The scenario written with a run's results reproduces the run, in any folder.
#[test]
fn the_written_scenario_of_a_run_reproduces_it() {
    for entry in std::fs::read_dir(root().join("tests/scenarios")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let scenario = Scenario::load(&path).unwrap();
            let balancer = scenario.transport.balancer[0];
            let text = scenario.settings.toml(balancer, 77);
            let again = Scenario::parse(Path::new("elsewhere/scenario.toml"), &text);
            let again = again.unwrap_or_else(|error| panic!("{}: {error}\n{text}", path.display()));
            assert_eq!((again.seed, again.transport.balancer.as_slice()), (77, &[balancer][..]));
            let bare = |scenario: &Scenario| {
                let place = String::new();
                let mut bare = Scenario { seed: 0, seeds: Vec::new(), workload_place: place, ..scenario.clone() };
                (bare.transport.balancer, bare.settings) = (Vec::new(), EffectiveSettings::default());
                if let Some(failures) = &mut bare.failures {
                    failures.places.clear();
                    failures.source = failures.source.canonicalize().unwrap_or_default();
                }
                bare
            };
            assert!(bare(&again) == bare(&scenario), "{}\n{text}", path.display());
        }
    }
}

#[test]
fn a_written_scenario_has_the_condition_of_its_run() {
    let mut document = Document::parse(Path::new("s.toml"), &format!("condition = \"quiet\"\n{MINIMAL}")).unwrap();
    let event = "link_event.+={link = \"leaf0->spine0\", action = \"rate\", factor = 0.5}";
    set(&mut document, event).unwrap();
    let scenario = Scenario::read(&document).unwrap();
    let again = parse(&scenario.settings.toml(BalancerKind::Ops, 1)).unwrap();
    assert_eq!(again.condition, "leaf0->spine0 at 50 % rate");
    assert_eq!(again.condition, scenario.condition);
}

#[test]
fn a_run_is_determined_by_its_settings_and_files() {
    let folder = spray_test_support::Folder::new();
    let matrix = "Nodes 8\nConnections 1\n0->4 id 1 start 0 size 200000\n";
    let file = folder.file("f.cm", matrix);
    let text = MINIMAL.split("[workload]").next().unwrap();
    let hash = |lines: &str, seed| {
        let text = format!("{text}[workload]\nkind = \"matrix\"\nfile = \"{file}\"\n{lines}");
        let scenario = parse(&text).unwrap();
        let hash = scenario.settings.hash(scenario.transport.balancer[0], seed, &mut HashMap::new()).unwrap();
        format!("{:x}", sha2::Digest::finalize(hash))
    };
    let plain = hash("", 1);
    assert_eq!(plain, hash("[transport]\npayload_bytes = 3000\n", 1), "the default, explicitly");
    assert_eq!(plain, hash("[transport]\nbalancer = [\"reps-plus\", \"ops\"]\n", 1), "the same run of a larger plan");
    assert_ne!(plain, hash("", 2));
    assert_ne!(plain, hash("[transport]\npayload_bytes = 3001\n", 1));
    assert_ne!(plain, hash("[transport]\nbalancer = \"ops\"\n", 1));
    let _ = folder.file("f.cm", matrix.replace("200000", "200001"));
    assert_ne!(plain, hash("", 1), "another file of the same name");
}

#[test]
fn failures_are_selected_by_pattern() {
    let events = |rest: &str| parse(&format!("{MINIMAL}{rest}")).unwrap().link_events;
    let names = |event: &LinkEvent| {
        let network = parse(MINIMAL).unwrap().network;
        event.links.iter().map(|link| network.links[*link].name.clone()).collect::<Vec<_>>()
    };
    let both = events(
        "[[link_event]]\nnode = \"spine1\"\nat_us = 100\nuntil_us = 300\naction = \"down\"\n\
         [[link_event]]\nlink = \"leaf*->spine2\"\naction = \"rate\"\nfactor = 0.5\n\
         [[link_event]]\nlink = \"h0-leaf0\"\naction = \"silent-drop\"\n",
    );
    assert_eq!(names(&both[0]), ["leaf0->spine1", "spine1->leaf0", "leaf1->spine1", "spine1->leaf1"]);
    assert_eq!((both[0].name.as_str(), both[0].until_ps), ("spine1", Some(300_000_000)));
    assert_eq!(names(&both[1]), ["leaf0->spine2", "leaf1->spine2"]);
    assert_eq!(names(&both[2]), ["h0->leaf0", "leaf0->h0"]);
    let epochs = spray_fabric::epoch_starts(&both);
    assert_eq!(epochs.len(), 3, "all links of a switch converge as one change");
}

#[test]
fn a_failure_with_a_seed_is_the_same_in_all_runs() {
    let drawn = |seed: u64, own: &str| {
        let text = format!("{MINIMAL}[[failure]]\nlink = \"leaf*->spine*\"\nshare = 0.3\naction = \"down\"\n{own}");
        let events = parse(&text).unwrap().drawn_failures(seed, u64::MAX).unwrap();
        events.into_iter().map(|event| event.name).collect::<Vec<_>>()
    };
    assert!((1..9).all(|seed| drawn(seed, "seed = 3") == drawn(3, "")));
    assert!((1..9).any(|seed| drawn(seed, "") != drawn(3, "")));
}

/// Root can read any file, so the content of a file is quoted only if all users may read it.
#[test]
fn named_files_are_quoted_only_if_all_users_may_read_them() {
    use std::os::unix::fs::PermissionsExt;
    let folder = spray_test_support::Folder::new();
    let (file, secret) = (folder.path().join("secret"), "root:$6$hash:19000");
    std::fs::write(&file, format!("{secret}\n")).unwrap();
    let scenario = format!("name = \"x\"\n[topology]\nkind = \"file\"\nfile = \"{}\"\n", file.display());
    let scenario = format!("{scenario}[workload]\nkind = \"permutation\"\nbytes = 1000\n");
    for (mode, is_quoted) in [(0o644, true), (0o600, !spray_test_support::has_root())] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let document = Document::parse(std::path::Path::new("x.toml"), &scenario).unwrap();
        let error = Scenario::read(&document).unwrap_err().to_string();
        assert!(error.contains("secret:1:1: ") && error.contains(secret) == is_quoted, "{mode:o}: {error}");
    }
}

#[test]
fn a_scenario_without_an_end_is_rejected() {
    let error = Document::load(std::path::Path::new("/dev/zero")).unwrap_err().to_string();
    assert!(error.contains("it is larger than 4194304 bytes"), "{error}");
}
