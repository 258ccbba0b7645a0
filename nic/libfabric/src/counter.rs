//! Counters (`fid_cntr`).
#![expect(unsafe_code, reason = "objects of C's")]

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use spray_nic::sys::monotonic_ns;

use crate::abi::*;
use crate::call::{self, call_int};
use crate::error::Errno;
use crate::queue::Count;
use crate::shared::Domain;
use crate::{object, shared};

#[repr(C)]
pub(crate) struct Counter {
    head: fid_cntr,
    pub(crate) domain: Arc<Domain>,
    pub(crate) count: Arc<Count>,
}

static FID: fi_ops = object::plain_ops::<Counter>();
static OPS: fi_ops_cntr = fi_ops_cntr { size: size_of::<fi_ops_cntr>(), read, readerr, add, set, wait, adderr, seterr };

pub(crate) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attr: *mut fi_cntr_attr,
    to: *mut *mut fid_cntr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application passes its domain, attributes or null, and a place for the result; a `Counter` begins with its head.
    call_int(|| unsafe {
        if attr.as_ref().is_some_and(|attr| attr.events != 0 || !object::can_wait(attr.wait_obj)) {
            return Err(Errno::MISSING);
        }
        let head = fid_cntr { fid: object::fid(FI_CLASS_CNTR, context, &FID), ops: &OPS };
        call::open(Counter { head, domain: shared::domain_of(domain)?, count: Arc::default() }, to)
    })
}

impl Counter {
    fn wait(&self, threshold: u64, timeout_ms: c_int) -> Result<c_int, Errno> {
        let timeout = u64::try_from(timeout_ms).map_or(Duration::MAX, Duration::from_millis);
        let (begun_ns, failed) = (monotonic_ns(), self.count.failed.load(Relaxed));
        loop {
            if self.count.done.load(Relaxed) >= threshold {
                self.domain.on_found();
                return Ok(0);
            }
            if self.count.failed.load(Relaxed) != failed {
                return Err(Errno(FI_EAVAIL));
            }
            let left = timeout.saturating_sub(Duration::from_nanos(monotonic_ns() - begun_ns));
            if left.is_zero() {
                return Err(Errno(libc::ETIMEDOUT));
            }
            self.domain.progress_or_sleep(left)?;
        }
    }
}

/// Calls `work` with a counter.
///
/// # Safety
/// `counter` was returned by `open`, and the application has not closed it.
unsafe fn with(counter: *mut fid_cntr, work: impl FnOnce(&Counter)) -> c_int {
    // SAFETY: as the caller promises.
    call_int(|| unsafe { call::object::<Counter>(counter) }.map(work).map(|()| 0))
}

unsafe extern "C" fn read(counter: *mut fid_cntr) -> u64 {
    let mut value = 0;
    // SAFETY: the application passes its counter.
    unsafe {
        with(counter, |counter| {
            // After a panic the counter keeps its value.
            let _ = counter.domain.progress();
            value = counter.count.done.load(Relaxed);
        })
    };
    value
}

unsafe extern "C" fn readerr(counter: *mut fid_cntr) -> u64 {
    let mut value = 0;
    // SAFETY: the application passes its counter.
    unsafe { with(counter, |counter| value = counter.count.failed.load(Relaxed)) };
    value
}

unsafe extern "C" fn add(counter: *mut fid_cntr, value: u64) -> c_int {
    // SAFETY: the application passes its counter.
    unsafe { with(counter, |counter| counter.count.add_done(value)) }
}

unsafe extern "C" fn set(counter: *mut fid_cntr, value: u64) -> c_int {
    // SAFETY: the application passes its counter.
    unsafe { with(counter, |counter| counter.count.done.store(value, Relaxed)) }
}

unsafe extern "C" fn adderr(counter: *mut fid_cntr, value: u64) -> c_int {
    // SAFETY: the application passes its counter.
    unsafe { with(counter, |counter| counter.count.add_failed(value)) }
}

unsafe extern "C" fn seterr(counter: *mut fid_cntr, value: u64) -> c_int {
    // SAFETY: the application passes its counter.
    unsafe { with(counter, |counter| counter.count.failed.store(value, Relaxed)) }
}

unsafe extern "C" fn wait(counter: *mut fid_cntr, threshold: u64, timeout: c_int) -> c_int {
    // SAFETY: the application passes its counter.
    call_int(|| unsafe { call::object::<Counter>(counter) }?.wait(threshold, timeout))
}
