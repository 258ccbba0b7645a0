//! What the objects of a domain share: an interface, and the endpoint that runs on it.
#![expect(unsafe_code, reason = "objects of C's")]

use std::ffi::c_int;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use spray_nic::device::XskInterface;
use spray_nic::sys::{readable, wait_readable};

use crate::abi::{FI_EOTHER, FI_MR_BASIC, FI_MR_PROV_KEY, FI_MR_VIRT_ADDR, fid_domain};
use crate::call;
use crate::engine::Engine;
use crate::engine::remote::Regions;
use crate::error::Errno;

/// Rounds without a completion before a reader lets others have its core.
const QUIET_ROUNDS: u32 = 100;
/// Longest sleep of a reader that waits: what another thread reads of the interface does not wake it.
const NAP: Duration = Duration::from_millis(1);

/// A domain, as the application knows it.
#[repr(C)]
pub(crate) struct DomainObject {
    pub(crate) head: fid_domain,
    pub(crate) domain: Arc<Domain>,
}

/// The domain that the application means.
///
/// # Safety
/// `domain::open` has made it, and the application has not closed it.
pub(crate) unsafe fn domain_of(domain: *mut fid_domain) -> Result<Arc<Domain>, Errno> {
    // SAFETY: as the caller promises.
    unsafe { call::object::<DomainObject>(domain) }.map(|object| Arc::clone(&object.domain))
}

/// An interface.
#[derive(Debug)]
pub struct Domain {
    /// Its name.
    pub interface: String,
    /// The address on it.
    pub address: IpAddr,
    /// What peers may read and write.
    pub regions: Arc<Regions>,
    /// Whether the provider chooses regions' keys, not the application.
    pub gives_keys: bool,
    /// Whether peers name a region's bytes by their addresses; else from 0 on.
    pub by_address: bool,
    engine: Mutex<Option<Engine<XskInterface>>>,
    quiet_rounds: AtomicU32,
}

impl Domain {
    /// A domain on this address, with no endpoint yet, and memory regions in libfabric's `mr_mode`.
    #[must_use]
    pub fn new(interface: String, address: IpAddr, mr_mode: c_int) -> Self {
        Self {
            interface,
            address,
            regions: Arc::default(),
            gives_keys: mr_mode & (FI_MR_BASIC | FI_MR_PROV_KEY) != 0,
            by_address: mr_mode & (FI_MR_BASIC | FI_MR_VIRT_ADDR) != 0,
            engine: Mutex::new(None),
            quiet_rounds: AtomicU32::new(0),
        }
    }

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
