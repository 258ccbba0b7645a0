//! What a driver declares of XDP, by the kernel's generic netlink family `netdev`, from Linux 6.3 on.

use std::io;
use std::mem::MaybeUninit;

use rtnetlink::packet_core::NlasIterator;
use socket2::{Domain, Protocol, Socket, Type};

/// What the driver of an interface declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// Bits of `enum netdev_xdp_act`.
    pub xdp: u64,
    /// The most buffers of a frame in zero-copy mode; 0 where the kernel does not tell.
    pub zero_copy_segments: u32,
    /// Bits of `enum netdev_xsk_flags`.
    pub xsk: u64,
}

impl Declared {
    const NAMES: [&str; 7] = ["basic", "redirect", "ndo-xmit", "xsk-zerocopy", "hw-offload", "rx-sg", "ndo-xmit-sg"];

    /// Asks for the interface of this number, of the calling thread's network namespace.
    ///
    /// # Errors
    /// `ENOENT` where the kernel does not tell, which is before Linux 6.3, `ENODEV` when there is no such interface.
    pub fn of(index: u32) -> io::Result<Self> {
        const DEVICE_GET: u8 = 1;
        const INTERFACE: u16 = 1;
        let socket =
            Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(Protocol::from(libc::NETLINK_GENERIC)))?;
        let family = family(&socket)?;
        let answer = send_request(&socket, family, DEVICE_GET, INTERFACE, &index.to_ne_bytes())?;
        let mut found = Self::default();
        each(&answer, |kind, value| match kind {
            3 => found.xdp = number(value),
            4 => found.zero_copy_segments = number(value) as u32,
            6 => found.xsk = number(value),
            _ => {}
        });
        Ok(found)
    }

    /// Whether programs run in the driver.
    #[must_use]
    pub const fn native(&self) -> bool {
        self.xdp & 1 != 0
    }

    /// Whether they may hand frames to sockets.
    #[must_use]
    pub const fn redirect(&self) -> bool {
        self.xdp & 2 != 0
    }

    /// Whether it sends frames that programs on other interfaces redirect to it.
    #[must_use]
    pub const fn sends(&self) -> bool {
        self.xdp & 4 != 0
    }

    /// Whether sockets share their memory with the driver.
    #[must_use]
    pub const fn zero_copy(&self) -> bool {
        self.xdp & 8 != 0
    }

    /// Whether programs take frames of several buffers, which are longer than one.
    #[must_use]
    pub const fn fragments(&self) -> bool {
        self.xdp & 32 != 0
    }

    /// The names of `xdp`, as the kernel's documentation has them.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        Self::NAMES.into_iter().enumerate().filter(|(bit, _)| self.xdp >> bit & 1 == 1).map(|(_, name)| name).collect()
    }
}

/// The number that the kernel has given the family `netdev`.
fn family(socket: &Socket) -> io::Result<u16> {
    /// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_NAME` and `CTRL_ATTR_FAMILY_ID` of `linux/genetlink.h`.
    const CONTROL: u16 = 16;
    const GET_FAMILY: u8 = 3;
    const NAME: u16 = 2;
    const NUMBER: u16 = 1;
    let answer = send_request(socket, CONTROL, GET_FAMILY, NAME, b"netdev\0")?;
    let mut found = 0;
    each(&answer, |kind, value| {
        if kind == NUMBER {
            found = number(value) as u16;
        }
    });
    Ok(found)
}

/// Sends a command with one attribute, and returns the attributes of its answer.
fn send_request(socket: &Socket, family: u16, command: u8, kind: u16, value: &[u8]) -> io::Result<Vec<u8>> {
    socket.send(&request(family, command, kind, value))?;
    let mut room = [MaybeUninit::uninit(); 8192];
    let mut answer = Vec::with_capacity(room.len());
    let length = socket.recv(&mut room)?;
    // SAFETY: the call has written that many bytes.
    answer.extend(room[..length].iter().map(|byte| unsafe { byte.assume_init() }));
    attributes(&answer)
}

/// Bytes of `struct nlmsghdr` and of `struct genlmsghdr`.
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

/// The attributes of an answer, or the error that it is.
fn attributes(answer: &[u8]) -> io::Result<Vec<u8>> {
    const ERROR: u16 = 2;
    let malformed = || io::Error::other("the kernel's answer is cut off");
    let kind = answer.get(4..6).and_then(|bytes| bytes.first_chunk()).map(|bytes| u16::from_ne_bytes(*bytes));
    if kind == Some(ERROR) {
        let code = answer.get(HEADER..).and_then(|bytes| bytes.first_chunk()).map(|bytes| i32::from_ne_bytes(*bytes));
        return Err(code.map_or_else(malformed, |code| io::Error::from_raw_os_error(-code)));
    }
    answer.get(HEADER + COMMAND..).map(Vec::from).ok_or_else(malformed)
}

fn each(attributes: &[u8], mut take: impl FnMut(u16, &[u8])) {
    for attribute in NlasIterator::new(attributes).flatten() {
        take(attribute.kind(), attribute.value());
    }
}

/// An integer of two, four or eight bytes.
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
    fn an_answer_is_told_from_an_error() {
        let mut refused = request(2, 0, 0, &[]);
        refused[HEADER..HEADER + 4].copy_from_slice(&(-libc::ENOENT).to_ne_bytes());
        refused[4..6].copy_from_slice(&2_u16.to_ne_bytes());
        assert_eq!(attributes(&refused).unwrap_err().raw_os_error(), Some(libc::ENOENT));
        assert!(attributes(&[0; 7]).is_err());
        assert_eq!(number(&7_u16.to_ne_bytes()) + number(&9_u64.to_ne_bytes()), 16);
    }

    #[test]
    fn loopback_declares_nothing_and_names_are_the_kernels() {
        match Declared::of(1) {
            Ok(declared) => assert!(!declared.native() && declared.names().is_empty()),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOENT)),
        }
        let most = Declared { xdp: 0b10_1011, ..Declared::default() };
        assert_eq!(most.names(), ["basic", "redirect", "xsk-zerocopy", "rx-sg"]);
        assert!(most.native() && most.redirect() && !most.sends() && most.zero_copy() && most.fragments());
    }
}
