//! Objects, and their tables of operations.

use std::ffi::{c_char, c_int, c_void};

use super::{
    fi_addr_t, fi_av_attr, fi_cntr_attr, fi_cq_attr, fi_cq_err_entry, fi_eq_attr, fi_info, fi_msg, fi_msg_rma,
    fi_msg_tagged, iovec,
};

/// An unsupported operation. On libfabric's ABIs callers remove their arguments, and read an `int`
/// from the lower half of the result, so that one type stands for all.
pub type Missing = unsafe extern "C" fn() -> isize;

/// `rest` is filled with it at the end of a table.
pub extern "C" fn missing() -> isize {
    -(libc::ENOSYS as isize)
}

/// Common beginning of every object.
#[repr(C)]
pub struct fid {
    pub fclass: usize,
    pub context: *mut c_void,
    pub ops: &'static fi_ops,
}

#[repr(C)]
pub struct fi_ops {
    pub size: usize,
    pub close: unsafe extern "C" fn(*mut fid) -> c_int,
    pub bind: unsafe extern "C" fn(*mut fid, *mut fid, u64) -> c_int,
    pub control: unsafe extern "C" fn(*mut fid, c_int, *mut c_void) -> c_int,
    pub rest: [Missing; 3],
}

#[repr(C)]
pub struct fid_fabric {
    pub fid: fid,
    pub ops: &'static fi_ops_fabric,
    pub api_version: u32,
}

#[repr(C)]
pub struct fi_ops_fabric {
    pub size: usize,
    pub domain: unsafe extern "C" fn(*mut fid_fabric, *mut fi_info, *mut *mut fid_domain, *mut c_void) -> c_int,
    pub passive_ep: Missing,
    pub eq_open: unsafe extern "C" fn(*mut fid_fabric, *mut fi_eq_attr, *mut *mut fid_eq, *mut c_void) -> c_int,
    pub rest: [Missing; 3],
}

#[repr(C)]
pub struct fid_domain {
    pub fid: fid,
    pub ops: &'static fi_ops_domain,
    pub mr: &'static fi_ops_mr,
}

#[repr(C)]
pub struct fi_ops_domain {
    pub size: usize,
    pub av_open: unsafe extern "C" fn(*mut fid_domain, *mut fi_av_attr, *mut *mut fid_av, *mut c_void) -> c_int,
    pub cq_open: unsafe extern "C" fn(*mut fid_domain, *mut fi_cq_attr, *mut *mut fid_cq, *mut c_void) -> c_int,
    pub endpoint: unsafe extern "C" fn(*mut fid_domain, *mut fi_info, *mut *mut fid_ep, *mut c_void) -> c_int,
    pub scalable_ep: Missing,
    pub cntr_open: unsafe extern "C" fn(*mut fid_domain, *mut fi_cntr_attr, *mut *mut fid_cntr, *mut c_void) -> c_int,
    pub rest: [Missing; 6],
}

#[repr(C)]
pub struct fi_ops_mr {
    pub size: usize,
    pub reg: unsafe extern "C" fn(
        *mut fid,
        *const c_void,
        usize,
        u64,
        u64,
        u64,
        u64,
        *mut *mut fid_mr,
        *mut c_void,
    ) -> c_int,
    pub regv:
        unsafe extern "C" fn(*mut fid, *const iovec, usize, u64, u64, u64, u64, *mut *mut fid_mr, *mut c_void) -> c_int,
    pub regattr: unsafe extern "C" fn(*mut fid, *const fi_mr_attr, u64, *mut *mut fid_mr) -> c_int,
}

/// The beginning of the structure; the rest concerns device memory.
#[repr(C)]
pub struct fi_mr_attr {
    pub mr_iov: *const iovec,
    pub iov_count: usize,
    pub access: u64,
    pub offset: u64,
    pub requested_key: u64,
    pub context: *mut c_void,
}

#[repr(C)]
pub struct fid_mr {
    pub fid: fid,
    pub mem_desc: *mut c_void,
    pub key: u64,
}

#[repr(C)]
pub struct fid_av {
    pub fid: fid,
    pub ops: &'static fi_ops_av,
}

#[repr(C)]
pub struct fi_ops_av {
    pub size: usize,
    pub insert: unsafe extern "C" fn(*mut fid_av, *const c_void, usize, *mut fi_addr_t, u64, *mut c_void) -> c_int,
    pub insertsvc:
        unsafe extern "C" fn(*mut fid_av, *const c_char, *const c_char, *mut fi_addr_t, u64, *mut c_void) -> c_int,
    pub insertsym: Missing,
    pub remove: unsafe extern "C" fn(*mut fid_av, *mut fi_addr_t, usize, u64) -> c_int,
    pub lookup: unsafe extern "C" fn(*mut fid_av, fi_addr_t, *mut c_void, *mut usize) -> c_int,
    pub straddr: unsafe extern "C" fn(*mut fid_av, *const c_void, *mut c_char, *mut usize) -> *const c_char,
    pub av_set: Missing,
}

#[repr(C)]
pub struct fid_eq {
    pub fid: fid,
    pub ops: &'static fi_ops_eq,
}

#[repr(C)]
pub struct fi_ops_eq {
    pub size: usize,
    pub read: unsafe extern "C" fn(*mut fid_eq, *mut u32, *mut c_void, usize, u64) -> isize,
    pub readerr: unsafe extern "C" fn(*mut fid_eq, *mut c_void, u64) -> isize,
    pub write: Missing,
    pub sread: unsafe extern "C" fn(*mut fid_eq, *mut u32, *mut c_void, usize, c_int, u64) -> isize,
    pub strerror: unsafe extern "C" fn(*mut fid_eq, c_int, *const c_void, *mut c_char, usize) -> *const c_char,
}

#[repr(C)]
pub struct fid_cq {
    pub fid: fid,
    pub ops: &'static fi_ops_cq,
}

#[repr(C)]
pub struct fi_ops_cq {
    pub size: usize,
    pub read: unsafe extern "C" fn(*mut fid_cq, *mut c_void, usize) -> isize,
    pub readfrom: unsafe extern "C" fn(*mut fid_cq, *mut c_void, usize, *mut fi_addr_t) -> isize,
    pub readerr: unsafe extern "C" fn(*mut fid_cq, *mut fi_cq_err_entry, u64) -> isize,
    pub sread: unsafe extern "C" fn(*mut fid_cq, *mut c_void, usize, *const c_void, c_int) -> isize,
    pub sreadfrom: unsafe extern "C" fn(*mut fid_cq, *mut c_void, usize, *mut fi_addr_t, *const c_void, c_int) -> isize,
    pub signal: unsafe extern "C" fn(*mut fid_cq) -> c_int,
    pub strerror: unsafe extern "C" fn(*mut fid_cq, c_int, *const c_void, *mut c_char, usize) -> *const c_char,
}

#[repr(C)]
pub struct fid_cntr {
    pub fid: fid,
    pub ops: &'static fi_ops_cntr,
}

#[repr(C)]
pub struct fi_ops_cntr {
    pub size: usize,
    pub read: unsafe extern "C" fn(*mut fid_cntr) -> u64,
    pub readerr: unsafe extern "C" fn(*mut fid_cntr) -> u64,
    pub add: unsafe extern "C" fn(*mut fid_cntr, u64) -> c_int,
    pub set: unsafe extern "C" fn(*mut fid_cntr, u64) -> c_int,
    pub wait: unsafe extern "C" fn(*mut fid_cntr, u64, c_int) -> c_int,
    pub adderr: unsafe extern "C" fn(*mut fid_cntr, u64) -> c_int,
    pub seterr: unsafe extern "C" fn(*mut fid_cntr, u64) -> c_int,
}

#[repr(C)]
pub struct fid_ep {
    pub fid: fid,
    pub ops: &'static fi_ops_ep,
    pub cm: &'static fi_ops_cm,
    pub msg: &'static fi_ops_msg,
    pub rma: &'static fi_ops_rma,
    pub tagged: &'static fi_ops_tagged,
    pub atomic: &'static fi_ops_missing,
    pub collective: &'static fi_ops_missing,
}

type Rma =
    unsafe extern "C" fn(*mut fid_ep, *mut c_void, usize, *mut c_void, fi_addr_t, u64, u64, *mut c_void) -> isize;
type RmaV =
    unsafe extern "C" fn(*mut fid_ep, *const iovec, *mut *mut c_void, usize, fi_addr_t, u64, u64, *mut c_void) -> isize;
type RmaMsg = unsafe extern "C" fn(*mut fid_ep, *const fi_msg_rma, u64) -> isize;

#[repr(C)]
pub struct fi_ops_rma {
    pub size: usize,
    pub read: Rma,
    pub readv: RmaV,
    pub readmsg: RmaMsg,
    pub write: Rma,
    pub writev: RmaV,
    pub writemsg: RmaMsg,
    pub inject: unsafe extern "C" fn(*mut fid_ep, *mut c_void, usize, fi_addr_t, u64, u64) -> isize,
    pub writedata: unsafe extern "C" fn(
        *mut fid_ep,
        *mut c_void,
        usize,
        *mut c_void,
        u64,
        fi_addr_t,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
    pub injectdata: unsafe extern "C" fn(*mut fid_ep, *mut c_void, usize, u64, fi_addr_t, u64, u64) -> isize,
}

/// A table without any supported operation, with the length of the longest one.
#[repr(C)]
pub struct fi_ops_missing {
    pub size: usize,
    pub all: [Missing; 16],
}

#[repr(C)]
pub struct fi_ops_ep {
    pub size: usize,
    pub cancel: unsafe extern "C" fn(*mut fid, *mut c_void) -> isize,
    pub getopt: unsafe extern "C" fn(*mut fid, c_int, c_int, *mut c_void, *mut usize) -> c_int,
    pub setopt: unsafe extern "C" fn(*mut fid, c_int, c_int, *const c_void, usize) -> c_int,
    pub rest: [Missing; 4],
}

#[repr(C)]
pub struct fi_ops_cm {
    pub size: usize,
    pub setname: unsafe extern "C" fn(*mut fid, *mut c_void, usize) -> c_int,
    pub getname: unsafe extern "C" fn(*mut fid, *mut c_void, *mut usize) -> c_int,
    pub rest: [Missing; 7],
}

type Iov = *const iovec;
type Descs = *mut *mut c_void;

#[repr(C)]
pub struct fi_ops_msg {
    pub size: usize,
    pub recv: unsafe extern "C" fn(*mut fid_ep, *mut c_void, usize, *mut c_void, fi_addr_t, *mut c_void) -> isize,
    pub recvv: unsafe extern "C" fn(*mut fid_ep, Iov, Descs, usize, fi_addr_t, *mut c_void) -> isize,
    pub recvmsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg, u64) -> isize,
    pub send: unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, *mut c_void, fi_addr_t, *mut c_void) -> isize,
    pub sendv: unsafe extern "C" fn(*mut fid_ep, Iov, Descs, usize, fi_addr_t, *mut c_void) -> isize,
    pub sendmsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg, u64) -> isize,
    pub inject: unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, fi_addr_t) -> isize,
    pub senddata:
        unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, *mut c_void, u64, fi_addr_t, *mut c_void) -> isize,
    pub injectdata: unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, u64, fi_addr_t) -> isize,
}

#[repr(C)]
pub struct fi_ops_tagged {
    pub size: usize,
    pub recv:
        unsafe extern "C" fn(*mut fid_ep, *mut c_void, usize, *mut c_void, fi_addr_t, u64, u64, *mut c_void) -> isize,
    pub recvv: unsafe extern "C" fn(*mut fid_ep, Iov, Descs, usize, fi_addr_t, u64, u64, *mut c_void) -> isize,
    pub recvmsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg_tagged, u64) -> isize,
    pub send:
        unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, *mut c_void, fi_addr_t, u64, *mut c_void) -> isize,
    pub sendv: unsafe extern "C" fn(*mut fid_ep, Iov, Descs, usize, fi_addr_t, u64, *mut c_void) -> isize,
    pub sendmsg: unsafe extern "C" fn(*mut fid_ep, *const fi_msg_tagged, u64) -> isize,
    pub inject: unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, fi_addr_t, u64) -> isize,
    pub senddata:
        unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, *mut c_void, u64, fi_addr_t, u64, *mut c_void) -> isize,
    pub injectdata: unsafe extern "C" fn(*mut fid_ep, *const c_void, usize, u64, fi_addr_t, u64) -> isize,
}
