//! Preferred busy polling: system calls on the socket run the driver's receive and send routines,
//! while the NIC's interrupts stay off (`Documentation/networking/napi.rst`, *IRQ mitigation*).
//!
//! The socket requests it ([`prefer`]); then each `recvfrom` and `sendto` polls the driver once,
//! the only way in which frames arrive and, with zero-copy, leave. The interface defers interrupts
//! ([`Deferral`]): otherwise the driver enables them after each poll, and the kernel's thread
//! competes for the queue.

use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::{fs, io, thread};

use super::restore::RestoreOnExit;
use super::{BindMode, BusyPoll, XskConfig};
use crate::net::ethtool::Ethtool;
use crate::net::{Interface, drivers};
use crate::sys;

/// Returns whether sockets with this configuration are to poll.
pub(super) fn is_wanted(config: &XskConfig, zero_copy: bool) -> bool {
    match config.busy_poll {
        BusyPoll::On => true,
        BusyPoll::Off => false,
        BusyPoll::Auto => zero_copy && wins(&config.interface),
    }
}

/// Returns whether published measurements show a gain for the driver, and no polling thread shares
/// its core.
fn wins(interface: &str) -> bool {
    let Ok(nic) = Ethtool::open(interface) else { return false };
    let driver = nic.driver().unwrap_or_default().name;
    let is_known = drivers::running_kernel().is_some_and(|kernel| drivers::busy_poll_is_faster(&driver, kernel));
    let queues = nic.channels().unwrap_or_default().rx_queues().max(1) as usize;
    is_known && thread::available_parallelism().is_ok_and(|cpus| cpus.get() > queues)
}

/// Makes system calls on a bound socket poll the driver.
///
/// # Errors
/// `ENOPROTOOPT` before Linux 5.11, `EPERM` without `CAP_NET_ADMIN`; a message where the kernel has
/// nothing to poll.
pub(super) fn prefer(socket: &impl AsRawFd) -> io::Result<()> {
    /// From `asm-generic/socket.h`.
    const SO_PREFER_BUSY_POLL: libc::c_int = 69;
    const SO_BUSY_POLL_BUDGET: libc::c_int = 70;
    // No call waits here, so that any time but 0 is the same. 64 frames are the kernel's own budget
    // of a poll.
    let options = [(SO_PREFER_BUSY_POLL, 1), (libc::SO_BUSY_POLL, 20), (SO_BUSY_POLL_BUDGET, 64)];
    options
        .into_iter()
        .try_for_each(|(option, value): (_, libc::c_int)| sys::set_option(socket, libc::SOL_SOCKET, option, value))?;
    match drivers::running_kernel() {
        Some(kernel) if kernel >= NAPI_AT_BIND && napi(socket) == 0 => Err(io::Error::other(
            "nothing would be polled: the driver does not tell this kernel who serves the queue (netif_queue_set_napi)",
        )),
        _ => Ok(()),
    }
}

/// The first kernel that looks up the NAPI of a queue at bind (5ef44b3cb43b; b95ed5517354 for copy
/// mode in 6.15). Before, the first frame set it.
const NAPI_AT_BIND: drivers::Kernel = (6, 13);

/// Returns the NAPI number of a socket; 0 for none.
fn napi(socket: &impl AsRawFd) -> libc::c_uint {
    // SAFETY: any bytes are a number.
    unsafe { sys::option(socket, libc::SOL_SOCKET, libc::SO_INCOMING_NAPI_ID) }.unwrap_or(0)
}

/// Files in the interface's folder of /sys: the number of empty polls and the nanoseconds without a
/// poll after which interrupts return. The values are those recommended by the kernel's patches and
/// by DPDK's driver.
const DEFERRAL: [(&str, &str); 2] = [("napi_defer_hard_irqs", "2"), ("gro_flush_timeout", "200000")];

/// Defers the interrupts of an interface. Restored when dropped, and when the process ends.
#[derive(Debug)]
pub(super) struct Deferral {
    _undo: RestoreOnExit,
}

impl Deferral {
    /// Calls `open`, which opens sockets, with interrupts deferred, until its result is dropped, if
    /// the sockets may poll and `polls` returns true for them.
    pub(super) fn around<T, E>(
        interface: &Interface,
        config: &XskConfig,
        open: impl FnOnce() -> Result<T, E>,
        polls: impl FnOnce(&T) -> bool,
    ) -> Result<(T, Option<Self>), E> {
        // Before there are sockets, since the child would keep them open.
        let deferral = is_wanted(config, config.mode != BindMode::Copy).then(|| Self::begin(interface)).flatten();
        let opened = open()?;
        let deferral = deferral.filter(|_| polls(&opened));
        Ok((opened, deferral))
    }

    /// Returns `None` where the values are set already, or /sys is that of another namespace or
    /// read-only: sockets poll there too, with interrupts on.
    fn begin(interface: &Interface) -> Option<Self> {
        let folder = interface.sysfs_dir()?;
        let files: Vec<(PathBuf, String)> = DEFERRAL
            .iter()
            .map(|(name, _)| Some((folder.join(name), fs::read_to_string(folder.join(name)).ok()?)))
            .collect::<Option<_>>()?;
        if files.iter().any(|(_, before)| before.trim() != "0") {
            return None;
        }
        let undo = RestoreOnExit::begin(&interface.name, &files).ok()?;
        let set = files.iter().zip(DEFERRAL).try_for_each(|((path, _), (_, value))| fs::write(path, value));
        set.is_ok().then_some(Self { _undo: undo })
    }
}
