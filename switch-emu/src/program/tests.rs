use super::*;
use crate::fabric::{Fabric, Host, LinkChange, LinkState, Node, Port, QueueConfig, RouteEpoch, Switch};

#[test]
fn loads() {
    let fabric = fabric();
    let program = SwitchProgram::load(&ChassisSpec::whole(&fabric)).unwrap_or_else(|error| panic!("{error}"));
    std::println!("{:?}", program.info());
    let steer = SteerProgram::load().unwrap_or_else(|error| panic!("{error}"));
    std::println!("{:?}", steer.info());
}

pub(crate) fn fabric() -> Fabric {
    let queue = QueueConfig {
        limit_bytes: 200_000,
        mark_min_bytes: 40_000,
        mark_max_bytes: 160_000,
        control_limit_bytes: 200_000,
        trim: true,
    };
    let port = |name: &str, switch, to| Port {
        name: name.into(),
        switch,
        to,
        rate_bps: 100_000_000_000,
        latency_ps: 1_000_000,
        queue,
        changes: vec![],
    };
    let hosts = (0..4u8)
        .map(|i| Host {
            name: format!("h{i}"),
            v4: [10, 0, 0, i + 1].into(),
            v6: [0xfd00, 0, 0, 0, 0, 0, 0, u16::from(i) + 1].into(),
            mac: [2, 0, 0, 0, 0, i],
        })
        .collect();
    let switches = ["leaf0", "leaf1", "spine0", "spine1"]
        .iter()
        .enumerate()
        .map(|(i, name)| Switch { name: (*name).into(), salt: i as u32 })
        .collect();
    let mut ports = vec![];
    for leaf in 0..2 {
        for host in [2 * leaf, 2 * leaf + 1] {
            ports.push(port("leaf->h", leaf, Node::Host(host)));
        }
        for spine in [2, 3] {
            ports.push(port("leaf->spine", leaf, Node::Switch(spine)));
        }
    }
    for spine in [2, 3] {
        for leaf in 0..2 {
            ports.push(port("spine->leaf", spine, Node::Switch(leaf)));
        }
    }
    let leaf = |own: usize| {
        (0..4)
            .map(|h| if h / 2 == own { vec![own * 4 + h % 2] } else { vec![own * 4 + 2, own * 4 + 3] })
            .collect::<Vec<_>>()
    };
    let spine = |own: usize| (0..4).map(|h| vec![8 + own * 2 + h / 2]).collect::<Vec<_>>();
    let groups = vec![leaf(0), leaf(1), spine(0), spine(1)];
    Fabric { seed: 7, hosts, switches, ports, routes: vec![RouteEpoch { valid_from_ps: 0, groups }] }
}
#[allow(unused)]
fn keep(_: LinkChange, _: LinkState) {}
