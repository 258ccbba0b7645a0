//! What the next connection to the same host starts with (RPP-18).

use super::*;
use crate::path::PathHistory;

impl Rig {
    fn ends(&self) -> Option<PathHistory> {
        self.plus.path_history()
    }

    fn begins(now_ps: u64, learned: &PathHistory) -> Self {
        let mut rig = Self::new(|_| {});
        rig.plus.restore_history(rig.path.at_ps(now_ps), learned);
        rig
    }
}

fn valid(learned: &PathHistory) -> Vec<u16> {
    learned.good().iter().map(|ev| ev.index()).collect()
}

/// Returns a connection that has received this number of values, the last of them twice.
fn with_values(count: u16) -> Rig {
    let mut rig = Rig::new(|_| {});
    (0..count).for_each(|ev| rig.ack(RTT_PS, &[100 + ev], false, 0));
    rig.ack(RTT_PS, &[100 + count - 1], false, 0);
    rig
}

//= docs/specs/reps-plus.md#RPP-18 memory across connections
#[test]
fn the_next_connection_starts_with_the_values_of_the_last() {
    let mut first = with_values(3);
    // Values that were already reused count, too.
    first.send();
    let learned = first.ends().unwrap();
    assert_eq!((valid(&learned), learned.suspect), (Vec::from([100, 101, 102]), None));
    let mut second = Rig::begins(2 * RTT_PS, &learned);
    assert_eq!([second.send(), second.send(), second.send()], [100, 101, 102]);
    assert_eq!(second.plus.valid_evs(), 0);
}

//= docs/specs/reps-plus.md#RPP-18 that ends without cached EVs and without a suspect
#[test]
fn a_connection_without_values_passes_none_on() {
    assert_eq!(Rig::new(|_| {}).ends(), None);
    let mut off = Rig::new(|own| own.remember = false);
    off.ack(RTT_PS, &[7], false, 0);
    assert_eq!(off.ends(), None);
    off.plus.restore_history(off.path.at_ps(RTT_PS), &with_values(3).ends().unwrap());
    assert_eq!(off.plus.valid_evs(), 1);
}

//= docs/specs/reps-plus.md#RPP-18 probed at once
#[test]
fn a_suspect_is_passed_on_and_probed_at_once() {
    let mut first = with_values(12);
    first.lose(RTT_PS, 105);
    let learned = first.ends().unwrap();
    assert!(!valid(&learned).contains(&105) && valid(&learned).len() == 11);
    let mut second = Rig::begins(3 * RTT_PS, &learned);
    assert_eq!(second.plus.suspect(), Some(Ev::new(105)));
    assert!(!second.plus.is_frozen());
    assert_eq!(second.plus.poll_probe(second.path.at_ps(3 * RTT_PS)), Some(Ev::new(105)));
    // With all values used it cycles through the buffer and does not explore.
    let sent: Vec<u16> = (0..40).map(|_| second.send()).collect();
    assert!(sent.iter().all(|ev| (100..112).contains(ev) && *ev != 105), "{sent:?}");
    (0..2).for_each(|_| second.answer(4 * RTT_PS, 105));
    assert_eq!(second.plus.suspect(), None);
}

//= docs/specs/reps-plus.md#RPP-18 frozen or not
#[test]
fn the_successor_of_a_frozen_connection_is_frozen() {
    let mut first = with_values(12);
    let frozen_ps = first.freeze(RTT_PS, 105);
    assert!(first.plus.is_frozen());
    let mut second = Rig::begins(frozen_ps + RTT_PS, &first.ends().unwrap());
    assert!(second.plus.is_frozen());
    second.marked_ack(at(frozen_ps + 3 * RTT_PS), at(frozen_ps + 2 * RTT_PS));
    assert!(second.plus.is_frozen());
    assert_eq!(second.thaw(105), 8);
    assert_eq!(second.log.last().map(|(_, event)| *event), Some(Event::FreezeExited));
}

//= docs/specs/reps-plus.md#RPP-18 at least half
#[test]
fn few_values_are_passed_on_without_the_suspect() {
    let begins = |count: u16, paths: u16| {
        let mut first = with_values(count);
        first.lose(RTT_PS, 900);
        let mut second = Rig::new(|_| {});
        if paths > 0 {
            let paths: Vec<_> = (0..paths).map(|ev| [Ev::new(ev); 8]).collect();
            second.plus.on_reachable(second.path.at_ps(0), &paths);
        }
        second.plus.restore_history(second.path.at_ps(RTT_PS), &first.ends().unwrap());
        second.plus.suspect().is_some()
    };
    assert_eq!([begins(7, 0), begins(8, 0)], [false, true]);
    assert_eq!([begins(3, 8), begins(4, 8), begins(7, 64), begins(8, 64)], [false, true, false, true]);
}

//= docs/specs/reps-plus.md#RPP-18 memory across connections
#[test]
fn values_outside_the_set_are_not_passed_on() {
    let learned = with_values(3).ends().unwrap();
    let mut few = Rig::new(|_| {});
    few.path.evs = 102;
    few.plus.restore_history(few.path.at_ps(RTT_PS), &learned);
    assert_eq!(few.plus.valid_evs(), 2);
}
