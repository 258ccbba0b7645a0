//! What the switches of a chassis tell each other about a frame. It goes with the frame from switch to switch, and ends with the chassis.

use core::cell::Cell;

use crate::flow_hash::Key;
use crate::hash::mix;
use crate::word::Word;

/// What is known of a frame since it entered the chassis; 24 bytes. Only schemes that remember have it.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct Trail<W = Cell<u64>> {
    /// What the switches note, each scheme in its own way; 0 where the frame enters.
    pub note: W,
    /// The switch by which it entered, and [`REPLY`].
    entry: W,
    /// Names the flow, with its data and against it.
    flow: W,
}

/// The frame goes against the data of its flow: an acknowledgement, or other control.
const REPLY: u64 = 1 << 32;

impl<W: Word> Trail<W> {
    /// A frame with these fields enters at `switch`; a `reply` goes against the data.
    #[inline(always)]
    pub fn begin(&self, switch: u32, reply: bool, key: &Key) {
        self.note.store(0);
        self.entry.store(u64::from(switch) | if reply { REPLY } else { 0 });
        self.flow.store(flow(reply, key));
    }

    /// The switch by which the frame entered: that of the host that sent it.
    #[inline(always)]
    pub fn source(&self) -> u32 {
        self.entry.load() as u32
    }

    /// Whether it goes against the data of its flow.
    #[inline(always)]
    pub fn is_reply(&self) -> bool {
        self.entry.load() & REPLY != 0
    }

    /// A digest of the flow's addresses and entropy value, the same both ways; never 0.
    #[inline(always)]
    pub fn flow(&self) -> u64 {
        self.flow.load()
    }

    /// All of it, for a frame that waits for its next switch.
    #[inline(always)]
    pub fn words(&self) -> [u64; 3] {
        [self.note.load(), self.entry.load(), self.flow.load()]
    }

    /// Goes on with the frame of these words.
    #[inline(always)]
    pub fn resume(&self, [note, entry, flow]: [u64; 3]) {
        self.note.store(note);
        self.entry.store(entry);
        self.flow.store(flow);
    }
}

/// Replies come from the port that they echo, so that turning the addresses round gives the flow of the data.
#[inline(always)]
fn flow(reply: bool, key: &Key) -> u64 {
    let addresses = if reply { key.addresses.rotate_left(32) } else { key.addresses };
    mix(addresses ^ mix(u64::from(key.ports))) | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{assert_eq, assert_ne};

    #[test]
    fn data_and_replies_are_one_flow() {
        let there = Key { addresses: 0x0200_000a_0100_000a, ports: 0xc001_12b9, label: 0 };
        let back = Key { addresses: 0x0100_000a_0200_000a, ..there };
        assert_eq!(flow(false, &there), flow(true, &back));
        assert_ne!(flow(false, &there), flow(false, &back));
        assert_ne!(flow(false, &there), flow(false, &Key { ports: 0xc002_12b9, ..there }));
    }

    #[test]
    fn a_trail_goes_on_where_it_was() {
        let (one, other) = (Trail::<Cell<u64>>::default(), Trail::<Cell<u64>>::default());
        one.begin(7, true, &Key { addresses: 1, ports: 2, label: 3 });
        one.note.store(5);
        other.resume(one.words());
        assert_eq!((other.note.load(), other.source(), other.is_reply()), (5, 7, true));
        assert_eq!(other.flow(), one.flow());
    }
}
