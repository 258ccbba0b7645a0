//! Queries and settings of `ethtool`, as ioctls, which every kernel supports.
//!
//! The corresponding netlink family lacks hash fields and private flags on supported kernels.

mod features;
mod hashing;
mod rules;

use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd;

use socket2::{Domain, Socket, Type};

pub use features::Feature;
pub use hashing::{HashFields, UdpFlow};
#[cfg(test)]
pub(crate) use rules::Contents;
pub use rules::Rule;
pub(crate) use rules::RuleTable;

/// `SIOCETHTOOL` of `linux/sockios.h`.
pub(crate) const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// Words of the buffer for commands of fixed size. The largest, `struct ethtool_rxnfc`, has 48.
const WORDS: usize = 64;

/// A command with its arguments: any of fixed size, or that for features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Request(pub(crate) [u32; Self::WORDS]);

impl Request {
    const WORDS: usize = 48;

    pub(crate) const NONE: Self = Self([0; Self::WORDS]);

    fn of(words: &[u32]) -> Self {
        let mut request = Self::NONE;
        request.0[..words.len()].copy_from_slice(words);
        request
    }
}

/// Queries the driver of an interface in the network namespace of its creation.
///
/// Queries fail with `ENODEV` if there is no such interface, and with `EOPNOTSUPP` if its driver
/// does not support them. Settings fail if the driver refuses, or permissions are missing.
#[derive(Debug)]
pub struct Ethtool {
    socket: Socket,
    name: CString,
}

/// Identity of a driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverInfo {
    /// Driver name, such as `mlx5_core`.
    pub name: String,
    /// Version: that of the kernel, unless the driver was built out of tree.
    pub version: String,
    /// Firmware version.
    pub firmware: String,
    /// Bus address of the device, such as `0000:3b:00.0`; empty if it has none.
    pub bus: String,
}

/// The queues of an interface, by use, and their limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// Queues that only receive.
    pub rx: u32,
    /// Queues that only send.
    pub tx: u32,
    /// Queues of other use.
    pub other: u32,
    /// Queues that do both.
    pub combined: u32,
    /// Maximum of `rx`, `tx`, `other` and `combined`.
    pub max: [u32; 4],
}

impl Channels {
    /// Returns the number of receive queues.
    pub const fn rx_queues(&self) -> u32 {
        self.rx + self.combined
    }
}

/// Ring sizes of a queue in the NIC, in slots, and their limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingSizes {
    /// Receive ring.
    pub rx: u32,
    /// Transmit ring.
    pub tx: u32,
    /// Maximum of `rx`.
    pub max_rx: u32,
    /// Maximum of `tx`.
    pub max_tx: u32,
}

/// Link-layer flow control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// Autonegotiation is on.
    pub negotiated: bool,
    /// Received pause frames stop transmission.
    pub rx: bool,
    /// Pause frames are sent.
    pub tx: bool,
}

impl Ethtool {
    /// Creates a handle for an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// `ENODEV` if the name is invalid. A missing interface is an error of the first request.
    pub fn open(interface: &str) -> io::Result<Self> {
        let no_device = || io::Error::from_raw_os_error(libc::ENODEV);
        let name = CString::new(interface).map_err(|_| no_device())?;
        if name.as_bytes_with_nul().len() > libc::IFNAMSIZ {
            return Err(no_device());
        }
        Ok(Self { socket: Socket::new(Domain::IPV4, Type::DGRAM, None)?, name })
    }

    /// Returns the driver.
    pub fn driver(&self) -> io::Result<DriverInfo> {
        const COMMAND: u32 = 3;
        let words = self.get(COMMAND)?;
        let text = |part: usize| text_of(&words[1 + 8 * part..9 + 8 * part]);
        Ok(DriverInfo { name: text(0), version: text(1), firmware: text(2), bus: text(3) })
    }

    /// Returns the current queues.
    pub fn channels(&self) -> io::Result<Channels> {
        const COMMAND: u32 = 0x3c;
        let [_, max_rx, max_tx, max_other, max_combined, rx, tx, other, combined, ..] = self.get(COMMAND)?;
        Ok(Channels { rx, tx, other, combined, max: [max_rx, max_tx, max_other, max_combined] })
    }

    /// Returns the ring sizes.
    pub fn rings(&self) -> io::Result<RingSizes> {
        let [_, max_rx, _, _, max_tx, rx, _, _, tx, ..] = self.get(GET_RINGS)?;
        Ok(RingSizes { rx, tx, max_rx, max_tx })
    }

    /// Sets the ring sizes. Most drivers reset the link.
    pub fn set_rings(&self, rx: u32, tx: u32) -> io::Result<()> {
        const COMMAND: u32 = 0x11;
        let mut words = self.get(GET_RINGS)?;
        (words[5], words[8]) = (rx, tx);
        self.set(COMMAND, &words[1..9])
    }

    /// Returns the flow control settings.
    pub fn pause(&self) -> io::Result<Pause> {
        const COMMAND: u32 = 0x12;
        let [_, negotiated, rx, tx, ..] = self.get(COMMAND)?;
        Ok(Pause { negotiated: negotiated != 0, rx: rx != 0, tx: tx != 0 })
    }

    /// Returns the link rate in bits per second.
    ///
    /// # Errors
    /// `EOPNOTSUPP` also if there is no link.
    pub fn link_bps(&self) -> io::Result<u64> {
        const COMMAND: u32 = 1;
        const UNKNOWN: u32 = u32::MAX;
        let words = self.get(COMMAND)?;
        // `struct ethtool_cmd` has the low half of the rate at byte 12 and the high one at byte 28.
        match first_half(words[3]) | first_half(words[7]) << 16 {
            0 | UNKNOWN => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
            mbps => Ok(u64::from(mbps) * 1_000_000),
        }
    }

    /// Returns the MTU in bytes.
    pub fn mtu(&self) -> io::Result<u32> {
        let mut request = self.request();
        // SAFETY: SIOCGIFMTU reads the NUL-terminated name, and writes the union's `int`.
        unsafe { self.ioctl(libc::SIOCGIFMTU, &mut request) }?;
        // SAFETY: the ioctl above succeeded and so wrote this member.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        u32::try_from(mtu).map_err(io::Error::other)
    }

    /// Sets the MTU. Some drivers reset the link.
    pub fn set_mtu(&self, mtu: u32) -> io::Result<()> {
        let mut request = self.request();
        request.ifr_ifru.ifru_mtu = i32::try_from(mtu).map_err(io::Error::other)?;
        // SAFETY: SIOCSIFMTU reads the NUL-terminated name, and the `int` written above.
        unsafe { self.ioctl(libc::SIOCSIFMTU, &mut request) }
    }

    /// Sends a command without arguments. The first word of the answer is the command.
    fn get(&self, command: u32) -> io::Result<[u32; WORDS]> {
        let mut words = [0; WORDS];
        self.ioctl_words(command, &mut words)?;
        Ok(words)
    }

    /// Sets whether transmit checksums are offloaded, which veth only pretends to do.
    pub fn set_tx_checksums(&self, on: bool) -> io::Result<()> {
        const COMMAND: u32 = 0x17;
        self.set(COMMAND, &[on.into()])
    }

    fn set(&self, command: u32, arguments: &[u32]) -> io::Result<()> {
        let mut words = [0; WORDS];
        words[1..=arguments.len()].copy_from_slice(arguments);
        self.ioctl_words(command, &mut words)
    }

    /// Sends a command, whose number is put into the first word. The answer replaces the arguments.
    fn ioctl_words(&self, command: u32, words: &mut [u32]) -> io::Result<()> {
        words[0] = command;
        let mut request = self.request();
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: SIOCETHTOOL reads the NUL-terminated name and the command, which accesses its
        // structure: the callers' words are live and long enough, `WORDS` for those of fixed size,
        // otherwise the number of entries that the kernel reported.
        unsafe { self.ioctl(SIOCETHTOOL, &mut request) }
    }

    pub(crate) fn request(&self) -> libc::ifreq {
        // SAFETY: `ifreq` is a plain C structure for which all zeroes is a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(self.name.as_bytes_with_nul()) {
            *to = *from as libc::c_char;
        }
        request
    }

    /// # Safety
    /// The request must hold what this ioctl reads, and be valid for what it writes.
    unsafe fn ioctl(&self, ioctl: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: by this function's contract; `request` outlives the call.
        let outcome = unsafe { libc::ioctl(self.socket.as_raw_fd(), ioctl, &raw mut *request) };
        if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// `ETHTOOL_GRINGPARAM`.
const GET_RINGS: u32 = 0x10;

/// Returns the `u16` in the first two bytes of a word.
fn first_half(word: u32) -> u32 {
    let [a, b, ..] = word.to_ne_bytes();
    u16::from_ne_bytes([a, b]).into()
}

fn text_of(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns an interface's link rate in bits per second, if reported.
pub(crate) fn link_bps(interface: &str) -> Option<u64> {
    Ethtool::open(interface).and_then(|ethtool| ethtool.link_bps()).ok()
}

pub(crate) fn interface_index(interface: &str) -> Option<u32> {
    let name = CString::new(interface).ok()?;
    // SAFETY: the name is a live string that ends in a NUL.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index > 0).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interface_is_enodev() {
        for name in ["spray-nope", "a name longer than the kernel's", "a\0b"] {
            let channels = Ethtool::open(name).and_then(|ethtool| ethtool.channels());
            assert_eq!(channels.unwrap_err().raw_os_error(), Some(libc::ENODEV), "{name}");
        }
    }

    #[test]
    fn loopback_has_an_mtu_and_features_but_no_rings() {
        let lo = Ethtool::open("lo").unwrap();
        assert!(lo.mtu().unwrap() > 1500);
        assert_eq!(lo.rings().unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
        assert!(lo.link_bps().is_err() && link_bps("lo").is_none());
        let features = lo.features().unwrap();
        let lockless = features.iter().find(|feature| feature.name == "loopback").expect("what makes it lo");
        assert!(lockless.on && lockless.fixed);
    }
}
