//! One deadline per connection: an indexed binary heap, in which entries move.
#![expect(clippy::indexing_slicing, reason = "indices are those of the table, and places those that the heap keeps")]

use spray_core::Time;

const ABSENT: u32 = u32::MAX;

/// A min-heap of connection indices, ordered by (deadline, index), with the position of each index.
#[derive(Debug)]
pub(crate) struct Deadlines {
    heap: Vec<u32>,
    position: Vec<u32>,
    deadline: Vec<Time>,
}

impl Deadlines {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            heap: Vec::with_capacity(capacity),
            position: vec![ABSENT; capacity],
            deadline: vec![Time::NEVER; capacity],
        }
    }

    /// Returns the earliest deadline, [`Time::NEVER`] without any.
    pub(crate) fn next_at(&self) -> Time {
        self.heap.first().map_or(Time::NEVER, |&index| self.deadline[index as usize])
    }

    /// Returns the connection with the earliest deadline.
    pub(crate) fn first(&self) -> Option<u32> {
        self.heap.first().copied()
    }

    /// Returns a connection's deadline, [`Time::NEVER`] without one.
    pub(crate) fn of(&self, index: u32) -> Time {
        self.deadline[index as usize]
    }

    /// Sets a connection's deadline; [`Time::NEVER`] removes it.
    pub(crate) fn set(&mut self, index: u32, deadline: Time) {
        let old = std::mem::replace(&mut self.deadline[index as usize], deadline);
        match (old == deadline, old == Time::NEVER, deadline == Time::NEVER) {
            (true, ..) => {}
            (_, true, _) => self.insert(index),
            (_, _, true) => self.remove(index),
            _ if deadline < old => self.rise(self.position[index as usize] as usize),
            _ => self.sink(self.position[index as usize] as usize),
        }
    }

    fn insert(&mut self, index: u32) {
        self.position[index as usize] = self.heap.len() as u32;
        self.heap.push(index);
        self.rise(self.heap.len() - 1);
    }

    fn remove(&mut self, index: u32) {
        let at = std::mem::replace(&mut self.position[index as usize], ABSENT) as usize;
        self.heap.swap_remove(at);
        if let Some(&moved) = self.heap.get(at) {
            self.position[moved as usize] = at as u32;
            self.rise(at);
            self.sink(self.position[moved as usize] as usize);
        }
    }

    fn rise(&mut self, mut at: usize) {
        while at > 0 && self.before(at, (at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let mut least = at;
            if left < self.heap.len() && self.before(left, least) {
                least = left;
            }
            if right < self.heap.len() && self.before(right, least) {
                least = right;
            }
            if least == at {
                return;
            }
            self.swap(at, least);
            at = least;
        }
    }

    fn before(&self, a: usize, b: usize) -> bool {
        let key = |at: usize| (self.deadline[self.heap[at] as usize], self.heap[at]);
        key(a) < key(b)
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.position[self.heap[a] as usize] = a as u32;
        self.position[self.heap[b] as usize] = b as u32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_scan(ops in prop::collection::vec((0u32..12, prop_oneof![(0u64..40).prop_map(Time::from_ns), Just(Time::NEVER)]), 1..200)) {
            let mut heap = Deadlines::new(12);
            let mut oracle = [Time::NEVER; 12];
            for (index, deadline) in ops {
                heap.set(index, deadline);
                oracle[index as usize] = deadline;
                let least = (0..12u32).map(|i| (oracle[i as usize], i)).min().unwrap();
                prop_assert_eq!(heap.next_at(), least.0);
                prop_assert_eq!(heap.first(), (least.0 != Time::NEVER).then_some(least.1));
            }
        }
    }
}
