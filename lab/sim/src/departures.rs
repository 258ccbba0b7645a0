//! Backlog behind a frame when it leaves a port, without an event for that moment.
//!
//! The mark is decided when the frame reaches the far end of the cable: by then all arrivals during
//! its time at the port are known, and nothing has read the mark yet.

use std::collections::VecDeque;

/// Arrivals of data at a port, as far back as frames on the cable need.
#[derive(Debug, Default)]
pub(super) struct Departures {
    /// (time, cumulative data bytes including this frame), ascending.
    arrivals: VecDeque<(u64, u64)>,
    bytes: u64,
}

impl Departures {
    /// Records a data frame of `len` bytes at `now_ps`. Entries older than `cable_ps` are no longer
    /// needed. Returns the frame's place, for [`Departures::behind`].
    pub(super) fn admit(&mut self, now_ps: u64, len: u32, cable_ps: u64) -> u64 {
        self.prune(now_ps.saturating_sub(cable_ps));
        self.bytes += u64::from(len);
        self.arrivals.push_back((now_ps, self.bytes));
        self.bytes
    }

    /// Returns the data bytes behind the frame with this place when its last bit leaves, at
    /// `left_ps`. Must be called in the order of departures.
    //= docs/specs/switch.md#SW-19 marking as a frame leaves
    pub(super) fn behind(&mut self, place: u64, left_ps: u64) -> u64 {
        self.prune(left_ps);
        self.arrivals.front().map_or(0, |(_, bytes)| bytes.saturating_sub(place))
    }

    /// Drops the entries superseded by a later one at or before `t_ps`.
    fn prune(&mut self, t_ps: u64) {
        while self.arrivals.get(1).is_some_and(|(at_ps, _)| *at_ps <= t_ps) {
            self.arrivals.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PS_PER_BYTE: u64 = 20;
    const CABLE_PS: u64 = 500_000;

    /// Events of one moment in order; frames that reach the far end come last, as they need all
    /// arrivals.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum Event {
        Comes(usize),
        Leaves(usize),
        Arrives(usize),
    }

    proptest! {
        /// Compared with a queue that has departures as events.
        #[test]
        fn a_departure_computed_late_equals_that_at_its_time(
            frames in prop::collection::vec((0u64..300_000, 64u64..4_150), 1..300),
        ) {
            let (mut at_ps, mut free_ps) = (0, 0);
            let mut events = Vec::new();
            for (index, (gap_ps, len)) in frames.iter().enumerate() {
                at_ps += gap_ps;
                free_ps = at_ps.max(free_ps) + len * PS_PER_BYTE;
                events.push((at_ps, Event::Comes(index)));
                events.push((free_ps, Event::Leaves(index)));
                events.push((free_ps + CABLE_PS, Event::Arrives(index)));
            }
            events.sort_unstable();
            let (mut departures, mut waiting) = (Departures::default(), 0);
            let (mut places, mut behind) = (vec![0; frames.len()], vec![0; frames.len()]);
            for (now_ps, event) in events {
                match event {
                    Event::Comes(index) => {
                        waiting += frames[index].1;
                        places[index] = departures.admit(now_ps, frames[index].1 as u32, CABLE_PS);
                    }
                    Event::Leaves(index) => {
                        waiting -= frames[index].1;
                        behind[index] = waiting;
                    }
                    Event::Arrives(index) => {
                        prop_assert_eq!(departures.behind(places[index], now_ps - CABLE_PS), behind[index]);
                    }
                }
            }
            prop_assert!(departures.arrivals.len() <= 1, "records that are no longer needed are removed");
        }
    }

    #[test]
    fn records_of_frames_that_never_arrive_are_removed() {
        let mut departures = Departures::default();
        for frame in 0..1_000 {
            departures.admit(frame * 100_000, 64, CABLE_PS);
        }
        assert!(departures.arrivals.len() <= 7, "{}", departures.arrivals.len());
    }
}
