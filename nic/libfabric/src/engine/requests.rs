//! Reads and writes of memory that are under way: this side's, until their answers come, and peers', until they are answered.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use bytes::{BufMut, Bytes, BytesMut};
use spray_nic::ConnectionId;
use spray_nic::device::Device;

use super::buffers::Buffers;
use super::header::{self, Header};
use super::matching::Arrival;
use super::receiving::Hostile;
use super::remote::{self, Call, Kind};
use super::sending::{self, Message, Operation};
use super::{Bindings, Engine};
use crate::abi::{FI_READ, FI_REMOTE_CQ_DATA, FI_REMOTE_WRITE, FI_RMA, FI_WRITE, fi_addr_t, fi_cq_tagged_entry};
use crate::error::Errno;
use crate::side::Side;

/// Most answers that are not delivered: each may be as long as a message.
const ANSWERS: usize = 16;
/// Most requests of peers that wait for that.
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
struct Begun {
    peer: IpAddr,
    entry: fi_cq_tagged_entry,
    is_told: bool,
    /// Where the answer's bytes go.
    into: Option<Buffers>,
}

/// All that are under way.
#[derive(Debug, Default)]
pub struct Requests {
    begun: HashMap<u64, Begun>,
    next: u64,
    /// Of peers: what is to be answered, a write with whether it was carried out.
    asked: VecDeque<(IpAddr, Call)>,
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
fn of_write(call: &Call, data: u64) -> fi_cq_tagged_entry {
    let flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
    fi_cq_tagged_entry { flags, len: call.len as usize, data, ..Default::default() }
}

impl<D: Device> Engine<D> {
    /// Begins to read or write a peer's memory.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] when too much is under way; others for what can never be done.
    pub fn begin_remote(&mut self, remote: &Remote) -> Result<(), Errno> {
        let (peer, own) = self.peer_of(remote.to)?;
        if remote.buffers.bytes() > self.max_message {
            return Err(Errno(libc::EMSGSIZE));
        }
        let side = &self.bindings.remotes;
        if side.is_full() || self.requests.begun.len() >= sending::MOST {
            return Err(Errno::AGAIN);
        }
        let kind = if remote.kind == Kind::Read { FI_READ } else { FI_WRITE };
        let op_context = remote.context.unwrap_or(self.bindings.context);
        let entry = fi_cq_tagged_entry { op_context, flags: FI_RMA | kind, ..Default::default() };
        let is_told = remote.context.is_some() && side.tells(remote.flags);
        let (number, len) = (self.requests.next, remote.buffers.bytes() as u64);
        let call = Call { kind: remote.kind, errno: 0, number, key: remote.key, offset: remote.offset, len };
        if peer == own {
            return self.at_home(remote, &call, Begun { peer, entry, is_told, into: None });
        }
        let header = Header { data: remote.data, remote: true, tag: None };
        let sent = if remote.kind == Kind::Read { Buffers::default() } else { remote.buffers };
        let message = message(header, &call, sent.bytes(), |to| sent.read(0, to));
        let was_idle =
            self.sending.send(&mut self.host.endpoint, &self.ways, peer, message, Operation::remote(false))?;
        let into = (remote.kind == Kind::Read).then_some(remote.buffers);
        self.requests.begun.insert(number, Begun { peer, entry, is_told, into });
        self.requests.next += 1;
        if was_idle {
            self.progress(true);
        }
        Ok(())
    }

    /// Memory of the same endpoint takes no network.
    fn at_home(&mut self, remote: &Remote, call: &Call, begun: Begun) -> Result<(), Errno> {
        let mut bytes = vec![0; remote.buffers.bytes()];
        let regions = &self.bindings.regions;
        let done = match remote.kind {
            Kind::Read => regions.read(call, &mut bytes).inspect(|()| {
                remote.buffers.write(&bytes);
            }),
            _ => {
                remote.buffers.read(0, &mut bytes);
                regions.write(call, &bytes)
            }
        };
        match (done, remote.data) {
            (Err(errno), _) => self.bindings.remotes.failed(begun.entry, errno),
            (Ok(()), data) => {
                data.into_iter().for_each(|data| self.bindings.receives.done(of_write(call, data), true));
                self.bindings.remotes.done(begun.entry, begun.is_told);
            }
        }
        Ok(())
    }

    /// Answers what peers have asked, as far as there is room; fails what will not be answered.
    pub(super) fn attend_requests(&mut self) {
        while let Some(peer) = self.sending.take_lost() {
            self.requests.fail(peer, Errno(libc::ECONNRESET), &self.bindings.remotes);
        }
        while self.sending.answers() < ANSWERS
            && let Some((peer, call)) = self.requests.asked.pop_front()
        {
            let answer = self.answer(&call);
            let sent = self.sending.send(&mut self.host.endpoint, &self.ways, peer, answer, Operation::remote(true));
            if sent == Err(Errno::AGAIN) {
                self.requests.asked.push_front((peer, call));
                return;
            }
        }
    }

    fn answer(&self, call: &Call) -> Message {
        let regions = &self.bindings.regions;
        let checked = match call.kind {
            Kind::Read if call.len > self.max_message as u64 => Err(Errno(libc::EMSGSIZE)),
            Kind::Read => regions.check(call, 0),
            _ => Ok(()),
        };
        let is_read = call.kind == Kind::Read && checked.is_ok();
        let errno = checked.err().map_or(call.errno, |Errno(errno)| errno as u32);
        let answer = Call { kind: Kind::Answer, errno, ..*call };
        let header = Header { remote: true, ..Header::default() };
        // The region may have gone since the check: then the bytes are zeros, as of memory that is nobody's any more.
        let read = |to: &mut [u8]| regions.read(call, to).unwrap_or_default();
        message(header, &answer, if is_read { call.len as usize } else { 0 }, read)
    }
}

/// A message about memory, whose bytes are copied.
fn message(header: Header, call: &Call, len: usize, fill: impl FnOnce(&mut [u8])) -> Message {
    let mut bytes = BytesMut::with_capacity(header::BYTES + remote::BYTES + len);
    bytes.put_slice(&header.write());
    bytes.put_slice(&call.write());
    bytes.put_bytes(0, len);
    fill(&mut bytes[header::BYTES + remote::BYTES..]);
    Message::Copied(Bytes::from(bytes))
}
