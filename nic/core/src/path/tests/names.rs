//! Names of balancers, and their settings.

use super::*;

#[test]
fn names_are_displayed_and_parsed() {
    for kind in BalancerKind::ALL {
        assert_eq!(BalancerKind::named(&kind.to_string()), Some(kind));
    }
    assert_eq!(BalancerKind::named("arcane"), Some(BalancerKind::Reps));
    assert_eq!(BalancerKind::named("x"), None);
}

/// With default settings every scheme follows its paper.
#[test]
fn defaults_are_the_published_settings() {
    let published = "
        [reps]
        rule = 'paper'
        buffer = 8
        freezing = true
        congestion_rtt = 1.65
        probing = false
        timed_exit = false
        [flowcut]
        rule = 'paper'
        rtt_ratio = 4
        weight = 0.12
        trend = 0.05
        trend_weight = 0.12
        resume_packets = 0
        credit_bytes = 0
        dead_timeouts = 3
        [plb]
        rule = 'reps'
        [flowlet]
        clock = 'feedback'
        [flowcell]
        cell_bytes = '64 KiB'
        order = 'in-turn'
        [mprdma]
        rule = 'artifact'
        ooo_packets = 32
        probe_share = 0.01
        [bitmap]
        max_penalty = 15
        mark_penalty = 1
        loss_penalty = 4
        timeout_penalty = 15
        pardon = 'first'
        [mixed]
        max_penalty = 15
        mark_penalty = 1
        loss_penalty = 4
        timeout_penalty = 15
        pardon = 'first'
        [reps-plus]
        buffer = 16
        remember = true
        known_paths = true
        [host-dr]
        labels = 64
        small_bytes = 256
        order = 'drawn'
        [mptcp]
        subflows = 8
        split = 'equal'
        [subflow]
        subflows = 4
        [ordered-chaos]
        subflows = 16
        interval_us = 15
        jitter = 0.25
        threshold = 0
        silence = true
        detection = true
        probe_packets = 0
        probe_retransmissions = true
    ";
    let mut written = toml::Table::try_from(Schemes::default()).unwrap();
    written.retain(|_, settings| settings.as_table().is_some_and(|settings| !settings.is_empty()));
    assert_eq!(written, toml::from_str::<toml::Table>(published).unwrap());
    assert_eq!(written.try_into::<Schemes>().unwrap(), Schemes::default());
    assert_eq!(toml::from_str::<Schemes>("").unwrap(), Schemes::default());
}

//= docs/specs/bitmap.md#BITMAP-7 256 EVs
//= docs/specs/mixed.md#MIX-4 size of the bitmap's
#[test]
fn two_schemes_have_a_set_of_256_entropy_values() {
    let evs = |kind: BalancerKind| BalancerConfig::from(kind).evs();
    let small: Vec<&str> =
        BalancerKind::ALL.into_iter().filter(|kind| evs(*kind) == 256).map(BalancerKind::name).collect();
    assert_eq!(small, ["bitmap", "mixed"]);
    assert!(BalancerKind::ALL.into_iter().all(|kind| [256, 65_535].contains(&evs(kind))));
}

#[test]
fn a_name_selects_a_scheme_and_settings() {
    let reps = RepsConfig { buffer: 3, ..RepsConfig::default() };
    let schemes = Schemes { reps, ..Schemes::default() };
    let named = |name: &str| BalancerKind::named(name).unwrap().config(&schemes);
    assert_eq!(named("reps"), BalancerConfig::Reps(reps));
    assert_eq!(named("arcane"), BalancerConfig::Reps(reps));
    assert_eq!(named("reps-no-freezing"), BalancerConfig::Reps(RepsConfig { freezing: false, ..reps }));
    assert_eq!(named("reps-probing"), BalancerConfig::Reps(RepsConfig { probing: true, ..reps }));
    assert_eq!(BalancerKind::RepsProbing.settings_names(), ["reps"]);
    assert_eq!(named("flowcut"), BalancerKind::Flowcut.into());
    for kind in BalancerKind::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        assert_eq!(serde_json::from_value::<BalancerKind>(kind.name().into()).unwrap(), kind);
    }
}
