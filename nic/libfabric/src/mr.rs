//! Memory regions (`fid_mr`), which peers may access. Local operations do not need them.
#![expect(unsafe_code, reason = "objects of C's")]

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::abi::*;
use crate::call::{self, call_int};
use crate::engine::buffers::Buffers;
use crate::engine::rma::Region;
use crate::error::Errno;
use crate::object;
use crate::shared::{Domain, domain_of};

pub(crate) static OPS: fi_ops_mr = fi_ops_mr { size: size_of::<fi_ops_mr>(), reg, regv, regattr };
static FID: fi_ops = object::ops(close, object::no_bind, control);

#[repr(C)]
struct Mr {
    head: fid_mr,
    domain: Arc<Domain>,
    /// Whether the region is registered for access by peers.
    is_registered: bool,
}

/// # Safety
/// The domain is open, the memory is valid until the region is closed, and `to`, unless null, is
/// valid for writes.
unsafe fn open(
    domain: *mut fid,
    pieces: &[iovec],
    access: u64,
    requested_key: u64,
    to: *mut *mut fid_mr,
    context: *mut c_void,
) -> Result<c_int, Errno> {
    // SAFETY: as the caller promises; an `Mr` begins with its head.
    unsafe {
        let domain = domain_of(domain.cast())?;
        let buffers = Buffers::new(pieces).ok_or(Errno::INVALID)?;
        let key = if domain.provides_keys { domain.regions.free_key()? } else { requested_key };
        let base = if domain.by_address { buffers.address() as u64 } else { 0 };
        let access = [FI_REMOTE_READ, FI_REMOTE_WRITE].map(|bit| access & bit != 0);
        // Regions without remote access are not registered, so their keys need not be unique.
        let is_registered = access.contains(&true);
        if is_registered && !domain.regions.insert(key, Region { buffers, base, access }) {
            return Err(Errno(FI_ENOKEY));
        }
        let head = fid_mr { fid: object::fid(FI_CLASS_MR, context, &FID), mem_desc: std::ptr::null_mut(), key };
        call::open(Mr { head, domain, is_registered }, to)
    }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    call_int(|| {
        // SAFETY: the application closes what `open` returned.
        let mr = unsafe { call::close::<Mr>(fid) }?;
        if mr.is_registered {
            mr.domain.regions.remove(mr.head.key);
        }
        Ok(0)
    })
}

/// Regions are enabled from the start.
unsafe extern "C" fn control(_fid: *mut fid, command: c_int, _argument: *mut c_void) -> c_int {
    if command == FI_ENABLE { 0 } else { -libc::ENOSYS }
}

unsafe extern "C" fn reg(
    domain: *mut fid,
    memory: *const c_void,
    bytes: usize,
    access: u64,
    _offset: u64,
    key: u64,
    _flags: u64,
    to: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    let piece = call::piece(memory, bytes);
    // SAFETY: the application passes its domain, memory, and a place for the result.
    call_int(|| unsafe { open(domain, &[piece], access, key, to, context) })
}

unsafe extern "C" fn regv(
    domain: *mut fid,
    memory: *const iovec,
    count: usize,
    access: u64,
    _offset: u64,
    key: u64,
    _flags: u64,
    to: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: as in `reg`.
    call_int(|| unsafe { open(domain, call::slice(memory, count)?, access, key, to, context) })
}

unsafe extern "C" fn regattr(domain: *mut fid, attr: *const fi_mr_attr, _flags: u64, to: *mut *mut fid_mr) -> c_int {
    // SAFETY: as in `reg`, with attributes.
    call_int(|| unsafe {
        let attr = call::at(attr)?;
        let pieces = call::slice(attr.mr_iov, attr.iov_count)?;
        open(domain, pieces, attr.access, attr.requested_key, to, attr.context)
    })
}
