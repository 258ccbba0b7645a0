use super::*;

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    next: u32,
}

impl Linked for Entry {
    fn key(&self) -> u64 {
        self.key
    }
    fn next(&self) -> u32 {
        self.next
    }
    fn link(&mut self, next: u32) {
        self.next = next;
    }
}

/// A small deterministic generator.
fn step(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Against a heap of (key, order): inserts that are near, equal, in the present bucket, and beyond reach.
#[test]
fn takes_in_order_of_key_then_of_insertion() {
    for seed in 1..200u64 {
        let mut state = seed * 0x9e37_79b9_7f4a_7c15;
        let mut wheel = Wheel::new((seed % 5) as u32, 12);
        let mut slots = Vec::new();
        let mut oracle = BinaryHeap::new();
        let mut now = 0;
        for order in 0..2_000u32 {
            let ahead = match step(&mut state) % 8 {
                0 => 0,
                1..=4 => step(&mut state) % 64,
                5 | 6 => step(&mut state) % 5_000,
                _ => step(&mut state) % 2_000_000,
            };
            slots.push(Entry { key: now + ahead, next: NONE });
            wheel.insert(&mut slots, order);
            oracle.push(Reverse((now + ahead, order)));
            if step(&mut state) % 3 == 0 {
                let expected = oracle.pop().map(|Reverse((key, order))| (key, order));
                let taken = wheel.pop(&mut slots);
                assert_eq!(taken, expected, "seed {seed}");
                now = taken.unwrap().0;
            }
        }
        assert_eq!(wheel.len(), oracle.len());
        while let Some(Reverse(expected)) = oracle.pop() {
            assert_eq!(wheel.pop(&mut slots), Some(expected), "seed {seed}");
        }
        assert_eq!((wheel.pop(&mut slots), wheel.len()), (None, 0));
    }
}
