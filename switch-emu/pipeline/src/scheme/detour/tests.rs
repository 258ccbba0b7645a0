//! Choice of the group and the host toward which a frame is sent; complete paths through a
//! dragonfly are in the frame tables of the fabric.

use super::*;
use crate::scheme::Groups;
use std::collections::HashSet;
use std::{assert, assert_eq};

const GROUPS: Groups = Groups { count: 5, switches: 3, hosts: 4 };

fn switch(group: u16, groups: Groups) -> SwitchConfig {
    SwitchConfig { group, groups, ..SwitchConfig::new(7, Scheme::Valiant) }
}

//= docs/specs/switching.md#SWC-30 over a third group
#[test]
fn a_frame_is_sent_toward_one_host_of_its_group_and_hosts_are_chosen_evenly() {
    for group in 0..5 {
        let toward: HashSet<u32> = (0..500).map(|checksum| GROUPS.toward(group, checksum)).collect();
        assert_eq!(toward, (12 * u32::from(group)..12 * u32::from(group + 1)).collect());
    }
}

//= docs/specs/switching.md#SWC-32 invalid notes
#[test]
fn a_valid_note_determines_the_group() {
    let (here, none) = (switch(2, GROUPS), switch(0, Groups::default()));
    let via = |group: u8| (GROUPS.toward(group, 9), FIRST + group);
    for (note, aim_here) in [
        (UNDECIDED, (50, SHORTEST)),
        (SHORTEST, (50, SHORTEST)),
        (FIRST, via(0)),
        (FIRST + 1, via(1)),
        (FIRST + 2, (50, SHORTEST)),
        (FIRST + 4, via(4)),
        (FIRST + 5, (50, SHORTEST)),
        (u8::MAX, (50, SHORTEST)),
    ] {
        assert_eq!(aim(&here, note, 50, 9), aim_here, "{note}");
        assert_eq!(aim(&none, note, 50, 9), (50, note), "without groups");
    }
}

//= docs/specs/switching.md#SWC-30 over a third group
#[test]
fn the_third_group_is_any_but_those_of_the_ends() {
    let drawn = |here: u16, target: u32, groups: Groups| -> HashSet<u8> {
        let frame = |checksum| Arrival {
            t_ps: 5_000,
            flow: 1,
            switch: 0,
            host: 12 * target,
            checksum,
            control: false,
            detour: 0,
        };
        (0..300).filter_map(|checksum| draw(&switch(here, groups), &frame(checksum))).collect()
    };
    for (here, target) in [(0, 4), (4, 0), (1, 2), (3, 1)] {
        assert_eq!(
            drawn(here, target, GROUPS),
            (0..5).filter(|&via| u16::from(via) != here && u32::from(via) != target).collect()
        );
    }
    assert!(drawn(2, 2, GROUPS).is_empty(), "within a group");
    assert!(drawn(0, 1, Groups { count: 2, ..GROUPS }).is_empty() && drawn(0, 1, Groups::default()).is_empty());
    assert_eq!(drawn(0, 1, Groups { count: 3, ..GROUPS }), [2].into());
}
