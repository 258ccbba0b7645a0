//! System calls of a driver thread.

#[cfg(any(feature = "udp", feature = "xdp"))]
use std::os::fd::AsRawFd;
#[cfg(feature = "xdp")]
use std::os::fd::{FromRawFd, OwnedFd};
use std::{io, os::fd::RawFd, time::Duration};

/// Returns the kernel's monotonic clock in nanoseconds, which XDP programs read as well.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Returns the CPU time of all threads of this process, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to, and every Linux has the callers' clocks.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns free heap memory to the system; glibc itself returns the end of its heap only.
pub(crate) fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call accesses no memory of its caller, and is allowed at any time on any thread.
    unsafe {
        libc::malloc_trim(0)
    };
}

pub(crate) fn user() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Raises the limit of open files of this process to its hard limit.
pub fn raise_open_files() {
    let mut limit = open_files();
    limit.rlim_cur = limit.rlim_max;
    // On failure the lower limit stays, which `check_open_files` reports if it is too low.
    // SAFETY: `limit` is a valid rlimit to read.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
}

/// Checks that this process may have `needed` files open.
///
/// # Errors
/// The limit is lower.
pub fn check_open_files(needed: u64) -> io::Result<()> {
    let most = open_files().rlim_cur;
    if most >= needed {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "this process may open {most} files, and needs {needed}: raise the hard limit of its user, service or container (`ulimit -Hn`, \
         LimitNOFILE=)"
    )))
}

fn open_files() -> libc::rlimit {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is a valid rlimit to write to.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit
}

/// Puts the calling thread into SCHED_IDLE, where it yields to all others, above all to ksoftirqd.
///
/// # Errors
/// The kernel refuses.
pub fn set_idle_priority() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` is a valid sched_param to read; pid 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) })
}

/// Binds the calling thread to one CPU.
///
/// # Errors
/// There is no such CPU.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: all zeros is an empty cpu_set_t, whose bit `cpu` exists (see above); the size is its
    // own.
    check(unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    })
}

/// Sleeps until one of `fds` is readable, at most for `timeout`, or until interrupted.
pub fn wait_readable(fds: &mut [libc::pollfd], timeout: Duration) {
    let timeout = libc::timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos().into() };
    // SAFETY: `fds` is valid for its own length, `timeout` to read, and no signal mask is given.
    unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as _, &raw const timeout, std::ptr::null()) };
}

/// Returns a descriptor for [`wait_readable`].
pub fn poll_fd(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

/// Sets an option of a socket; `value` is a C structure or a number.
#[cfg(any(feature = "udp", feature = "xdp"))]
pub(crate) fn set_option<T: Copy>(
    socket: &impl AsRawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> io::Result<()> {
    let (socket, length) = (socket.as_raw_fd(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the pointer and length describe a live value, which the call only reads.
    check(unsafe { libc::setsockopt(socket, level, name, (&raw const value).cast(), length) })
}

/// Returns an option of a socket: a C structure, an array of numbers, or a number.
///
/// # Safety
/// Any bytes must be a valid `T`.
#[cfg(any(feature = "udp", feature = "xdp"))]
pub(crate) unsafe fn option<T: Copy>(socket: &impl AsRawFd, level: i32, name: i32) -> io::Result<T> {
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointers refer to the value's space and its length, both writable.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut length) })?;
    // SAFETY: by contract; bytes that an older kernel did not write are zeros.
    Ok(unsafe { value.assume_init() })
}

/// Returns a descriptor that is readable while any of `fds` is.
#[cfg(feature = "xdp")]
pub(crate) fn any_readable(fds: impl IntoIterator<Item = RawFd>) -> io::Result<OwnedFd> {
    // SAFETY: a plain argument; the result is checked before use.
    let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    check(epoll.min(0))?;
    // SAFETY: the call above created this descriptor, and nothing else owns it.
    let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
    for fd in fds {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: `event` is a live epoll_event, which the call only reads.
        check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event) })?;
    }
    Ok(epoll)
}

pub(crate) fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_and_clock() {
        let before = monotonic_ns();
        std::thread::spawn(|| {
            set_idle_priority().unwrap();
            pin_to_cpu(0).unwrap();
            assert!(pin_to_cpu(1 << 20).is_err());
        })
        .join()
        .unwrap();
        wait_readable(&mut [], Duration::from_millis(1));
        assert!(monotonic_ns() - before >= 1_000_000);
        assert!(process_cpu_ns() > 0);
    }
}
