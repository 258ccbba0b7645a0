//! The state of each frame of a device, and the stack of free frames.

use super::{FrameCounts, FrameId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameState {
    Free,
    Fill,
    Held,
    Tx,
}

/// The state of all frames of a device, and the stack of free ones: the frame used last is used
/// next, while its bytes are in the cache.
#[derive(Debug)]
pub(super) struct Frames {
    places: Box<[FrameState]>,
    free: Vec<u32>,
    counts: [u32; 4],
}

impl Frames {
    pub(super) fn new(total: u32) -> Self {
        Self {
            places: vec![FrameState::Free; total as usize].into(),
            free: (0..total).rev().collect(),
            counts: [total, 0, 0, 0],
        }
    }

    /// Moves a frame from one state to another.
    ///
    /// # Panics
    /// When the frame is not in state `from`: the handle is stale or of another device, or the
    /// kernel's descriptor is wrong.
    #[inline]
    pub(super) fn shift(&mut self, index: u32, from: FrameState, to: FrameState) {
        let place = &mut self.places[index as usize];
        assert!(*place == from, "frame {index} is in {place:?}, expected in {from:?}");
        *place = to;
        self.counts[from as usize] -= 1;
        self.counts[to as usize] += 1;
        if to == FrameState::Free {
            self.free.push(index);
        }
    }

    #[inline]
    pub(super) fn take(&mut self, to: FrameState) -> Option<u32> {
        let index = self.free.pop()?;
        self.places[index as usize] = to;
        self.counts[FrameState::Free as usize] -= 1;
        self.counts[to as usize] += 1;
        Some(index)
    }

    /// Returns the index of a frame that the caller holds.
    ///
    /// # Panics
    /// On a handle of another device.
    #[inline]
    pub(super) fn held(&self, id: &FrameId) -> u32 {
        let place = self.places.get(id.index());
        assert!(
            place == Some(&FrameState::Held),
            "frame {} is not held by the caller: a handle of another device?",
            id.0
        );
        id.0
    }

    /// Takes back a frame that the caller holds.
    ///
    /// # Panics
    /// On a handle of another device.
    #[inline]
    pub(super) fn release(&mut self, id: &FrameId) {
        let index = self.held(id);
        self.shift(index, FrameState::Held, FrameState::Free);
    }

    #[inline]
    pub(super) fn count(&self, place: FrameState) -> u32 {
        self.counts[place as usize]
    }

    pub(super) fn frame_counts(&self) -> FrameCounts {
        FrameCounts {
            total: self.places.len(),
            free: self.count(FrameState::Free) as usize,
            fill: self.count(FrameState::Fill) as usize,
            held: self.count(FrameState::Held) as usize,
            tx: self.count(FrameState::Tx) as usize,
        }
    }

    /// Recounts all frames and compares the free stack with their states.
    pub(super) fn audit(&self) -> Result<(), String> {
        let mut recount = [0_u32; 4];
        for place in &self.places {
            recount[*place as usize] += 1;
        }
        if recount != self.counts {
            return Err(format!("frames by place (free, fill, held, tx): counted {recount:?}, kept {:?}", self.counts));
        }
        let mut listed = vec![false; self.places.len()];
        for &index in &self.free {
            if self.places[index as usize] != FrameState::Free {
                return Err(format!("frame {index} is on the free stack but in {:?}", self.places[index as usize]));
            }
            if std::mem::replace(&mut listed[index as usize], true) {
                return Err(format!("frame {index} is on the free stack twice"));
            }
        }
        if self.free.len() != self.count(FrameState::Free) as usize {
            return Err(format!("{} frames on the free stack, {} free", self.free.len(), self.count(FrameState::Free)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audit_detects_every_inconsistency() {
        let books = || {
            let mut frames = Frames::new(4);
            frames.take(FrameState::Held).unwrap();
            frames
        };
        assert_eq!(books().audit(), Ok(()));
        let mut moved = books();
        moved.places[0] = FrameState::Tx;
        assert!(moved.audit().unwrap_err().contains("by place"));
        let mut listed_twice = books();
        listed_twice.free[0] = listed_twice.free[1];
        assert!(listed_twice.audit().unwrap_err().contains("twice"));
        let mut lost = books();
        lost.free.pop();
        assert!(lost.audit().unwrap_err().contains("on the free stack"));
        let mut in_use = books();
        in_use.free.push(0);
        assert!(in_use.audit().unwrap_err().contains("but in Held"));
    }

    #[test]
    #[should_panic(expected = "frame 3 is in Free, expected in Tx")]
    fn a_completion_of_a_frame_that_was_not_sent_is_refused() {
        Frames::new(4).shift(3, FrameState::Tx, FrameState::Free);
    }

    #[test]
    fn frames_used_last_are_used_next() {
        let mut frames = Frames::new(4);
        let (first, second) = (frames.take(FrameState::Held), frames.take(FrameState::Held));
        assert_eq!((first, second), (Some(0), Some(1)));
        frames.shift(0, FrameState::Held, FrameState::Free);
        assert_eq!(frames.take(FrameState::Fill), Some(0));
        assert_eq!(frames.frame_counts(), FrameCounts { total: 4, free: 2, fill: 1, held: 1, tx: 0 });
    }
}
