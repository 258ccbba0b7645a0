//! The UDP destination ports of spray frames (WIRE-1).

/// Consecutive ports at which a host receives, up to one per queue.
///
/// All hosts that communicate use the same ones.
//= docs/specs/wire.md#WIRE-1 layers
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports(u16);

impl Ports {
    /// Their number; the first port is a multiple of it.
    pub const COUNT: u16 = 64;
    /// From 61,440 on: unregistered (RFC 6335 §6) and outside Linux's ephemeral range.
    pub const DEFAULT: Self = Self(61_440);

    /// Creates the ports from `first`, a multiple of [`Ports::COUNT`] of at least 1,024.
    pub const fn new(first: u16) -> Option<Self> {
        if first >= 1024 && first.is_multiple_of(Self::COUNT) { Some(Self(first)) } else { None }
    }

    /// Returns the first port.
    #[inline(always)]
    pub const fn first(self) -> u16 {
        self.0
    }

    /// Returns the port with this index, modulo [`Ports::COUNT`].
    #[inline(always)]
    pub const fn at(self, number: u8) -> u16 {
        self.0 | number as u16 & (Self::COUNT - 1)
    }

    /// Returns the index of `port`, or `None` if it is not one of them.
    #[inline(always)]
    pub const fn number(self, port: u16) -> Option<u8> {
        if self.contain(port) { Some((port - self.0) as u8) } else { None }
    }

    /// Returns the aligned ports that include `port`.
    #[inline(always)]
    pub const fn around(port: u16) -> Self {
        Self(port & !(Self::COUNT - 1))
    }

    /// Returns whether `port` is one of them.
    #[inline(always)]
    pub const fn contain(self, port: u16) -> bool {
        Self::around(port).0 == self.0
    }
}

impl Default for Ports {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/specs/wire.md#WIRE-1 layers
    #[test]
    fn ports_are_64_consecutive_numbers() {
        let contained = (0..=u16::MAX).filter(|port| Ports::DEFAULT.contain(*port));
        assert!(contained.eq(61_440..61_504));
        assert!((0..=u16::MAX).filter_map(Ports::new).map(Ports::first).eq((1024..=65_472).step_by(64)));
        let numbers = (0..=u16::MAX).filter_map(|port| Ports::DEFAULT.number(port));
        assert!(numbers.eq(0..64));
        assert!((0..64).all(|number| Ports::DEFAULT.number(Ports::DEFAULT.at(number)) == Some(number)));
        assert_eq!(Ports::DEFAULT.at(65), 61_441);
        assert_eq!(Ports::around(5_000), Ports::new(4_992).unwrap());
    }
}
