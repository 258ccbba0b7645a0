//! Calls that read and write peers' memory.
#![expect(unsafe_code, reason = "the application hands over memory")]

use std::ffi::c_void;

use crate::abi::*;
use crate::call::{self, call, piece};
use crate::endpoint::Ep;
use crate::engine::Remote;
use crate::engine::buffers::Buffers;
use crate::engine::remote::Kind;
use crate::error::Errno;
use crate::getinfo::{INJECT_BYTES, SEND_FLAGS};

pub(crate) static OPS: fi_ops_rma = fi_ops_rma {
    size: size_of::<fi_ops_rma>(),
    read: one::<READ>,
    readv: several::<READ>,
    readmsg: described::<READ>,
    write: one::<WRITE>,
    writev: several::<WRITE>,
    writemsg: described::<WRITE>,
    inject,
    writedata,
    injectdata,
};

const READ: bool = true;
const WRITE: bool = false;

/// A read or write, as the application describes it.
struct Wish {
    iov: *const iovec,
    count: usize,
    to: fi_addr_t,
    offset: u64,
    key: u64,
    data: Option<u64>,
    context: Option<*mut c_void>,
    /// `None`: those that the endpoint was opened with.
    flags: Option<u64>,
}

impl Wish {
    fn new(iov: *const iovec, count: usize, (to, offset, key): (fi_addr_t, u64, u64), context: *mut c_void) -> Self {
        Self { iov, count, to, offset, key, data: None, context: Some(context), flags: None }
    }

    /// Begins it.
    ///
    /// # Safety
    /// The endpoint is open, and the memory stays as it is, or is nobody else's where it is read into, until the completion, as libfabric's
    /// `fi_rma` says.
    unsafe fn begin<const IS_READ: bool>(self, ep: *mut fid_ep) -> isize {
        // SAFETY: as the caller promises.
        call(|| unsafe {
            let ep = call::object::<Ep>(ep)?;
            let buffers = Buffers::new(call::slice(self.iov, self.count)?).ok_or(Errno::INVALID)?;
            ep.domain.with(|engine| {
                let flags = self.flags.unwrap_or(engine.bindings().sends.flags);
                if flags & !SEND_FLAGS != 0 {
                    return Err(Errno::BAD_FLAGS);
                }
                if (flags & FI_INJECT != 0 || self.context.is_none()) && buffers.bytes() > INJECT_BYTES {
                    return Err(Errno(libc::EMSGSIZE));
                }
                let kind = if IS_READ { Kind::Read } else { Kind::Write };
                let context = self.context.map(<*mut libc::c_void>::addr);
                let Self { to, offset, key, data, .. } = self;
                engine.begin_remote(&Remote { to, buffers, kind, key, offset, data, flags, context }).map(|()| 0)
            })
        })
    }
}

unsafe extern "C" fn one<const IS_READ: bool>(
    ep: *mut fid_ep,
    buf: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    to: fi_addr_t,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the application keeps to libfabric's rules for this call.
    unsafe { Wish::new(&piece(buf, len), 1, (to, offset, key), context).begin::<IS_READ>(ep) }
}

unsafe extern "C" fn several<const IS_READ: bool>(
    ep: *mut fid_ep,
    iov: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: fi_addr_t,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: as in `one`.
    unsafe { Wish::new(iov, count, (to, offset, key), context).begin::<IS_READ>(ep) }
}

unsafe extern "C" fn described<const IS_READ: bool>(ep: *mut fid_ep, message: *const fi_msg_rma, flags: u64) -> isize {
    // SAFETY: as in `one`.
    unsafe {
        let Some(message) = message.as_ref() else { return -(libc::EINVAL as isize) };
        let Ok([remote]) = call::slice(message.rma_iov, message.rma_iov_count) else { return -(libc::EINVAL as isize) };
        let place = (message.addr, remote.addr, remote.key);
        let wish = Wish::new(message.msg_iov, message.iov_count, place, message.context);
        let data = (!IS_READ && flags & FI_REMOTE_CQ_DATA != 0).then_some(message.data);
        Wish { data, flags: Some(flags), ..wish }.begin::<IS_READ>(ep)
    }
}

unsafe extern "C" fn inject(
    ep: *mut fid_ep,
    buf: *mut c_void,
    len: usize,
    to: fi_addr_t,
    offset: u64,
    key: u64,
) -> isize {
    let piece = call::piece(buf, len);
    let wish = Wish::new(&piece, 1, (to, offset, key), std::ptr::null_mut());
    // SAFETY: as in `one`.
    unsafe { Wish { context: None, ..wish }.begin::<WRITE>(ep) }
}

unsafe extern "C" fn writedata(
    ep: *mut fid_ep,
    buf: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    data: u64,
    to: fi_addr_t,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let piece = call::piece(buf, len);
    let wish = Wish::new(&piece, 1, (to, offset, key), context);
    // SAFETY: as in `one`.
    unsafe { Wish { data: Some(data), ..wish }.begin::<WRITE>(ep) }
}

unsafe extern "C" fn injectdata(
    ep: *mut fid_ep,
    buf: *mut c_void,
    len: usize,
    data: u64,
    to: fi_addr_t,
    offset: u64,
    key: u64,
) -> isize {
    let piece = call::piece(buf, len);
    let wish = Wish::new(&piece, 1, (to, offset, key), std::ptr::null_mut());
    // SAFETY: as in `one`.
    unsafe { Wish { data: Some(data), context: None, ..wish }.begin::<WRITE>(ep) }
}
