//! What connections learn of the paths to a host, kept for the next one that goes there.

use alloc::vec::Vec;

use super::Ev;

/// What a connection has learned of the paths to its destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// Entropy values whose packets came back well, the oldest first; those from `count` on mean nothing.
    pub good: [Ev; MAX_GOOD],
    /// How many.
    pub count: u8,
    /// The path that may have failed.
    pub suspect: Option<Suspect>,
}

impl Remembered {
    /// The entropy values whose packets came back well.
    pub fn good(&self) -> &[Ev] {
        self.good.get(..usize::from(self.count)).unwrap_or(&self.good)
    }
}

/// A path that may have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// The entropy value that leads there.
    pub ev: Ev,
    /// Time that the answer to a probe may take, in ticks of 2^20 ps.
    pub wait: u32,
    /// Probes stayed unanswered: it has failed.
    pub failed: bool,
}

/// Most entropy values of a [`Remembered`].
pub const MAX_GOOD: usize = 16;

/// What a host remembers of others, by numbers that tell these apart.
///
/// It holds 256 hosts with 64 bytes each, allocated when the first is remembered. A host whose number has the same remainder
/// takes the place of another.
#[derive(Clone, Debug, Default)]
pub struct Memories {
    places: Vec<Option<(u128, Remembered)>>,
}

/// Hosts that are remembered at most.
const PLACES: usize = 256;

const _: () = assert!(size_of::<Option<(u128, Remembered)>>() <= 64, "as the documentation says");

impl Memories {
    /// Keeps what was learned of the paths to `host`.
    pub fn keep(&mut self, host: u128, learned: Remembered) {
        self.places.resize(PLACES, None);
        if let Some(place) = self.places.get_mut(place(host)) {
            *place = Some((host, learned));
        }
    }

    /// What is known of the paths to `host`.
    pub fn of(&self, host: u128) -> Option<&Remembered> {
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
    fn a_host_is_known_until_another_takes_its_place() {
        let mut memories = Memories::default();
        let learned = |count| Remembered { count, ..Remembered::default() };
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
