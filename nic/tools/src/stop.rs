//! Ctrl-C: the first one asks to stop and clean up, the second one ends the process at once. Output that nobody
//! reads any more asks to stop, too.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::{Failure, Outcome};

const INTERRUPTED: i32 = 130;

/// The flags of all that were made.
static ALL: Mutex<Vec<Arc<AtomicBool>>> = Mutex::new(Vec::new());

/// Set once the user wants to stop.
#[derive(Clone, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Takes over SIGINT, SIGTERM and SIGHUP for the rest of the process.
    ///
    /// # Errors
    /// When the system refuses to install the handlers.
    pub fn on_signals() -> Outcome<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the first signal finds the flag unset and sets it, the second finds it set.
            flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&flag))
                .and_then(|_| flag::register(signal, Arc::clone(&flag)))
                .map_err(|error| Failure::failed(format!("cannot handle signal {signal}: {error}")))?;
        }
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&flag));
        Ok(Self(flag))
    }

    /// Asks all to stop. Returns whether there is any: it cleans up then.
    pub(crate) fn ask_all() -> bool {
        let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().for_each(|flag| flag.store(true, std::sync::atomic::Ordering::Relaxed));
        !all.is_empty()
    }

    /// Whether the user wants to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// The user wants to stop, and said so otherwise than by a signal.
    pub fn set(&self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// The flag itself, for code that polls it.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }
}
