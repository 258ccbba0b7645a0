//! What this side receives: connections of others, by each of which one sends in order.

use std::collections::HashMap;
use std::net::IpAddr;

use bytes::Bytes;
use spray_nic::ConnectionId;

use super::header::Header;
use super::matching::{Arrival, Matching, Receive};
use super::order::Order;
use crate::abi::{FI_MSG, FI_MULTI_RECV, FI_RECV, FI_REMOTE_CQ_DATA, FI_TAGGED, fi_cq_tagged_entry};

/// Most bytes kept of peers that have ended, for receives that come later.
const KEPT_BYTES: usize = 64 << 20;
/// Most messages of that kind.
const KEPT_MESSAGES: usize = 65_536;

/// Peers that send here, and what waits for receives.
#[derive(Debug, Default)]
pub struct Receiving {
    peers: HashMap<ConnectionId, Incoming>,
    /// What came on no connection is of this endpoint itself.
    pub matching: Matching<Option<ConnectionId>>,
}

#[derive(Debug)]
struct Incoming {
    from: IpAddr,
    order: Order,
}

/// A peer broke the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hostile;

impl Receiving {
    /// A peer has connected.
    pub fn on_accepted(&mut self, connection: ConnectionId, from: IpAddr) {
        self.peers.insert(connection, Incoming { from, order: Order::default() });
    }

    /// Takes a message that arrived, and hands `out` what has found its receive; what is about memory comes without one.
    ///
    /// # Errors
    /// [`Hostile`]: its connection is to end.
    pub fn on_message(
        &mut self,
        connection: ConnectionId,
        number: u32,
        message: Bytes,
        mut out: impl FnMut(Option<Receive>, Arrival<Option<ConnectionId>>),
    ) -> Result<(), Hostile> {
        let Incoming { from, order } = self.peers.get_mut(&connection).ok_or(Hostile)?;
        order.put(number, message).map_err(|_| Hostile)?;
        while let Some(message) = order.take() {
            let header = Header::read(&message).ok_or(Hostile)?;
            let arrival = Arrival { from: *from, connection: Some(connection), header, message };
            if header.remote {
                out(None, arrival);
            } else if let Some((receive, arrival)) = self.matching.arrive(arrival) {
                out(Some(receive), arrival);
            }
        }
        Ok(())
    }

    /// A connection has ended: what arrived of it in order waits on, unless too much of that kind does. Returns whose it was.
    pub fn on_end(&mut self, connection: ConnectionId) -> Option<IpAddr> {
        let ended = self.peers.remove(&connection)?;
        let (messages, bytes) =
            self.matching.count(|other| other.is_some_and(|other| !self.peers.contains_key(&other)));
        if messages > KEPT_MESSAGES || bytes > KEPT_BYTES {
            self.matching.forget(Some(connection));
        }
        Some(ended.from)
    }

    /// Whether no peer is connected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }
}

/// What is told of a message that has found its receive, before its bytes are looked at.
#[must_use]
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
