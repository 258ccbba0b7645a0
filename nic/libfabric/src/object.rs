//! What all objects begin with.

use std::ffi::{c_int, c_void};

use crate::abi::{FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_YIELD, fi_ops, fid, missing};

type Close = unsafe extern "C" fn(*mut fid) -> c_int;
type Bind = unsafe extern "C" fn(*mut fid, *mut fid, u64) -> c_int;
type Control = unsafe extern "C" fn(*mut fid, c_int, *mut c_void) -> c_int;

/// The operations that every object has.
pub(crate) const fn ops(close: Close, bind: Bind, control: Control) -> fi_ops {
    fi_ops { size: size_of::<fi_ops>(), close, bind, control, ops_open: missing, tostr: missing, ops_set: missing }
}

/// The beginning of an object.
pub(crate) fn fid(fclass: usize, context: *mut c_void, ops: &'static fi_ops) -> fid {
    fid { fclass, context, ops }
}

/// For objects that nothing is bound to.
pub(crate) extern "C" fn no_bind(_object: *mut fid, _bound: *mut fid, _flags: u64) -> c_int {
    -libc::ENOSYS
}

/// For objects without commands.
pub(crate) extern "C" fn no_control(_object: *mut fid, _command: c_int, _argument: *mut c_void) -> c_int {
    -libc::ENOSYS
}

/// Whether threads can wait in that way: by calls of libfabric's, not by a file descriptor.
pub(crate) fn can_wait(wait_obj: u32) -> bool {
    matches!(wait_obj, FI_WAIT_NONE | FI_WAIT_UNSPEC | FI_WAIT_YIELD)
}
