//! The header before each frame in an emulated fabric, with the state of the emulation.
//!
//! It has the form of an Ethernet header with an EtherType for local experiments (IEEE 802, 88-B5),
//! before the whole frame. Hosts add and remove it; frames on real networks have none.

use spray_wire::switch_view::Packet;

/// Length of a shim in bytes.
pub const SHIM_BYTES: usize = 24;
/// Offsets of the fields: behind both MAC addresses, which hold two fields between switches.
const SWITCH: usize = 2;
const TRAIL: usize = 8;
const ETHERTYPE: usize = 12;
const DETOUR: usize = 14;
const BETWEEN: usize = 15;
const VIRTUAL_TIME: usize = 16;
const EXPERIMENTAL: [u8; 2] = 0x88b5u16.to_be_bytes();

/// The fields of a shim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shim {
    /// Scenario time of the frame at its present place, in picoseconds; 0: real time.
    pub virtual_time_ps: u64,
    /// Its detour in a dragonfly, see [`Arrival::detour`](crate::scheme::Arrival::detour).
    pub detour: u8,
    /// Whether the frame is between two switches, not between a host and a switch.
    pub between: bool,
    /// Between two switches, the next one: the low four bytes of the destination MAC.
    pub switch: u32,
    /// Between two switches, the number of its [`Trail`](crate::trail::Trail), in the source MAC.
    pub trail: u32,
}

/// The high bytes of both MACs between two switches: locally administered.
const LOCAL: [u8; SWITCH] = [0x02, 0x5f];

/// A frame behind a shim.
pub trait Shimmed {
    /// Returns the length of both in bytes.
    fn bytes(&self) -> u32;
    /// Splits the shim from the frame; `None` if the bytes are too short.
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
    /// Decodes a shim; `None` for another EtherType.
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

    /// Overwrites an existing shim; its MAC addresses only between two switches.
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

    /// Sets the MAC addresses of a shim to those of its frame.
    #[inline(always)]
    pub fn readdress(bytes: &mut [u8; SHIM_BYTES], addresses: &[u8; ETHERTYPE]) {
        bytes[..ETHERTYPE].copy_from_slice(addresses);
    }

    /// Encodes a shim for `frame`, with its MAC addresses.
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

/// Adds the shim to a trimmed length; 0: untrimmed.
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
