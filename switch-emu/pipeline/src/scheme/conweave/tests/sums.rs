//! Sums over switches.

use super::*;

//= docs/specs/conweave.md#CWV-20 counts
#[test]
fn counts_of_switches_add_up_and_what_was_most_at_once_is_the_greater() {
    let counts = |by: u64, most: u64| Counts {
        rerouted: by,
        held: 2 * by,
        held_bytes: most,
        queues: 100 - most,
        timeouts: 3 * by,
        no_queue: 4 * by,
        no_memory: 5 * by,
        no_entry: 6 * by,
        replies: 7 * by,
        clears: 8 * by,
        notifies: 9 * by,
    };
    let both = Counts { held_bytes: 70, queues: 60, ..counts(13, 0) };
    assert_eq!(counts(3, 70).with(counts(10, 40)), both);
    assert_eq!(counts(10, 40).with(counts(3, 70)), both);
}
