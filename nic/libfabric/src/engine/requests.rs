//! Reads and writes of memory that are under way: this side's, until their answers come, and peers', until they are answered.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use spray_nic::ConnectionId;

use super::bindings::Bindings;
use super::buffers::Buffers;
use super::header;
use super::matching::Arrival;
use super::receiving::Hostile;
use super::remote::{Call, Kind};
use crate::abi::{FI_REMOTE_CQ_DATA, FI_REMOTE_WRITE, FI_RMA, fi_addr_t, fi_cq_tagged_entry};
use crate::error::Errno;
use crate::side::Side;

/// Most requests of peers that wait to be answered.
const WAITING: usize = 65_536;

/// A read or write of a peer's memory, as the application asks for it.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// Whose memory.
    pub to: fi_addr_t,
    /// This side's.
    pub buffers: Buffers,
    /// [`Kind::Read`] or [`Kind::Write`].
    pub kind: Kind,
    /// The key of the peer's memory.
    pub key: u64,
    /// Where in it.
    pub offset: u64,
    /// What the peer's completion tells; without it the peer hears nothing.
    pub data: Option<u64>,
    /// Flags of the operation.
    pub flags: u64,
    /// What the application calls the operation; `None` for one that is not told of if all goes well.
    pub context: Option<usize>,
}

/// One of this side's.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    /// Whose memory.
    pub peer: IpAddr,
    /// The completion.
    pub entry: fi_cq_tagged_entry,
    /// Whether it is told if all goes well.
    pub is_told: bool,
    /// Where the answer's bytes go.
    pub into: Option<Buffers>,
}

/// All that are under way.
#[derive(Debug, Default)]
pub struct Requests {
    /// This side's, by number.
    pub begun: HashMap<u64, Begun>,
    /// The number of the next one.
    pub next: u64,
    /// Of peers: what is to be answered, a write with whether it was carried out.
    pub asked: VecDeque<(IpAddr, Call)>,
}

impl Requests {
    /// Takes what a peer asks or answers.
    ///
    /// # Errors
    /// [`Hostile`]: its connection is to end.
    pub fn on_arrival(&mut self, bindings: &Bindings, arrival: &Arrival<Option<ConnectionId>>) -> Result<(), Hostile> {
        let behind = arrival.message.get(header::BYTES..).ok_or(Hostile)?;
        let (call, data) = Call::read(behind).ok_or(Hostile)?;
        match call.kind {
            Kind::Answer => self.on_answer(arrival.from, &call, data, &bindings.remotes),
            _ if self.asked.len() == WAITING => return Err(Hostile),
            Kind::Read => self.asked.push_back((arrival.from, call)),
            Kind::Write => {
                let written = bindings.regions.write(&call, data);
                if let (Ok(()), Some(told)) = (written, arrival.header.data) {
                    bindings.receives.done(of_write(&call, told), true);
                }
                let errno = written.err().map_or(0, |Errno(errno)| errno as u32);
                self.asked.push_back((arrival.from, Call { errno, ..call }));
            }
        }
        Ok(())
    }

    fn on_answer(&mut self, from: IpAddr, call: &Call, data: &[u8], side: &Side) {
        if self.begun.get(&call.number).is_none_or(|begun| begun.peer != from) {
            return;
        }
        let Some(begun) = self.begun.remove(&call.number) else { return };
        let is_whole = begun.into.is_none_or(|into| into.bytes() == data.len());
        match call.errno {
            0 if is_whole => {
                if let Some(into) = begun.into {
                    into.write(data);
                }
                side.done(begun.entry, begun.is_told);
            }
            0 => side.failed(begun.entry, Errno(libc::EIO)),
            errno => side.failed(begun.entry, Errno(errno as i32)),
        }
    }

    /// A connection with a peer has ended: its answers do not come any more.
    pub fn fail(&mut self, peer: IpAddr, errno: Errno, side: &Side) {
        self.asked.retain(|(from, _)| *from != peer);
        let lost: Vec<u64> =
            self.begun.iter().filter(|(_, begun)| begun.peer == peer).map(|(number, _)| *number).collect();
        lost.iter().filter_map(|number| self.begun.remove(number)).for_each(|begun| side.failed(begun.entry, errno));
    }
}

/// What the owner of memory is told of a write with data.
pub fn of_write(call: &Call, data: u64) -> fi_cq_tagged_entry {
    let flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
    fi_cq_tagged_entry { flags, len: call.len as usize, data, ..Default::default() }
}
