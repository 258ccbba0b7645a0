//! What an interface does in place of the kernel's stack.

use std::io;
use std::os::fd::AsRawFd;

use socket2::{Domain, Socket, Type};

/// `struct ethtool_value` of `linux/ethtool.h`, which libc does not have.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// `SIOCETHTOOL` of `linux/sockios.h`, and `ETHTOOL_STXCSUM` of `linux/ethtool.h`.
const SIOCETHTOOL: libc::Ioctl = 0x8946;
const SET_TX_CHECKSUMS: u32 = 0x17;

/// Has an interface of this thread's network namespace write checksums, which veth only promises to do, or the kernel's stack.
pub(crate) fn set_tx_checksums(interface: &str, on: bool) -> io::Result<()> {
    let mut value = EthtoolValue { command: SET_TX_CHECKSUMS, data: on.into() };
    // SAFETY: `ifreq` is a plain C structure for which all zeroes is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    // SAFETY: SIOCETHTOOL reads the name, which ends in a NUL within its array, and this command reads the value, which is live.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
