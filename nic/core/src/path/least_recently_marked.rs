//! Least recently marked: labels without a recent mark or loss take turns. When every label has one, the half with
//! the oldest marks takes turns. A simple adaptive baseline. Clauses (LRM-n) are in
//! `docs/specs/least-recently-marked.md`.

use alloc::boxed::Box;

use super::labels::Labels;
use super::{AckInfo, Balancer, Ev, LossCause, LossInfo, Scheme, SendInfo};
use crate::Time;
use crate::event::Publisher;
use crate::now::{Now, Path};
use crate::rng::Rng;
use crate::settings::settings;
use crate::units::Micros;

settings! {
    /// The settings of [`LeastRecentlyMarked`].
    pub struct LeastRecentlyMarkedConfig {
        /// Labels of a connection.
        #[schemars(range(min = 1, max = 64))]
        pub labels: u16 = LABELS,
        /// How long a mark or a trimmed packet counts. By default one base round-trip time.
        #[schemars(range(min = 0, max = 1_000_000_000))]
        pub memory_us: Option<Micros> = None,
        /// How long a lost packet counts. By default 64 base round-trip times.
        #[schemars(range(min = 0, max = 1_000_000_000))]
        pub loss_memory_us: Option<Micros> = None,
    }
}

/// Most labels: one bit each in a word.
const MAX_LABELS: u16 = 64;
/// Labels of a connection by default.
const LABELS: u16 = 64;

/// Takes a few labels in turn and leaves out those marked lately.
#[derive(Clone, Debug)]
pub struct LeastRecentlyMarked {
    labels: Labels,
    settings: LeastRecentlyMarkedConfig,
    state: Box<Rotation>,
}

#[derive(Clone, Debug)]
struct Rotation {
    /// A bit for each label that takes turns.
    clean: u64,
    /// The label after the last packet's: the search for the next one begins here.
    next: u8,
    /// How many labels sit out.
    marked: u8,
    /// The labels that sit out, in the order of their return.
    order: [u8; MAX_LABELS as usize],
    /// When each of them returns, by label.
    until: [Time; MAX_LABELS as usize],
}

impl LeastRecentlyMarked {
    /// How long a mark counts.
    fn memory_ps(&self, path: &Path) -> u64 {
        self.settings.memory_us.map_or(path.base_rtt_ps * MEMORY_RTTS, Micros::ps)
    }

    /// Has `label` sit out until `until`.
    //= docs/specs/least-recently-marked.md#LRM-2 marked labels
    fn mark(&mut self, label: u16, until: Time) {
        let state = &mut *self.state;
        let (label, mut place) = (label as u8, usize::from(state.marked));
        if state.clean & (1 << label) == 0 {
            let found = state.order[..place].iter().position(|other| *other == label).unwrap_or(0);
            state.order.copy_within(found + 1..place, found);
            place -= 1;
        }
        state.marked = place as u8 + 1;
        state.clean &= !(1 << label);
        state.until[usize::from(label)] = until;
        while place > 0 && state.until[usize::from(state.order[place - 1])] > until {
            state.order[place] = state.order[place - 1];
            place -= 1;
        }
        state.order[place] = label;
    }
}

impl Rotation {
    /// Brings the first `count` marked labels back.
    fn forgive(&mut self, count: usize) {
        let marked = usize::from(self.marked);
        for label in &self.order[..count] {
            self.clean |= 1 << label;
        }
        self.order.copy_within(count..marked, 0);
        self.marked -= count as u8;
    }

    //= docs/specs/least-recently-marked.md#LRM-3 clean again
    //= docs/specs/least-recently-marked.md#LRM-5 no clean label
    fn forgive_due(&mut self, now: Now<'_>) {
        let marked = usize::from(self.marked);
        let due = |label: &&u8| self.until[usize::from(**label)] <= now.time;
        let mut count = self.order[..marked].iter().take_while(due).count();
        if count == 0 && self.clean == 0 {
            count = marked.div_ceil(2);
        }
        if count > 0 {
            self.forgive(count);
        }
    }
}

impl Scheme for LeastRecentlyMarked {
    type Config = LeastRecentlyMarkedConfig;

    /// With 64 labels: a bit, a place in the order and a time of 32 bits each.
    const STATE_BYTES: usize = size_of::<Ev>() + 2 + LABELS as usize * (1 + size_of::<u32>()) + size_of::<u64>();

    //= docs/specs/least-recently-marked.md#LRM-1 labels
    fn make(own: &LeastRecentlyMarkedConfig, path: &Path, rng: &mut Rng) -> Self {
        let labels = Labels::new(path, own.labels.min(MAX_LABELS), rng);
        let state = Rotation {
            clean: u64::MAX >> (MAX_LABELS - labels.count()),
            next: 0,
            marked: 0,
            order: [0; MAX_LABELS as usize],
            until: [Time::ZERO; MAX_LABELS as usize],
        };
        Self { labels, settings: *own, state: Box::new(state) }
    }
}

impl Balancer for LeastRecentlyMarked {
    //= docs/specs/least-recently-marked.md#LRM-4 clean labels in turn
    fn next_ev(&mut self, now: Now<'_>, _packet: &SendInfo, _rng: &mut Rng) -> Ev {
        let state = &mut *self.state;
        if state.marked > 0 {
            state.forgive_due(now);
        }
        let ahead = state.clean & (u64::MAX << state.next);
        let label = if ahead == 0 { state.clean } else { ahead }.trailing_zeros() as u16;
        state.next = self.labels.after(label) as u8;
        self.labels.ev(label)
    }

    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo, _publisher: &mut dyn Publisher) {
        if ack.marked
            && let Some(label) = self.labels.label(ack.ev)
        {
            self.mark(label, now.after(self.memory_ps(now.path)));
        }
    }

    fn on_loss(&mut self, now: Now<'_>, loss: &LossInfo, _publisher: &mut dyn Publisher) {
        let memory_ps = match loss.cause {
            LossCause::Trimmed | LossCause::TrimmedLast => self.memory_ps(now.path),
            _ => self.settings.loss_memory_us.map_or(now.path.base_rtt_ps * LOSS_MEMORY_RTTS, Micros::ps),
        };
        if let Some(label) = self.labels.label(loss.ev) {
            self.mark(label, now.after(memory_ps));
        }
    }
}

/// A mark says that a queue was long a round trip ago. Leaving its label out for longer loads the other labels too
/// much: over a permutation of 128 hosts, mean completion goes from 193 us to 212 with two round trips and 251 with
/// four.
const MEMORY_RTTS: u64 = 1;
/// A path that loses packets is tried again about every half millisecond in a datacentre. Routing takes ten to
/// exclude it.
const LOSS_MEMORY_RTTS: u64 = 64;

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use rand_core::RngCore;

    use super::*;
    use crate::rng::stream;
    use crate::tests::{On, at_step, path_of};

    /// Times are in steps of [`Time`].
    const RTT: u64 = 1_000;
    const RTT_PS: u64 = RTT * Time::STEP_PS;

    fn balancer(labels: u16) -> On<LeastRecentlyMarked> {
        let memory_us = Some(Micros::from_ps(4 * RTT_PS));
        let own = LeastRecentlyMarkedConfig { labels, memory_us, loss_memory_us: None };
        let path = path_of(RTT_PS, 10);
        On { scheme: LeastRecentlyMarked::make(&own, &path, &mut stream(3, 3)), path }
    }

    fn send(balancer: &mut On<LeastRecentlyMarked>, now: u64, count: usize) -> Vec<u16> {
        let mut send =
            || balancer.scheme.next_ev(balancer.path.at(at_step(now)), &SendInfo::default(), &mut stream(0, 0));
        let evs: Vec<_> = (0..count).map(|_| send()).collect();
        evs.into_iter().map(|ev| balancer.labels.label(ev).unwrap()).collect()
    }

    fn ack(balancer: &mut On<LeastRecentlyMarked>, now: u64, label: u16, marked: bool) {
        let ev = balancer.labels.ev(label);
        balancer.scheme.on_ack(balancer.path.at(at_step(now)), &AckInfo { ev, marked, ..AckInfo::default() }, &mut ());
    }

    fn lose(balancer: &mut On<LeastRecentlyMarked>, now: u64, label: u16, cause: LossCause) {
        let ev = balancer.labels.ev(label);
        balancer.scheme.on_loss(
            balancer.path.at(at_step(now)),
            &LossInfo { ev, cause, ..LossInfo::default() },
            &mut (),
        );
    }

    #[test]
    fn labels_take_turns_and_marked_ones_sit_out() {
        //= docs/specs/least-recently-marked.md#LRM-1 labels
        //= docs/specs/least-recently-marked.md#LRM-3 clean again
        //= docs/specs/least-recently-marked.md#LRM-4 clean labels in turn
        let mut balancer = balancer(4);
        assert_eq!(send(&mut balancer, 0, 6), [0, 1, 2, 3, 0, 1]);
        ack(&mut balancer, 100, 2, true);
        ack(&mut balancer, 100, 3, false);
        assert_eq!(send(&mut balancer, 100, 4), [3, 0, 1, 3]);
        lose(&mut balancer, 200, 0, LossCause::Timeout);
        assert_eq!(send(&mut balancer, 100 + 4 * RTT - 1, 3), [1, 3, 1]);
        assert_eq!(send(&mut balancer, 100 + 4 * RTT, 4), [2, 3, 1, 2]);
        assert_eq!(send(&mut balancer, 200 + 64 * RTT, 4), [3, 0, 1, 2]);
    }

    #[test]
    fn when_all_are_marked_the_longest_marked_half_takes_turns() {
        //= docs/specs/least-recently-marked.md#LRM-2 marked labels
        //= docs/specs/least-recently-marked.md#LRM-5 no clean label
        let mut balancer = balancer(4);
        for (at, label) in [(1, 3), (2, 0), (3, 2), (4, 1), (5, 3)] {
            ack(&mut balancer, at, label, true);
        }
        assert_eq!(send(&mut balancer, 6, 4), [0, 2, 0, 2]);
        ack(&mut balancer, 7, 0, true);
        ack(&mut balancer, 8, 2, true);
        assert_eq!(send(&mut balancer, 9, 3), [3, 1, 3]);
        // A loss counts for longer than marks that come after it.
        lose(&mut balancer, 10, 1, LossCause::SackGap);
        lose(&mut balancer, 11, 3, LossCause::Trimmed);
        assert_eq!(send(&mut balancer, 12, 3), [0, 2, 0]);
        assert_eq!(send(&mut balancer, 11 + 4 * RTT, 4), [2, 3, 0, 2]);
    }

    /// The clauses by sorting all labels for every packet.
    struct Literal {
        until: Vec<(u64, u64)>,
        marked: Vec<bool>,
        next: usize,
        marks: u64,
    }

    impl Literal {
        fn send(&mut self, now: u64) -> u16 {
            let count = self.marked.len();
            for label in 0..count {
                self.marked[label] &= self.until[label].0 > now;
            }
            if self.marked.iter().all(|marked| *marked) {
                let mut order: Vec<_> = (0..count).collect();
                order.sort_by_key(|label| self.until[*label]);
                order[..count.div_ceil(2)].iter().for_each(|label| self.marked[*label] = false);
            }
            let label = (0..count).map(|step| (self.next + step) % count).find(|label| !self.marked[*label]).unwrap();
            self.next = (label + 1) % count;
            label as u16
        }

        fn mark(&mut self, label: u16, until: u64) {
            self.marks += 1;
            self.until[usize::from(label)] = (until, self.marks);
            self.marked[usize::from(label)] = true;
        }
    }

    #[test]
    fn it_is_what_the_clauses_say() {
        for (seed, labels) in [(1, 1), (2, 2), (3, 7), (4, 32), (5, 63), (6, 64)] {
            let mut ours = balancer(labels);
            let count = labels as usize;
            let mut literal =
                Literal { until: std::vec![(0, 0); count], marked: std::vec![false; count], next: 0, marks: 0 };
            let (mut rng, mut now) = (stream(seed, 0), 0);
            for _ in 0..20_000 {
                let (bits, label) = (rng.next_u32(), (rng.next_u32() % u32::from(labels)) as u16);
                now += u64::from(bits >> 16 & 63);
                match bits % 8 {
                    0..3 => {
                        ack(&mut ours, now, label, true);
                        literal.mark(label, now + 4 * RTT);
                    }
                    3 if bits.is_multiple_of(64) => {
                        lose(&mut ours, now, label, LossCause::Timeout);
                        literal.mark(label, now + 64 * RTT);
                    }
                    _ => assert_eq!(send(&mut ours, now, 1), [literal.send(now)]),
                }
            }
        }
    }
}
