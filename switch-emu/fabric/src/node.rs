//! Nodes of a network.

/// The end of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// The host with this number.
    Host(usize),
    /// The switch with this number.
    Switch(usize),
}
