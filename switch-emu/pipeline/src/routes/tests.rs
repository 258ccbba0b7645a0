use super::*;
use std::{assert, assert_eq, vec};

/// Chi-square of counts against a uniform spread.
fn chi_square(counts: &[u64]) -> u64 {
    let mean = counts.iter().sum::<u64>() / counts.len() as u64;
    counts.iter().map(|count| count.abs_diff(mean).pow(2)).sum::<u64>() / mean
}

/// The choice of a switch with `salt` among `count` ports, for frames from consecutive source ports.
fn chosen(salt: u32, count: u32, port: u16) -> usize {
    struct OneSwitch(SwitchConfig, Group);
    impl Routes for OneSwitch {
        fn salt(&self, _: u32) -> Option<u64> {
            Some(self.0.salt)
        }
        fn group(&self, _: u64, _: u32, _: u32) -> Option<Group> {
            Some(self.1)
        }
        fn member(&self, index: u32) -> Option<u32> {
            Some(index)
        }
    }
    let addresses = spray_wire::switch_view::addresses_v4(0x0a00_0001_0a00_0002);
    let flow = crate::hash::flow(addresses, u32::from(port) << 16 | u32::from(spray_wire::UDP_PORT));
    let switch = OneSwitch(SwitchConfig::new(salt), Group { first: 7, count });
    let choice = choose(&switch, 0, 0, 0, flow).unwrap();
    assert_eq!(choice.port, choice.rank + 7);
    choice.rank as usize
}

#[test]
fn source_ports_spread_evenly() {
    //= docs/specs/switch.md#SW-5 the choice within a group
    // 16,384 consecutive ports over n uplinks; chi-square stays below its 99.9 % point.
    for (uplinks, limit) in [(4, 17), (7, 23), (16, 38), (64, 104)] {
        let mut counts = vec![0; uplinks as usize];
        (49_152..=65_535).for_each(|port| counts[chosen(uplinks, uplinks, port)] += 1);
        assert!(chi_square(&counts) < limit, "{uplinks} uplinks: {}", chi_square(&counts));
    }
}

#[test]
fn switches_choose_independently() {
    // every pair of choices of two switches with neighbouring salts is equally likely
    let mut counts = vec![0; 64];
    (1..=65_535).for_each(|port| counts[chosen(1, 8, port) * 8 + chosen(2, 8, port)] += 1);
    assert!(chi_square(&counts) < 104, "{}", chi_square(&counts));
}

#[test]
fn without_ports_there_is_no_route() {
    struct Nowhere;
    impl Routes for Nowhere {
        fn salt(&self, _: u32) -> Option<u64> {
            Some(0)
        }
        fn group(&self, _: u64, _: u32, _: u32) -> Option<Group> {
            Some(Group::default())
        }
        fn member(&self, _: u32) -> Option<u32> {
            Some(0)
        }
    }
    assert_eq!(choose(&Nowhere, 0, 0, 0, 1), None);
}
