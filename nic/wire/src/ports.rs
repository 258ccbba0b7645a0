//! The UDP destination ports of frames of ours (WIRE-1).

/// Ports in a row that a host's frames come to: each of its queues may have one of its own.
///
/// All hosts that talk to each other have the same.
//= docs/specs/wire.md#WIRE-1 layers
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports(u16);

impl Ports {
    /// How many there are; the first one is a multiple of it.
    pub const COUNT: u16 = 64;
    /// Those from 61,440 on: no protocol is registered there (RFC 6335 §6), and Linux gives none of them to programs by itself.
    pub const DEFAULT: Self = Self(61_440);

    /// Return those from `first` on; `None` unless that is a multiple of [`Ports::COUNT`] from 1,024 on.
    pub const fn new(first: u16) -> Option<Self> {
        if first >= 1024 && first.is_multiple_of(Self::COUNT) { Some(Self(first)) } else { None }
    }

    /// Return the first one.
    #[inline(always)]
    pub const fn first(self) -> u16 {
        self.0
    }

    /// Return the one with this number, of which the lowest six bits count.
    #[inline(always)]
    pub const fn at(self, number: u8) -> u16 {
        self.0 | number as u16 & (Self::COUNT - 1)
    }

    /// Return which of them `port` is, if it is one.
    #[inline(always)]
    pub const fn number(self, port: u16) -> Option<u8> {
        if self.contain(port) { Some((port - self.0) as u8) } else { None }
    }

    /// Return those that `port` is one of.
    #[inline(always)]
    pub const fn around(port: u16) -> Self {
        Self(port & !(Self::COUNT - 1))
    }

    /// Return whether `port` is one of them.
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
    fn they_are_sixty_four_in_a_row() {
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
