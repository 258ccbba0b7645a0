//! What one part of a run hands over to others.

use super::arena::Slot;
use super::said::Said;

/// Frames on their way from one part to another, in the order in which they left.
#[derive(Debug, Default)]
pub(super) struct Mail {
    pub slots: Vec<Slot>,
    /// What frames say beyond their slots, of those that [do](Slot::has_body).
    pub bodies: Vec<Said>,
    /// By slot the link that its frame comes over, where somebody watches.
    pub links: Vec<u32>,
}

impl Mail {
    /// Empties it, and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.bodies.clear();
        self.links.clear();
    }
}

/// The flow of an end of a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Over {
    /// The end's part and number.
    pub part: u32,
    pub end: u32,
    pub at_ps: u64,
}
