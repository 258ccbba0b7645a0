//! The header before each frame in an emulated fabric: what hosts and switches tell each other of the emulation.
//!
//! It looks like an Ethernet header of an EtherType for local experiments (IEEE 802, 88-B5), and the frame behind it is whole: hosts put it on
//! and take it off, and what they send on real networks has none of it.

use spray_wire::switch_view::Packet;

/// Its bytes.
pub const SHIM_BYTES: usize = 24;
/// Offsets of its fields: behind both Ethernet addresses, but for the two that are in place of these between two switches.
const SWITCH: usize = 2;
const TRAIL: usize = 8;
const ETHERTYPE: usize = 12;
const DETOUR: usize = 14;
const BETWEEN: usize = 15;
const VIRTUAL_TIME: usize = 16;
const EXPERIMENTAL: [u8; 2] = 0x88b5u16.to_be_bytes();

/// What it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shim {
    /// Scenario time at which the frame is where it is, in picoseconds; 0: real time.
    pub virtual_time_ps: u64,
    /// How the frame goes through a dragonfly, see [`Arrival::detour`](crate::scheme::Arrival::detour).
    pub detour: u8,
    /// Whether the frame is between two switches, in place of between a host and a switch.
    pub between: bool,
    /// Between two switches, the one that it comes to: the low four bytes of the Ethernet destination.
    pub switch: u32,
    /// Between two switches, the number of its [`Trail`](crate::trail::Trail): the low four bytes of the Ethernet source; 0 if it has none.
    pub trail: u32,
}

/// The high bytes of both Ethernet addresses of a frame between two switches: locally administered.
const LOCAL: [u8; SWITCH] = [0x02, 0x5f];

/// A frame with a shim before it.
pub trait Shimmed {
    /// Bytes of both.
    fn bytes(&self) -> u32;
    /// Returns the shim and the frame; `None` if it ends before that.
    fn split(&mut self) -> Option<(&mut [u8; SHIM_BYTES], impl Packet + '_)>;
}

impl Shimmed for [u8] {
    #[inline(always)]
    fn bytes(&self) -> u32 {
        self.len() as u32
    }
    #[inline(always)]
    fn split(&mut self) -> Option<(&mut [u8; SHIM_BYTES], impl Packet + '_)> {
        self.split_first_chunk_mut()
    }
}

impl Shim {
    /// Reads it; `None` if it is none.
    //= docs/specs/emulation.md#EMU-8 the shim
    #[inline(always)]
    pub fn read(bytes: &[u8; SHIM_BYTES]) -> Option<Self> {
        let [.., a, b, c, d, e, f, g, h] = *bytes;
        let is_shim = bytes[ETHERTYPE] == EXPERIMENTAL[0] && bytes[ETHERTYPE + 1] == EXPERIMENTAL[1];
        let virtual_time_ps = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let [_, _, i, j, k, l, _, _, m, n, o, p, ..] = *bytes;
        let between = bytes[BETWEEN] != 0;
        let number = |bytes| if between { u32::from_be_bytes(bytes) } else { 0 };
        let (switch, trail) = (number([i, j, k, l]), number([m, n, o, p]));
        is_shim.then_some(Self { virtual_time_ps, detour: bytes[DETOUR], between, switch, trail })
    }

    /// Writes it where one is; the Ethernet addresses only between two switches.
    #[inline(always)]
    pub fn write(&self, bytes: &mut [u8; SHIM_BYTES]) {
        bytes[DETOUR] = self.detour;
        bytes[BETWEEN] = self.between.into();
        for (at, byte) in self.virtual_time_ps.to_be_bytes().into_iter().enumerate() {
            bytes[VIRTUAL_TIME + at] = byte;
        }
        if self.between {
            bytes[..SWITCH].copy_from_slice(&LOCAL);
            bytes[SWITCH..][..4].copy_from_slice(&self.switch.to_be_bytes());
            bytes[TRAIL - 2..TRAIL].copy_from_slice(&LOCAL);
            bytes[TRAIL..][..4].copy_from_slice(&self.trail.to_be_bytes());
        }
    }

    /// Sets the Ethernet addresses of a shim to those of its frame.
    #[inline(always)]
    pub fn readdress(bytes: &mut [u8; SHIM_BYTES], addresses: &[u8; ETHERTYPE]) {
        bytes[..ETHERTYPE].copy_from_slice(addresses);
    }

    /// Returns one for `frame`, with its Ethernet addresses.
    pub fn before(&self, frame: &[u8]) -> [u8; SHIM_BYTES] {
        let mut bytes = [0; SHIM_BYTES];
        if let Some(addresses) = frame.get(..ETHERTYPE) {
            bytes[..ETHERTYPE].copy_from_slice(addresses);
        }
        bytes[ETHERTYPE..DETOUR].copy_from_slice(&EXPERIMENTAL);
        self.write(&mut bytes);
        bytes
    }
}

/// A length to cut a frame to, with its shim's; 0: none.
#[inline(always)]
pub(crate) const fn with_shim(len: u32) -> u32 {
    if len == 0 { 0 } else { len + SHIM_BYTES as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/specs/emulation.md#EMU-8 the shim
    #[test]
    fn what_is_written_is_read() {
        let between = Shim { virtual_time_ps: 7, detour: 1, between: true, switch: 0x0304_0506, trail: 0x0708_090a };
        let mut bytes = between.before(&[7; 60]);
        assert_eq!(bytes[..16], [2, 0x5f, 3, 4, 5, 6, 2, 0x5f, 7, 8, 9, 10, 0x88, 0xb5, 1, 1]);
        assert_eq!(Shim::read(&bytes), Some(between));
        Shim::readdress(&mut bytes, &[7; 12]);
        assert_eq!(bytes[..12], [7; 12]);
        let shim = Shim { virtual_time_ps: 0x0102_0304_0506_0708, detour: 9, ..Shim::default() };
        let bytes = shim.before(&[7; 60]);
        assert_eq!(bytes[..16], [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0x88, 0xb5, 9, 0]);
        assert_eq!((Shim::read(&bytes), bytes[16..].first()), (Some(shim), Some(&1)));
        assert_eq!(Shim::read(&[0; SHIM_BYTES]), None);
    }
}
