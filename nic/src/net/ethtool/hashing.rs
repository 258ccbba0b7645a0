//! Receive-side scaling (RSS): hash fields of a NIC.

use std::fmt;
use std::io;

use super::Ethtool;

/// UDP over an IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpFlow {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl UdpFlow {
    /// Both versions.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// Returns the name in `ethtool`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V4 => "udp4",
            Self::V6 => "udp6",
        }
    }

    // `UDP_V4_FLOW` and `UDP_V6_FLOW` of `linux/ethtool.h`.
    pub(super) const fn number(self) -> u32 {
        match self {
            Self::V4 => 2,
            Self::V6 => 6,
        }
    }
}

/// The fields of a packet that select its queue: `RXH_...` bits of `linux/ethtool.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashFields(pub u64);

impl HashFields {
    /// Both addresses and both ports: `sdfn`.
    pub const ADDRESSES_AND_PORTS: Self = Self(0xf0);
    const PORTS: u64 = 0xc0;
    /// Letters of `ethtool -N IF rx-flow-hash`, with their bits.
    const LETTERS: [(char, u64); 8] =
        [('m', 2), ('v', 4), ('t', 8), ('s', 16), ('d', 32), ('f', 64), ('n', 128), ('r', 1 << 31)];

    /// Returns whether both ports are included, so that a connection's packets use all queues.
    #[must_use]
    pub const fn has_ports(self) -> bool {
        self.0 & Self::PORTS == Self::PORTS
    }
}

impl fmt::Display for HashFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters: String =
            Self::LETTERS.iter().filter(|(_, bit)| self.0 & bit != 0).map(|(letter, _)| *letter).collect();
        f.write_str(if letters.is_empty() { "none" } else { &letters })
    }
}

impl Ethtool {
    /// Returns the fields that select the queue of a UDP packet.
    pub fn hash_fields(&self, flow: UdpFlow) -> io::Result<HashFields> {
        const COMMAND: u32 = 0x29;
        let mut words = [0; super::WORDS];
        words[1] = flow.number();
        self.ioctl_words(COMMAND, &mut words)?;
        let ([a, b, c, d], [e, f, g, h]) = (words[2].to_ne_bytes(), words[3].to_ne_bytes());
        Ok(HashFields(u64::from_ne_bytes([a, b, c, d, e, f, g, h])))
    }

    /// Sets the fields that select the queue of a UDP packet.
    pub fn set_hash_fields(&self, flow: UdpFlow, fields: HashFields) -> io::Result<()> {
        const COMMAND: u32 = 0x2a;
        let [a, b, c, d, e, f, g, h] = fields.0.to_ne_bytes();
        let halves = [[a, b, c, d], [e, f, g, h]].map(u32::from_ne_bytes);
        self.set(COMMAND, &[flow.number(), halves[0], halves[1]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_ethtool_writes_them() {
        assert_eq!(HashFields::ADDRESSES_AND_PORTS.to_string(), "sdfn");
        assert_eq!((HashFields(0x30).to_string(), HashFields(0).to_string()), ("sd".into(), "none".into()));
        assert!(HashFields::ADDRESSES_AND_PORTS.has_ports() && !HashFields(0x70).has_ports());
    }
}
