//! Preferred busy polling: the thread that uses a socket runs the driver's receive and send routines itself, in the system calls it
//! makes, and the NIC's interrupts stay off for as long as it does (`Documentation/networking/napi.rst`, *IRQ mitigation*).
//!
//! It takes two things. The socket asks for it ([`prefer`]); then each `recvfrom` and `sendto` polls the driver once, and that is the only
//! way frames come in and, without copies, go out. And the interface puts interrupts off ([`Deferral`]): without that the driver turns
//! them on again after each poll, and the kernel's own thread competes for the queue.

use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::{fs, io, thread};

use super::undo::Undo;
use super::{BindMode, BusyPoll, XskConfig};
use crate::net::ethtool::Ethtool;
use crate::net::{Interface, drivers};
use crate::sys;

/// Whether the sockets of these settings are to poll, if they turn out to be without copies or not.
pub(super) fn is_wanted(config: &XskConfig, zero_copy: bool) -> bool {
    match config.busy_poll {
        BusyPoll::On => true,
        BusyPoll::Off => false,
        BusyPoll::Auto => zero_copy && wins(&config.interface),
    }
}

/// Whether it is known to win: others have published so for the driver, and no thread that polls shares its core.
fn wins(interface: &str) -> bool {
    let Ok(nic) = Ethtool::open(interface) else { return false };
    let driver = nic.driver().unwrap_or_default().name;
    let is_known = drivers::running().is_some_and(|kernel| drivers::busy_polling_wins(&driver, kernel));
    let queues = nic.channels().unwrap_or_default().receiving().max(1) as usize;
    is_known && thread::available_parallelism().is_ok_and(|cpus| cpus.get() > queues)
}

/// Has the system calls on a socket that is bound poll the driver.
///
/// # Errors
/// `ENOPROTOOPT` before Linux 5.11, `EPERM` without `CAP_NET_ADMIN`; in words where the kernel would poll nothing.
pub(super) fn prefer(socket: &impl AsRawFd) -> io::Result<()> {
    /// Of `asm-generic/socket.h`.
    const SO_PREFER_BUSY_POLL: libc::c_int = 69;
    const SO_BUSY_POLL_BUDGET: libc::c_int = 70;
    // A call never waits here, so that any time but zero is the same. 64 frames a poll are what a driver takes from the kernel itself.
    let options = [(SO_PREFER_BUSY_POLL, 1), (libc::SO_BUSY_POLL, 20), (SO_BUSY_POLL_BUDGET, 64)];
    options
        .into_iter()
        .try_for_each(|(option, value): (_, libc::c_int)| sys::set_option(socket, libc::SOL_SOCKET, option, value))?;
    match drivers::running() {
        Some(kernel) if kernel >= NAPI_AT_BIND && napi(socket) == 0 => Err(io::Error::other(
            "nothing would be polled: the driver does not tell this kernel who serves the queue (netif_queue_set_napi)",
        )),
        _ => Ok(()),
    }
}

/// The first kernel that looks a queue's NAPI up when a socket is bound (5ef44b3cb43b, and b95ed5517354 for copy mode in 6.15), if the driver has
/// named it. Before, the first frame brought it.
const NAPI_AT_BIND: drivers::Kernel = (6, 13);

/// What the kernel polls for a socket; 0 for nothing.
fn napi(socket: &impl AsRawFd) -> libc::c_uint {
    // SAFETY: any bytes are a number.
    unsafe { sys::option(socket, libc::SOL_SOCKET, libc::SO_INCOMING_NAPI_ID) }.unwrap_or(0)
}

/// What puts interrupts off, in the interface's folder of /sys: how many polls that find nothing, and after how many nanoseconds without a
/// poll the kernel makes one itself. The values are those that the kernel's patches and DPDK's driver recommend.
const DEFERRAL: [(&str, &str); 2] = [("napi_defer_hard_irqs", "2"), ("gro_flush_timeout", "200000")];

/// An interface that puts interrupts off. Dropping this puts back what was before, and so does the end of the process.
#[derive(Debug)]
pub(super) struct Deferral {
    _undo: Undo,
}

impl Deferral {
    /// Around `open`, which opens sockets: keeps interrupts off from before until what it returns is dropped, if the sockets may poll and
    /// `polls` says that they do.
    pub(super) fn around<T, E>(
        interface: &Interface,
        config: &XskConfig,
        open: impl FnOnce() -> Result<T, E>,
        polls: impl FnOnce(&T) -> bool,
    ) -> Result<(T, Option<Self>), E> {
        // Before there are sockets, since the child would keep them alive for a moment.
        let deferral = is_wanted(config, config.mode != BindMode::Copy).then(|| Self::begin(interface)).flatten();
        let opened = open()?;
        let deferral = deferral.filter(|_| polls(&opened));
        Ok((opened, deferral))
    }

    /// `None` where somebody has set the values already, and where /sys is another namespace's or cannot be written: sockets poll there
    /// all the same, only with interrupts beside.
    fn begin(interface: &Interface) -> Option<Self> {
        let folder = interface.folder()?;
        let files: Vec<(PathBuf, String)> = DEFERRAL
            .iter()
            .map(|(name, _)| Some((folder.join(name), fs::read_to_string(folder.join(name)).ok()?)))
            .collect::<Option<_>>()?;
        if files.iter().any(|(_, before)| before.trim() != "0") {
            return None;
        }
        let undo = Undo::begin(&interface.name, &files).ok()?;
        let set = files.iter().zip(DEFERRAL).try_for_each(|((path, _), (_, value))| fs::write(path, value));
        set.is_ok().then_some(Self { _undo: undo })
    }
}
