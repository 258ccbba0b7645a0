//! Entropy values and the UDP source ports that stand for them (WIRE-13).

/// The largest set of EVs: every source port but 0.
pub const MAX_EVS: u32 = 65_535;

/// An entropy value (EV): an index in a connection's set of `0..evs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Ev(u16);

impl Ev {
    /// Return the EV with this index.
    #[inline]
    pub const fn new(index: u16) -> Self {
        Self(index)
    }

    /// Return its index in the set.
    #[inline]
    pub const fn index(self) -> u16 {
        self.0
    }

    /// Return the UDP source port that stands for it in a set of `evs` (1..=[`MAX_EVS`]).
    ///
    /// Never panics: an index outside the set gives a port that stands for another index or for none.
    //= docs/specs/wire.md#WIRE-13 evs and ports
    #[inline]
    pub const fn port(self, evs: u32) -> EvPort {
        EvPort(base(evs).wrapping_add(self.0))
    }
}

/// A UDP source port, which stands for an EV on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct EvPort(u16);

impl EvPort {
    /// Return the port with this number.
    #[inline]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Return its number, as in the UDP header.
    #[inline]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Return the EV that it stands for in a set of `evs`, or `None` outside the set.
    #[inline]
    pub const fn ev(self, evs: u32) -> Option<Ev> {
        match self.0.checked_sub(base(evs)) {
            Some(index) if (index as u32) < evs => Some(Ev(index)),
            _ => None,
        }
    }
}

/// The dynamic range of RFC 6335 §6 holds this many ports.
const DYNAMIC_PORTS: u32 = 16_384;
const DYNAMIC_BASE: u16 = 49_152;

/// The port of index 0.
const fn base(evs: u32) -> u16 {
    if evs <= DYNAMIC_PORTS { DYNAMIC_BASE } else { 1 }
}
