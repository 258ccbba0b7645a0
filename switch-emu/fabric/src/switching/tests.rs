use std::collections::HashSet;

use super::*;
use crate::{FatTree, HashFunction, LeafSpine, LinkAction, LinkEvent, Network, RouteTable, flow_key};
use spray_pipeline::routes::Routes;
use spray_pipeline::scheme::hashed;
use spray_wire::EvPort;

/// Four pods of two ToRs and two aggregation switches, eight cores.
fn fat_tree(scheme: Scheme) -> Network {
    let mut network = FatTree::uniform([4, 2, 2, 8, 2], 100_000_000_000, 1).network();
    network.switching = Switching::all(scheme);
    network
}

fn table(network: &Network, events: &[LinkEvent]) -> RouteTable {
    RouteTable::new(network, events, 7, |link| link as u32)
}

fn switch(network: &Network, name: &str) -> u32 {
    network.switches.iter().position(|switch| switch.name == name).unwrap() as u32
}

/// A cable that has failed from the beginning, which routing has detected.
fn out(network: &Network, name: &str) -> LinkEvent {
    let links = network.links_named(name).unwrap();
    LinkEvent { name: name.into(), links, at_ps: 0, until_ps: None, action: LinkAction::Down { convergence_ps: 0 } }
}

#[test]
fn weights_are_derived_from_the_paths_of_a_port() {
    //= docs/specs/switching.md#SWC-4 weights
    // Cores 0, 2, 4, 6 are above agg0 of each pod. One of the four loses its cable to pod 3.
    let network = fat_tree(Scheme::Wcmp);
    let table = table(&network, &[out(&network, "agg6-core2")]);
    let ports =
        |to: u32| table.ports(0, switch(&network, "tor0"), to).iter().map(|link| &network.links[*link as usize].name);
    // Hosts 12 to 15 are in pod 3, host 4 in pod 1.
    let count = |to, name: &str| ports(to).filter(|port| **port == name).count();
    assert_eq!([count(13, "tor0->agg0"), count(13, "tor0->agg1")], [3, 4]);
    assert_eq!([count(4, "tor0->agg0"), count(4, "tor0->agg1")], [1, 1]);
}

#[test]
fn a_slow_spine_has_a_smaller_weight() {
    //= docs/specs/switching.md#SWC-4 weights
    let mut network = LeafSpine::uniform([2, 2, 1], 400_000_000_000, 1).network();
    network.switching = Switching::all(Scheme::Wcmp);
    network
        .links
        .iter_mut()
        .filter(|link| link.name.contains("spine0"))
        .for_each(|link| link.rate_bps = 100_000_000_000);
    let table = table(&network, &[]);
    let slow = |link: &&u32| network.links[**link as usize].name.contains("spine0");
    let ports = table.ports(0, 0, 1);
    assert_eq!((ports.len(), ports.iter().filter(slow).count()), (5, 1));
}

#[test]
fn weighted_slots_are_interleaved() {
    //= docs/specs/switching.md#SWC-4 weights
    // OFAN §F.4's example: 1600, 1600, 1600 and 800 Gb/s are 2, 2, 2, 1.
    assert_eq!(reduced(vec![1_600, 1_600, 1_600, 800]), [2, 2, 2, 1]);
    let places = interleaved(&weighted(&[1, 2, 3, 4], &[2, 2, 2, 1]), &mut stream(3, 0));
    assert_eq!(places[..4].iter().collect::<HashSet<_>>().len(), 4, "{places:?}");
    let second: Vec<_> = places[..4].iter().copied().filter(|port| *port != 4).collect();
    assert_eq!(places[4..], second, "the next round in the same order, without the light port");
    let many = reduced(vec![1_000_003, 999_983, 1]);
    assert!(many.iter().sum::<u64>() <= MAX_PLACES + 1 && many[2] == 1, "{many:?}");
}

#[test]
fn ofan_shares_pointers_where_possible() {
    //= docs/specs/switching.md#SWC-9 destinations that share a pointer
    let network = fat_tree(Scheme::Ofan);
    let table = table(&network, &[]);
    let pointers = |name: &str| -> HashSet<u32> {
        let at = switch(&network, name);
        let group = |host| table.group(0, at, host).unwrap();
        (0..16).map(group).filter(|group| group.count > 1).map(|group| group.pointer).collect()
    };
    // A ToR has a pointer for each of the other 7 ToRs, an aggregation switch for each of the other
    // 3 pods.
    assert_eq!((pointers("tor2").len(), pointers("agg3").len()), (7, 3));
    assert!(pointers("tor2").is_disjoint(&pointers("tor3")));
    let same = |a, b| table.group(0, switch(&network, "tor0"), a) == table.group(0, switch(&network, "tor0"), b);
    assert!(same(8, 9) && !same(9, 10), "hosts of one ToR share a pointer");
}

#[test]
fn simple_round_robin_has_one_pointer_for_a_set_of_ports() {
    //= docs/specs/switching.md#SWC-5 pointers
    let network = fat_tree(Scheme::Rr);
    let table = table(&network, &[]);
    let groups: HashSet<_> =
        (2..16).map(|host| table.group(0, switch(&network, "tor0"), host).unwrap().pointer).collect();
    assert_eq!(groups.len(), 1);
}

#[test]
fn base_round_trips_are_derived_from_cables_and_switches() {
    //= docs/specs/conweave.md#CWV-5 a request
    let mut network = fat_tree(Scheme::ConWeave);
    network.switches.iter_mut().for_each(|switch| switch.latency_ps = 10);
    // Makes one of the two paths to the other ToR of the pod longer.
    let longer = network.links_named("tor0->agg1").unwrap()[0];
    network.links[longer].latency_ps = 5;
    let table = table(&network, &[]);
    let state = table.states[0].as_ref().unwrap();
    assert_eq!(state.rtts_ps(), [0, 2 * 2 * 11, 88, 88, 88, 88, 88, 88]);
}

#[test]
fn orders_and_initial_pointers_are_random() {
    //= docs/specs/switching.md#SWC-7 initial pointers
    //= docs/specs/switching.md#SWC-8 OFAN's pointers
    let network = fat_tree(Scheme::Ofan);
    let table = table(&network, &[]);
    let at = switch(&network, "agg0");
    let (one, other) = (table.ports(0, at, 4).to_vec(), table.ports(0, at, 8).to_vec());
    let sorted = |ports: &[u32]| ports.iter().copied().collect::<std::collections::BTreeSet<_>>();
    assert_eq!((one.len(), sorted(&one)), (4, sorted(&other)), "the same ports");
    let orders: HashSet<_> = (0..8)
        .flat_map(|agg| [0, 4, 8, 12].map(|host| (agg, host)))
        .map(|(agg, host)| {
            let at = switch(&network, &format!("agg{agg}"));
            let ports = table.ports(0, at, host);
            let least = ports.iter().min().copied().unwrap_or_default();
            ports.iter().map(|port| port - least).collect::<Vec<_>>()
        })
        .collect();
    assert!(orders.len() > 6, "{orders:?}");
    let starts: HashSet<_> = table.words.iter().map(|word| word % 4).collect();
    assert_eq!(starts.len(), 4);
    let other = RouteTable::new(&network, &[], 8, |link| link as u32);
    assert_ne!(table.words, other.words, "different with another seed");
}

#[test]
fn the_tiers_of_a_network_may_differ() {
    let mut network = fat_tree(Scheme::Ecmp);
    network.switching.schemes = vec![Scheme::Rr, Scheme::Ofan];
    let table = table(&network, &[]);
    let scheme = |name: &str| Scheme::from_number(Routes::switch(&table, switch(&network, name)).unwrap().scheme);
    assert_eq!([scheme("tor5"), scheme("agg1"), scheme("core7")], [Scheme::Rr, Scheme::Ofan, Scheme::Ofan]);
}

#[test]
fn only_slots_of_removed_ports_change() {
    //= docs/specs/switching.md#SWC-27 resilient groups
    for seed in 0..50 {
        let mut rng = stream(seed, 0);
        let all: Vec<u32> = (0..2 + rng.next_u32() % 40).map(|port| 100 + 3 * port).collect();
        let mut ports = all.clone();
        let mut places = levelled(&[], &ports);
        for step in 0..30 {
            let (chosen, before) = (all[rng.next_u32() as usize % all.len()], places.clone());
            let leaves = ports.contains(&chosen);
            if leaves && ports.len() == 2 {
                continue;
            }
            ports = all.iter().filter(|port| (**port == chosen) != ports.contains(port)).copied().collect();
            places = levelled(&before, &ports);
            let moved: Vec<_> = before.iter().zip(&places).filter(|(before, now)| before != now).collect();
            let by_the_change = |(before, now): &(&u32, &u32)| chosen == if leaves { **before } else { **now };
            assert!(moved.iter().all(by_the_change), "seed {seed}, step {step}: {chosen} of {ports:?}");
            let share = |port: &u32| places.iter().filter(|place| *place == port).count();
            let shares: Vec<_> = ports.iter().map(share).collect();
            assert_eq!(shares.iter().sum::<usize>(), 1_024);
            assert!(
                shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1,
                "seed {seed}, step {step}: {shares:?}"
            );
        }
    }
}

/// Returns the ports of tor0 toward host 15 that 1,000 flows take at these times; its cable to agg1
/// fails from 100 to 200.
fn taken(scheme: Scheme, times: [u64; 3]) -> [Vec<u32>; 3] {
    let mut network = FatTree::uniform([2, 2, 4, 16, 4], 100_000_000_000, 1).network();
    network.switching = Switching::all(scheme);
    let action = LinkAction::Down { convergence_ps: 0 };
    let links = network.links_named("tor0-agg1").unwrap();
    let event = LinkEvent { name: "x".into(), links, at_ps: 100, until_ps: Some(200), action };
    let table = table(&network, &[event]);
    times.map(|at_ps| {
        (0..1_000).map(|flow| hashed(&table, at_ps, switch(&network, "tor0"), 15, mix(flow)).unwrap().port).collect()
    })
}

#[test]
fn a_resilient_group_moves_only_the_flows_of_the_failed_port() {
    //= docs/specs/switching.md#SWC-27 resilient groups
    let moved = |scheme| {
        let [before, during, after] = taken(scheme, [0, 150, 250]);
        let failed: Vec<_> = before.iter().copied().filter(|port| !during.contains(port)).collect();
        assert!((200..300).contains(&failed.len()), "{}", failed.len());
        let moved = |a: &[u32], b: &[u32]| a.iter().zip(b).filter(|(a, b)| a != b).count() - failed.len();
        let moved_back = during.iter().zip(&after).filter(|(during, after)| during != after);
        let elsewhere = moved_back.filter(|(_, after)| **after != failed[0]).count();
        (moved(&before, &during), elsewhere)
    };
    assert_eq!(moved(Scheme::EcmpResilient), (0, 0));
    let (whole, _) = moved(Scheme::Ecmp);
    assert!(whole > 50, "a full rehash also moves other flows: {whole}");
}

/// Returns the number of aggregation-core links, of 16, that packets of one connection take with
/// 4,096 EVs.
fn core_links(function: HashFunction, hash_seed: HashSeed) -> usize {
    let mut network = FatTree::uniform([2, 2, 4, 16, 4], 100_000_000_000, 1).network();
    let hash = FlowHash { function, ..FlowHash::default() };
    network.switching = Switching { hash, hash_seed, ..Switching::default() };
    let table = table(&network, &[]);
    let links = (1..=4_096).map(|port| {
        let flow = hash.digest(&flow_key(77, EvPort::new(port)));
        let up = |switch| hashed(&table, 0, switch, 15, flow).unwrap().port;
        match network.links[up(switch(&network, "tor0")) as usize].to {
            Node::Switch(agg) => up(agg as u32),
            Node::Host(_) => panic!("a path down"),
        }
    });
    links.collect::<HashSet<_>>().len()
}

#[test]
fn one_seed_for_all_leaves_most_core_links_unused() {
    //= docs/specs/switching.md#SWC-25 seeds
    //= docs/specs/switching.md#SWC-26 polarisation
    for function in [HashFunction::Ideal, HashFunction::Crc16, HashFunction::Crc32, HashFunction::Xor] {
        let used = [HashSeed::Same, HashSeed::Tier, HashSeed::Switch].map(|seed| core_links(function, seed));
        assert_eq!(used, [4, 16, 16], "{function:?}");
    }
}

#[test]
fn only_schemes_that_read_queues_limit_groups() {
    use crate::{ChassisSpec, Tables, Thresholds, compile};
    let compiled = |schemes: [Scheme; 2], cores| {
        let mut network = FatTree::uniform([2, 1, 2, cores, 1], 100_000_000_000, 1).network();
        network.switching.schemes = schemes.to_vec();
        let fabric = compile(&network, 7, |_| Thresholds::NONE, &[]).unwrap();
        Tables::compile(&ChassisSpec::whole(&fabric)).map(|_| ()).map_err(|error| error.0)
    };
    assert_eq!(compiled([Scheme::Jsq, Scheme::EcmpResilient], 4), Ok(()), "1,024 slots for uplinks, two downlinks");
    let message = "a group of 300 ports, at most 256 are possible with `jsq`";
    assert_eq!(compiled([Scheme::Ecmp, Scheme::Jsq], 600), Err(message.into()));
}

#[test]
fn switches_that_exchange_notes_require_one_chassis() {
    //= docs/specs/switching.md#SWC-2a these schemes require one chassis of all switches
    use crate::{ChassisSpec, Tables, Thresholds, compile};
    let mut network = FatTree::uniform([2, 1, 2, 2, 1], 100_000_000_000, 1).network();
    network.switching.schemes = vec![Scheme::FlowcutSwitch];
    let fabric = compile(&network, 7, |_| Thresholds::NONE, &[]).unwrap();
    let whole = ChassisSpec::whole(&fabric);
    assert!(Tables::compile(&whole).is_ok());
    let refused = Tables::compile(&ChassisSpec { switch: Some(0), ..whole }).unwrap_err().0;
    assert_eq!(refused, "`flowcut-switch` in a chassis of one switch; allowed: one of all switches");
}

/// Counts the paths from `switch` to `leaf` over each of its next links, one by one.
fn paths_by_port(network: &Network, dead: &HashSet<usize>, switch: usize, leaf: usize) -> Vec<(usize, u64)> {
    fn count(network: &Network, dead: &HashSet<usize>, at: usize, leaf: usize, left: u32) -> u64 {
        if at == leaf {
            return u64::from(left == 0);
        }
        let out = network
            .links
            .iter()
            .enumerate()
            .filter(|(index, link)| link.from == Node::Switch(at) && !dead.contains(index));
        out.filter(|_| left > 0)
            .map(|(_, link)| if let Node::Switch(to) = link.to { count(network, dead, to, leaf, left - 1) } else { 0 })
            .sum()
    }
    let hops = (1..6).find(|hops| count(network, dead, switch, leaf, *hops) > 0).unwrap_or(0);
    let out = network
        .links
        .iter()
        .enumerate()
        .filter(|(index, link)| link.from == Node::Switch(switch) && !dead.contains(index));
    out.filter_map(|(index, link)| {
        let Node::Switch(to) = link.to else { return None };
        let paths = if hops > 0 { count(network, dead, to, leaf, hops - 1) } else { 0 };
        (paths > 0).then_some((index, paths))
    })
    .collect()
}

#[test]
fn weights_after_random_failures_count_the_paths_on_both_engines() {
    //= docs/specs/switching.md#SWC-4 weights
    //= docs/specs/switching.md#SWC-22 routing converges after G
    use crate::{
        ChassisSpec, DeviceKind, FailureContext, FailureCount, FailureFile, FailureTarget, RandomFailure, Tables,
        Thresholds, compile,
    };
    let queue = Thresholds {
        limit_bytes: 100_000,
        mark_min_bytes: 0,
        mark_max_bytes: 1,
        control_limit_bytes: 1,
        trim: true,
        ..Thresholds::NONE
    };
    let mut uneven = 0;
    for (scheme, seed) in
        [Scheme::Wcmp, Scheme::Ofan].into_iter().flat_map(|scheme| (0..4).map(move |seed| (scheme, seed)))
    {
        let network = fat_tree(scheme);
        let action = LinkAction::Down { convergence_ps: 7 };
        let random = RandomFailure {
            what: FailureTarget::Kind(DeviceKind::Links),
            how_many: FailureCount::Share(0.1),
            at_ps: 100,
            until_ps: Some(1_000),
            action,
            disconnect: false,
            seed: None,
        };
        let context = FailureContext { network: &network, seed, until_ps: 10_000, packet_bytes: 1 };
        let events = FailureFile::default().and(vec![random]).events(&context).unwrap();
        let dead: HashSet<usize> = events.iter().flat_map(|event| event.links.clone()).collect();
        let table = RouteTable::new(&network, &events, 7, |link| link as u32);
        let fabric = compile(&network, 7, |_| queue, &events).unwrap();
        let tables = Tables::compile(&ChassisSpec { frame_bytes: 4_000, ..ChassisSpec::whole(&fabric) }).unwrap();
        let link_of: Vec<usize> =
            (0..network.links.len()).filter(|link| matches!(network.links[*link].from, Node::Switch(_))).collect();
        for (at_ps, dead) in [(106, &HashSet::new()), (107, &dead), (1_006, &dead), (1_007, &HashSet::new())] {
            for (switch, host) in (0..network.switches.len()).flat_map(|switch| (0..16).map(move |host| (switch, host)))
            {
                let leaf = network.leaf_of(host);
                if leaf == switch {
                    continue;
                }
                let paths = paths_by_port(&network, dead, switch, leaf);
                // A switch without a path down would send frames back up; no new route leads there.
                if paths.is_empty() && network.tiers().tier[switch] > 0 {
                    continue;
                }
                let weights = reduced(paths.iter().map(|(_, paths)| *paths).collect());
                uneven += usize::from(weights.iter().any(|weight| *weight > 1));
                let expected: Vec<_> = paths.iter().map(|(link, _)| *link).zip(weights).collect();
                let places = |ports: Vec<usize>| {
                    let count =
                        |(link, _): &(usize, u64)| (*link, ports.iter().filter(|port| *port == link).count() as u64);
                    (ports.len() as u64, expected.iter().map(count).collect::<Vec<_>>())
                };
                let expected = (expected.iter().map(|(_, weight)| weight).sum::<u64>(), expected.clone());
                let simulated = table.ports(at_ps, switch as u32, host as u32).iter().map(|port| *port as usize);
                assert_eq!(
                    places(simulated.collect()),
                    expected,
                    "{scheme}, seed {seed}, {switch} to {host} at {at_ps}"
                );
                let globals = &tables.globals;
                let group =
                    tables.groups[globals.group_index(globals.epoch(at_ps), switch as u32, host as u32) as usize];
                let kernel = tables.members[group.first as usize..][..group.count as usize].iter();
                let kernel = kernel.map(|port| link_of[*port as usize]).collect();
                assert_eq!(places(kernel), expected, "kernel: {scheme}, seed {seed}, {switch} to {host} at {at_ps}");
            }
        }
    }
    assert!(uneven > 100, "{uneven}");
}

#[test]
fn detours_need_groups_that_a_frame_can_name() {
    //= docs/specs/switching.md#SWC-34 supported fabrics
    let check = |schemes: &[Scheme], count| {
        let switching = Switching { schemes: schemes.to_vec(), ..Switching::default() };
        switching.check(Groups { count, switches: 2, hosts: 1 })
    };
    for scheme in [Scheme::Valiant, Scheme::Ugal] {
        let error = check(&[Scheme::Ecmp, scheme], 0).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("scheme `{scheme}` needs groups for its detours; allowed: dragonflies, or another scheme")
        );
        let error = check(&[scheme], 254).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("switches with `{scheme}` in a dragonfly of 254 groups; allowed: at most 253 groups")
        );
        assert_eq!(check(&[scheme], 253), Ok(()));
    }
    assert_eq!(check(&Scheme::anywhere().collect::<Vec<_>>(), 0), Ok(()));
}

#[test]
fn paths_have_the_number_of_their_links() {
    //= docs/specs/switching.md#SWC-31 choice of the detour
    let mut network = crate::tests::DRAGONFLY.network();
    network.switching = Switching::all(Scheme::Ugal);
    let table = table(&network, &[]);
    let routes = crate::ShortestPaths::new(&network, |_| true);
    for (switch, host) in (0..20).flat_map(|switch| (0..40).map(move |host| (switch, host))) {
        let path = crate::hops(&network, &routes, 2 * switch, host);
        // Excludes the links of the hosts.
        let links = path.count().saturating_sub(2);
        assert_eq!(usize::from(table.group(0, switch as u32, host as u32).unwrap().hops), links, "{switch} to h{host}");
    }
}
