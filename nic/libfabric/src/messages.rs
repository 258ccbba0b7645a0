//! Calls that send and receive.
#![expect(unsafe_code, reason = "the application hands over memory")]

use std::ffi::c_void;

use crate::abi::*;
use crate::call::{self, call};
use crate::endpoint::Ep;
use crate::engine::buffers::Buffers;
use crate::engine::header::Header;
use crate::engine::matching::Receive;
use crate::engine::{self, Send};
use crate::error::Errno;
use crate::getinfo::{INJECT_BYTES, RECEIVE_FLAGS, SEND_FLAGS};

pub(crate) static MSG: fi_ops_msg = fi_ops_msg {
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
pub(crate) static TAGGED: fi_ops_tagged = fi_ops_tagged {
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

/// A message to send, as the application describes it.
struct Outgoing {
    iov: *const iovec,
    count: usize,
    to: fi_addr_t,
    tag: Option<u64>,
    data: Option<u64>,
    context: Option<*mut c_void>,
    /// `None`: those that the endpoint was opened with.
    flags: Option<u64>,
}

/// A receive, as the application describes it.
struct Incoming {
    iov: *const iovec,
    count: usize,
    from: fi_addr_t,
    tag: Option<(u64, u64)>,
    context: *mut c_void,
    flags: Option<u64>,
}

/// Begins to send.
///
/// # Safety
/// The endpoint is open, and the message's memory stays as it is until the completion, as libfabric's `fi_msg` says.
unsafe fn post(ep: *mut fid_ep, message: &Outgoing) -> isize {
    // SAFETY: as the caller promises.
    call(|| unsafe {
        let ep = call::object::<Ep>(ep)?;
        let buffers = Buffers::new(call::slice(message.iov, message.count)?).ok_or(Errno::INVALID)?;
        ep.domain.with(|engine| {
            let flags = message.flags.unwrap_or(engine.bindings().sends.flags);
            if flags & !SEND_FLAGS != 0 {
                return Err(Errno::BAD_FLAGS);
            }
            let is_injected = flags & FI_INJECT != 0 || message.context.is_none();
            if is_injected && buffers.bytes() > INJECT_BYTES {
                return Err(Errno(libc::EMSGSIZE));
            }
            let header = Header { tag: message.tag, data: message.data };
            let context = message.context.map(|context| context.addr());
            engine.send(&Send { to: message.to, buffers, header, flags, context }).map(|()| 0)
        })
    })
}

/// Begins to receive.
///
/// # Safety
/// The endpoint is open, and the memory is nobody else's until the completion, as libfabric's `fi_msg` says.
unsafe fn expect(ep: *mut fid_ep, incoming: &Incoming) -> isize {
    // SAFETY: as the caller promises.
    call(|| unsafe {
        let ep = call::object::<Ep>(ep)?;
        let buffers = Buffers::new(call::slice(incoming.iov, incoming.count)?).ok_or(Errno::INVALID)?;
        ep.domain.with(|engine| {
            let bindings = engine.bindings();
            let flags = incoming.flags.unwrap_or(bindings.receives.flags);
            let peeks = if incoming.tag.is_some() { FI_PEEK } else { 0 };
            if flags & !(RECEIVE_FLAGS | peeks) != 0 {
                return Err(Errno::BAD_FLAGS);
            }
            let (from, is_told) = (engine::source(bindings, incoming.from), bindings.receives.tells(flags));
            let receive = Receive { buffers, from, tag: incoming.tag, context: incoming.context.addr(), is_told };
            match flags & FI_PEEK {
                0 => engine.receive(receive)?,
                _ => engine.peek(&receive),
            }
            Ok(0)
        })
    })
}

impl Outgoing {
    fn new(iov: *const iovec, count: usize, to: fi_addr_t, context: *mut c_void) -> Self {
        Self { iov, count, to, tag: None, data: None, context: Some(context), flags: None }
    }
}

impl Incoming {
    fn new(iov: *const iovec, count: usize, from: fi_addr_t, context: *mut c_void) -> Self {
        Self { iov, count, from, tag: None, context, flags: None }
    }
}

fn piece(at: *const c_void, bytes: usize) -> iovec {
    iovec { iov_base: at.cast_mut(), iov_len: bytes }
}

/// The message's data, where the flags say that it has some.
fn data_of(flags: u64, data: u64) -> Option<u64> {
    (flags & FI_REMOTE_CQ_DATA != 0).then_some(data)
}

unsafe extern "C" fn recv(
    ep: *mut fid_ep,
    buf: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    from: fi_addr_t,
    context: *mut c_void,
) -> isize {
    let iov = piece(buf, len);
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe { expect(ep, &Incoming::new(&raw const iov, 1, from, context)) }
}

unsafe extern "C" fn recvv(
    ep: *mut fid_ep,
    iov: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    from: fi_addr_t,
    context: *mut c_void,
) -> isize {
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe { expect(ep, &Incoming::new(iov, count, from, context)) }
}

unsafe extern "C" fn send(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    to: fi_addr_t,
    context: *mut c_void,
) -> isize {
    let iov = piece(buf, len);
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe { post(ep, &Outgoing::new(&raw const iov, 1, to, context)) }
}

unsafe extern "C" fn sendv(
    ep: *mut fid_ep,
    iov: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: fi_addr_t,
    context: *mut c_void,
) -> isize {
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe { post(ep, &Outgoing::new(iov, count, to, context)) }
}

unsafe extern "C" fn inject(ep: *mut fid_ep, buf: *const c_void, len: usize, to: fi_addr_t) -> isize {
    let iov = piece(buf, len);
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe { post(ep, &Outgoing { context: None, ..Outgoing::new(&raw const iov, 1, to, std::ptr::null_mut()) }) }
}

unsafe extern "C" fn senddata(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    data: u64,
    to: fi_addr_t,
    context: *mut c_void,
) -> isize {
    let iov = piece(buf, len);
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe { post(ep, &Outgoing { data: Some(data), ..Outgoing::new(&raw const iov, 1, to, context) }) }
}

unsafe extern "C" fn injectdata(ep: *mut fid_ep, buf: *const c_void, len: usize, data: u64, to: fi_addr_t) -> isize {
    let iov = piece(buf, len);
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe {
        post(
            ep,
            &Outgoing { data: Some(data), context: None, ..Outgoing::new(&raw const iov, 1, to, std::ptr::null_mut()) },
        )
    }
}

unsafe extern "C" fn recvmsg(ep: *mut fid_ep, message: *const fi_msg, flags: u64) -> isize {
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe {
        let Some(message) = message.as_ref() else { return -(libc::EINVAL as isize) };
        let incoming = Incoming::new(message.msg_iov, message.iov_count, message.addr, message.context);
        expect(ep, &Incoming { flags: Some(flags), ..incoming })
    }
}

unsafe extern "C" fn sendmsg(ep: *mut fid_ep, message: *const fi_msg, flags: u64) -> isize {
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe {
        let Some(message) = message.as_ref() else { return -(libc::EINVAL as isize) };
        let outgoing = Outgoing::new(message.msg_iov, message.iov_count, message.addr, message.context);
        post(ep, &Outgoing { data: data_of(flags, message.data), flags: Some(flags), ..outgoing })
    }
}

unsafe extern "C" fn trecv(
    ep: *mut fid_ep,
    buf: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    from: fi_addr_t,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    let iov = piece(buf, len);
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe { expect(ep, &Incoming { tag: Some((tag, ignore)), ..Incoming::new(&raw const iov, 1, from, context) }) }
}

unsafe extern "C" fn trecvv(
    ep: *mut fid_ep,
    iov: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    from: fi_addr_t,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe { expect(ep, &Incoming { tag: Some((tag, ignore)), ..Incoming::new(iov, count, from, context) }) }
}

unsafe extern "C" fn tsend(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    to: fi_addr_t,
    tag: u64,
    context: *mut c_void,
) -> isize {
    let iov = piece(buf, len);
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe { post(ep, &Outgoing { tag: Some(tag), ..Outgoing::new(&raw const iov, 1, to, context) }) }
}

unsafe extern "C" fn tsendv(
    ep: *mut fid_ep,
    iov: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: fi_addr_t,
    tag: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe { post(ep, &Outgoing { tag: Some(tag), ..Outgoing::new(iov, count, to, context) }) }
}

unsafe extern "C" fn tinject(ep: *mut fid_ep, buf: *const c_void, len: usize, to: fi_addr_t, tag: u64) -> isize {
    let iov = piece(buf, len);
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe {
        post(
            ep,
            &Outgoing { tag: Some(tag), context: None, ..Outgoing::new(&raw const iov, 1, to, std::ptr::null_mut()) },
        )
    }
}

unsafe extern "C" fn tsenddata(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    data: u64,
    to: fi_addr_t,
    tag: u64,
    context: *mut c_void,
) -> isize {
    let iov = piece(buf, len);
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe { post(ep, &Outgoing { data: Some(data), tag: Some(tag), ..Outgoing::new(&raw const iov, 1, to, context) }) }
}

unsafe extern "C" fn tinjectdata(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    data: u64,
    to: fi_addr_t,
    tag: u64,
) -> isize {
    let iov = piece(buf, len);
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe {
        post(
            ep,
            &Outgoing {
                data: Some(data),
                tag: Some(tag),
                context: None,
                ..Outgoing::new(&raw const iov, 1, to, std::ptr::null_mut())
            },
        )
    }
}

unsafe extern "C" fn trecvmsg(ep: *mut fid_ep, message: *const fi_msg_tagged, flags: u64) -> isize {
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe {
        let Some(message) = message.as_ref() else { return -(libc::EINVAL as isize) };
        let incoming = Incoming::new(message.msg_iov, message.iov_count, message.addr, message.context);
        expect(ep, &Incoming { tag: Some((message.tag, message.ignore)), flags: Some(flags), ..incoming })
    }
}

unsafe extern "C" fn tsendmsg(ep: *mut fid_ep, message: *const fi_msg_tagged, flags: u64) -> isize {
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe {
        let Some(message) = message.as_ref() else { return -(libc::EINVAL as isize) };
        let outgoing = Outgoing::new(message.msg_iov, message.iov_count, message.addr, message.context);
        post(
            ep,
            &Outgoing { tag: Some(message.tag), data: data_of(flags, message.data), flags: Some(flags), ..outgoing },
        )
    }
}
