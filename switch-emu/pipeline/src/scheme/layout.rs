//! What schemes need in the tables of a switch, and what their memory depends on.

#[cfg(doc)]
use super::Groups;

/// What a scheme needs in the tables of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// What has a pointer.
    pub pointers: Pointers,
    /// Orders of its ports that a group keeps.
    pub orders: u8,
    /// Whether these orders are random.
    pub shuffled: bool,
    /// Whether pointers begin at random.
    pub random_start: bool,
    /// Whether ports have weights.
    pub weighted: bool,
    /// Whether a group keeps as many places as it can where its ports change.
    pub resilient: bool,
    /// Whether groups know how far their hosts are, in a fabric of [`Groups`].
    pub ways: bool,
}

/// What a scheme's memory depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Switches with hosts.
    pub leaves: u32,
    /// Most ports of such a switch that lead to switches.
    pub uplinks: u32,
}

/// What has a pointer of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pointers {
    /// Nothing.
    #[default]
    None,
    /// A set of ports and a class of frames.
    Ports,
    /// A destination and a class of frames.
    Destination,
}

/// Orders that `rr-permuted` keeps for a group: each switch goes through them in an order of its own.
pub(super) const ORDERS: u8 = 64;

impl Layout {
    pub(super) const PLAIN: Self = Self {
        pointers: Pointers::None,
        orders: 1,
        shuffled: false,
        random_start: false,
        weighted: false,
        resilient: false,
        ways: false,
    };
    pub(super) const WAYS: Self = Self { ways: true, ..Self::PLAIN };
    pub(super) const WEIGHTED: Self = Self { weighted: true, ..Self::PLAIN };
    pub(super) const RESILIENT: Self = Self { resilient: true, ..Self::PLAIN };
    pub(super) const TURNS: Self = Self { pointers: Pointers::Ports, random_start: true, ..Self::PLAIN };
    pub(super) const ORDERS: Self = Self { orders: ORDERS, shuffled: true, ..Self::TURNS };
    pub(super) const OFAN_SHORTEST: Self = Self { pointers: Pointers::Destination, ..Self::PLAIN };
    pub(super) const OFAN_FIB: Self = Self { shuffled: true, random_start: true, ..Self::OFAN_SHORTEST };
    pub(super) const OFAN: Self = Self { weighted: true, ..Self::OFAN_FIB };
}
