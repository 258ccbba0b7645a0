use std::path::Path;

use spray_core::cc::CcKind;
use spray_core::path::BalancerKind;

use super::*;
use crate::scenario::Scenario;
use crate::workload::Overrides;

fn parse(topology: &str, workload: &str) -> Result<Scenario, Error> {
    let text = format!("name = \"x\"\n[topology]\n{topology}\n[workload]\nkind = \"closed-loop\"\n{workload}\n");
    Scenario::parse(Path::new("x.toml"), &text)
}

const LEAVES: &str = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4";

#[test]
fn partner_workloads_are_read_with_their_defaults() {
    let of = |workload: &str| match parse(LEAVES, workload).unwrap().workloads.remove(0).pattern {
        Pattern::ClosedLoop(partners) => partners,
        other => panic!("{other:?}"),
    };
    let plain = Partners {
        messages: 3,
        sizes: Distribution::published(Sizes::Enterprise, MAX_MESSAGE_BYTES),
        cross_leaf: false,
        start_ps: 0,
        until_ps: None,
    };
    assert_eq!(of("messages = 3\nsizes = \"enterprise\""), plain);
    let all = "messages = 3\nsizes = \"uniform\"\nmax_bytes = \"1 MiB\"\ncross_leaf = true\nstart_us = 1\nuntil_us = 2";
    let uniform = Partners {
        sizes: Distribution::published(Sizes::Uniform, 1 << 20),
        cross_leaf: true,
        start_ps: 1_000_000,
        until_ps: Some(2_000_000),
        ..plain
    };
    assert_eq!(of(all), uniform);
    for sizes in Sizes::ALL {
        let text = format!("messages = 1\nmax_bytes = 9\nsizes = \"{sizes}\"");
        assert_eq!(of(&text).sizes, Distribution::published(sizes, 9));
    }
}

#[test]
fn errors_in_partner_workloads_have_a_position_and_the_allowed_values() {
    let one_leaf = "kind = \"graph\"
hosts = [\"a\", \"b\"]
switches = [\"s\"]
link = [{a = \"a\", b = \"s\"}, {a = \"b\", b = \"s\"}]";
    let cases = [
        (LEAVES, "messages = 3", "needs `sizes`"),
        (LEAVES, "sizes = \"hadoop\"", "missing field `messages`"),
        (LEAVES, "messages = 3\nsizes = \"cache\"", "`sizes` is \"cache\"; allowed: \"auto\", or \"web-search\""),
        (LEAVES, "messages = 37501\nsizes = \"hadoop\"", "8 hosts; allowed: at most 37500"),
        (LEAVES, "messages = 3\nsizes = \"uniform\"", "`uniform` needs `max_bytes`"),
        (LEAVES, "messages = 3\nsizes = \"hadoop\"\nstart_us = 2\nuntil_us = 2", "not after `start_us`"),
        (one_leaf, "messages = 3\nsizes = \"hadoop\"\ncross_leaf = true", "one leaf"),
    ];
    for (topology, workload, expected) in cases {
        let mistake = parse(topology, workload).unwrap_err();
        assert!(mistake.message.contains(expected), "{workload}: {mistake:?}");
    }
}

/// A scenario with this text after its topology of two leaves with four hosts each.
fn with(text: &str) -> Result<Scenario, Error> {
    Scenario::parse(Path::new("x.toml"), &format!("name = \"x\"\n[topology]\n{LEAVES}\n{text}\n"))
}

#[test]
fn one_workload_or_several_are_read() {
    let one = with("[workload]\nkind = \"tornado\"\nbytes = 9").unwrap();
    assert_eq!((one.workloads.len(), one.workloads[0].name.as_str()), (1, "tornado"));
    let several = with(
        "[[workload]]\nkind = \"all-reduce\"\nbytes = \"1 MiB\"\nrounds = 2\ncompute_us = 3\ndraw_hosts = 4\ncc = \"nscc\"
[[workload]]\nname = \"old\"\nkind = \"incast\"\nsenders = 2\nreceiver = \"h0\"\nbytes = 7\nhosts = [\"h7\", \"leaf1\"]
[[workload.part]]\nname = \"new\"\nshare = 0.5\nbalancer = \"reps\"\ndscp = 18
[[workload]]\nkind = \"poisson\"\nload = 0.5\nsizes = \"hadoop\"\nuntil_us = 100",
    )
    .unwrap();
    let [reduce, incast, poisson] = &several.workloads[..] else { panic!("three") };
    let Pattern::Collective(Collective { rounds: 2, compute_ps: 3_000_000, groups: 1, persistent: true, .. }) =
        reduce.pattern
    else {
        panic!("{reduce:?}")
    };
    assert_eq!((reduce.drawn, reduce.own), (Some(4), Overrides { balancer: None, cc: Some(CcKind::Nscc), dscp: None }));
    // Named hosts precede drawn ones.
    assert_eq!(incast.hosts, Some(vec![7, 4, 5, 6]));
    assert_eq!((incast.parts[0].name.as_str(), incast.parts[0].ppm), ("new", 500_000));
    assert_eq!((incast.own.dscp, incast.parts[0].own.dscp), (None, Some(18)));
    assert!(matches!(&poisson.pattern, Pattern::Poisson(Poisson { until_ps: 100_000_000, .. })));
    assert_eq!(several.balancers(), [BalancerKind::RepsPlus, BalancerKind::Reps]);
}

#[test]
fn an_assignment_changes_a_single_workload_and_one_of_several() {
    let mut document = Document::parse(
        Path::new("x.toml"),
        &format!("name = \"x\"\n[topology]\n{LEAVES}\n[workload]\nkind = \"tornado\"\nbytes = 9"),
    )
    .unwrap();
    document.assign("workload.bytes", "10", "--set workload.bytes=10").unwrap();
    document.assign("workload.+", "{kind = \"permutation\", bytes = 5}", "--set workload.+").unwrap();
    document.assign("workload.1.bytes", "6", "--set workload.1.bytes=6").unwrap();
    let flows = Scenario::read(&document).unwrap().flows(1);
    let bytes = |class: u16| flows.iter().find(|flow| flow.class == class).unwrap().bytes;
    assert_eq!((bytes(0), bytes(1)), (10, 6));
}

#[test]
fn errors_in_workloads_have_a_position_and_the_allowed_values() {
    let reduce = |more: &str| format!("[[workload]]\nkind = \"all-reduce\"\nbytes = 80\n{more}");
    let poisson = |more: &str| format!("[workload]\nkind = \"poisson\"\nload = 0.5\n{more}");
    // The text, a part of the line at which the error is reported, and a part of the message.
    let cases = [
        (format!("{0}\n{0}", reduce("")), "[[workload]]", "two workloads are called `all-reduce`"),
        (reduce("name = \"a b\""), "name", "allowed: letters"),
        (reduce("hosts = [\"h9\"]"), "hosts", "`h9` names no host that is not named before; allowed: h0"),
        (reduce("hosts = [\"h1\", \"h1\"]"), "hosts", "`h1` names no host that is not named before"),
        (reduce("hosts = [\"h1\"]"), "hosts", "one host takes part"),
        (reduce("draw_hosts = 9"), "draw_hosts", "only 8 hosts are left to draw"),
        (
            reduce("draw_hosts = 6\n[[workload]]\nkind = \"tornado\"\nbytes = 1\ndraw_hosts = 3"),
            "draw_hosts = 3",
            "only 2 hosts are left",
        ),
        (
            reduce("\n[[workload.part]]\nname = \"a\"\nshare = 0".repeat(64).as_str()),
            "[[workload]]",
            "65 workloads and parts",
        ),
        (
            format!("{}\n{}", reduce("rounds = 2400"), reduce("name = \"b\"\nrounds = 600")),
            "[[workload]]",
            "336000 flows of all workloads; allowed: at most 300000",
        ),
        (reduce("groups = 3"), "groups", "8 hosts are in 3 groups"),
        (reduce("groups = 8"), "groups", "8 hosts are in 8 groups"),
        (reduce("algorithm = \"halving-doubling\"\ndraw_hosts = 6"), "algorithm", "a power of two"),
        (reduce("rounds = 3000"), "kind", "336000 messages; allowed: at most 300000 messages; a round has 112"),
        ("[workload]\nkind = \"all-reduce\"\nbytes = 7".into(), "bytes", "at least a byte of each"),
        ("[workload]\nkind = \"all-gather\"\nalgorithm = \"tree\"\nbytes = 80".into(), "algorithm", "`tree` sums up"),
        ("[workload]\nkind = \"fsdp\"\nmodel = \"llama-7b\"".into(), "[workload]", "8 hosts are in 8 groups"),
        (
            "[workload]\nkind = \"all-to-all\"\nbytes = 8\nconcurrent_messages = 2\nrounds = 3".into(),
            "concurrent_messages",
            "one of the two",
        ),
        (
            "[workload]\nkind = \"flows\"\ndraw_hosts = 2\nflow = [{src = \"h0\", dst = \"h1\", bytes = 1}]".into(),
            "draw_hosts",
            "names its hosts",
        ),
        (
            reduce("part = [{name = \"a\", share = 0.6}, {name = \"b\", share = 0.5}]"),
            "part",
            "come to 1.1; allowed: at most 1",
        ),
        (reduce("part = [{name = \"all-reduce\", share = 0.6}]"), "part", "two workloads are called"),
        (poisson("sizes = \"hadoop\""), "[workload]", "missing field `until_us` in [workload]"),
        (poisson("until_us = 9"), "[workload]", "needs `sizes`; allowed: web-search"),
        (poisson("sizes = \"hadoop\"\nsizes_file = \"x.csv\"\nuntil_us = 9"), "sizes_file", "one of the two"),
        (poisson("sizes_file = \"none.csv\"\nuntil_us = 9"), "sizes_file", "`none.csv` cannot be read"),
        (poisson("sizes = \"hadoop\"\nuntil_us = 1000000"), "until_us", "messages arrive; allowed: at most 300000"),
        (poisson("sizes = \"hadoop\"\nuntil_us = 0.001"), "until_us", "allowed: at least one"),
    ];
    for (text, at, expected) in cases {
        let mistake = with(&text).unwrap_err();
        assert!(mistake.message.contains(expected), "{text}: {mistake:?}");
        let line: usize = mistake.location.split(':').nth(1).unwrap().parse().unwrap();
        // The text stands behind six lines.
        assert!(text.lines().nth(line - 7).unwrap().contains(at), "{text}: {mistake:?}");
    }
}
