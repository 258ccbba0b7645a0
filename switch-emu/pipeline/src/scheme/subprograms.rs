//! Parts of schemes that are separate functions in the kernel, followed once each.

use crate::frame::Frame;
use crate::routes::Group;

/// The calls, plain functions for [`InMemory`](super::InMemory).
pub trait Subprograms {
    /// Runs [`step`](super::step).
    fn step(&self, step: Step, frame: &mut Frame, host: u32, port: u32) -> u32;
    /// Runs [`least`](super::least()).
    fn least(&self, group: &Group, t_ps: u64, query: &LoadQuery) -> u32;
    /// Runs [`score`](super::score).
    fn score(&self, member: u32, t_ps: u64, query: &LoadQuery, place: u32) -> u64;
    /// Runs [`look_up`](super::reunion::look_up).
    fn look_up(&self, first: u32, words: u32, head: u64) -> u64;
}

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
    /// Reunion tries a path of a search. Returns its PathID, or [`OPEN`] after the last.
    Path,
}

/// No route, or no such path.
pub const NO_PORT: u32 = u32::MAX;
/// No port has been chosen yet.
pub const OPEN: u32 = NO_PORT - 1;

/// A comparison of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadQuery {
    /// The measure of load.
    pub measure: LoadMeasure,
    /// Random bits, to break ties.
    pub random: u32,
    /// Index of the paths' words for [`LoadMeasure::Path`]; below 2^30.
    pub row: u32,
}

/// The measure of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LoadMeasure {
    /// Queued bytes.
    Bytes,
    /// The class of the queue's length: below 5, 10 or 20 % of the limit, or above.
    Class,
    /// The congestion of the path behind the port.
    Path,
}

impl LoadMeasure {
    /// Returns the measure with this number.
    #[inline(always)]
    pub const fn from_number(number: u32) -> Self {
        match number {
            number if number == Self::Bytes as u32 => Self::Bytes,
            number if number == Self::Class as u32 => Self::Class,
            _ => Self::Path,
        }
    }
}
