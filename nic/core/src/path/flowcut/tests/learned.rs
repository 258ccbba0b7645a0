//! Connections that learn the delivery rates of their paths.

use super::*;

/// A connection that learns its path, with much to send, 40 packets in flight and a known minimum
/// RTT.
fn learning() -> Rig {
    let config = config(|_| ());
    let mut rig = Rig::new(&config);
    rig.path.learned = true;
    rig.unsent_bytes = 1 << 30;
    (0..40).for_each(|_| assert!(rig.send().is_some()));
    rig.ack(BASE_RTT_PS);
    rig
}

/// Sends over one path, which delivers a packet every `gap_ps` and has a long queue, until
/// `packets` have arrived or the path drains. Returns whether it drained.
fn drains(rig: &mut Rig, gap_ps: u64, packets: u32) -> bool {
    while rig.open.len() < 40 && rig.send().is_some() {}
    for _ in 0..packets {
        rig.now_ps += gap_ps;
        rig.ack(30 * BASE_RTT_PS);
        if rig.flowcut.is_draining() {
            rig.now_ps += gap_ps;
            (0..rig.open.len()).for_each(|_| rig.ack(30 * BASE_RTT_PS));
            return true;
        }
        rig.send();
    }
    false
}

/// Returns a connection that knows three paths with these delivery rates, in packets per base RTT.
fn three_known(rates: [u64; 3]) -> Rig {
    let mut rig = learning();
    for rate in rates {
        assert!(drains(&mut rig, BASE_RTT_PS / rate, 2_000), "a path is left while the rates of too few are known");
    }
    rig
}

//= docs/specs/flowcut.md#FLC-16 unknown base RTT
//= docs/specs/flowcut.md#FLC-17 comparison of paths
#[test]
fn a_learned_path_is_left_for_better_ones_only() {
    let mut alike = three_known([8, 9, 8]);
    assert!(!drains(&mut alike, BASE_RTT_PS / 8, 2_000), "no path did better");
    assert!(!drains(&mut alike, BASE_RTT_PS / 3, 2_000), "a third is not congestion");
    assert!(drains(&mut alike, BASE_RTT_PS / 2, 2_000), "more than four times as much");
    let mut short = learning();
    short.unsent_bytes = 31 * 40 * u64::from(BYTES);
    assert!(!drains(&mut short, BASE_RTT_PS / 8, 2_000), "too little is left to send for trying others");
    let mut empty = learning();
    for _ in 0..2_000 {
        empty.now_ps += BASE_RTT_PS / 8;
        empty.ack(2 * BASE_RTT_PS);
        assert!(empty.send().is_some(), "the queue is short");
    }
}

//= docs/specs/flowcut.md#FLC-17 comparison of paths
#[test]
fn a_path_is_tried_again_less_and_less_often() {
    let mut rig = three_known([8, 8, 8]);
    // A round takes an RTT, in which 240 packets arrive.
    for rounds in [64, 512, 4_096, 4_096] {
        assert!(!drains(&mut rig, BASE_RTT_PS / 8, (rounds - 1) * 240), "{rounds} rounds");
        assert!(drains(&mut rig, BASE_RTT_PS / 8, 2 * 240), "{rounds} rounds");
    }
}

//= docs/specs/flowcut.md#FLC-17 comparison of paths
#[test]
fn a_path_left_before_its_first_round_replaces_no_other() {
    let mut rates = rates::Rates::default();
    for is_known in [true, true, true, false, false, true, true] {
        if is_known {
            rates.on_dead();
        }
        rates.begin_path();
    }
    rates.on_dead();
    assert!(!rates.is_alone(), "the rates of three others are known");
}
