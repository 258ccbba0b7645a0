//! Entropy values and the UDP source ports that encode them (WIRE-13).

/// The largest number of EVs of a connection: every source port but 0.
pub const MAX_EVS: u32 = 65_535;

/// An entropy value (EV): an index in a connection's set of `0..evs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Ev(u16);

impl Ev {
    /// Creates the EV with this index.
    #[inline]
    pub const fn new(index: u16) -> Self {
        Self(index)
    }

    /// Returns the index in the set.
    #[inline]
    pub const fn index(self) -> u16 {
        self.0
    }

    /// Returns the UDP source port that encodes the EV in a set of `evs` (1..=[`MAX_EVS`]).
    ///
    /// An index outside the set returns a port of another index or of none; it does not panic.
    //= docs/specs/wire.md#WIRE-13 evs and ports
    #[inline]
    pub const fn port(self, evs: u32) -> EvPort {
        EvPort(base(evs).wrapping_add(self.0))
    }
}

/// A UDP source port that encodes an EV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct EvPort(u16);

impl EvPort {
    /// Creates the port with this number.
    #[inline]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Returns the port number.
    #[inline]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Returns the EV in a set of `evs`, or `None` if it is outside the set.
    #[inline]
    pub const fn ev(self, evs: u32) -> Option<Ev> {
        match self.0.checked_sub(base(evs)) {
            Some(index) if (index as u32) < evs => Some(Ev(index)),
            _ => None,
        }
    }
}

/// Size of the dynamic port range (RFC 6335 §6).
const DYNAMIC_PORTS: u32 = 16_384;
const DYNAMIC_BASE: u16 = 49_152;

/// Returns the port of index 0.
const fn base(evs: u32) -> u16 {
    if evs <= DYNAMIC_PORTS { DYNAMIC_BASE } else { 1 }
}
