//! Predicted paths compared with frames through the switches, over both versions of IP.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::collections::HashSet;
use std::net::IpAddr;

use spray_fabric::{
    ChassisSpec, EvPaths, Fabric, FabricHost, FatTree, FlowHash, HashFields, HashFunction, LeafSpine, LinkAction,
    LinkEvent, Network, Scheme, Switching, Thresholds, addresses, compile,
};
use spray_pipeline::shim::Shim;
use spray_test_support::NativeSwitch;
use spray_wire::{Body, Common, Data, Ecn, Envelope, Ev};

const BPS: u64 = 100_000_000_000;
const US: u64 = 1_000_000;
const EVS: u32 = 4_096;

fn queue(_: u64) -> Thresholds {
    Thresholds {
        limit_bytes: 300_000,
        mark_min_bytes: 60_000,
        mark_max_bytes: 240_000,
        control_limit_bytes: 300_000,
        trim: true,
        ..Thresholds::NONE
    }
}

fn leaf_spine(bundle: usize) -> Network {
    LeafSpine { bundle, ..LeafSpine::uniform([3, 4, 2], BPS, US) }.network()
}

fn fat_tree() -> Network {
    FatTree::uniform([3, 2, 2, 4, 2], BPS, US).network()
}

/// The ports that a data frame passes between two hosts.
fn ports(fabric: &Fabric, leaf: usize, from: IpAddr, to: IpAddr, ev: Ev, now_ps: u64) -> Vec<usize> {
    let switch = NativeSwitch::new(&ChassisSpec { frame_bytes: 4_096, ..ChassisSpec::whole(fabric) }).unwrap();
    let envelope = Envelope {
        src_mac: [2; 6],
        dst_mac: [4; 6],
        src: from,
        dst: to,
        src_port: ev.port(EVS),
        dst_port: spray_wire::Ports::DEFAULT.first(),
        dscp: spray_wire::DSCP_DATA,
        ecn: Ecn::Ect0,
        ttl: spray_wire::INITIAL_TTL,
    };
    let body = Body::Data(Data { payload_bytes: 100, ..Data::default() });
    let mut frame = [0; 512];
    let length = spray_wire::emit(&mut frame, &envelope, &Common::default(), &body, &[0; 100]).unwrap();
    let mut frame = [&Shim::default().before(&frame), &frame[..length]].concat();
    switch.process(&mut frame, leaf, now_ps);
    (0..fabric.ports.len()).filter(|port| switch.counters(*port).frames > 0).collect()
}

/// Checks the paths between two hosts: each value has a distinct path, and there are `count`.
fn check(network: &Network, events: &[LinkEvent], at_ps: u64, from: usize, to: usize, count: usize) {
    for seed in 1..=3 {
        let fabric = compile(network, seed, queue, events).unwrap();
        let ev_paths = EvPaths::new(network, events, seed);
        let hosts = [from, to].map(|host| &fabric.hosts[host]);
        for addresses_of in [|host: &FabricHost| IpAddr::V4(host.v4), |host: &FabricHost| IpAddr::V6(host.v6)] {
            let [from_ip, to_ip] = hosts.map(addresses_of);
            if from_ip.is_ipv4() && network.switching.hash.fields == HashFields::FlowLabel {
                continue;
            }
            let paths = ev_paths.paths(at_ps, from, to, addresses(from_ip, to_ip), EVS);
            assert_eq!(paths.len(), count);
            let all: HashSet<_> = paths.as_flattened().iter().collect();
            assert!(all.len() >= 32.min(8 * count), "reverse paths: {all:?}");
            let leaf = network.leaf_of(from);
            let taken_by = |ev| ports(&fabric, leaf, from_ip, to_ip, ev, at_ps + 1);
            assert!(paths.iter().all(|path| path.iter().all(|ev| taken_by(*ev) == taken_by(path[0]))));
            let taken: Vec<_> = paths.iter().map(|path| taken_by(path[0])).collect();
            let mut distinct = taken.clone();
            distinct.sort();
            distinct.dedup();
            assert_eq!(distinct.len(), count, "{taken:?}");
            let lengths: Vec<_> = taken.iter().map(Vec::len).collect();
            assert!(lengths.iter().all(|length| *length == lengths[0]), "complete paths");
            //= docs/specs/host-dr.md#HDR-11 order of the list
            let first = |ports: &Vec<usize>| *ports.iter().find(|port| fabric.ports[**port].switch == leaf).unwrap();
            assert!(count < 2 || taken.windows(2).all(|pair| first(&pair[0]) != first(&pair[1])), "{taken:?}");
        }
    }
}

#[test]
fn every_path_has_a_distinct_value() {
    //= docs/specs/host-dr.md#HDR-9 definition of a path
    //= docs/specs/host-dr.md#HDR-10 EVs for each path
    check(&leaf_spine(1), &[], 0, 0, 4, 4);
    check(&leaf_spine(1), &[], 0, 0, 1, 1);
    check(&leaf_spine(2), &[], 0, 0, 4, 16);
    check(&fat_tree(), &[], 0, 0, 11, 4);
    check(&fat_tree(), &[], 0, 0, 3, 2);
}

#[test]
fn a_port_of_a_resilient_group_is_one_path() {
    //= docs/specs/switching.md#SWC-27 resilient groups
    //= docs/specs/host-dr.md#HDR-10 EVs for each path
    let mut network = leaf_spine(1);
    network.switching = Switching::all(Scheme::EcmpResilient);
    check(&network, &[], 0, 0, 4, 4);
    let links = network.links_named("spine2-leaf0").unwrap();
    let action = LinkAction::Down { convergence_ps: 0 };
    let down = LinkEvent { name: "x".into(), links, at_ps: 20 * US, until_ps: Some(50 * US), action };
    for (at_ps, count) in [(0, 4), (30 * US, 3), (60 * US, 4)] {
        check(&network, std::slice::from_ref(&down), at_ps, 0, 4, count);
    }
    let mut network = fat_tree();
    network.switching = Switching::all(Scheme::EcmpResilient);
    check(&network, &[], 0, 0, 11, 4);
}

#[test]
fn paths_are_predicted_for_every_hash_input() {
    //= docs/specs/switching.md#SWC-23 hash input
    //= docs/specs/host-dr.md#HDR-10 EVs for each path
    for function in [HashFunction::Ideal, HashFunction::Crc16, HashFunction::Crc32, HashFunction::Xor] {
        for fields in [HashFields::FiveTuple, HashFields::Ports, HashFields::FlowLabel] {
            let mut network = fat_tree();
            network.switching.hash = FlowHash { function, fields };
            check(&network, &[], 0, 0, 11, 4);
        }
    }
}

#[test]
fn paths_follow_routing() {
    //= docs/specs/host-dr.md#HDR-3 reachable paths
    let network = leaf_spine(1);
    let links = network.links_named("spine2->leaf2").unwrap();
    let action = LinkAction::Down { convergence_ps: 10 * US };
    let down = LinkEvent { name: "x".into(), links, at_ps: 20 * US, until_ps: Some(50 * US), action };
    for (at_ps, count) in [(0, 4), (25 * US, 4), (30 * US, 3), (59 * US, 3), (60 * US, 4)] {
        let ev_paths = EvPaths::new(&network, std::slice::from_ref(&down), 1);
        assert_eq!(ev_paths.paths(at_ps, 0, 4, 77, EVS).len(), count, "at {at_ps}");
    }
    check(&network, &[down], 60 * US, 0, 4, 4);
    let all = LinkEvent {
        name: "x".into(),
        links: (0..network.links.len()).filter(|link| network.links[*link].name.contains("->leaf2")).collect(),
        at_ps: 0,
        until_ps: None,
        action: LinkAction::Down { convergence_ps: 0 },
    };
    assert!(EvPaths::new(&network, &[all], 1).paths(0, 0, 4, 77, EVS).is_empty());
}
