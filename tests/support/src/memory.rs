//! Memory operations that a sandbox forbids.
#![expect(unsafe_code, reason = "it maps a page")]

use std::ptr::null_mut;

use nix::errno::Errno;
use nix::libc::{self, MAP_ANONYMOUS, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE};

/// Makes a page of this process executable, as needed to run generated code.
pub fn make_executable() -> Result<(), Errno> {
    const BYTES: usize = 4096;
    // SAFETY: the page is new and used only here, and nothing is run there.
    unsafe {
        let page = libc::mmap(null_mut(), BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if page == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let changed = Errno::result(libc::mprotect(page, BYTES, PROT_READ | PROT_EXEC)).map(drop);
        libc::munmap(page, BYTES);
        changed
    }
}
