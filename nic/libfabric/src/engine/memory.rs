//! Execution of RMA operations.

use bytes::{BufMut, Bytes, BytesMut};
use spray_nic::device::Device;

use super::Engine;
use super::buffers::Buffers;
use super::header::{self, Header};
use super::requests::{Pending, RmaOperation, of_write};
use super::rma::{self, Kind, RmaHeader};
use super::sending::{self, Message, Operation};
use crate::abi::{FI_READ, FI_RMA, FI_WRITE, fi_cq_tagged_entry};
use crate::error::Errno;

/// Maximum number of undelivered answers; each may have the maximum message length.
const MAX_ANSWERS: usize = 16;

impl<D: Device> Engine<D> {
    /// Starts to access memory of a peer. Fails with [`Errno::AGAIN`] with too many operations.
    pub fn begin_remote(&mut self, remote: &RmaOperation) -> Result<(), Errno> {
        let (peer, own) = self.peer_of(remote.to)?;
        if remote.buffers.bytes() > self.max_message {
            return Err(Errno(libc::EMSGSIZE));
        }
        let side = &self.bindings.remotes;
        if side.is_full() || self.requests.pending.len() >= sending::MAX_UNDELIVERED {
            return Err(Errno::AGAIN);
        }
        let kind = if remote.kind == Kind::Read { FI_READ } else { FI_WRITE };
        let op_context = remote.context.unwrap_or(self.bindings.context);
        let entry = fi_cq_tagged_entry { op_context, flags: FI_RMA | kind, ..Default::default() };
        let is_reported = remote.context.is_some() && side.reports(remote.flags);
        let (number, len) = (self.requests.next, remote.buffers.bytes() as u64);
        let call = RmaHeader { kind: remote.kind, errno: 0, number, key: remote.key, offset: remote.offset, len };
        if peer == own {
            return self.access_locally(remote, &call, Pending { peer, entry, is_reported, into: None });
        }
        let header = Header { data: remote.data, remote: true, tag: None };
        let sent = if remote.kind == Kind::Read { Buffers::default() } else { remote.buffers };
        let message = message(header, &call, sent.bytes(), |to| sent.read(0, to));
        let was_idle =
            self.sending.send(&mut self.host.endpoint, &self.next_hops, peer, message, Operation::remote(false))?;
        let into = (remote.kind == Kind::Read).then_some(remote.buffers);
        self.requests.pending.insert(number, Pending { peer, entry, is_reported, into });
        self.requests.next += 1;
        if was_idle {
            self.progress(true);
        }
        Ok(())
    }

    /// Accesses memory of the same endpoint without the network.
    fn access_locally(&mut self, remote: &RmaOperation, call: &RmaHeader, pending: Pending) -> Result<(), Errno> {
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
            (Err(errno), _) => self.bindings.remotes.failed(pending.entry, errno),
            (Ok(()), data) => {
                data.into_iter().for_each(|data| self.bindings.receives.done(of_write(call, data), true));
                self.bindings.remotes.done(pending.entry, pending.is_reported);
            }
        }
        Ok(())
    }

    /// Answers requests of peers as far as there is space, and fails operations of lost peers.
    pub(super) fn attend_requests(&mut self) {
        while let Some(peer) = self.sending.take_lost() {
            self.requests.fail(peer, Errno(libc::ECONNRESET), &self.bindings.remotes);
        }
        while self.sending.answers() < MAX_ANSWERS
            && let Some((peer, call)) = self.requests.unanswered.pop_front()
        {
            let answer = self.answer(&call);
            let sent =
                self.sending.send(&mut self.host.endpoint, &self.next_hops, peer, answer, Operation::remote(true));
            if sent == Err(Errno::AGAIN) {
                self.requests.unanswered.push_front((peer, call));
                return;
            }
        }
    }

    fn answer(&self, call: &RmaHeader) -> Message {
        let regions = &self.bindings.regions;
        let checked = match call.kind {
            Kind::Read if call.len > self.max_message as u64 => Err(Errno(libc::EMSGSIZE)),
            Kind::Read => regions.check_read(call),
            _ => Ok(()),
        };
        let is_read = call.kind == Kind::Read && checked.is_ok();
        let errno = checked.err().map_or(call.errno, |Errno(errno)| errno as u32);
        let answer = RmaHeader { kind: Kind::Answer, errno, ..*call };
        let header = Header { remote: true, ..Header::default() };
        // If the region was removed since the check, the answer has zeros.
        let read = |to: &mut [u8]| regions.read(call, to).unwrap_or_default();
        message(header, &answer, if is_read { call.len as usize } else { 0 }, read)
    }
}

fn message(header: Header, call: &RmaHeader, len: usize, fill: impl FnOnce(&mut [u8])) -> Message {
    let mut bytes = BytesMut::with_capacity(header::BYTES + rma::BYTES + len);
    bytes.put_slice(&header.write());
    bytes.put_slice(&call.write());
    bytes.put_bytes(0, len);
    fill(&mut bytes[header::BYTES + rma::BYTES..]);
    Message::Copied(Bytes::from(bytes))
}
