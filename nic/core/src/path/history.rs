//! Knowledge of the paths to a host, stored for the next connection to it.

use alloc::vec::Vec;

use super::Ev;

/// A connection's knowledge of the paths to its destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathHistory {
    /// Entropy values that came back unmarked, the oldest first; `count` are valid.
    pub good: [Ev; MAX_GOOD],
    /// The number of valid entries of `good`.
    pub count: u8,
    /// The path that may have failed.
    pub suspect: Option<Suspect>,
}

impl PathHistory {
    /// The entropy values that came back unmarked.
    pub fn good(&self) -> &[Ev] {
        self.good.get(..usize::from(self.count)).unwrap_or(&self.good)
    }
}

/// A path that may have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// An entropy value of the path.
    pub ev: Ev,
    /// Maximum time to the answer to a probe, in ticks of 2^20 ps.
    pub wait: u32,
    /// Whether it failed: probes stayed unanswered.
    pub failed: bool,
}

/// Maximum number of entropy values of a [`PathHistory`].
pub const MAX_GOOD: usize = 16;

/// Knowledge of 256 hosts, by number modulo 256: 64 bytes each, allocated on first use.
#[derive(Clone, Debug, Default)]
pub struct PathHistories {
    places: Vec<Option<(u128, PathHistory)>>,
}

const PLACES: usize = 256;

const _: () = assert!(size_of::<Option<(u128, PathHistory)>>() <= 64, "as the documentation says");

impl PathHistories {
    /// Stores the knowledge of the paths to `host`.
    pub fn keep(&mut self, host: u128, learned: PathHistory) {
        self.places.resize(PLACES, None);
        if let Some(place) = self.places.get_mut(place(host)) {
            *place = Some((host, learned));
        }
    }

    /// Returns the knowledge of the paths to `host`.
    pub fn of(&self, host: u128) -> Option<&PathHistory> {
        self.places.get(place(host))?.as_ref().filter(|(known, _)| *known == host).map(|(_, learned)| learned)
    }
}

fn place(host: u128) -> usize {
    (host % PLACES as u128) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_remembered_until_another_takes_its_slot() {
        let mut memories = PathHistories::default();
        let learned = |count| PathHistory { count, ..PathHistory::default() };
        assert_eq!(memories.of(3), None);
        memories.keep(3, learned(1));
        memories.keep(4, learned(2));
        assert_eq!((memories.of(3), memories.of(4)), (Some(&learned(1)), Some(&learned(2))));
        memories.keep(3 + PLACES as u128, learned(3));
        assert_eq!((memories.of(3), memories.of(3 + PLACES as u128)), (None, Some(&learned(3))));
        for host in 0..10_000 {
            memories.keep(host, learned(4));
        }
        assert_eq!(memories.places.len(), PLACES);
    }
}
