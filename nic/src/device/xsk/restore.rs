//! Restores the interface however the process ends: in a child process, since one that was killed,
//! or has dropped its privileges, cannot.

use std::ffi::CString;
use std::io::{self, PipeWriter, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;

use crate::net::ethtool::{Ethtool, Request, SIOCETHTOOL};

/// Maximum number of requests: a rule for each port, one that was there before, and the feature.
const REQUESTS: usize = 2 * spray_wire::Ports::COUNT as usize + 1;

/// The handle of the child. Dropping it restores everything, and waits for that.
#[derive(Debug)]
pub(super) struct RestoreOnExit {
    keeper: libc::pid_t,
    /// Closes with the process.
    sign: Option<PipeWriter>,
}

impl RestoreOnExit {
    /// Starts the child for an interface of this thread's network namespace. At the end it writes
    /// these texts to these files.
    ///
    /// # Errors
    /// When the child cannot be created, or there is no such interface.
    pub(super) fn begin(interface: &str, files: &[(PathBuf, String)]) -> io::Result<Self> {
        let path = |path: &PathBuf| CString::new(path.as_os_str().as_encoded_bytes()).map_err(io::Error::other);
        let texts = files.iter().map(|(file, text)| Ok((path(file)?, text.as_bytes())));
        let texts = texts.collect::<io::Result<Vec<_>>>()?;
        let request = Ethtool::open(interface)?.request();
        let (wait, sign) = io::pipe()?;
        // SAFETY: the child calls nothing but what a child of a process with threads may call, and never returns.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: this is the child.
            0 => unsafe { restore_at_the_end(wait.as_raw_fd(), &texts, request) },
            keeper => Ok(Self { keeper, sign: Some(sign) }),
        }
    }

    /// Makes the child send this request at the end, before earlier ones; [`REQUESTS`] at most.
    ///
    /// # Errors
    /// When the child is gone.
    pub(super) fn add(&self, request: &Request) -> io::Result<()> {
        let bytes: Vec<u8> = request.0.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.sign.as_ref().map_or(Ok(()), |mut sign| sign.write_all(&bytes))
    }
}

impl Drop for RestoreOnExit {
    fn drop(&mut self) {
        self.sign = None;
        // SAFETY: it waits for our child, and wants to know nothing. A process without the right to wait goes on.
        unsafe { libc::waitpid(self.keeper, std::ptr::null_mut(), 0) };
    }
}

/// The child: reads requests until the pipe is closed, then writes each text to its file and sends
/// the requests, the last one first. Signals that end the parent do not end it. It closes all other
/// files.
///
/// # Safety
/// Only for a process that `fork` has just created: it closes all files but `wait`. It calls only
/// functions that are safe in a signal handler.
unsafe fn restore_at_the_end(wait: RawFd, texts: &[(CString, &[u8])], mut about: libc::ifreq) -> ! {
    const BYTES: usize = size_of::<Request>();
    let (mut requests, mut filled) = ([Request::NONE; REQUESTS], 0);
    // SAFETY: plain arguments, or pointers to what lives longer than the calls; reads end within the requests, which are words of which any
    // bytes are a value; there is no other thread in this process.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, c"spray-undo".as_ptr());
        libc::dup2(wait, 0);
        libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0);
        let into: *mut u8 = requests.as_mut_ptr().cast();
        loop {
            match libc::read(0, into.add(filled).cast(), REQUESTS * BYTES - filled) {
                0 => break,
                -1 if *libc::__errno_location() == libc::EINTR => {}
                -1 => break,
                bytes => filled += bytes as usize,
            }
        }
        for (path, text) in texts {
            let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            libc::write(file, text.as_ptr().cast(), text.len());
        }
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let mut send = |request: &mut Request| {
            about.ifr_ifru.ifru_data = (&raw mut request.0).cast();
            libc::ioctl(socket, SIOCETHTOOL, &raw mut about) == 0
        };
        for request in requests.iter_mut().take(filled / BYTES).rev() {
            // At the location of a rule that was removed meanwhile there may be another one.
            let mut found = request.asks_before();
            if !found.as_mut().is_some_and(|found| send(found) && request.is_of_another(found)) {
                send(request);
            }
        }
        libc::_exit(0)
    }
}
