//! Incoming connections. Each carries the messages of one peer in order.

use std::collections::HashMap;
use std::net::IpAddr;

use bytes::Bytes;
use spray_nic::ConnectionId;

use super::header::Header;
use super::matching::{Arrival, Matching, Receive};
use super::reorder::{ProtocolViolation, ReorderBuffer};
use crate::abi::{FI_MSG, FI_MULTI_RECV, FI_RECV, FI_REMOTE_CQ_DATA, FI_TAGGED, fi_cq_tagged_entry};

/// Maximum bytes of unreceived messages from closed connections.
const MAX_ORPHAN_BYTES: usize = 64 << 20;
/// Maximum number of such messages.
const MAX_ORPHAN_MESSAGES: usize = 65_536;

/// Incoming connections, and messages without receives.
#[derive(Debug, Default)]
pub struct Receiving {
    peers: HashMap<ConnectionId, Incoming>,
    /// Messages of the endpoint to itself have no connection.
    pub matching: Matching<Option<ConnectionId>>,
}

#[derive(Debug)]
struct Incoming {
    from: IpAddr,
    order: ReorderBuffer,
}

impl Receiving {
    pub fn on_accepted(&mut self, connection: ConnectionId, from: IpAddr) {
        self.peers.insert(connection, Incoming { from, order: ReorderBuffer::default() });
    }

    /// Passes messages to `out` that match a receive; RMA messages come without one.
    pub fn on_message(
        &mut self,
        connection: ConnectionId,
        number: u32,
        message: Bytes,
        mut out: impl FnMut(Option<Receive>, Arrival<Option<ConnectionId>>),
    ) -> Result<(), ProtocolViolation> {
        let Incoming { from, order } = self.peers.get_mut(&connection).ok_or(ProtocolViolation)?;
        order.put(number, message)?;
        while let Some(message) = order.take() {
            let header = Header::read(&message).ok_or(ProtocolViolation)?;
            let arrival = Arrival { from: *from, connection: Some(connection), header, message };
            if header.remote {
                out(None, arrival);
            } else if let Some((receive, arrival)) = self.matching.arrive(arrival) {
                out(Some(receive), arrival);
            }
        }
        Ok(())
    }

    /// Keeps the messages of a closed connection, within limits. Returns its peer.
    pub fn on_end(&mut self, connection: ConnectionId) -> Option<IpAddr> {
        let ended = self.peers.remove(&connection)?;
        let (messages, bytes) =
            self.matching.count(|other| other.is_some_and(|other| !self.peers.contains_key(&other)));
        if messages > MAX_ORPHAN_MESSAGES || bytes > MAX_ORPHAN_BYTES {
            self.matching.forget(Some(connection));
        }
        Some(ended.from)
    }

    pub fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }
}

/// Returns the completion of a matched message, before its bytes are copied.
pub fn entry<C>(receive: &Receive, arrival: &Arrival<C>) -> fi_cq_tagged_entry {
    let Header { tag, data, .. } = arrival.header;
    let kind = tag.map_or(FI_MSG, |_| FI_TAGGED);
    fi_cq_tagged_entry {
        op_context: receive.context,
        flags: FI_RECV | kind | data.map_or(0, |_| FI_REMOTE_CQ_DATA) | if receive.is_last { FI_MULTI_RECV } else { 0 },
        len: arrival.bytes(),
        buf: receive.least.map_or(0, |_| receive.buffers.address()),
        data: data.unwrap_or(0),
        tag: tag.unwrap_or(0),
    }
}
