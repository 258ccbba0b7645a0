//! What one part of a run sends to others.

use super::arena::Slot;
use super::control_body::ControlBody;

/// Frames in the order in which they left.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub slots: Vec<Slot>,
    /// The bodies of those frames that [have one](Slot::has_body).
    pub bodies: Vec<ControlBody>,
    /// By slot the link that its frame came over, if the run is observed.
    pub links: Vec<u32>,
}

impl Batch {
    /// Empties it and keeps its capacity.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.bodies.clear();
        self.links.clear();
    }
}

/// Tells the other part that a connection's flow has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowEnd {
    /// The end's part and number.
    pub part: u32,
    pub end: u32,
    pub at_ps: u64,
}
