//! Two leaves under four spines, compared with the paper's rules implemented with floats and maps.

use super::*;
use crate::routes::Choice;
use crate::scheme::tests::chassis::{Chassis, FRAME, SETTINGS, US};
use crate::scheme::{Scheme, choose};
use proptest::prelude::*;
use spray_wire::switch_view::PacketFields;
use std::collections::HashMap;
use std::vec::Vec;
use std::{assert, assert_eq};

const SPINES: u32 = 4;

fn net() -> Chassis {
    Chassis::leaf_spine([2, SPINES, 1], Scheme::Conga, SETTINGS)
}

/// Sends a frame from a leaf's host to the other leaf; returns its spine, and its final note.
fn send(net: &Chassis, t_ps: u64, from: u32, flow: u64, len: u32) -> (u32, u64) {
    net.begin(from, flow, false, &PacketFields::default());
    let frame = Frame { time_ps: t_ps, len, switch: from, flow, checksum: flow as u32, ..FRAME };
    let way = net.cross(frame, 1 - from).unwrap();
    (way.spine.unwrap(), way.note)
}

#[test]
fn a_port_at_its_rate_has_the_maximum_metric() {
    //= docs/specs/switching.md#SWC-50 congestion metric of a port
    let net = net();
    let mut notes = Vec::new();
    // One flow at half the rate of a link, then at the full rate: 4,000 bytes take 0.32 us.
    for (gap_ps, until_us) in [(640_000, 1_000), (320_000, 2_000)] {
        let mut t_ps = until_us * US - 1_000 * US;
        while t_ps < until_us * US {
            notes.push(send(&net, t_ps, 0, 7, 4_000).1);
            t_ps += gap_ps;
        }
    }
    let metric = |note: &u64| note >> 8 & 0xff;
    let half = notes.iter().take(1_500).map(metric).max().unwrap();
    assert!((3..=4).contains(&half), "{half}");
    assert_eq!(notes.iter().map(metric).max().unwrap(), MAX_METRIC);
}

proptest! {
    /// The estimate equals the paper's register, which is multiplied by 7/8 at every tick.
    #[test]
    fn estimates_decay_as_in_the_paper(frames in prop::collection::vec((0..100u64, 64..9_000u32), 1..200)) {
        //= docs/specs/switching.md#SWC-50 congestion metric of a port
        let net = net();
        let (mut register, mut tick, mut t_ps) = (0.0f64, 0, 0);
        for (gap_us, len) in frames {
            t_ps += gap_us * US;
            while tick < t_ps / DECAY_PS {
                register *= 1.0 - 1.0 / 8.0;
                tick += 1;
            }
            register += f64::from(len);
            crosses(&net, 3, &Arrival::of(&Frame { time_ps: t_ps, ..FRAME }, 1), len);
            let kept = net.rate_word(3).unwrap().get() & 0xffff_ffff;
            // Tolerance for whole bytes: a tick rounds down, and the powers of 7/8 have 16 bits.
            prop_assert!((kept as f64 - register).abs() < 0.001 * register + 60.0, "{} {}", kept, register);
        }
    }

    /// Once all feedback has been returned, leaf 0's metrics of its uplinks toward leaf 1 equal the
    /// congestion in the frames' notes.
    #[test]
    fn leaves_learn_the_congestion_on_the_path_of_frames(sent in prop::collection::vec((0..16u64, 1_000..9_000u32), 1..300)) {
        //= docs/specs/switching.md#SWC-52 metrics in a frame
        //= docs/specs/switching.md#SWC-53 metrics kept by a leaf
        let net = net();
        let mut expected: HashMap<u32, u64> = HashMap::new();
        for (n, (flow, len)) in sent.iter().enumerate() {
            let (spine, note) = send(&net, n as u64 * 200_000, 0, flow * 77, *len);
            let note = CongaNote::unpack(note);
            prop_assert_eq!(note.tag, spine);
            expected.insert(spine, note.load);
        }
        // Four frames in the reverse direction return the feedback of four uplinks.
        for _ in 0..SPINES {
            send(&net, 100 * US, 1, 5, 64);
        }
        for (spine, load) in expected {
            let stored = net.word(to_leaf(&net.switches[0], 1) + spine).unwrap().get();
            prop_assert_eq!(faded(Feedback::unpack(stored), 100 * US), load);
        }
    }

    #[test]
    fn new_metrics_are_returned_first_and_in_turn(fresh in 1..1u64 << 16, start in 0..16u32) {
        let bits: u64 = (0..16).map(|tag| (fresh >> tag & 1) * (NEW << (4 * tag))).sum();
        let found = start.wrapping_add(lowest(bits.rotate_right(4 * start)) / 4) % 16;
        let expected = (0..16).map(|n| (start + n) % 16).find(|tag| fresh >> tag & 1 != 0);
        prop_assert_eq!(Some(found), expected);
    }
}

#[test]
fn new_flowlets_take_the_least_congested_path_and_keep_it_if_none_is_better() {
    //= docs/specs/switching.md#SWC-51 the least congested path
    let net = net();
    let t_ps = 1_000 * US;
    let set_metric = |spine: u32, load: u64| {
        net.word(to_leaf(&net.switches[0], 1) + spine).unwrap().set(Feedback { load, at_us: t_ps / US }.pack());
    };
    [5, 2, 6, 2].into_iter().zip(0..).for_each(|(load, spine)| set_metric(spine, load));
    let chosen: Vec<u32> = (0..64).map(|flow| send(&net, t_ps, 0, flow * 1_001, 64).0).collect();
    assert!(chosen.iter().all(|spine| matches!(spine, 1 | 3)), "{chosen:?}");
    assert!(chosen.contains(&1) && chosen.contains(&3), "ties are broken at random");
    // After a pause all flows stay, because the other path is no better.
    let again: Vec<u32> = (0..64).map(|flow| send(&net, t_ps + 200 * US, 0, flow * 1_001, 64).0).collect();
    assert_eq!(chosen, again);
    // Flows do not move within a flowlet, and all move after it.
    [7, 7, 0, 7].into_iter().zip(0..).for_each(|(load, spine)| set_metric(spine, load));
    let within: Vec<u32> = (0..64).map(|flow| send(&net, t_ps + 250 * US, 0, flow * 1_001, 64).0).collect();
    assert_eq!(chosen, within);
    assert!((0..64).all(|flow| send(&net, t_ps + 400 * US, 0, flow * 1_001, 64).0 == 2));
}

/// Period numbers wrap after 2^32 periods, which is a day: estimates also decay across the wrap,
/// and a late frame does not change them.
#[test]
fn estimates_decay_on_any_day() {
    //= docs/specs/switching.md#SWC-50 congestion metric of a port
    const DAY: u64 = DECAY_PS << 32;
    let word = |t_ps| Estimate { bytes: 8_000, period: (t_ps / DECAY_PS) & 0xffff_ffff }.pack();
    for t_ps in [DECAY_PS, DAY - DECAY_PS, DAY, 3 * DAY - DECAY_PS, 100 * DAY] {
        let after = |periods: u64| decayed(word(t_ps), t_ps + periods * DECAY_PS).bytes;
        assert_eq!([0, 1, 2, 1 << 31, (1 << 32) - (1 << 20)].map(after), [8_000, 7_000, 6_125, 0, 0], "{t_ps}");
        assert_eq!(decayed(word(t_ps), t_ps - DECAY_PS), Estimate::unpack(word(t_ps)), "{t_ps}");
    }
}

#[test]
fn old_metrics_age() {
    //= docs/specs/switching.md#SWC-54 ageing of metrics
    let stored = Feedback { load: 7, at_us: 1_000 };
    let after = |ms: u64| faded(stored, (1_000 + 1_000 * ms) * US);
    assert_eq!([0, 9, 10, 20, 30, 1_000].map(after), [7, 7, 3, 1, 0, 0]);
}

#[test]
fn without_a_trail_there_is_no_route() {
    let net = net();
    let Choice { rank, .. } = choose(&net, &Arrival { switch: 0, ..Arrival::of(&FRAME, 1) }).unwrap();
    assert!(rank < SPINES, "the path search treats the group like any other");
}

//= docs/specs/switching.md#SWC-53 metrics kept by a leaf
#[test]
fn without_new_metrics_the_uplinks_are_returned_in_turn() {
    let net = net();
    let returned: Vec<u64> = (0..80).map(|n| send(&net, n * US, 1, 5, 64).1 >> 16 & 0xff).collect();
    let turns: Vec<u64> = (0..80).map(|n| (returned[0] + n) % u64::from(SPINES)).collect();
    assert_eq!(returned, turns);
}
