//! Send and receive calls.
#![expect(unsafe_code, reason = "the application hands over memory")]

use std::ffi::c_void;

use crate::abi::*;
use crate::call::{self, call, piece};
use crate::endpoint::{Calls, Ep};
use crate::engine::buffers::Buffers;
use crate::engine::header::Header;
use crate::engine::matching::Receive;
use crate::engine::{self, AfterPeek, Send};
use crate::error::Errno;
use crate::getinfo::{INJECT_BYTES, RECEIVE_FLAGS, SEND_FLAGS};
use crate::rma;

static MSG: fi_ops_msg = fi_ops_msg {
    size: size_of::<fi_ops_msg>(),
    recv,
    recvv,
    recvmsg,
    send,
    sendv,
    sendmsg,
    inject,
    senddata,
    injectdata,
};
static TAGGED: fi_ops_tagged = fi_ops_tagged {
    size: size_of::<fi_ops_tagged>(),
    recv: trecv,
    recvv: trecvv,
    recvmsg: trecvmsg,
    send: tsend,
    sendv: tsendv,
    sendmsg: tsendmsg,
    inject: tinject,
    senddata: tsenddata,
    injectdata: tinjectdata,
};

/// Flags that examine a message before it is received.
const PROBES: u64 = FI_PEEK | FI_CLAIM | FI_DISCARD;
const PEEK_AND_CLAIM: u64 = FI_PEEK | FI_CLAIM;
const PEEK_AND_DISCARD: u64 = FI_PEEK | FI_DISCARD;
const CLAIMED_AND_DISCARD: u64 = FI_CLAIM | FI_DISCARD;

/// The calls of this file and of `rma`.
pub(crate) struct Messages;

impl Calls for Messages {
    const MSG: &'static fi_ops_msg = &MSG;
    const TAGGED: &'static fi_ops_tagged = &TAGGED;
    const RMA: &'static fi_ops_rma = &rma::OPS;
}

/// Arguments of a send.
struct Outgoing {
    iov: *const iovec,
    count: usize,
    to: fi_addr_t,
    tag: Option<u64>,
    data: Option<u64>,
    context: Option<*mut c_void>,
    /// The flags; `None` selects the default of the endpoint.
    flags: Option<u64>,
}

/// Arguments of a receive.
struct Incoming {
    iov: *const iovec,
    count: usize,
    from: fi_addr_t,
    tag: Option<(u64, u64)>,
    context: *mut c_void,
    flags: Option<u64>,
}

impl Outgoing {
    fn new(iov: *const iovec, count: usize, to: fi_addr_t, context: Option<*mut c_void>) -> Self {
        Self { iov, count, to, tag: None, data: None, context, flags: None }
    }

    fn tagged(self, tag: u64) -> Self {
        Self { tag: Some(tag), ..self }
    }

    fn with_data(self, data: u64) -> Self {
        Self { data: Some(data), ..self }
    }

    /// Sets flags, which determine whether it has data.
    fn with_flags(self, flags: u64, data: u64) -> Self {
        Self { data: (flags & FI_REMOTE_CQ_DATA != 0).then_some(data), flags: Some(flags), ..self }
    }

    /// Starts the send.
    ///
    /// # Safety
    /// The endpoint is open, and the message's memory does not change until the completion, as
    /// required by `fi_msg(3)`.
    unsafe fn begin(self, ep: *mut fid_ep) -> isize {
        // SAFETY: as the caller promises.
        call(|| unsafe {
            let ep = call::object::<Ep>(ep)?;
            let buffers = Buffers::new(call::slice(self.iov, self.count)?).ok_or(Errno::INVALID)?;
            ep.domain.with(|engine| {
                let flags = self.flags.unwrap_or(engine.bindings().sends.flags);
                if flags & !SEND_FLAGS != 0 {
                    return Err(Errno::BAD_FLAGS);
                }
                let is_injected = flags & FI_INJECT != 0 || self.context.is_none();
                if is_injected && buffers.bytes() > INJECT_BYTES {
                    return Err(Errno(libc::EMSGSIZE));
                }
                let header = Header { tag: self.tag, data: self.data, remote: false };
                let context = self.context.map(<*mut libc::c_void>::addr);
                engine.send(&Send { to: self.to, buffers, header, flags, context }).map(|()| 0)
            })
        })
    }
}

impl Incoming {
    fn new(iov: *const iovec, count: usize, from: fi_addr_t, context: *mut c_void) -> Self {
        Self { iov, count, from, tag: None, context, flags: None }
    }

    fn tagged(self, tag: u64, ignored: u64) -> Self {
        Self { tag: Some((tag, ignored)), ..self }
    }

    fn with_flags(self, flags: u64) -> Self {
        Self { flags: Some(flags), ..self }
    }

    /// Starts the receive.
    ///
    /// # Safety
    /// The endpoint is open, and the memory is not used until the completion, as required by
    /// `fi_msg(3)`.
    unsafe fn begin(self, ep: *mut fid_ep) -> isize {
        // SAFETY: as the caller promises.
        call(|| unsafe {
            let ep = call::object::<Ep>(ep)?;
            let buffers = Buffers::new(call::slice(self.iov, self.count)?).ok_or(Errno::INVALID)?;
            ep.domain.with(|engine| {
                let bindings = engine.bindings();
                let flags = self.flags.unwrap_or(bindings.receives.flags);
                let allowed = if self.tag.is_some() { PROBES | RECEIVE_FLAGS & !FI_MULTI_RECV } else { RECEIVE_FLAGS };
                if flags & !allowed != 0 {
                    return Err(Errno::BAD_FLAGS);
                }
                let (from, is_reported) = (engine::source(bindings, self.from), bindings.receives.reports(flags));
                let least = (flags & FI_MULTI_RECV != 0).then(|| ep.least_room());
                let (tag, context) = (self.tag, self.context.addr());
                let receive = Receive { buffers, from, tag, context, is_reported, least, is_last: false };
                match flags & PROBES {
                    0 => engine.receive(receive)?,
                    FI_CLAIM => engine.receive_claimed(&receive)?,
                    FI_PEEK => engine.peek(&receive, AfterPeek::Keep),
                    PEEK_AND_CLAIM => engine.peek(&receive, AfterPeek::Claim),
                    PEEK_AND_DISCARD => engine.peek(&receive, AfterPeek::Discard),
                    CLAIMED_AND_DISCARD => engine.discard_claimed(&receive)?,
                    _ => return Err(Errno::BAD_FLAGS),
                }
                Ok(0)
            })
        })
    }
}

/// Pairs of untagged and tagged calls; arguments after the first semicolon are the tagged one's.
macro_rules! calls {
    ($(
        $call:ident, $tagged:ident($($before:ident: $Before:ty),+; $($tag:ident),+; $($context:ident: $Context:ty)?)
            => $message:expr;
    )+) => {$(
        unsafe extern "C" fn $call(ep: *mut fid_ep, $($before: $Before,)+ $($context: $Context)?) -> isize {
            // SAFETY: the application follows libfabric's rules for this call.
            unsafe { $message.begin(ep) }
        }

        unsafe extern "C" fn $tagged(
            ep: *mut fid_ep,
            $($before: $Before,)+
            $($tag: u64,)+
            $($context: $Context)?
        ) -> isize {
            // SAFETY: as above.
            unsafe { $message.tagged($($tag),+).begin(ep) }
        }
    )+};
}

calls! {
    recv, trecv(buf: *mut c_void, len: usize, _desc: *mut c_void, from: fi_addr_t; tag, ignore; context: *mut c_void)
        => Incoming::new(&piece(buf, len), 1, from, context);
    recvv, trecvv(iov: *const iovec, _desc: *mut *mut c_void, count: usize, from: fi_addr_t; tag, ignore; context: *mut c_void)
        => Incoming::new(iov, count, from, context);
    send, tsend(buf: *const c_void, len: usize, _desc: *mut c_void, to: fi_addr_t; tag; context: *mut c_void)
        => Outgoing::new(&piece(buf, len), 1, to, Some(context));
    sendv, tsendv(iov: *const iovec, _desc: *mut *mut c_void, count: usize, to: fi_addr_t; tag; context: *mut c_void)
        => Outgoing::new(iov, count, to, Some(context));
    senddata, tsenddata(buf: *const c_void, len: usize, _desc: *mut c_void, data: u64, to: fi_addr_t; tag; context: *mut c_void)
        => Outgoing::new(&piece(buf, len), 1, to, Some(context)).with_data(data);
    inject, tinject(buf: *const c_void, len: usize, to: fi_addr_t; tag;)
        => Outgoing::new(&piece(buf, len), 1, to, None);
    injectdata, tinjectdata(buf: *const c_void, len: usize, data: u64, to: fi_addr_t; tag;)
        => Outgoing::new(&piece(buf, len), 1, to, None).with_data(data);
}

macro_rules! described {
    ($($call:ident($Message:ty) => |$message:ident, $flags:ident| $what:expr;)+) => {$(
        unsafe extern "C" fn $call(ep: *mut fid_ep, message: *const $Message, $flags: u64) -> isize {
            // SAFETY: the application follows libfabric's rules for this call.
            unsafe {
                let Some($message) = message.as_ref() else { return -(libc::EINVAL as isize) };
                $what.begin(ep)
            }
        }
    )+};
}

described! {
    recvmsg(fi_msg) => |message, flags|
        Incoming::new(message.msg_iov, message.iov_count, message.addr, message.context).with_flags(flags);
    trecvmsg(fi_msg_tagged) => |message, flags|
        Incoming::new(message.msg_iov, message.iov_count, message.addr, message.context)
            .with_flags(flags)
            .tagged(message.tag, message.ignore);
    sendmsg(fi_msg) => |message, flags|
        Outgoing::new(message.msg_iov, message.iov_count, message.addr, Some(message.context))
            .with_flags(flags, message.data);
    tsendmsg(fi_msg_tagged) => |message, flags|
        Outgoing::new(message.msg_iov, message.iov_count, message.addr, Some(message.context))
            .with_flags(flags, message.data)
            .tagged(message.tag);
}
