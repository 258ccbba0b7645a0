use std::path::{Path, PathBuf};

use super::*;

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

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse(Path::new("dir/small.toml"), text)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_least_scenario_gets_the_papers_defaults() {
    let scenario = parse(MINIMAL).unwrap();
    assert_eq!((scenario.seed, scenario.condition.as_str()), (1, "healthy"));
    assert_eq!(scenario.transport, Transport::default());
    // 8 links of 1 us, 4 times 3114 bytes and 4 times an ACK at 100 Gb/s.
    let rtt = 8_000_000 + 4 * 3_114 * 80 + 4 * 142 * 80;
    assert_eq!(scenario.base_rtt_ps(), rtt);
    let queue = scenario.queue_config(100_000_000_000);
    let bdp = (rtt / 80) as u32;
    assert_eq!((queue.limit_bytes, queue.mark_min_bytes, queue.mark_max_bytes), (bdp, bdp / 5, bdp / 5 * 4 + 3));
    let config = scenario.flow_config(&scenario.paths(), BalancerKind::Reps, 0, 4);
    assert_eq!((config.path.evs, config.path.base_rtt_ps, config.path.trimming), (65_535, rtt, true));
    assert_eq!(config.cc.max_window_bytes, u64::from(bdp) + u64::from(bdp) / 2);
    let near = scenario.flow_config(&scenario.paths(), BalancerKind::Reps, 0, 1);
    assert_eq!(near.cc.base_rtt_ps, 4_000_000 + 2 * (3_114 + 142) * 80);
}

#[test]
fn the_reference_fabric_has_the_reference_round_trip() {
    let text = MINIMAL.replace("hosts_per_leaf = 4", "hosts_per_leaf = 4\nhost_gbps = 400");
    let mut scenario = parse(&text).unwrap();
    scenario.transport.payload_bytes = 4_150 - scenario.header_bytes();
    let acks = 4 * (142 - 64) * 20;
    assert_eq!((scenario.base_rtt_ps() - acks) / 1000, 8_337, "8.337 us with 64-byte ACKs");
}

#[test]
fn every_mistake_says_where_and_what_is_allowed() {
    let event = |rest: &str| format!("{MINIMAL}[[link_event]]\n{rest}\n");
    let transport = |rest: &str| format!("{MINIMAL}[transport]\n{rest}\n");
    let params = |rest: &str| format!("{MINIMAL}[transport.params]\nfixed-window.{rest}\n");
    let queue = |rest: &str| format!("{MINIMAL}[queue]\n{rest}\n");
    let tree = |rest: &str| {
        let counts = "kind = \"fat-tree\"\npods = 2\ntors_per_pod = 2\naggs_per_pod = 2\nhosts_per_tor = 2\n";
        format!("name = \"t\"\n[topology]\n{counts}{rest}\n")
    };
    let cases = [
        (
            MINIMAL.replace("leaves = 2", "leafs = 2"),
            "4:1",
            "unknown field `leafs` in [topology]; allowed: kind, leaves,",
        ),
        (MINIMAL.replace("leaves = 2", ""), "2:1", "needs `leaves`; allowed: whole, 1 to 1024"),
        (MINIMAL.replace("leaves = 2", "leaves = 0"), "4:10", "`leaves` is 0; allowed: whole, 1 to 1024"),
        (MINIMAL.replace("leaves = 2", "leaves = \"two\""), "4:10", "is \"two\"; allowed: whole"),
        (MINIMAL.replace("leaves = 2", "leaves = "), "4:10", "allowed: TOML"),
        (
            MINIMAL.replace("\"leaf-spine\"", "\"ring\""),
            "3:8",
            "allowed: \"leaf-spine\", \"fat-tree\", \"dragonfly\", \"graph\", \"file\"",
        ),
        (
            MINIMAL.replace("leaves = 2", "leaves = 2\nfile = \"x\""),
            "5:1",
            "`file` does not go with kind `leaf-spine`; allowed: kind,",
        ),
        (MINIMAL.replace("leaves = 2", "leaves = 1"), "8:8", "more than half"),
        (tree("cores = 5"), "8:9", "multiples of `aggs_per_pod`, here 2"),
        (tree("cores = 4\nleaves = 2"), "9:1", "does not go with kind `fat-tree`"),
        (tree(""), "2:1", "needs `cores`"),
        (
            "name = \"d\"\n[topology]\nkind = \"dragonfly\"\ngroups = 6\nrouters_per_group = 4\nhosts_per_router = 1\n\
             global_cables = 1\n"
                .into(),
            "7:17",
            "allowed: multiples of 5",
        ),
        (MINIMAL.replace("1 MiB", "1 mib"), "9:9", "is \"1 mib\"; allowed: 1 to"),
        (MINIMAL.replace("bytes = \"1 MiB\"", ""), "7:1", "needs `bytes`"),
        (MINIMAL.replace("\"small\"", "\"../small\""), "1:8", "`name` is `../small`; allowed: letters"),
        (transport("balancer = \"rpes\""), "11:12", "unknown balancer `rpes`; allowed: one or a list of \"ecmp\", "),
        (transport("balancer = [\"ecmp\", \"x\"]"), "11:21", "unknown balancer `x`"),
        (transport("balancer = []"), "11:12", "allowed: one or a list"),
        (transport("cc = \"bbr\""), "11:6", "allowed: \"dctcp\", "),
        (transport("ip = 5"), "11:6", "allowed: \"4\", \"6\""),
        (transport("ip = 6\npayload_bytes = 3390"), "12:17", "at most 3378 here"),
        (transport("params = 3"), "11:10", "`params` is 3; allowed: a table"),
        (transport("params.plain.x = 1"), "11:14", "`plain` has no parameters; allowed: "),
        (transport("params.window_bytes = 1"), "11:8", "; allowed: "),
        (params("x = 1"), "11:14", "`fixed-window.x`: no such parameter; allowed: window_bytes"),
        (params("window_bytes = 0"), "11:29", "`fixed-window.window_bytes` is 0; allowed: 1 to"),
        (params("window_bytes = 1.5"), "11:29", "is 1.5; allowed: 1 to"),
        (params("window_bytes = -1"), "11:29", "is -1; allowed: 1 to"),
        (params("window_bytes = \"2 mb\""), "11:29", "is 2 mb; allowed: 1 to"),
        (params("window_bytes = true"), "11:29", "is true; allowed: 1 to"),
        (params("window_bytes = [1]"), "11:29", "is a list or a table; allowed: a number, true, false, or text"),
        (params("window_bytes.x = 1"), "11:14", "is a list or a table; allowed: a number"),
        (transport("window_packets = 1000"), "11:18", "powers of two"),
        (transport("rto_min_us = 50\nrto_max_us = 40"), "12:14", "not below"),
        (queue("limit = \"20 %\""), "11:9", "percentage of itself"),
        (queue("limit = \"4 GiB\""), "11:9", "4 GiB or more"),
        (queue("limit = \"2000000 packets\""), "11:9", "4 GiB or more"),
        (queue("mark_min = \"90 %\""), "10:1", "allowed: ascending"),
        (queue("trimming = 1"), "11:12", "allowed: true, false"),
        (event("link = \"leaf0->spine9\"\naction = \"down\""), "11:8", "allowed: leaf0->h0, leaf0->h1"),
        (event("link = \"leaf0->spine1\"\naction = \"explode\""), "12:10", "allowed: \"down\", \"silent-drop\""),
        (event("link = \"leaf0->spine1\"\naction = \"rate\""), "10:1", "needs `factor`; allowed: 0.001 to 0.999"),
        (event("link = \"leaf0->spine1\"\naction = \"down\"\nfactor = 0.5"), "13:1", "does not go with action `down`"),
        (event("link = \"leaf0->spine1\"\naction = \"loss\"\nprobability = 2"), "13:15", "allowed: 0.000001 to 1"),
        (event("link = \"leaf0->spine1\"\naction = \"flap\"\nperiod_us = 5\ndown_us = 5"), "14:11", "allowed: less"),
        (event("link = \"leaf0->spine1\"\nat_us = 5\nuntil_us = 5\naction = \"down\""), "13:12", "later times"),
        (event("link = \"h0->leaf0\"\naction = \"down\""), "11:8", "leaves a host; allowed: links that leave a switch"),
        (format!("{MINIMAL}[emulation]\ndilation = \"fast\""), "11:12", "allowed: \"auto\", or 1 to 1000000"),
        (format!("{MINIMAL}[emulation]\nchassis = \"box\""), "11:11", "allowed: \"fabric\", \"per-switch\""),
        (format!("{MINIMAL}flow = []"), "10:1", "does not go with kind `cross-leaf-permutation`"),
        (format!("x = 1\n{MINIMAL}"), "1:1", "unknown field `x` in Top level"),
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
fn parameters_of_schemes_are_set_in_either_form() {
    let set = |rest: &str| {
        parse(&format!("{MINIMAL}[transport]\n{rest}\n")).unwrap().transport.cc_schemes.fixed_window.window_bytes
    };
    assert_eq!(set("params.fixed-window.window_bytes = 2_500_000"), 2_500_000);
    assert_eq!(set("cc = \"fixed-window\"\nparams.window_bytes = \"2.5 MB\""), 2_500_000);
    assert_eq!(set("[transport.params]\nfixed-window.window_bytes = 0x10"), 16);
    assert_eq!(set("[transport.params.fixed-window]\nwindow_bytes = \"auto\""), spray_core::params::AUTO);
}

#[test]
fn every_parameter_takes_its_own_default_and_bounds() {
    for (scheme, params) in all_params() {
        assert!(!params.is_empty(), "{scheme} has a table without parameters");
        for param in params {
            for value in [param.default, param.min, param.max] {
                let text = spray_core::params::Shown(param, value).to_string();
                let quoted = if text.parse::<f64>().is_ok() { text } else { format!("\"{text}\"") };
                let quoted =
                    if matches!(quoted.as_str(), "\"true\"" | "\"false\"") { quoted.replace('"', "") } else { quoted };
                let text = format!("{MINIMAL}[transport.params]\n{scheme}.{} = {quoted}\n", param.name);
                parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            }
        }
    }
}

#[test]
fn a_link_that_changes_too_often_is_named() {
    let event = "[[link_event]]\nlink = \"leaf0-spine1\"\naction = \"silent-drop\"\n";
    let events = (0..9).map(|n| format!("{event}at_us = {}\nuntil_us = {}\n", 20 * n + 1, 20 * n + 11));
    let error = parse(&format!("{MINIMAL}{}", events.collect::<String>())).unwrap_err();
    assert!(error.message.contains("allowed: at most"), "{error}");
}

#[test]
fn loss_recovery_is_as_asked_for() {
    use spray_core::loss::SackRule;
    let with = |lines: &str| parse(&format!("{MINIMAL}[transport]\n{lines}"));
    let scenario = with("sack_gap_packets = 32\nsack_rule = \"plain\"\nerasure = true").unwrap();
    let config = scenario.flow_config(&scenario.paths(), BalancerKind::Ops, 0, 4);
    assert_eq!((config.sack_gap_packets, config.sack_rule, config.erasure), (Some(32), SackRule::Plain, true));
    let message = with("sack_rule = \"rack\"").unwrap_err().to_string();
    assert!(message.contains("\"patient\", \"plain\""), "{message}");
}

#[test]
fn conditions_are_described() {
    let condition = |events: &str| parse(&format!("{MINIMAL}{events}")).unwrap().condition;
    let rate = "[[link_event]]\nlink = \"leaf0->spine0\"\naction = \"rate\"\nfactor = 0.5\n";
    assert_eq!(condition(rate), "leaf0->spine0 at 50 % rate");
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
            let flows = scenario.flows(scenario.seed);
            assert!(!flows.is_empty() && scenario.time_limit_ps(&flows) > scenario.ideal_ps(&flows), "{path:?}");
            assert_eq!(path.file_stem().unwrap().to_str(), Some(scenario.name.as_str()));
            examples += 1;
        }
    }
    assert!(examples >= 9, "{examples} examples");
}

#[test]
fn the_documentation_lists_every_field_and_its_examples_parse() {
    let path = root().join("docs/scenario.md");
    let mut doc = std::fs::read_to_string(&path).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        doc = with_tables(&doc);
        std::fs::write(&path, &doc).unwrap();
    }
    for section in fields::SECTIONS {
        let table = fields::markdown(section);
        assert!(
            doc.contains(&table),
            "docs/scenario.md is behind switch-emu/experiments/src/scenario/fields.rs (UPDATE_DOCS=1 rewrites its tables); it should hold:\n{table}"
        );
    }
    let table = params_markdown();
    assert!(
        doc.contains(&table),
        "docs/scenario.md is behind the parameters of schemes (UPDATE_DOCS=1); it should hold:\n{table}"
    );
    let blocks: Vec<_> = doc.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 3);
    for block in blocks {
        // A block without a name shows one table: it goes into the least scenario, in place of its own.
        let whole = if block.contains("name = ") { block.to_string() } else { merge(block) };
        // As if in the folder of the examples, whose files it may name.
        let file = root().join("tests/scenarios/from-the-documentation.toml");
        Scenario::parse(&file, &whole).unwrap_or_else(|error| panic!("{error}\n{whole}"));
    }
}

/// `doc` with every table of fields as it should be.
fn with_tables(doc: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut lines = doc.lines().peekable();
    while let Some(line) = lines.next() {
        let section =
            fields::SECTIONS.iter().find(|section| line.starts_with(&format!("| {} field |", section.header)));
        let table = match section {
            Some(section) => fields::markdown(section),
            None if line == PARAMS_HEAD => params_markdown(),
            None => {
                out.push(line.into());
                continue;
            }
        };
        while lines.next_if(|line| line.starts_with('|')).is_some() {}
        out.extend(table.lines().map(String::from));
    }
    out.join("\n") + "\n"
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
