//! The connection table: a fixed number of slots, reused in the order in which they became free.

use std::collections::{HashMap, VecDeque};

use spray_core::flow::{ReceiverStats, SenderStats};

use super::{
    ConnectionId, ConnectionStats,
    connection::{Connection, PeerKey},
};

/// One slot: a connection, or the counters of the last one.
#[derive(Debug, Default)]
struct Slot {
    generation: u16,
    connection: Option<Box<Connection>>,
    last: Option<(ConnectionId, ConnectionStats)>,
}

/// All connections of an endpoint.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Vec<Slot>,
    free: VecDeque<u32>,
    by_peer: HashMap<PeerKey, u32>,
    /// What the connections counted that have ended.
    ended: (SenderStats, ReceiverStats),
}

impl Table {
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            slots: (0..capacity).map(|_| Slot::default()).collect(),
            free: (0..capacity).collect(),
            by_peer: HashMap::with_capacity(capacity as usize),
            ended: Default::default(),
        }
    }

    /// The connection in a slot, to look at.
    pub(crate) fn at(&self, slot: u32) -> Option<&Connection> {
        self.slots.get(slot as usize)?.connection.as_deref()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// The connection in a slot.
    pub(crate) fn slot(&mut self, index: u32) -> Option<&mut Connection> {
        self.slots.get_mut(index as usize)?.connection.as_deref_mut()
    }

    /// The slot of a connection, if that very connection still exists.
    pub(crate) fn find(&self, id: ConnectionId) -> Option<u32> {
        let index = id.slot();
        let connection = self.slots.get(index as usize)?.connection.as_ref()?;
        (connection.id == id).then_some(index)
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

    /// The slot of the connection that a peer names so.
    pub(crate) fn find_peer(&self, key: &PeerKey) -> Option<u32> {
        self.by_peer.get(key).copied()
    }

    /// Enters a connection under its peer's number and cookie.
    pub(crate) fn name(&mut self, key: PeerKey, index: u32) {
        self.by_peer.insert(key, index);
    }

    /// Puts a connection into a free slot; `make` gets the number that it will have.
    pub(crate) fn insert(&mut self, make: impl FnOnce(ConnectionId) -> Connection) -> Option<u32> {
        let index = self.free.pop_front()?;
        let slot = &mut self.slots[index as usize];
        let id = ConnectionId(u32::from(slot.generation) << 16 | index);
        slot.generation = slot.generation.wrapping_add(1);
        slot.connection = Some(Box::new(make(id)));
        Some(index)
    }

    /// Takes a connection out. Its counters stay until the slot's next connection ends.
    pub(crate) fn remove(&mut self, index: u32) -> Option<Box<Connection>> {
        let slot = self.slots.get_mut(index as usize)?;
        let connection = slot.connection.take()?;
        let stats = connection.stats();
        slot.last = Some((connection.id, stats));
        self.ended.0.add(&stats.sender);
        self.ended.1.add(&stats.receiver);
        self.by_peer.remove(&connection.peer_key());
        self.free.push_back(index);
        Some(connection)
    }

    /// What all connections have counted, those that have ended included.
    pub(crate) fn totals(&self) -> (SenderStats, ReceiverStats) {
        self.iter().map(Connection::stats).fold(self.ended, |(mut sender, mut receiver), stats| {
            sender.add(&stats.sender);
            receiver.add(&stats.receiver);
            (sender, receiver)
        })
    }

    pub(crate) fn stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        let slot = self.slots.get(id.slot() as usize)?;
        match &slot.connection {
            Some(connection) if connection.id == id => Some(connection.stats()),
            _ => slot.last.filter(|(last, _)| *last == id).map(|(_, stats)| stats),
        }
    }
}
