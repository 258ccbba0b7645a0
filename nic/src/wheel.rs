//! The release wheel: frames that are held until their virtual time has come.

use std::{cmp::Ordering, collections::BinaryHeap};

use crate::device::FrameId;

/// A frame on hold.
#[derive(Debug)]
pub struct Held {
    /// When to release it, in picoseconds of scenario time.
    pub due_ps: u64,
    /// The frame.
    pub frame: FrameId,
    /// Its bytes.
    pub len: u32,
    /// Order of arrival, to tell frames of one time apart.
    arrival: u32,
}

/// Frames in the exact order of (virtual time, arrival); its capacity is fixed at construction.
///
/// A binary heap: frames come in nearly sorted, so that a push seldom climbs, and the few dozen frames that a host holds at a time
/// make a pop short. `benches/benches/endpoint.rs` compares it with a hashed timing wheel.
#[derive(Debug)]
pub struct ReleaseWheel {
    heap: BinaryHeap<Held>,
    capacity: usize,
    arrivals: u32,
}

impl ReleaseWheel {
    /// A wheel for up to `capacity` frames: the device's number of frames, since no more can be held.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(capacity), capacity, arrivals: 0 }
    }

    /// Holds a frame until `due_ps`.
    ///
    /// # Errors
    /// Hands the frame back when the wheel is full.
    pub fn hold(&mut self, due_ps: u64, frame: FrameId, len: u32) -> Result<(), FrameId> {
        if self.heap.len() == self.capacity {
            return Err(frame);
        }
        let arrival = self.arrivals;
        self.arrivals = arrival.wrapping_add(1);
        self.heap.push(Held { due_ps, frame, len, arrival });
        Ok(())
    }

    /// When the first frame is due.
    #[must_use]
    pub fn next_due_ps(&self) -> Option<u64> {
        self.heap.peek().map(|held| held.due_ps)
    }

    /// Takes the first frame, due or not.
    pub fn release(&mut self) -> Option<Held> {
        self.heap.pop()
    }

    /// Frames on hold.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no frame is on hold.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

/// Reversed, as `BinaryHeap` gives out the greatest; arrival numbers wrap, far beyond the number of frames on hold.
impl Ord for Held {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_arrival = || (other.arrival.wrapping_sub(self.arrival) as i32).cmp(&0);
        other.due_ps.cmp(&self.due_ps).then_with(by_arrival)
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Held {}
