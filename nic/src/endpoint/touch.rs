//! Reads ahead what frames and turns will be worked on with, so that the cache has it then.
//!
//! A connection's state lies behind three pointers, and with many connections none of it is in a cache. Here the same
//! step is taken for several connections before the next one, so that their misses overlap.

use std::hint::black_box;

use spray_wire::peek_packet;

use super::{Endpoint, machine::Machine, table::Table};
use crate::device::{Device, Received};

/// With fewer connections their state stays in the cache by itself.
const MANY: usize = 32;
/// Frames whose connections are read ahead together.
pub(super) const AHEAD: usize = 16;

impl<D: Device> Endpoint<D> {
    /// Reads ahead for frames that have arrived.
    pub(super) fn touch_arrivals(&self, arrivals: &[Received]) {
        let table = &self.machine.table;
        if table.len() < MANY {
            return;
        }
        let mut packets = [None; AHEAD];
        for (packet, arrival) in packets.iter_mut().zip(arrivals) {
            *packet = peek_packet(self.link.device.frame(&arrival.frame, arrival.len));
        }
        let packets = packets.into_iter().flatten();
        let slots = |number: u32| number & 0xffff;
        let mut mix = packets.clone().fold(0, |mix, (number, _)| mix ^ table.touch_entry(slots(number)));
        mix ^= packets.clone().fold(0, |mix, (number, _)| mix ^ table.touch_flow(slots(number)));
        mix ^= packets.fold(0, |mix, (number, psn)| mix ^ table.touch_halves(slots(number), psn));
        black_box(mix);
    }
}

impl Machine {
    /// Reads ahead for the next turns. With every connection busy, turns come in the same order again and again.
    pub(super) fn touch_turns(&mut self, slot: u32) {
        if self.table.len() < MANY {
            return;
        }
        let table = &mut self.table;
        table.note_turn(slot);
        let first = table.turn_after(slot);
        let second = table.turn_after(first);
        let third = table.turn_after(second);
        black_box(table.touch_halves(first, 0) ^ table.touch_flow(second) ^ table.touch_entry(third));
    }
}

impl Table {
    fn touch_entry(&self, slot: u32) -> u64 {
        self.at(slot).map_or(0, |connection| connection.cookie ^ u64::from(connection.unread))
    }

    fn touch_flow(&self, slot: u32) -> u64 {
        let flow = self.at(slot).and_then(|connection| connection.flow.as_deref());
        flow.map_or(0, |flow| flow.sending.sender.window_bytes() ^ flow.receiving.receiver.cumulative())
    }

    fn touch_halves(&self, slot: u32, psn: u64) -> u64 {
        let flow = self.at(slot).and_then(|connection| connection.flow.as_deref());
        flow.map_or(0, |flow| flow.sending.sender.touch() ^ flow.receiving.receiver.touch(psn))
    }
}
