//! Loss declarations of a sender, and retransmissions.

use proptest::prelude::*;

use super::*;

//= docs/specs/transport.md#TRN-34 timeout per transmission
#[test]
fn only_packets_that_timed_out_are_resent() {
    let mut rig = Rig::new(FlowConfig { sack_gap_packets: None, ..open_config() });
    (0..4).for_each(|message| rig.sender.send_message(message, 1000).unwrap());
    let first = rig.drain(0);
    (4..6).for_each(|message| rig.sender.send_message(message, 1000).unwrap());
    rig.drain(40 * US);
    rig.ack_each(10 * US, 0, [1, 3]);
    assert_eq!(rig.wakes_ps(), Some(50 * US));
    rig.timeout(50 * US - Time::STEP_PS);
    assert_eq!(rig.lost(), (0, 0, 0));
    rig.timeout(50 * US);
    let again = rig.drain(50 * US);
    assert_eq!(again.iter().map(|data| data.psn).collect::<Vec<_>>(), [0, 2]);
    //= docs/specs/transport.md#TRN-2 retransmissions
    for data in again {
        let original = first[data.psn as usize];
        assert!(data.retransmit && data.ack_now);
        assert_eq!(data, Data { timestamp: at(50 * US), ack_now: true, retransmit: true, ..original });
    }
    assert_eq!(rig.events.iter().filter(|(_, e)| matches!(e, Event::Timeout { .. })).count(), 2);
    let retransmit = Event::Retransmit { psn: 2, cause: LossCause::Timeout };
    assert!(rig.events.contains(&(at(50 * US), retransmit)));
}

/// Round trips were long when the packet was lost, and are short since.
//= docs/specs/transport.md#TRN-33 largest recent round-trip time
//= docs/specs/reps.md#REPS-15 networks that do not trim
#[test]
fn congestion_a_timeout_ago_is_not_a_failure() {
    for (congested, freezes) in [(30 * US, 0), (10 * US, 1)] {
        let balancer = BalancerKind::Reps.into();
        let mut rig = Rig::new(FlowConfig { balancer, sack_gap_packets: None, ..open_config() });
        for step in 0..40 {
            let now_ps = step * 5 * US;
            rig.sender.send_message(step as u32, 1000).unwrap();
            rig.psns(now_ps);
            if step == 6 {
                rig.ack(now_ps, selective(0, now_ps - congested));
            }
            if step > 3 {
                rig.ack(now_ps, selective(step - 2, now_ps - 10 * US));
            }
            rig.timeout(now_ps);
            if rig.lost() != (0, 0, 0) {
                break;
            }
        }
        assert_eq!(rig.lost(), (1, 0, 0));
        let entered = rig.events.iter().filter(|(_, event)| matches!(event, Event::FreezeEntered { .. })).count();
        assert_eq!(entered, freezes, "after {congested} ps");
    }
}

//= docs/specs/transport.md#TRN-32 backoff
#[test]
fn timeouts_in_a_row_back_off_and_progress_resets_them() {
    let mut rig = Rig::new(open_config());
    rig.sender.send_message(1, 2000).unwrap();
    rig.drain(0);
    let mut gaps = vec![];
    let mut now_ps = 0;
    for _ in 0..5 {
        let at_ps = rig.wakes_ps().unwrap();
        gaps.push((at_ps - now_ps) / US);
        now_ps = at_ps;
        rig.timeout(now_ps);
        assert_eq!(rig.psns(now_ps), [0, 1], "a flight that expires together counts once");
    }
    assert_eq!(gaps, [100, 200, 400, 800, 800]);
    rig.ack(now_ps + 10 * US, selective(1, now_ps));
    assert_eq!(rig.wakes_ps(), Some(now_ps + 50 * US));
}

/// Sends `count` packets at 0, 1, 2, ... us.
fn spaced(count: u64, config: FlowConfig) -> Rig {
    let mut rig = Rig::new(config);
    for psn in 0..count {
        rig.sender.send_message(psn as u32, 1000).unwrap();
        assert_eq!(rig.psns(psn * US), [psn]);
    }
    rig
}

//= docs/specs/transport.md#TRN-35 gap rule
#[test]
fn a_gap_is_a_loss_after_enough_arrivals_and_enough_time() {
    let mut rig = spaced(12, FlowConfig { sack_gap_packets: Some(4), ..open_config() });
    for psn in 1..4 {
        rig.ack(psn * US + 10 * US, selective(psn, psn * US));
    }
    rig.timeout(30 * US);
    assert_eq!(rig.lost(), (0, 0, 0), "three arrivals");
    let mut rig = spaced(12, FlowConfig { sack_gap_packets: Some(4), ..open_config() });
    (1..5).for_each(|psn| rig.ack(psn * US + 4 * US, selective(psn, psn * US)));
    assert_eq!(rig.lost(), (0, 0, 0), "8 us after it was sent, with round trips of 4 us");
    rig.ack(11 * US, selective(7, 7 * US));
    assert_eq!(rig.lost(), (0, 1, 0), "more than 2 5/8 round trips");
    assert_eq!(rig.psns(11 * US), [0]);
}

//= docs/specs/transport.md#TRN-35 gap rule
#[test]
fn reordering_within_a_round_trip_is_not_a_loss() {
    let mut rig = Rig::new(FlowConfig { sack_gap_packets: Some(2), ..open_config() });
    (0..10).for_each(|message| rig.sender.send_message(message, 1000).unwrap());
    rig.drain(0);
    (1..10).for_each(|psn| rig.ack(10 * US + psn * Time::STEP_PS, selective(psn, 0)));
    assert_eq!(rig.lost(), (0, 0, 0));
    let deadline_ps = rig.wakes_ps().unwrap();
    let smoothed_ps = rig.sender.rtt().smoothed_ps();
    let patience_ps = smoothed_ps + smoothed_ps / 8 + 6 * (smoothed_ps / 4);
    assert_eq!(at(deadline_ps), at(0).after(patience_ps));
    rig.timeout(deadline_ps);
    assert_eq!(rig.lost(), (0, 1, 0), "no further ACK is needed");
}

//= docs/specs/transport.md#TRN-35 gap rule
#[test]
fn a_recently_slow_path_is_waited_for() {
    let mut rig = Rig::new(FlowConfig { sack_gap_packets: Some(2), ..open_config() });
    (0..6).for_each(|message| rig.sender.send_message(message, 1000).unwrap());
    rig.drain(0);
    rig.ack(10 * US, selective(1, 0));
    rig.ack(25 * US, selective(2, 0));
    (6..12).for_each(|message| rig.sender.send_message(message, 1000).unwrap());
    rig.drain(26 * US);
    rig.ack_each(36 * US, 26 * US, [0, 3, 4, 5]);
    rig.ack_each(36 * US, 26 * US, [7, 8, 9]);
    let extra_ps = 6 * (rig.sender.rtt().smoothed_ps() / 4);
    assert_eq!(rig.sender.poll_timeout(), Some(at((26 + 25) * US).after(extra_ps)));
}

//= docs/specs/transport.md#TRN-35 gap rule
#[test]
fn without_a_gap_rule_only_timeouts_and_trims_lose() {
    let mut rig = spaced(12, FlowConfig { sack_gap_packets: None, ..open_config() });
    (1..12).for_each(|psn| rig.ack(psn * US + 10 * US, selective(psn, psn * US)));
    rig.timeout(49 * US);
    assert_eq!(rig.lost(), (0, 0, 0));
    rig.timeout(51 * US);
    assert_eq!(rig.lost(), (1, 0, 0));
}

//= docs/specs/transport.md#TRN-36 trimmed packets
#[test]
fn a_trimmed_packet_is_resent_first_and_once() {
    let mut rig = Rig::new(config());
    rig.sender.send_message(1, 100_000).unwrap();
    rig.drain(0);
    let before = (rig.sender.window_bytes(), rig.sender.in_flight_bytes());
    let nack = Nack { psn: 3, ..Nack::default() };
    for _ in 0..2 {
        rig.sender.on_nack(at(5 * US), &nack, &mut rig.events);
    }
    //= docs/specs/transport.md#TRN-37 reports of losses
    assert_eq!((rig.sender.window_bytes(), rig.sender.in_flight_bytes()), (before.0 - 1100, before.1 - 1100));
    assert_eq!((rig.lost(), rig.sender.stats().stale_nacks), ((0, 0, 1), 1));
    // Window and flight were reduced by the same amount: the next ACK makes room, and the trimmed
    // packet is sent first.
    assert_eq!(rig.psns(5 * US), [0; 0]);
    rig.ack(5 * US, selective(0, 0));
    assert_eq!(rig.psns(5 * US), [3]);
    rig.sender.on_nack(at(6 * US), &nack, &mut rig.events);
    assert_eq!(rig.sender.stats().stale_nacks, 2, "NACKs of the first transmission");
    rig.sender.on_nack(at(6 * US), &Nack { timestamp_echo: at(5 * US), ..nack }, &mut rig.events);
    assert_eq!(rig.sender.stats().nacks, 2);
}

//= docs/specs/transport.md#TRN-66 trimmed again
#[test]
fn a_packet_trimmed_again_waits_for_an_ack_or_a_round_trip() {
    // The window is below a packet: one packet at a time is sent.
    let mut rig = Rig::new(fixed(config(), 1, 1 << 40));
    rig.sender.send_message(1, 10_000).unwrap();
    let trim = |rig: &mut Rig, now_ps: u64, psn: u64, sent_ps: u64| {
        let nack = Nack { psn, timestamp_echo: at(sent_ps), ..Nack::default() };
        rig.sender.on_nack(at(now_ps), &nack, &mut rig.events);
    };
    assert_eq!(rig.psns(0), [0]);
    trim(&mut rig, US, 0, 0);
    assert_eq!(rig.psns(US), [0], "at once, the first time");
    let mut sent_ps = US;
    for round_trips in [1, 2, 4, 8] {
        trim(&mut rig, sent_ps + US, 0, sent_ps);
        assert_eq!(rig.psns(sent_ps + US), [0; 0]);
        let next_ps = sent_ps + round_trips * BASE_RTT_PS;
        assert_eq!(rig.wakes_ps(), Some(next_ps));
        assert_eq!(rig.psns(next_ps - US), [0; 0]);
        rig.timeout(next_ps);
        assert_eq!(rig.psns(next_ps), [0]);
        sent_ps = next_ps;
    }
    trim(&mut rig, sent_ps + US, 0, sent_ps);
    assert_eq!(rig.psns(sent_ps + US), [0; 0]);
    // The packet had arrived before: the next one is sent at once, and the wait is the initial one.
    let now_ps = sent_ps + 2 * US;
    rig.ack(now_ps, cumulative(1, sent_ps));
    assert_eq!(rig.psns(now_ps), [1]);
    trim(&mut rig, now_ps + US, 1, now_ps);
    assert_eq!(rig.psns(now_ps + US), [1]);
    trim(&mut rig, now_ps + 2 * US, 1, now_ps + US);
    assert_eq!((rig.psns(now_ps + 2 * US), rig.wakes_ps()), (vec![], Some(now_ps + US + BASE_RTT_PS)));
}

//= docs/specs/transport.md#TRN-37 reports of losses
#[test]
fn every_lost_packet_cuts_the_window_by_its_bytes() {
    let mut rig = Rig::new(config());
    rig.sender.send_message(1, 100_000).unwrap();
    let packets = rig.drain(0).len() as u64;
    let window_bytes = rig.sender.window_bytes();
    rig.timeout(100 * US);
    assert_eq!(rig.lost().0, packets);
    assert_eq!(rig.sender.in_flight_bytes(), 0);
    assert_eq!(rig.sender.window_bytes(), (window_bytes - packets * 1100).max(1100));
    //= docs/specs/transport.md#TRN-2 retransmissions
    let again = rig.poll(100 * US).unwrap();
    assert!(again.psn == 0 && again.ack_now && again.retransmit, "in the middle of a message too");
}

#[test]
fn an_ack_in_time_revokes_a_declared_loss() {
    let mut rig = Rig::new(config());
    rig.sender.send_message(1, 100_000).unwrap();
    rig.drain(0);
    rig.sender.on_nack(at(5 * US), &Nack { psn: 3, ..Nack::default() }, &mut rig.events);
    rig.ack(6 * US, selective(3, 0));
    assert_eq!(rig.sender.stats().late_acks, 1);
    assert!(rig.drain(6 * US).iter().all(|data| !data.retransmit));
}

//= docs/specs/transport.md#TRN-38 reordering window
#[test]
fn a_spurious_loss_widens_the_reorder_window() {
    let config = FlowConfig { sack_gap_packets: Some(2), ..open_config() };
    let mut rig = Rig::new(config);
    let mut start_ps = 0;
    let mut waits = vec![];
    for round in 0..3u64 {
        let first = 6 * round;
        (0..6).for_each(|i| rig.sender.send_message((first + i) as u32, 1000).unwrap());
        rig.drain(start_ps);
        rig.ack_each(start_ps + 8 * US, start_ps, first + 1..first + 6);
        let lost_ps = rig.wakes_ps().unwrap();
        waits.push((lost_ps - start_ps) / 1000);
        rig.timeout(lost_ps);
        // In even rounds the ACK of the first transmission arrives just before the retransmission,
        // in odd rounds just after it.
        if round == 1 {
            assert_eq!(rig.psns(lost_ps), [first]);
        }
        rig.ack(lost_ps + US, selective(first, start_ps));
        start_ps += 1000 * US;
    }
    assert!(waits[1] > waits[0] + 1_900 && waits[2] > waits[1] + 1_900, "two quarters of 8 us in ns: {waits:?}");
    assert_eq!((rig.sender.stats().late_acks, rig.sender.stats().spurious_retransmits), (2, 1));
}

#[test]
fn the_plain_rule_declares_all_missing_packets_lost_at_once() {
    //= docs/specs/transport.md#TRN-39 plain gap rule
    for gap in [6, 32] {
        let mut rig = Rig::new(plain(gap));
        rig.sender.send_message(1, 60 * u64::from(PAYLOAD)).unwrap();
        assert_eq!(rig.drain(0).len(), 60);
        let (now_ps, gap) = (10 * US, u64::from(gap));
        rig.ack_each(now_ps, 0, [1, gap - 3, gap - 1]);
        assert_eq!(rig.lost().1, 0, "one short of {gap}");
        rig.ack_each(now_ps, 0, [gap]);
        let missing: Vec<_> = (0..gap).filter(|psn| ![1, gap - 3, gap - 1].contains(psn)).collect();
        assert_eq!(rig.psns(now_ps), missing, "including one overtaken by only two");
        // A retransmitted packet must be overtaken again, and its arrival overtakes nothing.
        rig.ack_each(now_ps, 0, [gap + 1, gap + 2, 0]);
        assert_eq!(rig.lost().1, missing.len() as u64);
    }
}

fn plain(gap: u32) -> FlowConfig {
    FlowConfig { sack_gap_packets: Some(gap), sack_rule: SackRule::Plain, ..open_config() }
}

proptest! {
    /// OFAN §4: "retransmits all missing packets when the gap between the lowest and highest
    /// acknowledged sequence numbers crosses a configured threshold", evaluated from the lowest
    /// number to the highest.
    #[test]
    fn the_plain_rule_agrees_with_the_papers(gap in 1..12u32, acks in prop::collection::vec(0..64u64, 1..200)) {
        //= docs/specs/transport.md#TRN-39 plain gap rule
        let mut rig = Rig::new(plain(gap));
        rig.sender.send_message(1, 64 * u64::from(PAYLOAD)).unwrap();
        // Transmissions, as the paper numbers packets: the packet of each, and its state.
        let mut sent: Vec<_> = rig.psns(0).iter().map(|&psn| (psn, Is::Missing)).collect();
        for (i, &psn) in acks.iter().enumerate() {
            let now_ps = 10 * US + i as u64 * Time::STEP_PS;
            rig.ack(now_ps, selective(psn, 0));
            // The ACK of a retransmitted packet is ambiguous.
            let is_one = sent.iter().filter(|(of, _)| *of == psn).count() == 1;
            for (_, is) in sent.iter_mut().filter(|sent| **sent == (psn, Is::Missing)) {
                *is = if is_one { Is::Acknowledged } else { Is::Settled };
            }
            let highest = sent.iter().rposition(|(_, is)| *is == Is::Acknowledged);
            let lowest = sent.iter().position(|(_, is)| *is == Is::Missing);
            let mut again = vec![];
            if let (Some(highest), Some(lowest)) = (highest, lowest) && highest >= lowest + gap as usize {
                for (psn, is) in sent[..highest].iter_mut().filter(|(_, is)| *is == Is::Missing) {
                    *is = Is::Settled;
                    again.push(*psn);
                }
            }
            sent.extend(again.iter().map(|&psn| (psn, Is::Missing)));
            prop_assert_eq!(rig.psns(now_ps), again, "after {:?}", &acks[..=i]);
        }
    }
}

/// State of a transmission: unknown, arrived, or no longer relevant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Missing,
    Acknowledged,
    Settled,
}
