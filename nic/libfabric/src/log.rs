//! libfabric's log and environment variables.
#![expect(unsafe_code, reason = "libfabric is called")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::fi_provider;
use crate::loaded::find;

const FI_LOG_WARN: c_int = 0;
const FI_LOG_INFO: c_int = 2;
const FI_LOG_DOMAIN: c_int = 2;
const FI_PARAM_STRING: c_int = 0;

type Enabled = unsafe extern "C" fn(*const fi_provider, c_int, c_int) -> c_int;
type Log = unsafe extern "C" fn(*const fi_provider, c_int, c_int, *const c_char, c_int, *const c_char, ...);
type Define = unsafe extern "C" fn(*const fi_provider, *const c_char, c_int, *const c_char, ...) -> c_int;

/// The provider, for log lines; null until `begin`.
static PROVIDER: AtomicPtr<fi_provider> = AtomicPtr::new(null_mut());

/// An environment variable, without the prefix `FI_SPRAY_`.
#[derive(Debug)]
pub struct Variable {
    pub name: &'static CStr,
    pub help: &'static CStr,
}

/// Sets the provider for log lines, and registers its environment variables for `fi_info -e`.
pub fn begin(provider: *mut fi_provider, variables: &[Variable]) {
    PROVIDER.store(provider, Ordering::Relaxed);
    let Some(define) = find(c"fi_param_define") else { return };
    // SAFETY: the type of this function in libfabric's `fi_prov.h`.
    let define = unsafe { std::mem::transmute::<*mut libc::c_void, Define>(define) };
    for variable in variables {
        // SAFETY: all strings are zero-terminated, and `%s` takes the one that follows.
        unsafe {
            define(provider, variable.name.as_ptr(), FI_PARAM_STRING, c"%s".as_ptr(), variable.help.as_ptr());
        }
    }
}

/// Logs an error, which `FI_LOG_LEVEL=warn` shows.
pub fn warn(why: impl ToString) {
    log(FI_LOG_WARN, &why.to_string());
}

/// Logs an event, which `FI_LOG_LEVEL=info` shows.
pub fn info(what: impl ToString) {
    log(FI_LOG_INFO, &what.to_string());
}

fn log(level: c_int, text: &str) {
    let Ok(line) = CString::new(format!("{text}\n")) else { return };
    let (Some(enabled), Some(log)) = (find(c"fi_log_enabled"), find(c"fi_log")) else { return };
    let provider = PROVIDER.load(Ordering::Relaxed);
    if provider.is_null() {
        return;
    }
    // SAFETY: the types of these functions in libfabric's `fi_log.h`; `%s` takes the one string that follows.
    unsafe {
        let enabled: Enabled = std::mem::transmute::<*mut libc::c_void, Enabled>(enabled);
        if enabled(provider, level, FI_LOG_DOMAIN) != 0 {
            let log: Log = std::mem::transmute::<*mut libc::c_void, Log>(log);
            log(provider, level, FI_LOG_DOMAIN, c"spray".as_ptr(), 0, c"%s".as_ptr(), line.as_ptr());
        }
    }
}
