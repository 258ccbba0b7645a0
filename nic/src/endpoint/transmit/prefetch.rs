//! Prefetches the state of connections.
//!
//! It lies behind three pointers, and with many connections none of it is in a cache. The same step
//! is taken for several connections before the next one, so that their cache misses overlap.

use std::hint::black_box;

use spray_wire::peek_packet;

use crate::device::{Device, Received};
use crate::endpoint::{ConnectionId, Endpoint, connection::table::Table, machine::Machine};

/// With fewer connections the state stays in the cache.
const MANY: usize = 32;
/// Frames per prefetch of their connections.
pub(in crate::endpoint) const AHEAD: usize = 16;

impl<D: Device> Endpoint<D> {
    /// Prefetches for arrived frames.
    pub(in crate::endpoint) fn prefetch_arrivals(&self, arrivals: &[Received]) {
        let table = &self.machine.table;
        if table.len() < MANY {
            return;
        }
        let mut packets = [None; AHEAD];
        for (packet, arrival) in packets.iter_mut().zip(arrivals) {
            *packet = peek_packet(self.link.device.frame(&arrival.frame, arrival.len), self.machine.config.ports);
        }
        let packets = packets.into_iter().flatten().map(|(number, psn)| (table.slot_of(ConnectionId(number)), psn));
        let mut mix = packets.clone().fold(0, |mix, (slot, _)| mix ^ table.prefetch_entry(slot));
        mix ^= packets.clone().fold(0, |mix, (slot, _)| mix ^ table.prefetch_flow(slot));
        mix ^= packets.fold(0, |mix, (slot, psn)| mix ^ table.prefetch_halves(slot, psn));
        black_box(mix);
    }
}

impl Machine {
    /// Prefetches for the next turns.
    #[inline]
    pub(in crate::endpoint) fn prefetch_turns(&self) {
        if self.table.len() >= MANY {
            self.prefetch_next();
        }
    }

    fn prefetch_next(&self) {
        let Self { table, shared, .. } = self;
        let slot = |ahead| shared.host.turn(ahead).map(|number| table.slot_of(ConnectionId(number)));
        let first = slot(0).map_or(0, |slot| table.prefetch_halves(slot, 0));
        let second = slot(1).map_or(0, |slot| table.prefetch_flow(slot));
        black_box(first ^ second ^ slot(2).map_or(0, |slot| table.prefetch_entry(slot)));
    }
}

impl Table {
    fn prefetch_entry(&self, slot: u32) -> u64 {
        self.at(slot).map_or(0, |connection| connection.cookie ^ u64::from(connection.unread))
    }

    fn prefetch_flow(&self, slot: u32) -> u64 {
        let flow = self.at(slot).and_then(|connection| connection.flow.as_deref());
        flow.map_or(0, |flow| flow.sending.sender.window_bytes() ^ flow.receiving.receiver.cumulative())
    }

    fn prefetch_halves(&self, slot: u32, psn: u64) -> u64 {
        let flow = self.at(slot).and_then(|connection| connection.flow.as_deref());
        flow.map_or(0, |flow| flow.sending.sender.prefetch() ^ flow.receiving.receiver.prefetch(psn))
    }
}
