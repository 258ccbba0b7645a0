//! RMA calls.
#![expect(unsafe_code, reason = "the application hands over memory")]

use std::ffi::c_void;

use crate::abi::*;
use crate::call::{self, call, piece};
use crate::endpoint::Ep;
use crate::engine::RmaOperation;
use crate::engine::buffers::Buffers;
use crate::engine::rma::Kind;
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
    inject: inject::<WRITE>,
    writedata: with_data::<WRITE>,
    injectdata: inject_with_data::<WRITE>,
};

const READ: bool = true;
const WRITE: bool = false;

/// Arguments of a read or write.
struct Access {
    iov: *const iovec,
    count: usize,
    to: fi_addr_t,
    offset: u64,
    key: u64,
    data: Option<u64>,
    context: Option<*mut c_void>,
    /// The flags; `None` selects the default of the endpoint.
    flags: Option<u64>,
}

impl Access {
    fn new(iov: *const iovec, count: usize, context: Option<*mut c_void>) -> Self {
        Self { iov, count, to: 0, offset: 0, key: 0, data: None, context, flags: None }
    }

    fn with_data(self, data: u64) -> Self {
        Self { data: Some(data), ..self }
    }

    fn at(self, to: fi_addr_t, offset: u64, key: u64) -> Self {
        Self { to, offset, key, ..self }
    }

    /// Starts the operation.
    ///
    /// # Safety
    /// The endpoint is open. Until the completion, memory that is written from does not change, and
    /// memory that is read into is not used, as required by `fi_rma(3)`.
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
                engine.begin_remote(&RmaOperation { to, buffers, kind, key, offset, data, flags, context }).map(|()| 0)
            })
        })
    }
}

macro_rules! calls {
    ($($call:ident($($before:ident: $Before:ty),+; $($context:ident: $Context:ty)?) => $access:expr;)+) => {$(
        unsafe extern "C" fn $call<const IS_READ: bool>(
            ep: *mut fid_ep,
            $($before: $Before,)+
            to: fi_addr_t,
            offset: u64,
            key: u64,
            $($context: $Context)?
        ) -> isize {
        // SAFETY: the application follows libfabric's rules for this call.
            unsafe { $access.at(to, offset, key).begin::<IS_READ>(ep) }
        }
    )+};
}

calls! {
    one(buf: *mut c_void, len: usize, _desc: *mut c_void; context: *mut c_void)
        => Access::new(&piece(buf, len), 1, Some(context));
    several(iov: *const iovec, _desc: *mut *mut c_void, count: usize; context: *mut c_void)
        => Access::new(iov, count, Some(context));
    with_data(buf: *mut c_void, len: usize, _desc: *mut c_void, data: u64; context: *mut c_void)
        => Access::new(&piece(buf, len), 1, Some(context)).with_data(data);
    inject(buf: *mut c_void, len: usize;) => Access::new(&piece(buf, len), 1, None);
    inject_with_data(buf: *mut c_void, len: usize, data: u64;) => Access::new(&piece(buf, len), 1, None).with_data(data);
}

unsafe extern "C" fn described<const IS_READ: bool>(ep: *mut fid_ep, message: *const fi_msg_rma, flags: u64) -> isize {
    // SAFETY: the application follows libfabric's rules for this call.
    unsafe {
        let Some(message) = message.as_ref() else { return -(libc::EINVAL as isize) };
        let Ok([remote]) = call::slice(message.rma_iov, message.rma_iov_count) else { return -(libc::EINVAL as isize) };
        let access = Access::new(message.msg_iov, message.iov_count, Some(message.context));
        let data = (!IS_READ && flags & FI_REMOTE_CQ_DATA != 0).then_some(message.data);
        Access { data, flags: Some(flags), ..access }.at(message.addr, remote.addr, remote.key).begin::<IS_READ>(ep)
    }
}
