use super::*;
use crate::node::Node;
use crate::{FatTree, LeafSpine, LinkAction, LinkEvent, Network, ShortestPaths};

fn leaf_spine() -> Network {
    LeafSpine::uniform([16, 8, 8], 400_000_000_000, 1_000_000).network()
}

fn tree() -> Network {
    FatTree::uniform([4, 2, 2, 4, 2], 100_000_000_000, 0).network()
}

fn events(text: &str, network: &Network, seed: u64) -> Vec<LinkEvent> {
    let context = FailureContext { network, seed, until_ps: 1_000_000_000, packet_bytes: 4150 };
    FailureFile::parse(text).unwrap().events(&context).unwrap()
}

/// Returns whether every leaf reaches every other over routes that avoid the links of `events`, of
/// which routing is not notified.
fn connected(network: &Network, events: &[LinkEvent]) -> bool {
    let routes = ShortestPaths::new(network, |_| true);
    let dead: Vec<usize> = events.iter().flat_map(|event| event.links.clone()).collect();
    let reaches = |from: usize, leaf: usize| {
        let mut stack = vec![from];
        while let Some(switch) = stack.pop() {
            if switch == routes.leaves()[leaf] {
                return true;
            }
            let alive = routes.next(switch, leaf).iter().filter(|link| !dead.contains(&(**link as usize)));
            stack.extend(alive.filter_map(|link| match network.links[*link as usize].to {
                Node::Switch(to) => Some(to),
                Node::Host(_) => None,
            }));
        }
        false
    };
    routes.leaves().iter().all(|from| (0..routes.leaves().len()).all(|leaf| reaches(*from, leaf)))
}

#[test]
fn ten_percent_of_the_cables_fail_and_every_leaf_stays_connected() {
    let network = leaf_spine();
    let text = "Cable-Fail: ON\nCable-Fail-Start-After: 0\nCable-Fail-Period: 0\nCable-Fail-Max-Percent: 0.1\n";
    let mut draws = Vec::new();
    for seed in 0..20 {
        let drawn = events(text, &network, seed);
        assert_eq!(drawn.len(), 26, "a tenth of 256 cables, one direction each");
        let silent = |event: &LinkEvent| {
            (event.at_ps, event.until_ps, event.action, event.links.len()) == (0, None, LinkAction::SilentDrop, 1)
        };
        assert!(drawn.iter().all(silent) && connected(&network, &drawn));
        assert_eq!(drawn, events(text, &network, seed));
        let context = FailureContext { network: &network, seed, until_ps: 9, packet_bytes: 1 };
        assert_eq!(drawn, FailureFile::dead_cables(0.1).events(&context).unwrap());
        draws.push(drawn);
    }
    draws.dedup();
    assert_eq!(draws.len(), 20);
}

#[test]
fn the_last_path_never_fails() {
    for network in [leaf_spine(), tree()] {
        for (what, at_least) in [("Cable", 8), ("Switch", 1)] {
            let text = format!("{what}-Fail: ON\n{what}-Fail-Max-Percent: 0.99\n");
            let drawn = events(&text, &network, 5);
            assert!(drawn.len() >= at_least && connected(&network, &drawn), "{what}: {}", drawn.len());
            let leaf = |event: &LinkEvent| event.name.starts_with("leaf") || event.name.starts_with("tor");
            assert!(what == "Cable" || !drawn.iter().any(leaf));
        }
    }
    // Cables and switches fail together.
    let text = "Cable-Fail: ON\nCable-Fail-Max-Percent: 0.3\nSwitch-Fail: ON\nSwitch-Fail-Max-Percent: 0.3\n";
    let network = tree();
    for seed in 0..20 {
        assert!(connected(&network, &events(text, &network, seed)));
    }
}

#[test]
fn another_cable_fails_temporarily_in_every_period() {
    let text = "cable-fail: on # one at a time\nCable-Fail-Start-After: 10000000\nCable-Fail-Period: 100000000\n\
                Cable-Fail-Duration: ON\nCable-Fail-Duration-Time: 50000000\nCable-Fail-Max-Percent: 1\n";
    let drawn = events(text, &leaf_spine(), 1);
    let times: Vec<_> =
        drawn.iter().map(|event| (event.at_ps / 1_000_000, event.until_ps.unwrap() / 1_000_000)).collect();
    let expected: Vec<_> = (0..10).map(|n| (10 + 100 * n, 60 + 100 * n)).collect();
    assert_eq!(times, expected);
    // A failure that is longer than the period delays the next one until it is repaired.
    let drawn = events(&text.replace("Time: 50000000", "Time: 150000000"), &leaf_spine(), 1);
    assert_eq!(drawn.iter().map(|event| event.at_ps / 1_000_000).collect::<Vec<_>>()[..3], [10, 160, 310]);
    // With a huge period every cable fails once, and all are repaired when failures stop.
    let once = text.replace("Period: 100000000", "Period: 999999999999999999999");
    let drawn = events(&format!("{once}Stop-Failures-After: 30000000\n"), &leaf_spine(), 1);
    assert_eq!(
        drawn.iter().map(|event| (event.at_ps, event.until_ps)).collect::<Vec<_>>(),
        [(10_000_000, Some(30_000_000))]
    );
}

#[test]
fn each_failure_has_the_effect_of_its_name() {
    let network = tree();
    let one = |text: &str| events(text, &network, 3);
    let slow = one("Switch-Degradation: ON\nSwitch-Degradation-Max-Percent: 1\n");
    let actions: Vec<_> = slow.iter().map(|event| event.action).collect();
    assert_eq!(actions, [LinkAction::Rate { ppm: 100_000 }, LinkAction::Loss { ppm: 100_000 }]);
    let nic = one("NIC-Degradation: ON\nNIC-Degradation-Max-Percent: 1\n");
    assert_eq!((nic[0].action, nic[0].links.len()), (LinkAction::Loss { ppm: 50_000 }, 2));
    let nics = one("NIC-Fail: ON\nNIC-Fail-Max-Percent: 0.5\n");
    assert_eq!(nics.len(), 8, "half of the hosts, although each has a single cable");
    let cable = one("Cable-Degradation: ON\n");
    assert!(matches!(cable[0].action, LinkAction::Loss { ppm: 330_000 | 660_000 | 1_000_000 }));
    let errors = one("Cable-BER: ON\nCable-BER-Max-Percent: 0.01\n");
    assert_eq!((errors[0].action, errors[0].links.len()), (LinkAction::Loss { ppm: 10_000 }, 64));
    let errors = one("Switch-BER: ON\nSwitch-BER-Max-Percent: 0.01\nSwitch-BER-Period: 100000000\n");
    assert_eq!((errors.len(), errors[1].until_ps), (10, Some(100_332_000)));
    let periodic = one("Cable-Periodic-Packet-Loss: ON\nCable-Periodic-Packet-Loss-PktNr: 2\n\
                        Cable-Periodic-Packet-Loss-Drop-Period: 10\n");
    let expected = LinkAction::Periodic(crate::fabric::DropEvery { pass: 10, lose: 2 });
    assert_eq!((periodic.len(), periodic[0].action), (1, expected));
    let random = one("Random-Packet-Drop: ON\nRandom-Packet-Drop-Rate: 4\n");
    assert_eq!((random[0].action, random[0].links.len()), (LinkAction::Loss { ppm: 100 }, 16));
    let upper = one("Cable-Fail: ON\nCable-Fail-Max-Percent: 0.2\nOnly-US-CS-Cable: ON\n");
    assert!(upper.len() > 2 && upper.iter().all(|event| event.name.contains("core")), "{upper:?}");
}

#[test]
fn errors_are_located_by_line_and_column() {
    let cases = [
        ("Cable-Fail: maybe\n", 1, 13, "allowed: ON, OFF"),
        ("\nCable-Explode: ON\n", 2, 1, "unknown key `Cable-Explode`; allowed: Cable-"),
        ("Cable-Fail-PktNr: 3\n", 1, 1, "unknown key"),
        ("Cable-Fail-Max-Percent: 2\n", 1, 25, "0.000000001 to 1"),
        ("Cable-Fail-Start-After: -1\n", 1, 25, "integer of picoseconds from 0"),
        ("Cable-Fail ON\n", 1, 1, "not `Key: value`"),
        ("Cable-Fail:\n", 1, 1, "needs a value"),
        ("# none\nCable-Fail: ON\nCable-Fail-Duration: ON\n", 2, 1, "`-Duration-Time` above 0"),
        ("Cable-BER: ON\n", 1, 1, "need `-Max-Percent`"),
        ("Cable-Periodic-Packet-Loss: ON\n", 1, 1, "needs `-Drop-Period`"),
        ("Random-Packet-Drop: ON\n", 1, 1, "Random-Packet-Drop-Rate"),
        ("Random-Packet-Drop-Rate: 7\n", 1, 26, "0 to 6"),
        // These would be rounded.
        ("Random-Packet-Drop-Rate: 5.9\n", 1, 26, "multiple of a millionth"),
        ("Cable-BER: ON\nCable-BER-Max-Percent: 0.0000001\n", 1, 1, "allowed: 0.000001 to 1"),
        ("Cable-Periodic-Packet-Loss-PktNr: 1.5\n", 1, 35, "a whole number from 1 to 1000000000"),
        ("Cable-Fail-Start-After: 0.5\n", 1, 25, "integer of picoseconds"),
    ];
    for (text, line, column, message) in cases {
        let error = FailureFile::parse(text).unwrap_err();
        assert!((error.line, error.column) == (line, column) && error.message.contains(message), "{text:?}: {error:?}");
    }
    let text = "Cable-BER: ON\nCable-BER-Max-Percent: 1\nCable-BER-Period: 1\n";
    let context = FailureContext { network: &tree(), seed: 1, until_ps: 1_000_000, packet_bytes: 1 };
    let error = FailureFile::parse(text).unwrap().events(&context).unwrap_err();
    assert!(matches!(&error, DrawError::Line(line) if line.line == 1), "{error:?}");
    assert!(error.to_string().contains("longer period"), "{error:?}");
    assert_eq!(FailureFile::parse("Cable-Fail: OFF\n").unwrap().events(&context).unwrap(), []);
}
