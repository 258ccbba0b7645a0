//! What schemes need in a switch's tables, and what the size of their memory depends on.

#[cfg(doc)]
use super::Groups;

/// What a scheme needs in a switch's tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Where pointers are kept.
    pub pointers: Pointers,
    /// Number of orders of a group's ports.
    pub orders: u8,
    /// Whether these orders are random.
    pub shuffled: bool,
    /// Whether pointers start at random.
    pub random_start: bool,
    /// Whether ports have weights.
    pub weighted: bool,
    /// Whether a group keeps as many places as possible when its ports change.
    pub resilient: bool,
    /// Whether groups have the distance to their hosts, in a fabric of [`Groups`].
    pub hops: bool,
}

/// The dimensions of a scheme's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of switches with hosts.
    pub leaves: u32,
    /// Maximum number of ports to switches of such a switch.
    pub uplinks: u32,
}

/// Where pointers are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pointers {
    /// No pointers.
    #[default]
    None,
    /// Per set of ports and class of frames.
    Ports,
    /// Per destination and class of frames.
    Destination,
}

/// Orders of a group in `rr-permuted`; each switch uses them in a different sequence.
pub(super) const ORDERS: u8 = 64;

impl Layout {
    pub(super) const PLAIN: Self = Self {
        pointers: Pointers::None,
        orders: 1,
        shuffled: false,
        random_start: false,
        weighted: false,
        resilient: false,
        hops: false,
    };
    pub(super) const HOPS: Self = Self { hops: true, ..Self::PLAIN };
    pub(super) const WEIGHTED: Self = Self { weighted: true, ..Self::PLAIN };
    pub(super) const RESILIENT: Self = Self { resilient: true, ..Self::PLAIN };
    pub(super) const TURNS: Self = Self { pointers: Pointers::Ports, random_start: true, ..Self::PLAIN };
    pub(super) const ORDERS: Self = Self { orders: ORDERS, shuffled: true, ..Self::TURNS };
    pub(super) const OFAN_SHORTEST: Self = Self { pointers: Pointers::Destination, ..Self::PLAIN };
    pub(super) const OFAN_FIB: Self = Self { shuffled: true, random_start: true, ..Self::OFAN_SHORTEST };
    pub(super) const OFAN: Self = Self { weighted: true, ..Self::OFAN_FIB };
}
