//! Parts of the schemes whose switches remember.

/// What is done with a frame at a switch, given a port or [`OPEN`]. The answer is a port, [`OPEN`] or [`NO_PORT`].
//= docs/specs/reunion.md#REU-19 in parts
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `conga` chooses a port, or goes along with the one given.
    Conga,
    /// Flowcut chooses a port.
    Flowcut,
    /// Reunion ends an interval that is over.
    Begin,
    /// Reunion gives the frame's flow another path if it is to have one.
    Move,
    /// Reunion counts the frame, and gives it a port if its flow has a path.
    Prepare,
    /// Reunion's base chooses, if it keeps nothing of frames that are given a port.
    Base,
    /// Reunion notes that the frame leaves by the port given.
    Settle,
    /// Reunion takes the path whose turn is given in a search, if it is available. The answer is its PathID, or [`OPEN`] when there are no
    /// more.
    Path,
}

/// No port leads on, or there is no such path.
pub const NO_PORT: u32 = u32::MAX;
/// A port is yet to be chosen.
pub const OPEN: u32 = NO_PORT - 1;
