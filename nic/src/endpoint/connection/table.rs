//! The connection table: a fixed number of slots, reused in the order in which they became free.

use std::collections::{HashMap, VecDeque};

use spray_core::flow::{ReceiverStats, SenderStats};
use spray_core::loss::RttHistogram;

use crate::endpoint::{
    ConnectionId, ConnectionStats,
    connection::{Connection, PeerKey},
};

/// A connection, or the counters of the slot's last one.
#[derive(Debug, Default)]
struct Slot {
    /// The number of connections that the slot has had.
    generation: u32,
    connection: Option<Box<Connection>>,
    last: Option<(ConnectionId, ConnectionStats)>,
}

#[derive(Debug)]
pub(crate) struct Table {
    slots: Vec<Slot>,
    /// The number of low bits of a connection's number that are its slot. The others are the slot's
    /// generation.
    slot_bits: u32,
    free: VecDeque<u32>,
    by_peer: HashMap<PeerKey, u32>,
    /// The counters of connections that have ended.
    ended: (SenderStats, ReceiverStats),
    ended_rtts: RttHistogram,
}

impl Table {
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            slots: (0..capacity).map(|_| Slot::default()).collect(),
            slot_bits: capacity.next_power_of_two().trailing_zeros(),
            free: (0..capacity).collect(),
            by_peer: HashMap::with_capacity(capacity as usize),
            ended: Default::default(),
            ended_rtts: RttHistogram::default(),
        }
    }

    pub(crate) fn at(&self, slot: u32) -> Option<&Connection> {
        self.slots.get(slot as usize)?.connection.as_deref()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    pub(crate) fn slot(&mut self, index: u32) -> Option<&mut Connection> {
        self.slots.get_mut(index as usize)?.connection.as_deref_mut()
    }

    /// Returns the slot that a connection has or had.
    #[inline]
    pub(crate) fn slot_of(&self, id: ConnectionId) -> u32 {
        id.0 & ((1 << self.slot_bits) - 1)
    }

    /// Returns the slot of a connection, if it still exists.
    pub(crate) fn find(&self, id: ConnectionId) -> Option<u32> {
        let index = self.slot_of(id);
        let connection = self.slots.get(index as usize)?.connection.as_ref()?;
        (connection.id == id).then_some(index)
    }

    /// Returns a connection, if it still exists.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slot_of(id);
        self.slot(slot).filter(|connection| connection.id == id)
    }

    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots.get(self.find(id)? as usize)?.connection.as_deref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.slots.iter().filter_map(|slot| slot.connection.as_deref())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.slots.iter_mut().filter_map(|slot| slot.connection.as_deref_mut())
    }

    /// Returns the slot of a connection by the peer's number and cookie.
    pub(crate) fn find_peer(&self, key: &PeerKey) -> Option<u32> {
        self.by_peer.get(key).copied()
    }

    /// Records the peer's number and cookie of a connection.
    pub(crate) fn name(&mut self, key: PeerKey, index: u32) {
        self.by_peer.insert(key, index);
    }

    /// Puts a connection into a free slot; `make` gets its number.
    pub(crate) fn insert(&mut self, make: impl FnOnce(ConnectionId) -> Connection) -> Option<u32> {
        let index = self.free.pop_front()?;
        let slot = self.slots.get_mut(index as usize)?;
        let id = ConnectionId(slot.generation << self.slot_bits | index);
        slot.generation = slot.generation.wrapping_add(1);
        slot.connection = Some(Box::new(Connection { slot: index, ..make(id) }));
        Some(index)
    }

    /// Removes a connection. Its counters remain until the slot's next connection ends.
    pub(crate) fn remove(&mut self, index: u32) -> Option<Box<Connection>> {
        let slot = self.slots.get_mut(index as usize)?;
        let connection = slot.connection.take()?;
        let stats = connection.stats();
        slot.last = Some((connection.id, stats));
        self.ended.0.add(&stats.sender);
        self.ended.1.add(&stats.receiver);
        connection.rtts().into_iter().for_each(|rtts| self.ended_rtts.add(rtts));
        self.by_peer.remove(&connection.peer_key());
        self.free.push_back(index);
        Some(connection)
    }

    /// Returns the counters of all connections, past ones included.
    pub(crate) fn totals(&self) -> (SenderStats, ReceiverStats) {
        self.iter().map(Connection::stats).fold(self.ended, |(mut sender, mut receiver), stats| {
            sender.add(&stats.sender);
            receiver.add(&stats.receiver);
            (sender, receiver)
        })
    }

    /// Returns the round-trip times of all connections, past ones included.
    pub(crate) fn rtts(&self) -> RttHistogram {
        let mut all = self.ended_rtts.clone();
        self.iter().filter_map(Connection::rtts).for_each(|rtts| all.add(rtts));
        all
    }

    pub(crate) fn stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        let slot = self.slots.get(self.slot_of(id) as usize)?;
        match &slot.connection {
            Some(connection) if connection.id == id => Some(connection.stats()),
            _ => slot.last.filter(|(last, _)| *last == id).map(|(_, stats)| stats),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use spray_core::Time;

    use super::*;
    use crate::endpoint::{connection::Stage, tests};

    fn connection(id: ConnectionId) -> Connection {
        Connection::new(id, tests::peer(1, false), 0, Stage::Connecting, tests::flow(false), Time::ZERO)
    }

    /// Returns a table whose slots wrap their generation after `more` further connections.
    fn old(capacity: u32, more: u32) -> Table {
        let mut table = Table::new(capacity);
        let most = u32::MAX >> table.slot_bits;
        table.slots.iter_mut().for_each(|slot| slot.generation = most - more);
        table
    }

    //= docs/specs/endpoint.md#END-36 before 2^31 others
    #[test]
    fn a_number_is_not_used_again_soon() {
        for (capacity, recent) in [(1, 2_000), (3, 2_000), (16, 5_000), (65_536, 70_000)] {
            for mut table in [Table::new(capacity), old(capacity, recent / capacity / 2)] {
                let mut ended = VecDeque::new();
                for round in 0..recent {
                    let index = table.insert(connection).unwrap();
                    let id = table.at(index).unwrap().id;
                    assert_eq!(
                        (table.find(id), table.slot_of(id), table.at(index).unwrap().slot),
                        (Some(index), index, index)
                    );
                    assert_eq!(table.remove(index).unwrap().id, id);
                    assert!(table.find(id).is_none() && table.stats(id).is_some());
                    ended.push_back(id);
                    // None of the recent connections shares its number with another.
                    if round % 97 == 0 {
                        assert!(ended.iter().all(|old| table.get(*old).is_none()));
                    }
                }
                let mut numbers: Vec<_> = ended.into();
                numbers.sort_unstable();
                assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]), "{capacity}");
                assert_eq!((table.len(), table.free.len()), (0, capacity as usize));
            }
        }
    }
}
