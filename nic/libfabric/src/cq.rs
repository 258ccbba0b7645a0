//! Completion queues (`fid_cq`). Reading one drives the endpoint of the domain.
#![expect(unsafe_code, reason = "objects of C's")]

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

use spray_nic::sys::monotonic_ns;

use crate::abi::*;
use crate::call::{self, call, call_int};
use crate::engine::{MAX_RECEIVES, sending};
use crate::error::Errno;
use crate::queue::{Completion, Queue};
use crate::shared::Domain;
use crate::{object, shared};

#[repr(C)]
pub(crate) struct Cq {
    head: fid_cq,
    pub(crate) domain: Arc<Domain>,
    pub(crate) queue: Arc<Queue>,
    entry_bytes: usize,
}

static FID: fi_ops = object::plain_ops::<Cq>();
static OPS: fi_ops_cq = fi_ops_cq {
    size: size_of::<fi_ops_cq>(),
    read,
    readfrom,
    readerr,
    sread,
    sreadfrom,
    signal,
    strerror: object::strerror,
};

pub(crate) unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attr: *mut fi_cq_attr,
    to: *mut *mut fid_cq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application passes its domain, attributes or null, and a place for the result; a `Cq` begins with its head.
    call_int(|| unsafe {
        let (format, wait_obj, size) = attr.as_ref().map_or((0, 0, 0), |attr| (attr.format, attr.wait_obj, attr.size));
        let entry_bytes = match format {
            FI_CQ_FORMAT_UNSPEC | FI_CQ_FORMAT_CONTEXT => std::mem::offset_of!(fi_cq_tagged_entry, flags),
            FI_CQ_FORMAT_MSG => std::mem::offset_of!(fi_cq_tagged_entry, buf),
            FI_CQ_FORMAT_DATA => std::mem::offset_of!(fi_cq_tagged_entry, tag),
            FI_CQ_FORMAT_TAGGED => size_of::<fi_cq_tagged_entry>(),
            _ => return Err(Errno::MISSING),
        };
        if !object::can_wait(wait_obj) {
            return Err(Errno::MISSING);
        }
        let size = if size == 0 { MAX_RECEIVES + sending::MAX_UNDELIVERED } else { size };
        let head = fid_cq { fid: object::fid(FI_CLASS_CQ, context, &FID), ops: &OPS };
        let queue = Arc::new(Queue::new(size));
        call::open(Cq { head, domain: shared::domain_of(domain)?, queue, entry_bytes }, to)
    })
}

impl Cq {
    /// Reads up to `most` completions.
    ///
    /// # Safety
    /// `to` has space for `most` completions of the queue's format, and `sources`, unless null, for
    /// `most` addresses.
    unsafe fn read(&self, to: *mut c_void, most: usize, sources: *mut fi_addr_t) -> Result<usize, Errno> {
        let to = to.cast::<u8>();
        let write = |at: usize, completion: &Completion| {
            let entry = (&raw const completion.entry).cast::<u8>();
            // SAFETY: `at` is less than `most`, so there is space as the caller promises; an entry has the length of the longest format.
            unsafe {
                std::ptr::copy_nonoverlapping(entry, to.add(at * self.entry_bytes), self.entry_bytes);
                if !sources.is_null() {
                    sources.add(at).write(completion.source);
                }
            }
        };
        let failed = |_| Errno(FI_EAVAIL);
        let mut count = self.queue.read(most, write).map_err(failed)?;
        if count == 0 {
            self.domain.progress()?;
            count = self.queue.read(most, write).map_err(failed)?;
        }
        if count == 0 {
            return Err(Errno::AGAIN);
        }
        self.domain.on_found();
        Ok(count)
    }

    /// As [`read`](Self::read), but waits for a completion.
    ///
    /// # Safety
    /// As for [`read`](Self::read).
    unsafe fn wait(
        &self,
        to: *mut c_void,
        most: usize,
        sources: *mut fi_addr_t,
        timeout_ms: c_int,
    ) -> Result<usize, Errno> {
        let timeout = u64::try_from(timeout_ms).map_or(Duration::MAX, Duration::from_millis);
        let begun_ns = monotonic_ns();
        loop {
            // SAFETY: as the caller promises.
            match unsafe { self.read(to, most, sources) } {
                Err(Errno::AGAIN) => {}
                read => return read,
            }
            let left = timeout.saturating_sub(Duration::from_nanos(monotonic_ns() - begun_ns));
            if left.is_zero() || self.queue.take_signal() {
                return Err(Errno::AGAIN);
            }
            self.domain.progress_or_sleep(left)?;
        }
    }
}

unsafe extern "C" fn read(cq: *mut fid_cq, to: *mut c_void, count: usize) -> isize {
    // SAFETY: the application passes its queue, and space for `count` completions.
    call(|| unsafe { call::object::<Cq>(cq)?.read(to, count, std::ptr::null_mut()) }.map(|read| read as i64))
}

unsafe extern "C" fn readfrom(cq: *mut fid_cq, to: *mut c_void, count: usize, sources: *mut fi_addr_t) -> isize {
    // SAFETY: the application passes its queue, and space for `count` completions and addresses.
    call(|| unsafe { call::object::<Cq>(cq)?.read(to, count, sources) }.map(|read| read as i64))
}

unsafe extern "C" fn sread(
    cq: *mut fid_cq,
    to: *mut c_void,
    count: usize,
    _condition: *const c_void,
    timeout: c_int,
) -> isize {
    // SAFETY: the application passes its queue, and space for `count` completions.
    call(|| unsafe { call::object::<Cq>(cq)?.wait(to, count, std::ptr::null_mut(), timeout) }.map(|read| read as i64))
}

unsafe extern "C" fn sreadfrom(
    cq: *mut fid_cq,
    to: *mut c_void,
    count: usize,
    sources: *mut fi_addr_t,
    _condition: *const c_void,
    timeout: c_int,
) -> isize {
    // SAFETY: the application passes its queue, and space for `count` completions and addresses.
    call(|| unsafe { call::object::<Cq>(cq)?.wait(to, count, sources, timeout) }.map(|read| read as i64))
}

unsafe extern "C" fn readerr(cq: *mut fid_cq, to: *mut fi_cq_err_entry, _flags: u64) -> isize {
    call(|| {
        // SAFETY: the application passes its queue, and space for an entry.
        let cq = unsafe { call::object::<Cq>(cq)? };
        if to.is_null() {
            return Err(Errno::INVALID);
        }
        let Completion { entry, errno, lost, .. } = cq.queue.read_failed().ok_or(Errno::AGAIN)?;
        let fi_cq_tagged_entry { op_context, flags, len, buf, data, tag } = entry;
        // SAFETY: as above. The error data belongs to the application; the provider has none.
        unsafe {
            let (err_data, err_data_size) = ((*to).err_data, 0);
            let prov_errno = errno;
            let (err, olen) = (errno, lost);
            to.write(fi_cq_err_entry {
                op_context,
                flags,
                len,
                buf,
                data,
                tag,
                olen,
                err,
                prov_errno,
                err_data,
                err_data_size,
            });
        }
        Ok(1)
    })
}

unsafe extern "C" fn signal(cq: *mut fid_cq) -> c_int {
    // SAFETY: the application passes its queue.
    call_int(|| unsafe { call::object::<Cq>(cq) }.map(|cq| cq.queue.signal()).map(|()| 0))
}
