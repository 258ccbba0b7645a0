//! The fields that a switch hashes, and the hash function.
//!
//! A digest is computed where a frame enters a chassis. Each switch adds its seed, and takes a
//! place in its group: [`place`]. CRCs and XOR are linear: a seed adds the same bits to all.

use crate::hash::{self, mix, pick};

/// The hash of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowHash {
    /// The function.
    pub function: HashFunction,
    /// The fields.
    pub fields: HashFields,
}

/// The function by which switches hash.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "settings", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "settings", serde(rename_all = "kebab-case"), schemars(inline))]
pub enum HashFunction {
    /// All bits of the fields and of the seed change all bits of the hash.
    #[default]
    Ideal,
    /// CRC-16 with the polynomial 0x1021 (CCITT).
    Crc16,
    /// CRC-32 with the polynomial 0x04C11DB7 (IEEE 802.3).
    Crc32,
    /// The exclusive or of all 16-bit words.
    Xor,
}

/// The fields of a frame that switches hash. The protocol is always UDP and does not count.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "settings", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "settings", serde(rename_all = "kebab-case"), schemars(inline))]
pub enum HashFields {
    /// Addresses and UDP ports.
    #[default]
    FiveTuple,
    /// Addresses: all packets from one host to another take one path.
    Addresses,
    /// UDP ports.
    Ports,
    /// Addresses and the flow label of IPv6.
    FlowLabel,
}

/// Which switches share a seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "settings", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "settings", serde(rename_all = "kebab-case"), schemars(inline))]
pub enum HashSeed {
    /// None: each switch has its own.
    #[default]
    Switch,
    /// The switches of a tier.
    Tier,
    /// All switches.
    Same,
}

/// The hashed fields of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// Source and destination as a little-endian number. IPv6 addresses are folded to 32 bits.
    pub addresses: u64,
    /// UDP source port in the high half, destination port in the low half.
    pub ports: u32,
    /// Flow label; 0 over IPv4.
    pub label: u32,
}

impl FlowHash {
    /// Returns the digest of a frame with these fields.
    //= docs/specs/switching.md#SWC-23 hash input
    #[inline(always)]
    pub fn digest(self, key: &Key) -> u64 {
        let (addresses, entropy) = match self.fields {
            HashFields::FiveTuple => (key.addresses, key.ports),
            HashFields::Addresses => (key.addresses, 0),
            HashFields::Ports => (0, key.ports),
            HashFields::FlowLabel => (key.addresses, key.label),
        };
        self.function.digest(0, addresses, entropy)
    }

    /// Encodes both choices as a number.
    pub const fn number(self) -> u32 {
        self.function as u32 | (self.fields as u32) << FIELDS_SHIFT
    }

    /// Decodes the choices.
    #[inline(always)]
    pub const fn from_number(number: u32) -> Self {
        let fields = match number >> FIELDS_SHIFT {
            1 => HashFields::Addresses,
            2 => HashFields::Ports,
            3 => HashFields::FlowLabel,
            _ => HashFields::FiveTuple,
        };
        Self { function: HashFunction::from_number(number & ((1 << FIELDS_SHIFT) - 1)), fields }
    }
}

const FIELDS_SHIFT: u32 = 8;

impl HashFunction {
    #[inline(always)]
    const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Crc16,
            2 => Self::Crc32,
            3 => Self::Xor,
            _ => Self::Ideal,
        }
    }

    /// The hash of 12 bytes from this initial value, which the ideal function ignores.
    //= docs/specs/switching.md#SWC-24 functions
    #[inline(always)]
    fn digest(self, initial: u32, addresses: u64, entropy: u32) -> u64 {
        match self {
            Self::Ideal => hash::flow(addresses, entropy),
            Self::Crc16 => u64::from(bytes(addresses, entropy, initial as u16, crc16)),
            Self::Crc32 => u64::from(bytes(addresses, entropy, initial, crc32)),
            Self::Xor => {
                let words = (addresses ^ addresses >> 32) as u32 ^ entropy.swap_bytes();
                u64::from(((words ^ words >> 16) as u16).swap_bytes() ^ initial as u16)
            }
        }
    }

    /// Returns what a seed adds to every digest.
    //= docs/specs/switching.md#SWC-25 seeds
    pub fn seed(self, seed: u32) -> u64 {
        match self {
            Self::Ideal => mix(u64::from(seed) ^ 0x9e37_79b9_7f4a_7c15),
            _ => self.digest(seed, 0, 0),
        }
    }
}

/// Returns a seeded digest's place among `count`. `offset`: bits of rotation to the right.
//= docs/specs/switching.md#SWC-25 seeds
#[inline(always)]
pub fn place(function: HashFunction, seeded: u64, offset: u32, count: u32) -> u32 {
    let bits = match function {
        HashFunction::Ideal => return pick((mix(seeded) >> 32) as u32, count),
        HashFunction::Crc32 => (seeded as u32).rotate_right(offset),
        HashFunction::Crc16 | HashFunction::Xor => u32::from((seeded as u16).rotate_right(offset)),
    };
    bits.checked_rem(count).unwrap_or(0)
}

/// Folds the bytes of the addresses, then of the entropy, in wire order.
#[inline(always)]
fn bytes<T>(addresses: u64, entropy: u32, initial: T, step: impl Fn(T, u8) -> T) -> T {
    let mut state = initial;
    for byte in 0..8 {
        state = step(state, (addresses >> (8 * byte)) as u8);
    }
    for byte in 0..4 {
        state = step(state, (entropy >> (24 - 8 * byte)) as u8);
    }
    state
}

/// CRC-16 of a byte, highest bit first. Without a table, as the polynomial has few terms.
#[inline(always)]
const fn crc16(crc: u16, byte: u8) -> u16 {
    let high = (crc >> 8) ^ byte as u16;
    let high = high ^ high >> 4;
    crc << 8 ^ high << 12 ^ high << 5 ^ high
}

/// CRC-32 of a byte, lowest bit first.
#[inline(always)]
fn crc32(crc: u32, byte: u8) -> u32 {
    // Through memory, as a byte: the verifier of Linux 6.1 loses the bounds of a register.
    crc >> 8 ^ CRC32[usize::from(core::hint::black_box(crc as u8 ^ byte))]
}

/// The CRC-32 of each byte. A table, as the polynomial has many terms.
static CRC32: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests;
