//! Memory regions. None is needed: registering memory, as applications that also run on other NICs do, changes nothing.
#![expect(unsafe_code, reason = "objects of C's")]

use std::ffi::{c_int, c_void};

use crate::abi::*;
use crate::call::{self, call_int};
use crate::error::Errno;
use crate::object;

pub(crate) static OPS: fi_ops_mr =
    fi_ops_mr { size: size_of::<fi_ops_mr>(), reg: reg::<c_void>, regv: reg::<iovec>, regattr };
static FID: fi_ops = object::plain_ops::<fid_mr>();

/// # Safety
/// `to`, unless null, may be written to.
unsafe fn open(access: u64, key: u64, to: *mut *mut fid_mr, context: *mut c_void) -> Result<c_int, Errno> {
    if access & (FI_REMOTE_READ | FI_REMOTE_WRITE) != 0 {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    let region = fid_mr { fid: object::fid(FI_CLASS_MR, context, &FID), mem_desc: std::ptr::null_mut(), key };
    // SAFETY: as the caller promises; a region is its own beginning.
    unsafe { call::open(region, to) }
}

/// Registers so many pieces, or bytes, of memory.
unsafe extern "C" fn reg<T>(
    _domain: *mut fid,
    _memory: *const T,
    _count: usize,
    access: u64,
    _offset: u64,
    key: u64,
    _flags: u64,
    to: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application passes a place for the result.
    call_int(|| unsafe { open(access, key, to, context) })
}

unsafe extern "C" fn regattr(_domain: *mut fid, attr: *const fi_mr_attr, _flags: u64, to: *mut *mut fid_mr) -> c_int {
    // SAFETY: the application passes attributes and a place for the result.
    call_int(|| unsafe {
        let attr = call::at(attr)?;
        open(attr.access, attr.requested_key, to, attr.context)
    })
}
