//! How drains end, and when they are skipped.

use super::*;

//= docs/specs/flowcut.md#FLC-22 XOFF with credit
//= docs/specs/flowcut.md#FLC-30 external pausing
#[test]
fn the_credit_of_a_drain_is_spent_and_reported() {
    let mut rig = Rig::new(&config(|own| own.credit_bytes = ByteSize::new(2 * u64::from(BYTES) + 1)));
    assert_eq!(rig.flowcut.allowed_bytes(), u64::MAX);
    let old = rig.drain();
    assert_eq!(rig.flowcut.allowed_bytes(), 2 * u64::from(BYTES) + 1);
    assert_eq!([rig.send(), rig.send(), rig.send()], [Some(old), Some(old), None]);
    assert_eq!(rig.flowcut.allowed_bytes(), 1);
    while !rig.open.is_empty() {
        rig.ack(BASE_RTT_PS);
    }
    assert_eq!(rig.flowcut.allowed_bytes(), u64::MAX);
    let mut plain = Rig::new(&config(|_| ()));
    plain.drain();
    assert_eq!((plain.flowcut.allowed_bytes(), plain.send()), (0, None));
}

//= docs/specs/flowcut.md#FLC-24 drain timeout
#[test]
fn a_drain_without_acks_ends_on_the_old_path() {
    let mut rig = Rig::new(&config(|own| own.drain_timeout_us = Some(Micros::new(100))));
    rig.now_ps = 7_000_000;
    let old = rig.drain();
    assert_eq!(rig.flowcut.poll_timeout(&rig.path), None, "no packet is waiting");
    assert!(!rig.may());
    assert_eq!(rig.flowcut.poll_timeout(&rig.path), Some(at(107_000_000)));
    rig.now_ps = 50_000_000;
    rig.ack(BASE_RTT_PS);
    assert_eq!(rig.flowcut.poll_timeout(&rig.path), Some(at(150_000_000)), "an acknowledgement postpones it");
    rig.now_ps = 150_000_000;
    assert_eq!(rig.send(), Some(old));
    assert_eq!((rig.flowcut.is_draining(), rig.flowcut.poll_timeout(&rig.path)), (false, None));
    rig.ack(4 * BASE_RTT_PS);
    assert!(!rig.flowcut.is_draining(), "the average was reset");
}

//= docs/specs/flowcut.md#FLC-25 no drain near the end
#[test]
fn no_drain_for_the_last_packets() {
    let drains = |tail_bytes: Option<u64>, unsent_bytes: u64| {
        let mut rig = Rig::new(&config(|own| own.tail_bytes = tail_bytes.map(ByteSize::new)));
        let ev = rig.send().unwrap();
        let ack = AckInfo {
            ev,
            rtt_ps: 50 * BASE_RTT_PS,
            packet_bytes: BYTES,
            unacked_packets: 5,
            unsent_bytes,
            ..AckInfo::default()
        };
        (0..9).for_each(|_| rig.flowcut.on_ack(rig.path.at_ps(0), &ack, &mut ()));
        rig.flowcut.is_draining()
    };
    assert!(drains(Some(1_000), 1_000) && !drains(Some(1_000), 999) && drains(Some(0), 0));
    let bdp = 100 * u64::from(BYTES);
    assert!(drains(None, bdp) && !drains(None, bdp - 1));
}

//= docs/specs/flowcut.md#FLC-3 end of a flowcut
#[test]
fn a_congested_path_is_left_when_idle_if_no_drain_pays_off() {
    for (rtt_ps, is_kept) in [(BASE_RTT_PS, true), (50 * BASE_RTT_PS, false)] {
        let mut rig = Rig::new(&config(|own| own.tail_bytes = None));
        let path = rig.send();
        (0..9).for_each(|_| assert_eq!(rig.send(), path));
        for _ in 0..10 {
            rig.ack(rtt_ps);
            assert!(!rig.flowcut.is_draining());
        }
        assert_eq!(rig.send() == path, is_kept);
    }
}

//= docs/specs/flowcut.md#FLC-27 early resumption
//= docs/specs/flowcut.md#FLC-28 bound of reordering
#[test]
fn early_resumption_bounds_how_far_a_packet_gets_ahead() {
    let mut rig = Rig::new(&config(|own| own.resume_packets = 3));
    let old = rig.drain();
    while rig.open.len() > 3 {
        assert!(!rig.may());
        rig.ack(BASE_RTT_PS);
    }
    let new = rig.send().unwrap();
    assert_ne!(new, old);
    assert!(!rig.flowcut.is_draining() && rig.send().is_none(), "four are open");
    // Acknowledged packets admit the same number of new ones; after the last of them nothing is
    // held back.
    for _ in 0..2 {
        rig.ack(BASE_RTT_PS);
        assert_eq!((rig.send(), rig.send()), (Some(new), None));
    }
    rig.ack(BASE_RTT_PS);
    (0..20).for_each(|_| assert_eq!(rig.send(), Some(new)));
}
