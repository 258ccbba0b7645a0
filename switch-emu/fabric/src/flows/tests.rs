//! Tables of the rules for triggers and connections.

use super::*;

const ONESHOT: Trigger = Trigger::new(TriggerKind::Oneshot);
const MULTISHOT: Trigger = Trigger::new(TriggerKind::Multishot);

/// Returns the consequences of the start and then of each signal (time, trigger), as text.
fn follows(flows: &[(Start, Option<usize>)], triggers: &[Trigger], signals: &[(u64, usize)]) -> String {
    let mut starts = FlowScheduler::new(flows.iter().copied(), triggers);
    let mut lines = Vec::new();
    let mut tell = |at_ps, due| match due {
        Action::StartFlow(flow) => lines.push(format!("{flow}@{at_ps}")),
        Action::SignalTrigger(trigger) => lines.push(format!("signal {trigger}@{at_ps}")),
    };
    starts.begin(&mut tell);
    signals.iter().for_each(|(at_ps, trigger)| starts.signal(*at_ps, *trigger, &mut tell));
    lines.join(" ")
}

//= docs/specs/triggers.md#TRG-2 Firing
#[test]
fn triggers_fire_according_to_their_kind() {
    let three = [(Start::OnTrigger(0), None); 3];
    let signals = [(10, 0), (20, 0), (30, 0), (40, 0)];
    for (kind, expected) in [
        (TriggerKind::Oneshot, "0@10 1@10 2@10"),
        (TriggerKind::Multishot, "0@10 1@20 2@30"),
        (TriggerKind::MultishotUntil(30), "0@10 1@20"),
        (TriggerKind::Barrier(1), "0@10 1@10 2@10"),
        (TriggerKind::Barrier(3), "0@30 1@30 2@30"),
        (TriggerKind::Barrier(5), ""),
    ] {
        assert_eq!(follows(&three, &[Trigger::new(kind)], &signals), expected, "{kind:?}");
    }
    // If signals are reported out of order, the latest one counts for a barrier.
    let barrier = [Trigger::new(TriggerKind::Barrier(2))];
    assert_eq!(follows(&three[..1], &barrier, &[(20, 0), (10, 0)]), "0@20");
}

//= docs/specs/triggers.md#TRG-3 Delay
//= docs/specs/triggers.md#TRG-4 Chains
#[test]
fn delays_separate_firing_and_its_consequences() {
    let two = [(Start::OnTrigger(0), None), (Start::OnTrigger(1), None)];
    let chain = [Trigger { delay_ps: 5, then: Some(1), ..ONESHOT }, Trigger { delay_ps: 7, ..ONESHOT }];
    assert_eq!(follows(&two, &chain, &[(10, 0), (15, 1), (16, 0)]), "0@15 signal 1@15 1@22");
    // A trigger fires even without a flow to start.
    let many = [Trigger { delay_ps: 1, then: Some(1), ..MULTISHOT }, ONESHOT];
    assert_eq!(follows(&[], &many, &[(1, 0), (2, 0)]), "signal 1@2 signal 1@3");
    let last = [Trigger { delay_ps: u64::MAX, ..ONESHOT }];
    assert_eq!(follows(&two[..1], &last, &[(10, 0)]), format!("0@{}", u64::MAX));
}

//= docs/specs/triggers.md#TRG-5 start in the order of the list
#[test]
fn messages_of_a_connection_start_in_the_order_of_the_list() {
    let at = Start::At;
    for (flows, expected) in [
        (vec![(at(5), None), (at(9), Some(0)), (at(7), Some(1))], "0@5 1@9 2@9"),
        (vec![(at(5), None), (at(3), Some(0)), (at(1), None)], "0@5 1@5 2@1"),
        // One flow waits for a trigger, and later ones wait for that flow.
        (vec![(Start::OnTrigger(0), None), (at(3), Some(0)), (at(50), Some(0))], "0@20 1@20 2@50"),
        (vec![(at(1), None), (Start::OnTrigger(1), Some(0)), (Start::OnTrigger(0), Some(1))], "0@1"),
        (vec![(Start::OnTrigger(0), None), (at(0), None)], "1@0 0@20"),
    ] {
        assert_eq!(follows(&flows, &[ONESHOT, ONESHOT], &[(20, 0)]), expected, "{flows:?}");
    }
    let behind = [(at(1), None), (Start::OnTrigger(1), Some(0)), (Start::OnTrigger(0), Some(1))];
    assert_eq!(follows(&behind, &[ONESHOT, ONESHOT], &[(20, 0), (30, 1)]), "0@1 1@30 2@30");
    assert_eq!(first_flows([None, Some(0), None, Some(1), Some(2)]), [0, 0, 2, 0, 2]);
}

//= docs/specs/triggers.md#TRG-7 So the counts of all flows add up
#[test]
fn counts_of_a_connection_are_divided_by_the_ends_of_its_messages() {
    for (ended, total, shares) in [
        (vec![None], 9, vec![9]),
        (vec![Some((5, 4))], 9, vec![9]),
        (vec![Some((5, 4)), Some((7, 6)), None, None], 9, vec![4, 2, 3, 0]),
        // The second message overtook the first.
        (vec![Some((7, 6)), Some((5, 4)), Some((7, 6))], 9, vec![2, 4, 3]),
        (vec![None, Some((5, 4))], 9, vec![5, 4]),
    ] {
        assert_eq!(share_out(&ended, total, |from, to| to - from), shares, "{ended:?}");
    }
}

#[test]
fn flows_that_never_start_are_detected() {
    let never = |flows: &[(Start, Option<usize>)], triggers: &[Trigger], ended: &[&[usize]]| {
        FlowScheduler::new(flows.iter().copied(), triggers).never_started(|flow| ended[flow].iter().copied())
    };
    let (at, on) = (Start::At(9), Start::OnTrigger);
    assert_eq!(never(&[(at, None), (on(0), None)], &[ONESHOT], &[&[0], &[]]), None);
    assert_eq!(never(&[(at, None), (on(0), None), (on(0), None)], &[MULTISHOT], &[&[0], &[], &[]]), Some(2));
    assert_eq!(never(&[(at, None), (on(0), None), (on(0), None)], &[MULTISHOT], &[&[0], &[0], &[]]), None);
    let chain = [Trigger { delay_ps: 5, then: Some(1), ..ONESHOT }, ONESHOT];
    assert_eq!(never(&[(at, None), (on(1), None)], &chain, &[&[0], &[]]), None);
    // Later flows of its connection never start either.
    assert_eq!(never(&[(on(0), None), (at, Some(0))], &[ONESHOT], &[&[], &[]]), Some(0));
}

#[test]
fn contradictory_flows_are_rejected() {
    let flow = FlowSpec {
        src: 0,
        dst: 1,
        bytes: 1,
        connection: None,
        path_seed: None,
        start: Start::At(0),
        on_sent: None,
        on_received: None,
    };
    let check = |flows: &[FlowSpec], triggers: &[Trigger]| {
        check_flows(flows, triggers, 3).err().map_or_else(String::new, |error| error.to_string())
    };
    let behind = |connection, dst| FlowSpec { connection: Some(connection), dst, ..flow };
    let then = |then| Trigger { then: Some(then), ..ONESHOT };
    let other = "uses the connection of flow";
    for (flows, triggers, expected) in [
        (vec![flow, behind(0, 1), behind(1, 1)], vec![then(1), then(2), ONESHOT], ""),
        (vec![FlowSpec { dst: 3, ..flow }], vec![], "host 0 to host 3 of 3"),
        (vec![FlowSpec { src: 1, ..flow }], vec![], "host 1 to host 1"),
        (vec![FlowSpec { start: Start::OnTrigger(1), ..flow }], vec![ONESHOT], "names trigger 1 of 1"),
        (vec![flow, behind(0, 2)], vec![], other),
        (vec![flow, behind(1, 1)], vec![], other),
        (vec![flow], vec![then(0)], "trigger 0 of 1 signals"),
        (vec![flow], vec![then(1), then(2), then(1)], "trigger 0 of 3 signals"),
        (vec![flow], vec![then(1)], "one that does not exist"),
    ] {
        let found = check(&flows, &triggers);
        assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{found}: {flows:?} {triggers:?}");
    }
}
