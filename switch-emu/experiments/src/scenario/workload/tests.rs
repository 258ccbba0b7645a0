use std::path::Path;

use super::super::Scenario;
use super::*;

fn parse(topology: &str, workload: &str) -> Result<Scenario, Mistake> {
    let text =
        format!("name = \"x\"\n[topology]\n{topology}\n[workload]\nkind = \"partner-after-partner\"\n{workload}\n");
    Scenario::parse(Path::new("x.toml"), &text)
}

const LEAVES: &str = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4";

#[test]
fn partners_are_read_with_their_defaults() {
    let of = |workload: &str| match parse(LEAVES, workload).unwrap().workloads.remove(0).pattern {
        Pattern::PartnerAfterPartner(partners) => partners,
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
        let text = format!("messages = 1\nmax_bytes = 9\nsizes = \"{}\"", sizes.name());
        assert_eq!(of(&text).sizes, Distribution::published(sizes, 9));
    }
}

#[test]
fn mistakes_about_partners_say_where_and_what_is_allowed() {
    let one_leaf = "kind = \"graph\"
hosts = [\"a\", \"b\"]
switches = [\"s\"]
link = [{a = \"a\", b = \"s\"}, {a = \"b\", b = \"s\"}]";
    let cases = [
        (LEAVES, "messages = 3", "needs `sizes`"),
        (LEAVES, "sizes = \"hadoop\"", "needs `messages`"),
        (LEAVES, "messages = 3\nsizes = \"cache\"", "`sizes` is \"cache\"; allowed: \"auto\", or \"web-search\""),
        (LEAVES, "messages = 12501\nsizes = \"hadoop\"", "8 hosts; allowed: at most 12500"),
        (LEAVES, "messages = 3\nsizes = \"uniform\"", "`uniform` needs `max_bytes`"),
        (LEAVES, "messages = 3\nsizes = \"hadoop\"\nstart_us = 2\nuntil_us = 2", "not after `start_us`"),
        (one_leaf, "messages = 3\nsizes = \"hadoop\"\ncross_leaf = true", "one leaf"),
    ];
    for (topology, workload, says) in cases {
        let mistake = parse(topology, workload).unwrap_err();
        assert!(mistake.message.contains(says), "{workload}: {mistake:?}");
    }
}
