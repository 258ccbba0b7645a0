//! Pending RMA operations of this endpoint, and requests of peers.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use spray_nic::ConnectionId;

use super::bindings::Bindings;
use super::buffers::Buffers;
use super::header;
use super::matching::Arrival;
use super::reorder::ProtocolViolation;
use super::rma::{Kind, RmaHeader};
use crate::abi::{FI_REMOTE_CQ_DATA, FI_REMOTE_WRITE, FI_RMA, fi_addr_t, fi_cq_tagged_entry};
use crate::direction::Direction;
use crate::error::Errno;

/// Maximum number of unanswered requests of peers.
const MAX_UNANSWERED: usize = 65_536;

/// An RMA operation of the application.
#[derive(Clone, Copy, Debug)]
pub struct RmaOperation {
    pub to: fi_addr_t,
    pub buffers: Buffers,
    /// [`Kind::Read`] or [`Kind::Write`].
    pub kind: Kind,
    pub key: u64,
    pub offset: u64,
    /// Data for the peer's completion; without it the peer gets no completion.
    pub data: Option<u64>,
    pub flags: u64,
    /// The context of the operation; `None` if its success is not reported.
    pub context: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub peer: IpAddr,
    pub entry: fi_cq_tagged_entry,
    /// Whether success is reported.
    pub is_reported: bool,
    /// Destination of the data in the answer.
    pub into: Option<Buffers>,
}

#[derive(Debug, Default)]
pub struct Requests {
    /// Operations of this endpoint by number.
    pub pending: HashMap<u64, Pending>,
    pub next: u64,
    /// Requests of peers to be answered; writes are executed already.
    pub unanswered: VecDeque<(IpAddr, RmaHeader)>,
}

impl Requests {
    pub fn on_arrival(
        &mut self,
        bindings: &Bindings,
        arrival: &Arrival<Option<ConnectionId>>,
    ) -> Result<(), ProtocolViolation> {
        let behind = arrival.message.get(header::BYTES..).ok_or(ProtocolViolation)?;
        let (call, data) = RmaHeader::read(behind).ok_or(ProtocolViolation)?;
        match call.kind {
            Kind::Answer => self.on_answer(arrival.from, &call, data, &bindings.remotes),
            _ if self.unanswered.len() == MAX_UNANSWERED => return Err(ProtocolViolation),
            Kind::Read => self.unanswered.push_back((arrival.from, call)),
            Kind::Write => {
                let written = bindings.regions.write(&call, data);
                if let (Ok(()), Some(told)) = (written, arrival.header.data) {
                    bindings.receives.done(of_write(&call, told), true);
                }
                let errno = written.err().map_or(0, |Errno(errno)| errno as u32);
                self.unanswered.push_back((arrival.from, RmaHeader { errno, ..call }));
            }
        }
        Ok(())
    }

    fn on_answer(&mut self, from: IpAddr, call: &RmaHeader, data: &[u8], side: &Direction) {
        if self.pending.get(&call.number).is_none_or(|pending| pending.peer != from) {
            return;
        }
        let Some(pending) = self.pending.remove(&call.number) else { return };
        let is_whole = pending.into.is_none_or(|into| into.bytes() == data.len());
        match call.errno {
            0 if is_whole => {
                if let Some(into) = pending.into {
                    into.write(data);
                }
                side.done(pending.entry, pending.is_reported);
            }
            0 => side.failed(pending.entry, Errno(libc::EIO)),
            errno => side.failed(pending.entry, Errno(errno as i32)),
        }
    }

    /// Fails the operations with a peer after the end of a connection.
    pub fn fail(&mut self, peer: IpAddr, errno: Errno, side: &Direction) {
        self.unanswered.retain(|(from, _)| *from != peer);
        let lost: Vec<u64> =
            self.pending.iter().filter(|(_, pending)| pending.peer == peer).map(|(number, _)| *number).collect();
        lost.iter()
            .filter_map(|number| self.pending.remove(number))
            .for_each(|pending| side.failed(pending.entry, errno));
    }
}

/// Returns the completion of a write with data, for the owner of the memory.
pub fn of_write(call: &RmaHeader, data: u64) -> fi_cq_tagged_entry {
    let flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
    fi_cq_tagged_entry { flags, len: call.len as usize, data, ..Default::default() }
}
