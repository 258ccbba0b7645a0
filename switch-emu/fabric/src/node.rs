//! The nodes that cables join.

/// Where a port's cable ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// At the host with this number.
    Host(usize),
    /// At the switch with this number.
    Switch(usize),
}
