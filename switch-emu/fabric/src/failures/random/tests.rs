use std::collections::HashSet;

use super::*;
use crate::{Dragonfly, DrawError, FailureFile, FatTree, LeafSpine, ShortestPaths};

fn tree() -> Network {
    FatTree::uniform([4, 4, 4, 16, 2], 100_000_000_000, 0).network()
}

fn down(level: DeviceKind, how_many: FailureCount) -> RandomFailure {
    let action = LinkAction::Down { convergence_ps: 0 };
    let what = FailureTarget::Kind(level);
    RandomFailure { what, how_many, at_ps: 5, until_ps: None, action, disconnect: false, seed: None }
}

fn draw(network: &Network, seed: u64, random: &[RandomFailure]) -> Result<Vec<LinkEvent>, DrawError> {
    let context = FailureContext { network, seed, until_ps: 1_000, packet_bytes: 1 };
    FailureFile::default().and(random.to_vec()).events(&context)
}

fn names(events: &[LinkEvent]) -> HashSet<String> {
    events.iter().map(|event| event.name.clone()).collect()
}

/// Costs of the shortest paths between all leaves without `dead` links; `None` = no path.
fn lengths(network: &Network, dead: &[LinkEvent]) -> Vec<Option<u32>> {
    let dead: HashSet<usize> = dead.iter().flat_map(|event| event.links.clone()).collect();
    let routes = ShortestPaths::new(network, |link| !dead.contains(&link));
    let length = |from: usize, leaf: usize| {
        let (mut switch, mut cost) = (from, 0);
        while switch != routes.leaves()[leaf] {
            let link = &network.links[*routes.next(switch, leaf).first()? as usize];
            cost += link.cost;
            let Node::Switch(to) = link.to else { return None };
            switch = to;
        }
        Some(cost)
    };
    let leaves = 0..routes.leaves().len();
    leaves
        .clone()
        .flat_map(|from| leaves.clone().map(move |to| (from, to)))
        .map(|(from, to)| length(routes.leaves()[from], to))
        .collect()
}

#[test]
fn a_share_of_a_tier_fails_in_both_directions() {
    //= docs/specs/switching.md#SWC-20 selection of failures
    let tree = tree();
    // 64 cables between ToRs and aggregation switches, 64 above; 16 aggregation switches, 16 cores.
    for (level, share, expected, part) in [
        (DeviceKind::TorAgg, 0.05, 4, "tor"),
        (DeviceKind::AggCore, 0.05, 4, "core"),
        (DeviceKind::AggCore, 0.001, 1, "core"),
        (DeviceKind::Links, 0.05, 7, "-"),
    ] {
        let events = draw(&tree, 3, &[down(level, FailureCount::Share(share))]).unwrap();
        assert_eq!(names(&events).len(), expected, "{level:?}");
        for event in &events {
            let [there, back] = event.links[..] else { panic!("{event:?}") };
            assert_eq!((tree.links[there].from, tree.links[there].to), (tree.links[back].to, tree.links[back].from));
            assert!(event.name.contains(part), "{event:?}");
            assert_eq!(tree.links_named(&event.name), Some(vec![there, back]));
        }
    }
    for (level, share, expected, part) in
        [(DeviceKind::Agg, 0.1, 2, "agg"), (DeviceKind::Core, 0.125, 2, "core"), (DeviceKind::Switches, 0.05, 2, "")]
    {
        let events = draw(&tree, 3, &[down(level, FailureCount::Share(share))]).unwrap();
        assert!(events.len() == expected && events.iter().all(|event| event.name.contains(part)), "{events:?}");
        // Every cable of the switch, in both directions.
        assert!(events.iter().all(|event| event.links.iter().all(|link| event.links.contains(&(link ^ 1)))));
        assert!(events.iter().all(|event| event.links.len() >= 8), "{events:?}");
    }
    let seeds: HashSet<_> = (0..20)
        .map(|seed| {
            let mut names: Vec<_> =
                names(&draw(&tree, seed, &[down(DeviceKind::AggCore, FailureCount::Share(0.05))]).unwrap())
                    .into_iter()
                    .collect();
            names.sort();
            names
        })
        .collect();
    assert!(seeds.len() > 18);
}

#[test]
fn a_probability_applies_to_each_link_independently() {
    //= docs/specs/switching.md#SWC-20 selection of failures
    let tree = tree();
    let struck = |seed, probability| {
        names(&draw(&tree, seed, &[down(DeviceKind::Links, FailureCount::Probability(probability))]).unwrap())
    };
    let counts: Vec<usize> = (0..400).map(|seed| struck(seed, 0.01).len()).collect();
    // 128 links: binomial with mean 1.28 and variance 1.267. Five standard errors.
    let mean = counts.iter().sum::<usize>() as f64 / 400.0;
    let variance = counts.iter().map(|count| (*count as f64 - mean).powi(2)).sum::<f64>() / 400.0;
    assert!((mean - 1.28).abs() < 5.0 * (1.267f64 / 400.0).sqrt(), "{mean}");
    assert!((0.8..1.8).contains(&variance), "{variance}: independent, not a fixed number");
    for seed in 0..20 {
        assert!(struck(seed, 0.01).is_subset(&struck(seed, 0.05)));
    }
}

#[test]
fn no_host_is_disconnected_unless_configured() {
    //= docs/specs/switching.md#SWC-21 no host is cut off
    let dragonfly = Dragonfly {
        groups: 5,
        routers_per_group: 4,
        hosts_per_router: 1,
        global_cables: 2,
        local_gbps: None,
        global_gbps: None,
        global_latency_us: None,
        cables: crate::Cables::default(),
    };
    for network in [tree(), LeafSpine::uniform([4, 4, 2], 1_000_000_000, 0).network(), dragonfly.network()] {
        let healthy = lengths(&network, &[]);
        let mut cut = 0;
        for seed in 0..10 {
            let links = down(DeviceKind::Links, FailureCount::Probability(0.4));
            let switches = down(DeviceKind::Switches, FailureCount::Probability(0.3));
            let random = if network.switches[0].name == "g0r0" { vec![links] } else { vec![links, switches] };
            let kept = draw(&network, seed, &random).unwrap();
            assert!(lengths(&network, &kept) == healthy, "seed {seed}: {:?}", names(&kept));
            let disconnecting: Vec<_> =
                random.iter().map(|failure| RandomFailure { disconnect: true, ..failure.clone() }).collect();
            let more = draw(&network, seed, &disconnecting).unwrap();
            assert!(names(&kept).is_subset(&names(&more)), "seed {seed}");
            cut += usize::from(lengths(&network, &more) != healthy);
        }
        assert!(cut > 5, "{cut}");
    }
}

#[test]
fn failures_at_other_times_and_slow_links_are_ignored() {
    //= docs/specs/switching.md#SWC-21 no host is cut off
    let network = LeafSpine::uniform([2, 2, 1], 1_000_000_000, 0).network();
    let half = |at_ps, until_ps| RandomFailure { at_ps, until_ps, ..down(DeviceKind::Agg, FailureCount::Share(0.5)) };
    assert!(draw(&network, 1, &[half(0, Some(10)), half(10, None)]).is_ok());
    let error = draw(&network, 1, &[half(0, Some(11)), half(10, None)]).unwrap_err();
    assert!(matches!(&error, DrawError::Random { index: 1, .. }), "{error:?}");
    let slow = RandomFailure {
        action: LinkAction::Rate { ppm: 100_000 },
        ..down(DeviceKind::Links, FailureCount::Probability(1.0))
    };
    assert_eq!(draw(&network, 1, &[half(0, None), slow]).unwrap().len(), 5);
}

#[test]
fn impossible_failures_are_reported() {
    let tree = tree();
    let leaf_spine = LeafSpine::uniform([4, 4, 2], 1_000_000_000, 0).network();
    let all = FailureCount::Share(1.0);
    for (network, level, what) in [
        (
            &tree,
            DeviceKind::Tor,
            "1 of 16 switches with hosts are to fail, but only 0 working ones can without disconnecting",
        ),
        (
            &leaf_spine,
            DeviceKind::Core,
            "the fabric has no cores; allowed: \"links\", \"tor-agg\", \"switches\", \"tor\", \"agg\"",
        ),
        (&tree, DeviceKind::Global, "the fabric has no links between groups; allowed: \"links\""),
    ] {
        let share = if level == DeviceKind::Tor { FailureCount::Share(0.01) } else { all };
        let error = draw(network, 1, &[down(level, share)]).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    let cut = RandomFailure { disconnect: true, ..down(DeviceKind::Tor, all) };
    assert_eq!(draw(&tree, 1, &[cut]).unwrap().len(), 16);
    let late = RandomFailure { at_ps: 1_000, ..down(DeviceKind::Core, FailureCount::Share(0.1)) };
    assert_eq!(draw(&tree, 1, &[late]).unwrap(), []);
}

#[test]
fn devices_that_match_a_name_fail() {
    //= docs/specs/switching.md#SWC-20 selection of failures
    let network = LeafSpine::uniform([4, 4, 2], 1_000_000_000, 0).network();
    let all = |name: &str, disconnect| {
        let what = FailureTarget::Named(name.into());
        draw(
            &network,
            1,
            &[RandomFailure { what, disconnect, ..down(DeviceKind::Links, FailureCount::Probability(1.0)) }],
        )
        .unwrap()
    };
    let names_of = |events: &[LinkEvent]| events.iter().map(|event| event.name.clone()).collect::<Vec<_>>();
    let links = |event: &LinkEvent| event.links.len();
    let one_way = all("leaf*->spine1", false);
    assert_eq!(names_of(&one_way), ["leaf0->spine1", "leaf1->spine1", "leaf2->spine1", "leaf3->spine1"]);
    assert!(one_way.iter().all(|event| links(event) == 1));
    let both = all("spine1-leaf*", false);
    assert_eq!(names_of(&both), ["leaf0-spine1", "leaf1-spine1", "leaf2-spine1", "leaf3-spine1"]);
    assert!(both.iter().all(|event| links(event) == 2));
    let switches = all("spine*", false);
    assert_eq!((switches.len(), links(&switches[0])), (3, 8), "one is spared for the hosts");
    assert_eq!(all("h0", false), [], "a host has a single path");
    let hosts = all("h*", true);
    assert_eq!((hosts.len(), links(&hosts[0])), (8, 2));
}

#[test]
fn an_explicit_seed_draws_the_same_in_all_runs() {
    //= docs/specs/switching.md#SWC-20 selection of failures
    let tree = tree();
    let drawn = |seed, run| {
        names(
            &draw(&tree, run, &[RandomFailure { seed, ..down(DeviceKind::Links, FailureCount::Share(0.05)) }]).unwrap(),
        )
    };
    assert!((1..20).all(|run| drawn(Some(7), run) == drawn(None, 7)));
    assert!((1..20).any(|run| drawn(None, run) != drawn(None, 7)));
}
