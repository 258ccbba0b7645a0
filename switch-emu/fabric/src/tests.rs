use spray_core::units::{Gbps, Micros};

use super::*;
use crate::fabric::Thresholds;
use crate::node::Node;

pub(crate) const PAIR: LeafSpine = LeafSpine::uniform([2, 4, 4], 100_000_000_000, 1_000_000);

const TREE: &str = "Nodes 16 # sixteen hosts
Tiers 3
Podsize 4

Tier 0
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Oversubscribed 1
Downlink_Latency_ns 500
Switch_Latency_ns 250
Tier 1
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 4
Downlink_Latency_ns 600
Tier 2
Downlink_speed_Gbps 400
Radix_Down 8
Bundle 2
Downlink_Latency_ns 700
";

fn queue(_rate_bps: u64) -> Thresholds {
    Thresholds {
        limit_bytes: 300_000,
        mark_min_bytes: 60_000,
        mark_max_bytes: 240_000,
        control_limit_bytes: 300_000,
        trim: true,
        ..Thresholds::NONE
    }
}

fn event(network: &Network, name: &str, at_ps: u64, until_ps: Option<u64>, action: LinkAction) -> LinkEvent {
    LinkEvent { name: name.into(), links: network.links_named(name).unwrap(), at_ps, until_ps, action }
}

#[test]
fn a_leaf_spine_has_all_spines_between_leaves_and_one_port_to_each_host() {
    let network = PAIR.network();
    network.check().unwrap();
    assert_eq!((network.hosts.len(), network.switches.len(), network.links.len()), (8, 6, 32));
    let compiled = compile(&network, 1, queue, &[]).unwrap();
    let groups = &compiled.routes[0].groups;
    let names = |switch: usize, host: usize| -> Vec<&str> {
        groups[switch][host].iter().map(|port| compiled.ports[*port].name.as_str()).collect()
    };
    assert_eq!(names(0, 5), ["leaf0->spine0", "leaf0->spine1", "leaf0->spine2", "leaf0->spine3"]);
    assert_eq!(names(0, 3), ["leaf0->h3"]);
    assert_eq!(names(4, 5), ["spine2->leaf1"]);
    assert_eq!(compiled.ports.len(), 24);
    let of_switches = network.links.iter().filter(|link| matches!(link.from, Node::Switch(_)));
    assert!(of_switches.map(|link| &link.name).eq(compiled.ports.iter().map(|port| &port.name)));
}

#[test]
fn bundles_are_parallel_ports_with_numbered_names() {
    let network = LeafSpine { bundle: 2, ..PAIR }.network();
    network.check().unwrap();
    let compiled = compile(&network, 1, queue, &[]).unwrap();
    assert_eq!(compiled.routes[0].groups[0][7].len(), 8);
    assert_eq!(network.links_named("leaf0->spine1#2").unwrap().len(), 1);
    assert_eq!(network.links_named("leaf0-spine1#2").unwrap().len(), 2);
    assert_eq!(network.links_named("leaf0-spine1#3"), None);
}

#[test]
fn a_three_tier_file_builds_the_tree_it_describes() {
    let file = TopoFile::parse(TREE).unwrap();
    let network = file.network();
    network.check().unwrap();
    // 4 pods of 2 leaves and 2 spines; 4 uplinks per spine in bundles of 2 make 2 planes, times 2
    // spines per pod: 4 cores.
    assert_eq!(network.switches.len(), 8 + 8 + 4);
    let compiled = compile(&network, 1, queue, &[]).unwrap();
    let groups = &compiled.routes[0].groups;
    assert_eq!(groups[0][15].len(), 2, "a leaf has two spines");
    assert_eq!(groups[8][15].len(), 4, "a spine has two cores, two cables each");
    assert_eq!(groups[0][1].len(), 1);
    let routes = ShortestPaths::new(&network, |_| true);
    let longest = hops(&network, &routes, 0, 15);
    let names: Vec<_> = longest.map(|link| network.links[link].rate_bps / 1_000_000_000).collect();
    assert_eq!(names, [100, 200, 400, 400, 200, 100]);
    let port = compiled.ports.iter().find(|port| port.name == "tor0->h0").unwrap();
    assert_eq!(port.latency_ps, 750_000, "the switch's latency is its ports'");
}

#[test]
fn a_fat_tree_by_counts_is_the_tree_of_a_file() {
    let text = TREE.replace("Switch_Latency_ns 250\n", "").replace(" 600", " 500").replace(" 700", " 500");
    let file =
        TopoFile::parse(&text.replace("Radix_Up 4", "Radix_Up 2").replace("Radix_Down 8\nBundle 2", "Radix_Down 4"));
    let even = FatTree::uniform([4, 2, 2, 4, 2], 100_000_000_000, 500_000);
    let tree = FatTree { uplink_gbps: Some(Gbps::new(200)), core_gbps: Some(Gbps::new(400)), ..even };
    let network = tree.network();
    network.check().unwrap();
    assert_eq!(network, file.unwrap().network());
    assert!(network.links_named("agg1->core3").is_some() && network.links_named("agg1->core0").is_none());
    let doubled = FatTree { bundle: 2, ..tree }.network();
    doubled.check().unwrap();
    assert!(doubled.links_named("tor7-agg7#2").is_some() && doubled.links_named("agg7-core3#2").is_some());
    assert_eq!(doubled.switches.len(), network.switches.len());
}

pub(crate) const DRAGONFLY: Dragonfly = Dragonfly {
    groups: 5,
    routers_per_group: 4,
    hosts_per_router: 2,
    global_cables: 2,
    local_gbps: None,
    global_gbps: Some(Gbps::new(50)),
    global_latency_us: Some(Micros::from_ps(3)),
    cables: Cables { host_latency_us: Some(Micros::from_ps(1)), ..Cables::uniform(100_000_000_000, 2) },
};

#[test]
fn a_dragonfly_connects_all_groups_equally_and_routes_minimally() {
    let network = DRAGONFLY.network();
    network.check().unwrap();
    let group = |node| match node {
        Node::Switch(switch) => switch / 4,
        Node::Host(_) => usize::MAX,
    };
    let global = || network.links.iter().filter(|link| link.latency_ps == 3);
    for a in 0..5 {
        for b in 0..5 {
            let cables = global().filter(|link| group(link.from) == a && group(link.to) == b).count();
            assert_eq!(cables, if a == b { 0 } else { 2 }, "{a} to {b}");
        }
    }
    for router in 0..20 {
        assert_eq!(global().filter(|link| link.from == Node::Switch(router)).count(), 2);
        assert_eq!(
            network.links.iter().filter(|link| link.latency_ps == 2 && link.from == Node::Switch(router)).count(),
            3
        );
    }
    let routes = ShortestPaths::new(&network, |_| true);
    for to in 1..network.hosts.len() {
        let path: Vec<_> = hops(&network, &routes, 0, to).collect();
        let between = path.iter().filter(|link| network.links[**link].latency_ps == 3).count();
        assert!(path.len() <= 5 && between == usize::from(to >= 8), "{path:?}");
    }
}

#[test]
fn shortest_paths_are_those_of_a_plain_search() {
    for network in [PAIR.network(), DRAGONFLY.network(), TopoFile::parse(TREE).unwrap().network()] {
        for broken in [1, 2, 3, 7, usize::MAX] {
            let usable = |link: usize| link % broken != broken - 1 && network.links[link].is_uplink();
            let links: Vec<u32> = (0..network.links.len() as u32).filter(|link| usable(*link as usize)).collect();
            let ends = |link: &u32| match network.links[*link as usize] {
                Link { from: Node::Switch(from), to: Node::Switch(to), cost, .. } => (from, to, u64::from(cost)),
                _ => unreachable!("uplinks"),
            };
            let routes = ShortestPaths::new(&network, usable);
            for (number, leaf) in routes.leaves().iter().enumerate() {
                let mut costs = vec![u64::MAX / 2; network.switches.len()];
                costs[*leaf] = 0;
                for (from, to, cost) in network.switches.iter().flat_map(|_| links.iter().map(ends)) {
                    costs[from] = costs[from].min(costs[to] + cost);
                }
                for switch in 0..network.switches.len() {
                    let leads = |link: &&u32| {
                        let (from, to, cost) = ends(link);
                        from == switch && costs[to] + cost == costs[from] && costs[from] < u64::MAX / 2
                    };
                    let expected: Vec<u32> = links.iter().filter(leads).copied().collect();
                    assert_eq!(routes.next(switch, number), expected, "{switch} to {leaf}, {broken}");
                }
            }
        }
    }
}

#[test]
fn routes_by_leaf_and_groups_by_host_agree() {
    for network in [PAIR.network(), DRAGONFLY.network(), TopoFile::parse(TREE).unwrap().network()] {
        let routes = ShortestPaths::new(&network, |link| link % 7 != 3);
        let groups = super::groups(&network, |link| link % 7 != 3 || matches!(network.links[link].to, Node::Host(_)));
        for (switch, hosts) in groups.iter().enumerate() {
            for (host, group) in hosts.iter().enumerate() {
                let leaf = network.leaf_of(host);
                if leaf == switch {
                    assert_eq!(group, &[network.downlink(host)]);
                } else {
                    let next = routes.next(switch, routes.leaf_number(leaf).unwrap());
                    assert!(next.iter().map(|link| *link as usize).eq(group.iter().copied()));
                }
            }
        }
    }
}

#[test]
fn a_two_tier_file_is_a_leaf_spine() {
    let file = TopoFile::parse(
        "nodes 8\ntiers 2\npodsize 8\ntier 0\ndownlink_speed_gbps 100\nradix_down 4\nradix_up 4\ndownlink_latency_ns 1000\n\
         tier 1\ndownlink_speed_gbps 100\nradix_down 2\ndownlink_latency_ns 1000\n",
    )
    .unwrap();
    assert_eq!(file.network(), PAIR.network());
}

#[test]
fn file_errors_name_the_line_and_the_allowed_values() {
    let cases = [
        ("nodes 16\nfoo 3\n", 2, "unknown key `foo`; allowed: nodes,"),
        ("nodes many\n", 1, "`nodes` needs one integer"),
        ("nodes 16\nradix_down 2\n", 2, "before the first `Tier`"),
        ("nodes 16\nnodes 16\n", 2, "given twice"),
        ("tier 1\n", 1, "out of order"),
    ];
    for (text, line, message) in cases {
        let error = TopoFile::parse(text).unwrap_err();
        assert!(error.line == line && error.message.contains(message), "{text:?}: {error:?}");
    }
    let changed = [
        ("Podsize 4", "Podsize 5", 5, "divisor"),
        ("Radix_Down 8", "Radix_Down 7", 17, "this tree needs 8"),
        ("Oversubscribed 1", "Oversubscribed 2", 5, "does not fit"),
        ("Bundle 2", "Bundle 3", 12, "no multiple"),
        ("Tiers 3", "Tiers 4", 1, "allowed: 2 or 3"),
        ("Bundle 2", "Bundle 0", 17, "`bundle` is 0; allowed: from 1"),
        ("Downlink_speed_Gbps 100", "Downlink_speed_Gbps 100001", 5, "is 100001; allowed: 1 to 100000"),
    ];
    for (from, to, line, message) in changed {
        let error = TopoFile::parse(&TREE.replace(from, to)).unwrap_err();
        assert!(error.line == line && error.message.contains(message), "{to}: {error:?}");
    }
}

#[test]
fn an_invalid_graph_is_rejected() {
    let mut network = Network::default();
    let (a, b, c) = (network.add_host("a"), network.add_host("b"), network.add_host("c"));
    let (s, t) = (network.add_switch("s", 0), network.add_switch("t", 0));
    network.add_cable(a, s, 1_000_000_000, 0);
    network.add_cable(b, s, 1_000_000_000, 0);
    let fails = |network: &Network, why: &str| {
        let message = network.check().unwrap_err().to_string();
        assert!(message.contains(why), "{message}");
    };
    fails(&network, "host `c` has 0 links; a host has exactly one, to a switch");
    network.add_cable(c, t, 1_000_000_000, 0);
    fails(&network, "there is no path from host `a` to host `c`");
    network.add_cable(s, t, 1_000_000_000, 0);
    assert_eq!(network.check(), Ok(()));
    network.switches[1].name = "a".into();
    fails(&network, "the name `a` is used twice");
    network.switches[1].name = "a-b".into();
    fails(&network, "the name `a-b` is not one to eleven letters");
    for kept in ["all", "default", "lo", ".", "..", "sw"] {
        network.switches[1].name = kept.into();
        fails(&network, &format!("the name `{kept}` is reserved by the kernel or the testbed; reserved: all, default"));
    }
}

#[test]
fn an_admin_down_is_rerouted_after_convergence_and_back() {
    let network = PAIR.network();
    let down = LinkAction::Down { convergence_ps: 5 };
    let events = [event(&network, "leaf0->spine1", 10, Some(20), down)];
    let fabric = compile(&network, 1, queue, &events).unwrap();
    let widths: Vec<_> = fabric.routes.iter().map(|epoch| (epoch.valid_from_ps, epoch.groups[0][7].len())).collect();
    assert_eq!(widths, [(0, 4), (15, 3), (25, 4)]);
    assert!(fabric.routes.iter().all(|epoch| epoch.groups[1][0].len() == 4), "one direction only");
    let port = fabric.ports.iter().find(|port| port.name == "leaf0->spine1").unwrap();
    assert_eq!(
        port.changes.iter().map(|change| (change.at_ps, change.state.up)).collect::<Vec<_>>(),
        [(10, false), (20, true)]
    );
}

#[test]
fn a_leaf_avoids_a_spine_that_lost_its_cable_to_the_other_leaf() {
    let network = PAIR.network();
    let events = [event(&network, "spine1->leaf1", 0, None, LinkAction::Down { convergence_ps: 0 })];
    let fabric = compile(&network, 1, queue, &events).unwrap();
    assert_eq!(fabric.routes.len(), 1, "present from the start");
    assert_eq!(fabric.routes[0].groups[0][7].len(), 3);
    assert_eq!(fabric.routes[0].groups[0][0].len(), 1);
}

#[test]
fn overlapping_events_are_combined() {
    let network = PAIR.network();
    let events = [
        event(&network, "leaf0->spine0", 0, Some(30), LinkAction::Rate { ppm: 500_000 }),
        event(&network, "leaf0-spine0", 10, Some(20), LinkAction::Rate { ppm: 500_000 }),
        event(&network, "leaf0->spine0", 10, None, LinkAction::Loss { ppm: 100_000 }),
        event(&network, "leaf0->spine0", 20, None, LinkAction::Loss { ppm: 100_000 }),
        event(&network, "leaf0->spine0", 20, Some(30), LinkAction::SilentDrop),
    ];
    let fabric = compile(&network, 1, queue, &events).unwrap();
    let port = |name: &str| fabric.ports.iter().find(|port| port.name == name).unwrap();
    let states: Vec<_> = port("leaf0->spine0")
        .changes
        .iter()
        .map(|change| (change.at_ps, change.state.rate_ppm, change.state.loss_ppm, change.state.silent_drop))
        .collect();
    let full = 1_000_000;
    assert_eq!(
        states,
        [
            (0, 500_000, 0, false),
            (10, 250_000, 100_000, false),
            (20, 500_000, 190_000, true),
            (30, full, 190_000, false)
        ]
    );
    assert_eq!(port("spine0->leaf0").changes.len(), 2);
}

#[test]
fn too_many_changes_are_refused() {
    let network = PAIR.network();
    let many: Vec<_> =
        (0..9).map(|n| event(&network, "leaf0->spine0", n * 20, Some(n * 20 + 10), LinkAction::SilentDrop)).collect();
    assert!(matches!(compile(&network, 1, queue, &many), Err(CompileError::Changes { changes: 18, .. })));
    let downs: Vec<_> = (0..9)
        .map(|n| event(&network, "leaf0->spine0", n * 20, Some(n * 20 + 10), LinkAction::Down { convergence_ps: 1 }))
        .collect();
    assert!(compile(&network, 1, queue, &downs[..]).is_err());
}

#[test]
fn hosts_links_change_like_ports() {
    let network = PAIR.network();
    let events = [event(&network, "h0-leaf0", 7, Some(9), LinkAction::SilentDrop)];
    let fabric = compile(&network, 1, queue, &events).unwrap();
    let port = fabric.ports.iter().find(|port| port.name == "leaf0->h0").unwrap();
    assert_eq!(fabric.hosts[0].changes.iter().map(|change| change.at_ps).collect::<Vec<_>>(), [7, 9]);
    assert_eq!(fabric.hosts[0].changes, port.changes);
    assert_eq!(fabric.hosts[1].changes, []);
}

#[test]
fn salts_differ_between_switches_and_seeds() {
    let salts = |seed| compile(&PAIR.network(), seed, queue, &[]).unwrap().salts;
    let mut all = [salts(1), salts(2)].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 12);
    assert_eq!(salts(1), salts(1));
}
