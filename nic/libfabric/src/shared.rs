//! State that the objects of a domain share: the interface, and the endpoint on it.
#![expect(unsafe_code, reason = "objects of C's")]

use std::ffi::c_int;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use spray_nic::device::XskInterface;
use spray_nic::sys::{poll_fd, wait_readable};

use crate::abi::{FI_EOTHER, FI_MR_BASIC, FI_MR_PROV_KEY, FI_MR_VIRT_ADDR, fid_domain};
use crate::call;
use crate::engine::Engine;
use crate::engine::rma::Regions;
use crate::error::Errno;

/// Number of reads without a completion before a reader yields its core.
const QUIET_ROUNDS: u32 = 100;
/// Maximum sleep of a blocked reader: frames that another thread reads do not wake it.
const NAP: Duration = Duration::from_millis(1);

#[repr(C)]
pub(crate) struct DomainObject {
    pub(crate) head: fid_domain,
    pub(crate) domain: Arc<Domain>,
}

/// Returns the domain of an object.
///
/// # Safety
/// `domain` was returned by `domain::open`, and the application has not closed it.
pub(crate) unsafe fn domain_of(domain: *mut fid_domain) -> Result<Arc<Domain>, Errno> {
    // SAFETY: as the caller promises.
    unsafe { call::object::<DomainObject>(domain) }.map(|object| Arc::clone(&object.domain))
}

#[derive(Debug)]
pub struct Domain {
    pub interface: String,
    pub address: IpAddr,
    /// Memory that peers may access.
    pub regions: Arc<Regions>,
    /// Whether the provider chooses the keys of regions, not the application.
    pub provides_keys: bool,
    /// Whether requests have addresses instead of offsets from the start of a region.
    pub by_address: bool,
    engine: Mutex<Option<Engine<XskInterface>>>,
    quiet_rounds: AtomicU32,
}

impl Domain {
    pub fn new(interface: String, address: IpAddr, mr_mode: c_int) -> Self {
        Self {
            interface,
            address,
            regions: Arc::default(),
            provides_keys: mr_mode & (FI_MR_BASIC | FI_MR_PROV_KEY) != 0,
            by_address: mr_mode & (FI_MR_BASIC | FI_MR_VIRT_ADDR) != 0,
            engine: Mutex::new(None),
            quiet_rounds: AtomicU32::new(0),
        }
    }

    /// Locks the engine, which exists while the endpoint is enabled. Fails after a panic.
    pub fn engine(&self) -> Result<MutexGuard<'_, Option<Engine<XskInterface>>>, Errno> {
        self.engine.lock().map_err(|_| Errno(FI_EOTHER))
    }

    /// Calls `work` with the engine. Fails if the endpoint is not enabled.
    pub fn with<T>(&self, work: impl FnOnce(&mut Engine<XskInterface>) -> Result<T, Errno>) -> Result<T, Errno> {
        work(self.engine()?.as_mut().ok_or(Errno::BAD_STATE)?)
    }

    /// Calls `work` with the engine, unless another thread has locked it.
    pub fn try_with<T>(&self, work: impl FnOnce(&mut Engine<XskInterface>) -> T) -> Option<T> {
        match self.engine.try_lock() {
            Ok(mut engine) => engine.as_mut().map(work),
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => None,
        }
    }

    /// Handles received frames, for a reader without completions. Yields the core after
    /// [`QUIET_ROUNDS`], because another thread may have the answer. Fails after a panic.
    pub fn progress(&self) -> Result<(), Errno> {
        if self.quiet_rounds.fetch_add(1, Ordering::Relaxed) >= QUIET_ROUNDS {
            std::thread::yield_now();
        }
        if let Some(engine) = self.engine()?.as_mut() {
            engine.progress(true);
        }
        Ok(())
    }

    /// Resets the count of reads without a completion.
    pub fn on_found(&self) {
        self.quiet_rounds.store(0, Ordering::Relaxed);
    }

    /// As [`progress`](Self::progress), but may sleep up to `longest` until frames arrive.
    pub fn progress_or_sleep(&self, longest: Duration) -> Result<(), Errno> {
        let is_quiet = self.quiet_rounds.load(Ordering::Relaxed) >= QUIET_ROUNDS;
        self.progress()?;
        if is_quiet {
            let found = self.try_with(|engine| (engine.wake_fd(), engine.progress(true)));
            let (fd, due_ns) = found.unwrap_or((None, u64::MAX));
            let mut fds: Vec<_> = fd.map(poll_fd).into_iter().collect();
            wait_readable(&mut fds, longest.min(NAP).min(Duration::from_nanos(due_ns)));
        }
        Ok(())
    }
}
