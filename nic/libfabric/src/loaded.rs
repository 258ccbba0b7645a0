//! Symbols of the libfabric that loaded the provider, which is not linked to it.
#![expect(unsafe_code, reason = "functions of libfabric's are looked up and called")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

use crate::abi::fi_version;

/// The oldest version with these structures; later versions only append fields.
pub(crate) const OLDEST: u32 = fi_version(1, 17);

/// libfabric refuses providers newer than itself, and applications those older than they require.
pub(crate) fn version() -> u32 {
    let Some(function) = find(c"fi_version") else { return OLDEST };
    // SAFETY: the type of this function in libfabric's `fabric.h`.
    let version = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> u32>(function)() };
    version.max(OLDEST)
}

struct Search<'a> {
    name: &'a CStr,
    found: *mut c_void,
}

pub(crate) fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with a zero.
    let mut search = Search { name, found: unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } };
    if search.found.is_null() {
        // SAFETY: `visit` is called with the address of `search` until this returns.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    }
    (!search.found.is_null()).then_some(search.found)
}

/// Searches a library that was loaded with `RTLD_LOCAL`. Returns 1 to stop the iteration.
unsafe extern "C" fn visit(library: *mut libc::dl_phdr_info, _bytes: usize, search: *mut c_void) -> c_int {
    // SAFETY: `dl_iterate_phdr` passes a library with a zero-terminated name, and the argument of `find`. `RTLD_NOLOAD` only
    // increments the reference count, which `dlclose` decrements.
    unsafe {
        let (name, search) = ((*library).dlpi_name, &mut *search.cast::<Search<'_>>());
        if name.is_null() || !CStr::from_ptr(name).to_bytes().windows(9).any(|part| part == b"libfabric") {
            return 0;
        }
        let handle = libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        search.found = if handle.is_null() { null_mut() } else { libc::dlsym(handle, search.name.as_ptr()) };
        if !handle.is_null() {
            libc::dlclose(handle);
        }
        c_int::from(!search.found.is_null())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_libfabric_the_version_is_the_oldest() {
        assert_eq!((version(), find(c"fi_version")), (OLDEST, None));
    }
}
