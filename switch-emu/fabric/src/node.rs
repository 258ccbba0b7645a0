//! Nodes of a network.

/// The end of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// The host with this number.
    Host(usize),
    /// The switch with this number.
    Switch(usize),
}

impl Node {
    /// Returns the number of the switch; `None` for a host.
    pub const fn switch(self) -> Option<usize> {
        match self {
            Self::Switch(switch) => Some(switch),
            Self::Host(_) => None,
        }
    }
}
