//! Common operations of all objects.
#![expect(unsafe_code, reason = "objects of C's")]

use std::ffi::{c_char, c_int, c_void};

use crate::abi::{FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_YIELD, fi_ops, fid, missing};
use crate::call::{self, call_int};
use crate::error;

type Close = unsafe extern "C" fn(*mut fid) -> c_int;
type Bind = unsafe extern "C" fn(*mut fid, *mut fid, u64) -> c_int;
type Control = unsafe extern "C" fn(*mut fid, c_int, *mut c_void) -> c_int;

/// Returns the common operations of a `T` that supports neither bindings nor commands.
pub(crate) const fn plain_ops<T>() -> fi_ops {
    ops(close::<T>, no_bind, no_control)
}

pub(crate) const fn ops(close: Close, bind: Bind, control: Control) -> fi_ops {
    fi_ops { size: size_of::<fi_ops>(), close, bind, control, rest: [missing; 3] }
}

pub(crate) fn fid(fclass: usize, context: *mut c_void, ops: &'static fi_ops) -> fid {
    fid { fclass, context, ops }
}

unsafe extern "C" fn close<T>(fid: *mut fid) -> c_int {
    // SAFETY: the application closes an object that `call::open` returned as a `T`, which has these operations.
    call_int(|| unsafe { call::close::<T>(fid) }.map(|_| 0))
}

/// For objects without bindings.
pub(crate) extern "C" fn no_bind(_object: *mut fid, _bound: *mut fid, _flags: u64) -> c_int {
    -libc::ENOSYS
}

/// For objects without commands.
extern "C" fn no_control(_object: *mut fid, _command: c_int, _argument: *mut c_void) -> c_int {
    -libc::ENOSYS
}

pub(crate) unsafe extern "C" fn strerror<Queue>(
    _queue: *mut Queue,
    errno: c_int,
    _data: *const c_void,
    buf: *mut c_char,
    len: usize,
) -> *const c_char {
    let text = error::text(errno);
    // SAFETY: the application passes space for `len` bytes, or null.
    unsafe { call::put_text(text, buf, len) };
    text.as_ptr()
}

/// Returns whether the kind of waiting is supported: in libfabric calls, not on a file descriptor.
pub(crate) fn can_wait(wait_obj: u32) -> bool {
    matches!(wait_obj, FI_WAIT_NONE | FI_WAIT_UNSPEC | FI_WAIT_YIELD)
}
