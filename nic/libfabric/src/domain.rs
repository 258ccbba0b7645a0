//! Domains: an interface, and what runs on it.
#![expect(unsafe_code, reason = "objects of C's")]

use std::ffi::{c_int, c_void};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use spray_nic::device::XskInterface;
use spray_nic::sys::{readable, wait_readable};

use crate::abi::*;
use crate::call::{self, call_int};
use crate::engine::Engine;
use crate::error::Errno;
use crate::{address, av, counter, cq, endpoint, mr, object};

/// Rounds without a completion before a reader lets others have its core.
const QUIET_ROUNDS: u32 = 100;
/// Longest sleep of a reader that waits: what another thread reads of the interface does not wake it.
const NAP: Duration = Duration::from_millis(1);

/// An interface.
#[derive(Debug)]
pub struct Domain {
    /// Its name.
    pub interface: String,
    /// The address on it.
    pub address: IpAddr,
    engine: Mutex<Option<Engine<XskInterface>>>,
    quiet_rounds: AtomicU32,
}

impl Domain {
    /// The place of the endpoint, once it is enabled.
    ///
    /// # Errors
    /// After a panic.
    pub fn engine(&self) -> Result<MutexGuard<'_, Option<Engine<XskInterface>>>, Errno> {
        self.engine.lock().map_err(|_| Errno(FI_EOTHER))
    }

    /// Does something with the endpoint.
    ///
    /// # Errors
    /// When it is not enabled; or what `work` says.
    pub fn with<T>(&self, work: impl FnOnce(&mut Engine<XskInterface>) -> Result<T, Errno>) -> Result<T, Errno> {
        work(self.engine()?.as_mut().ok_or(Errno::BAD_STATE)?)
    }

    /// As [`with`](Self::with), unless another thread is at it.
    pub fn try_with<T>(&self, work: impl FnOnce(&mut Engine<XskInterface>) -> T) -> Option<T> {
        match self.engine.try_lock() {
            Ok(mut engine) => engine.as_mut().map(work),
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => None,
        }
    }

    /// Handles what has arrived, for a reader that found nothing. One that goes on finding nothing lets others have the core, who may
    /// have the answer.
    ///
    /// # Errors
    /// After a panic.
    pub fn progress(&self) -> Result<(), Errno> {
        if self.quiet_rounds.fetch_add(1, Ordering::Relaxed) >= QUIET_ROUNDS {
            std::thread::yield_now();
        }
        if let Some(engine) = self.engine()?.as_mut() {
            engine.progress(true);
        }
        Ok(())
    }

    /// A reader has found something.
    pub fn on_found(&self) {
        self.quiet_rounds.store(0, Ordering::Relaxed);
    }

    /// As [`progress`](Self::progress), for a reader that may sleep up to so long until frames arrive.
    ///
    /// # Errors
    /// After a panic.
    pub fn progress_or_sleep(&self, longest: Duration) -> Result<(), Errno> {
        let is_quiet = self.quiet_rounds.load(Ordering::Relaxed) >= QUIET_ROUNDS;
        self.progress()?;
        if is_quiet {
            let found = self.try_with(|engine| (engine.wake_fd(), engine.progress(true)));
            let (fd, due_ns) = found.unwrap_or((None, u64::MAX));
            let mut fds: Vec<_> = fd.map(readable).into_iter().collect();
            wait_readable(&mut fds, longest.min(NAP).min(Duration::from_nanos(due_ns)));
        }
        Ok(())
    }
}

/// A domain, as the application knows it.
#[repr(C)]
struct DomainObject {
    head: fid_domain,
    domain: Arc<Domain>,
}

static FID: fi_ops = object::ops(close, object::no_bind, object::no_control);
static OPS: fi_ops_domain = fi_ops_domain {
    size: size_of::<fi_ops_domain>(),
    av_open,
    cq_open,
    endpoint: ep_open,
    scalable_ep: missing,
    cntr_open,
    poll_open: missing,
    stx_ctx: missing,
    srx_ctx: missing,
    query_atomic: missing,
    query_collective: missing,
    endpoint2: missing,
};

/// `fi_domain`.
pub(crate) unsafe extern "C" fn open(
    _fabric: *mut fid_fabric,
    info: *mut fi_info,
    to: *mut *mut fid_domain,
    context: *mut c_void,
) -> c_int {
    call_int(|| {
        // SAFETY: the application passes a `fi_info` of `getinfo`, and a place for the result; an object begins with its head.
        unsafe {
            let info = call::at(info)?;
            let name = call::text(call::at(info.domain_attr)?.name)?.ok_or(Errno::INVALID)?;
            let address = address::read(info.src_addr)?.ip();
            let domain = Domain {
                interface: name.to_owned(),
                address,
                engine: Mutex::new(None),
                quiet_rounds: AtomicU32::new(0),
            };
            let head = fid_domain { fid: object::fid(FI_CLASS_DOMAIN, context, &FID), ops: &OPS, mr: &mr::OPS };
            call::open(DomainObject { head, domain: Arc::new(domain) }, to)
        }
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: the application closes what `open` made.
    call_int(|| unsafe { call::close::<DomainObject>(fid) }.map(|_| 0))
}

/// The domain that the application means.
///
/// # Safety
/// `open` has made it, and the application has not closed it.
unsafe fn domain<'a>(domain: *mut fid_domain) -> Result<&'a Arc<Domain>, Errno> {
    // SAFETY: as the caller promises.
    unsafe { call::object::<DomainObject>(domain) }.map(|object| &object.domain)
}

unsafe extern "C" fn av_open(
    _domain: *mut fid_domain,
    attr: *mut fi_av_attr,
    to: *mut *mut fid_av,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application passes attributes, or null, and a place for the result.
    call_int(|| unsafe { av::open(attr.as_ref(), to, context) })
}

unsafe extern "C" fn cq_open(
    at: *mut fid_domain,
    attr: *mut fi_cq_attr,
    to: *mut *mut fid_cq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application passes its domain, attributes, or null, and a place for the result.
    call_int(|| unsafe { cq::open(domain(at)?, attr.as_ref(), to, context) })
}

unsafe extern "C" fn cntr_open(
    at: *mut fid_domain,
    attr: *mut fi_cntr_attr,
    to: *mut *mut fid_cntr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application passes its domain, attributes, or null, and a place for the result.
    call_int(|| unsafe { counter::open(domain(at)?, attr.as_ref(), to, context) })
}

unsafe extern "C" fn ep_open(
    at: *mut fid_domain,
    info: *mut fi_info,
    to: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the application passes its domain, a `fi_info` of `getinfo`, and a place for the result.
    call_int(|| unsafe { endpoint::open(domain(at)?, call::at(info)?, to, context) })
}
