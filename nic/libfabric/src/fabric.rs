//! Fabrics (`fid_fabric`), and event queues, which stay empty with connectionless endpoints.
#![expect(unsafe_code, reason = "objects of C's")]

use std::ffi::{c_int, c_void};
use std::time::Duration;

use crate::abi::*;
use crate::call::{self, call, call_int};
use crate::error::Errno;
use crate::{domain, object};

static FID: fi_ops = object::plain_ops::<fid_fabric>();
static OPS: fi_ops_fabric = fi_ops_fabric {
    size: size_of::<fi_ops_fabric>(),
    domain: domain::open,
    passive_ep: missing,
    eq_open,
    rest: [missing; 3],
};
static EQ_FID: fi_ops = object::plain_ops::<fid_eq>();
static EQ_OPS: fi_ops_eq =
    fi_ops_eq { size: size_of::<fi_ops_eq>(), read, readerr, write: missing, sread, strerror: object::strerror };

pub(crate) unsafe extern "C" fn open(
    attr: *mut fi_fabric_attr,
    to: *mut *mut fid_fabric,
    context: *mut c_void,
) -> c_int {
    // SAFETY: libfabric passes attributes and a place for the result; a fabric is its own head.
    call_int(|| unsafe {
        let fid = object::fid(FI_CLASS_FABRIC, context, &FID);
        call::open(fid_fabric { fid, ops: &OPS, api_version: call::at(attr)?.api_version }, to)
    })
}

unsafe extern "C" fn eq_open(
    _fabric: *mut fid_fabric,
    attr: *mut fi_eq_attr,
    to: *mut *mut fid_eq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application passes attributes or null, and a place for the result; a queue is its own head.
    call_int(|| unsafe {
        if attr.as_ref().is_some_and(|attr| !object::can_wait(attr.wait_obj)) {
            return Err(Errno::MISSING);
        }
        call::open(fid_eq { fid: object::fid(FI_CLASS_EQ, context, &EQ_FID), ops: &EQ_OPS }, to)
    })
}

unsafe extern "C" fn read(_eq: *mut fid_eq, _event: *mut u32, _buf: *mut c_void, _len: usize, _flags: u64) -> isize {
    -(libc::EAGAIN as isize)
}

unsafe extern "C" fn readerr(_eq: *mut fid_eq, _buf: *mut c_void, _flags: u64) -> isize {
    -(libc::EAGAIN as isize)
}

unsafe extern "C" fn sread(
    _eq: *mut fid_eq,
    _event: *mut u32,
    _buf: *mut c_void,
    _len: usize,
    timeout: c_int,
    _flags: u64,
) -> isize {
    call(|| {
        let timeout = u64::try_from(timeout).map_or(Duration::MAX, Duration::from_millis);
        std::thread::sleep(timeout);
        Err::<i32, _>(Errno::AGAIN)
    })
}
