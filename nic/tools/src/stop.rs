//! Ctrl-C and closed output pipes request a clean stop; a second signal exits.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::{Failure, Outcome};

const INTERRUPTED: i32 = 130;

static ALL: Mutex<Vec<Arc<AtomicBool>>> = Mutex::new(Vec::new());

/// A flag that is set when the command should stop.
#[derive(Clone, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Handles SIGINT, SIGTERM and SIGHUP from now on.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn on_signals() -> Outcome<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order, the first signal does not exit, since it finds the flag unset.
            flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&flag))
                .and_then(|_| flag::register(signal, Arc::clone(&flag)))
                .map_err(|error| Failure::failed(format!("cannot handle signal {signal}: {error}")))?;
        }
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&flag));
        Ok(Self(flag))
    }

    /// Requests a stop of all commands. Returns whether there is any, which then cleans up.
    pub(crate) fn ask_all() -> bool {
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().for_each(|flag| flag.store(true, std::sync::atomic::Ordering::Relaxed));
        !all.is_empty()
    }

    /// Whether the command should stop.
    pub fn is_set(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Requests a stop.
    pub fn set(&self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Returns the flag, for polling.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }
}
