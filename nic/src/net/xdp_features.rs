//! XDP features that a driver declares, from generic netlink family `netdev` (Linux 6.3).

use std::io;
use std::mem::MaybeUninit;

use rtnetlink::packet_core::NlasIterator;
use socket2::{Domain, Protocol, Socket, Type};

/// Features that the driver of an interface declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpFeatures {
    /// Bits of `enum netdev_xdp_act`.
    pub xdp: u64,
    /// Maximum number of buffers per frame in zero-copy mode; 0 if the kernel does not report it.
    pub zero_copy_segments: u32,
    /// Bits of `enum netdev_xsk_flags`.
    pub xsk: u64,
}

impl XdpFeatures {
    const NAMES: [&str; 7] = ["basic", "redirect", "ndo-xmit", "xsk-zerocopy", "hw-offload", "rx-sg", "ndo-xmit-sg"];

    /// Queries an interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// `ENOENT` if the kernel does not support the query, before Linux 6.3; `ENODEV`.
    pub fn query(index: u32) -> io::Result<Self> {
        const DEVICE_GET: u8 = 1;
        const INTERFACE: u16 = 1;
        let socket =
            Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(Protocol::from(libc::NETLINK_GENERIC)))?;
        let family = family(&socket)?;
        let answer = send_request(&socket, family, DEVICE_GET, INTERFACE, &index.to_ne_bytes())?;
        let mut found = Self::default();
        for attribute in NlasIterator::new(&answer).flatten() {
            let value = number(attribute.value());
            match attribute.kind() {
                3 => found.xdp = value,
                4 => found.zero_copy_segments = value as u32,
                6 => found.xsk = value,
                _ => {}
            }
        }
        Ok(found)
    }

    /// Returns whether programs run in the driver.
    pub const fn native(&self) -> bool {
        self.xdp & 1 != 0
    }

    /// Returns whether programs may redirect frames to sockets.
    pub const fn redirect(&self) -> bool {
        self.xdp & 2 != 0
    }

    /// Returns whether the driver sends frames that programs on other interfaces redirect to it.
    pub const fn sends(&self) -> bool {
        self.xdp & 4 != 0
    }

    /// Returns whether sockets share memory with the driver.
    pub const fn zero_copy(&self) -> bool {
        self.xdp & 8 != 0
    }

    /// Returns whether programs support frames of several buffers.
    pub const fn fragments(&self) -> bool {
        self.xdp & 32 != 0
    }

    /// Returns the names of the bits of `xdp`, as in the kernel's documentation.
    pub fn names(&self) -> Vec<&'static str> {
        Self::NAMES.into_iter().enumerate().filter(|(bit, _)| self.xdp >> bit & 1 == 1).map(|(_, name)| name).collect()
    }
}

fn family(socket: &Socket) -> io::Result<u16> {
    // Of `linux/genetlink.h`.
    const CONTROL: u16 = 16;
    const GET_FAMILY: u8 = 3;
    const NAME: u16 = 2;
    const NUMBER: u16 = 1;
    let answer = send_request(socket, CONTROL, GET_FAMILY, NAME, b"netdev\0")?;
    let attribute = NlasIterator::new(&answer).flatten().find(|attribute| attribute.kind() == NUMBER);
    Ok(attribute.map_or(0, |attribute| number(attribute.value()) as u16))
}

/// Sends a command with one attribute, and returns the attributes of the answer.
fn send_request(socket: &Socket, family: u16, command: u8, kind: u16, value: &[u8]) -> io::Result<Vec<u8>> {
    socket.send(&request(family, command, kind, value))?;
    let mut room = [MaybeUninit::uninit(); 8192];
    let mut answer = Vec::with_capacity(room.len());
    let length = socket.recv(&mut room)?;
    // SAFETY: the call has initialized that many bytes.
    answer.extend(room[..length].iter().map(|byte| unsafe { byte.assume_init() }));
    attributes(&answer)
}

/// Bytes of `struct nlmsghdr` and `struct genlmsghdr`.
const HEADER: usize = 16;
const COMMAND: usize = 4;

fn request(family: u16, command: u8, kind: u16, value: &[u8]) -> Vec<u8> {
    const REQUEST: u16 = 1;
    let padded = value.len().next_multiple_of(4);
    let mut bytes = Vec::with_capacity(HEADER + COMMAND + 4 + padded);
    bytes.extend(((HEADER + COMMAND + 4 + padded) as u32).to_ne_bytes());
    bytes.extend([family, REQUEST].map(u16::to_ne_bytes).as_flattened());
    bytes.extend([0; 8]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend([(4 + value.len()) as u16, kind].map(u16::to_ne_bytes).as_flattened());
    bytes.extend(value);
    bytes.resize(HEADER + COMMAND + 4 + padded, 0);
    bytes
}

/// Returns the attributes of an answer, or the error that it reports.
fn attributes(answer: &[u8]) -> io::Result<Vec<u8>> {
    const ERROR: u16 = 2;
    let malformed = || io::Error::other("the kernel's answer is truncated");
    let kind = answer.get(4..6).and_then(|bytes| bytes.first_chunk()).map(|bytes| u16::from_ne_bytes(*bytes));
    if kind == Some(ERROR) {
        let code = answer.get(HEADER..).and_then(|bytes| bytes.first_chunk()).map(|bytes| i32::from_ne_bytes(*bytes));
        return Err(code.map_or_else(malformed, |code| io::Error::from_raw_os_error(-code)));
    }
    answer.get(HEADER + COMMAND..).map(Vec::from).ok_or_else(malformed)
}
/// Decodes an integer of two, four or eight bytes.
fn number(value: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let place = if cfg!(target_endian = "big") { 8_usize.saturating_sub(value.len()) } else { 0 };
    bytes[place..].iter_mut().zip(value).for_each(|(to, from)| *to = *from);
    u64::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_and_errors_are_distinguished() {
        let mut refused = request(2, 0, 0, &[]);
        refused[HEADER..HEADER + 4].copy_from_slice(&(-libc::ENOENT).to_ne_bytes());
        refused[4..6].copy_from_slice(&2_u16.to_ne_bytes());
        assert_eq!(attributes(&refused).unwrap_err().raw_os_error(), Some(libc::ENOENT));
        assert!(attributes(&[0; 7]).is_err());
        assert_eq!(number(&7_u16.to_ne_bytes()) + number(&9_u64.to_ne_bytes()), 16);
    }

    #[test]
    fn features_of_loopback_and_names_of_features() {
        match XdpFeatures::query(1) {
            Ok(declared) => assert!(!declared.native() && declared.names().is_empty()),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOENT)),
        }
        let most = XdpFeatures { xdp: 0b10_1011, ..XdpFeatures::default() };
        assert_eq!(most.names(), ["basic", "redirect", "xsk-zerocopy", "rx-sg"]);
        assert!(most.native() && most.redirect() && !most.sends() && most.zero_copy() && most.fragments());
    }
}
