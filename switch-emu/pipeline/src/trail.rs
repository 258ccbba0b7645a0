//! Data that switches attach to a frame inside a chassis.

use core::cell::Cell;

use spray_wire::switch_view::PacketFields;

use crate::flow_hash::Key;
use crate::hash::mix;
use crate::word::Word;

/// The trail of a frame; 64 bytes. Only for schemes that remember.
#[repr(C)]
#[derive(Clone, Debug, Default)]
pub struct Trail<W = Cell<u64>> {
    /// The note of the scheme; 0 where the frame enters.
    pub note: W,
    /// The ingress switch, [`REPLY`], [`ACK`], and the hops of an acknowledged packet.
    entry: W,
    /// A digest of the flow, the same in both directions.
    flow: W,
    /// See [`PacketFields::number`] and [`PacketFields::stamp_ps`].
    number: W,
    stamp: W,
    /// The last egress port plus 1.
    port: W,
    /// See [`Trail::more`].
    more: [W; 2],
}

/// Words of a trail.
pub const WORDS: usize = 8;

/// The frame is against the data of its flow: an acknowledgement, or other control.
const REPLY: u64 = 1 << 32;
const ACK: u64 = 1 << 33;
const HOPS_SHIFT: u32 = 40;

impl<W: Word> Trail<W> {
    /// Begins the trail of a frame with these fields at `switch`; a `reply` is against the data.
    #[inline(always)]
    pub fn begin(&self, switch: u32, reply: bool, key: &Key, packet: &PacketFields) {
        let kind = if reply { REPLY } else { 0 } | if packet.is_ack { ACK } else { 0 };
        self.note.store(0);
        self.entry.store(u64::from(switch) | kind | u64::from(packet.hops) << HOPS_SHIFT);
        self.flow.store(flow(reply, key));
        self.number.store(packet.number);
        self.stamp.store(packet.stamp_ps);
        self.port.store(0);
        self.set_more([0; 2]);
    }

    /// Begins the trail of a control frame that `switch` sends to another one, about this flow.
    #[cfg(not(target_arch = "bpf"))]
    pub fn begin_notice(&self, switch: u32, note: u64, flow: u64, more: [u64; 2]) {
        self.begin(switch, true, &Key::default(), &PacketFields::default());
        self.note.store(note);
        self.flow.store(flow);
        self.set_more(more);
    }

    /// Returns further notes, such as times; 0 where the frame enters.
    #[inline(always)]
    pub fn more(&self) -> [u64; 2] {
        [self.more[0].load(), self.more[1].load()]
    }

    /// Sets the further notes.
    #[inline(always)]
    pub fn set_more(&self, [first, second]: [u64; 2]) {
        self.more[0].store(first);
        self.more[1].store(second);
    }

    /// Returns the ingress switch: that of the sending host.
    #[inline(always)]
    pub fn source(&self) -> u32 {
        self.entry.load() as u32
    }

    /// Returns whether the frame is against the data of its flow.
    #[inline(always)]
    pub fn is_reply(&self) -> bool {
        self.entry.load() & REPLY != 0
    }

    /// Returns whether the frame is an acknowledgement.
    #[inline(always)]
    pub fn acknowledges(&self) -> bool {
        self.entry.load() & ACK != 0
    }

    /// Returns the number of switches that the acknowledged packet passed.
    #[inline(always)]
    pub fn hops(&self) -> u8 {
        (self.entry.load() >> HOPS_SHIFT) as u8
    }

    /// Returns [`PacketFields::number`].
    #[inline(always)]
    pub fn number(&self) -> u64 {
        self.number.load()
    }

    /// Returns [`PacketFields::stamp_ps`].
    #[inline(always)]
    pub fn stamp(&self) -> u64 {
        self.stamp.load()
    }

    /// Returns a digest of the flow, the same in both directions; never 0.
    #[inline(always)]
    pub fn flow(&self) -> u64 {
        self.flow.load()
    }

    /// Sets the egress port.
    #[inline(always)]
    pub fn set_egress_port(&self, port: u32) {
        self.port.store(u64::from(port) + 1);
    }

    /// Returns the egress port of the previous switch.
    #[inline(always)]
    pub fn previous_port(&self) -> Option<u32> {
        match self.port.load() {
            0 => None,
            port => Some(port as u32 - 1),
        }
    }

    /// Returns all words, to store them until the next switch.
    #[inline(always)]
    pub fn words(&self) -> [u64; WORDS] {
        let Self { note, entry, flow, number, stamp, port, more: [first, second] } = self;
        [note, entry, flow, number, stamp, port, first, second].map(Word::load)
    }

    /// Restores all words.
    #[inline(always)]
    pub fn resume(&self, words: [u64; WORDS]) {
        let Self { note, entry, flow, number, stamp, port, more: [first, second] } = self;
        for (word, value) in [note, entry, flow, number, stamp, port, first, second].into_iter().zip(words) {
            word.store(value);
        }
    }
}

/// Replies come from the port that they echo: swapped addresses give the data's flow.
#[inline(always)]
fn flow(reply: bool, key: &Key) -> u64 {
    let addresses = if reply { key.addresses.rotate_left(32) } else { key.addresses };
    mix(addresses ^ mix(u64::from(key.ports))) | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{assert, assert_eq, assert_ne};

    #[test]
    fn data_and_replies_are_one_flow() {
        let there = Key { addresses: 0x0200_000a_0100_000a, ports: 0xc001_12b9, label: 0 };
        let back = Key { addresses: 0x0100_000a_0200_000a, ..there };
        assert_eq!(flow(false, &there), flow(true, &back));
        assert_ne!(flow(false, &there), flow(false, &back));
        assert_ne!(flow(false, &there), flow(false, &Key { ports: 0xc002_12b9, ..there }));
    }

    #[test]
    fn a_stored_trail_continues() {
        let (one, other) = (Trail::<Cell<u64>>::default(), Trail::<Cell<u64>>::default());
        let packet = PacketFields { number: 11, stamp_ps: 12, hops: 13, is_ack: true };
        one.begin(7, true, &Key { addresses: 1, ports: 2, label: 3 }, &packet);
        assert_eq!(one.previous_port(), None);
        one.note.store(5);
        one.set_egress_port(0);
        one.set_more([8, 9]);
        other.resume(one.words());
        assert_eq!((other.note.load(), other.source(), other.previous_port()), (5, 7, Some(0)));
        assert_eq!((other.number(), other.stamp(), other.hops(), other.flow()), (11, 12, 13, one.flow()));
        assert!(other.is_reply() && other.acknowledges());
        assert_eq!(other.more(), [8, 9]);
    }
}
