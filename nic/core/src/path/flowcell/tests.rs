//! Tests of flowcells; clauses are those of `docs/specs/flowcell.md`.

use std::vec::Vec;

use super::*;
use crate::path::AckInfo;
use crate::rng;
use crate::tests::{On, path_of};

fn flowcell(evs: u16, change: impl FnOnce(&mut FlowcellConfig)) -> On<Flowcell> {
    let path = Path { evs, seed: Some(7), ..path_of(1_000, 10) };
    let mut own = FlowcellConfig::default();
    change(&mut own);
    On { scheme: Flowcell::make(&own, &path, &mut rng::stream(1, 0)), path }
}

/// Returns the distance of each packet's entropy value from the first one.
fn steps(flowcell: &mut On<Flowcell>, sizes: &[u32]) -> Vec<u16> {
    let (first, evs) = (flowcell.state.ev.index(), flowcell.path.evs);
    let mut send = |bytes: &u32| {
        flowcell
            .scheme
            .next_ev(flowcell.path.at_ps(0), &SendInfo { bytes: *bytes, ..SendInfo::default() }, &mut rng::stream(2, 0))
            .index()
    };
    sizes.iter().map(|bytes| (send(bytes) + evs - first) % evs).collect()
}

#[test]
fn a_packet_that_does_not_fit_begins_the_next_flowcell() {
    //= docs/specs/flowcell.md#FLOWCELL-1 the first EV
    //= docs/specs/flowcell.md#FLOWCELL-2 A full flowcell
    //= docs/specs/flowcell.md#FLOWCELL-3 the next EV
    let of = |cell_bytes: u64, sizes: &[u32]| {
        steps(&mut flowcell(64, |flowcell| flowcell.cell_bytes = ByteSize::new(cell_bytes)), sizes)
    };
    assert_eq!(of(10, &[4, 4, 4, 4, 2, 1]), [0, 0, 1, 1, 1, 2]);
    assert_eq!(of(10, &[11, 10, 1, 9, 1]), [0, 1, 2, 2, 3]);
    assert_eq!(of(10, &[5, 5, 5, 5]), [0, 0, 1, 1], "filled exactly");
    assert_eq!(of(1, &[9, 9, 9]), [0, 1, 2]);
    // 64 KiB hold fifteen packets of 4,150 bytes.
    let cells = steps(&mut flowcell(64, |_| ()), &[4_150; 46]);
    assert_eq!([cells[14], cells[15], cells[29], cells[30], cells[45]], [0, 1, 1, 2, 3]);
}

#[test]
fn paths_take_turns_or_are_drawn() {
    //= docs/specs/flowcell.md#FLOWCELL-3 the next EV
    let in_turn = steps(&mut flowcell(5, |flowcell| flowcell.cell_bytes = ByteSize::new(1)), &[1; 12]);
    assert_eq!(in_turn, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]);
    let mut random =
        flowcell(5, |flowcell| (flowcell.cell_bytes, flowcell.order) = (ByteSize::new(1), FlowcellOrder::Random));
    let mut rng = rng::stream(3, 0);
    let mut counts = [0; 5];
    for _ in 0..5_000 {
        counts[usize::from(
            random
                .scheme
                .next_ev(random.path.at_ps(0), &SendInfo { bytes: 1, ..SendInfo::default() }, &mut rng)
                .index(),
        )] += 1;
    }
    assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
}

#[test]
fn only_a_timeout_ends_a_flowcell_early() {
    //= docs/specs/flowcell.md#FLOWCELL-4 timeouts
    let mut flowcell = flowcell(64, |_| ());
    for (cause, step) in [(LossCause::Trimmed, 0), (LossCause::SackGap, 0), (LossCause::Timeout, 1)] {
        assert_eq!(steps(&mut flowcell, &[100]), [0]);
        flowcell.scheme.on_loss(flowcell.path.at_ps(0), &LossInfo { cause, ..LossInfo::default() }, &mut ());
        flowcell.scheme.on_ack(flowcell.path.at_ps(0), &AckInfo { marked: true, ..AckInfo::default() }, &mut ());
        assert_eq!(steps(&mut flowcell, &[100, 100]), [step; 2], "{cause:?}");
    }
}

#[test]
fn state_takes_eight_bytes() {
    assert_eq!(Flowcell::STATE_BYTES, 8);
}
