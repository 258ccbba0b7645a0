//! Parts of the schemes whose switches remember.

/// A part of a scheme, called with a port or [`OPEN`]. It returns a port, [`OPEN`] or [`NO_PORT`].
//= docs/specs/reunion.md#REU-19 in parts
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Conga chooses a port, or uses the given one.
    Conga,
    /// Flowcut chooses a port.
    Flowcut,
    /// Reunion ends the interval if it is over.
    Begin,
    /// Reunion reroutes the frame's flow if it is due.
    Move,
    /// Reunion counts the frame, and returns a port if its flow has a path.
    Prepare,
    /// Reunion's base chooses, if it has no state of frames with a given port.
    Base,
    /// Reunion notes the egress port.
    Settle,
    /// Reunion tries the path of this turn in a search. Returns its PathID, or [`OPEN`] after the last.
    Path,
}

/// No route, or no such path.
pub const NO_PORT: u32 = u32::MAX;
/// No port has been chosen yet.
pub const OPEN: u32 = NO_PORT - 1;
