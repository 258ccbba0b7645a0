//! Every entropy value in turn (`docs/specs/round-robin.md`).

use super::{Balancer, Ev, NoSettings, Now, Path, Rng, Scheme, SendInfo, ahead, draw_lasting};

/// Each packet takes the entropy value after the last packet's.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    next: Ev,
}

impl Scheme for RoundRobin {
    type Config = NoSettings;

    const STATE_BYTES: usize = size_of::<Ev>();

    //= docs/specs/round-robin.md#RR-1 the first EV
    fn make(_own: &NoSettings, path: &Path, rng: &mut Rng) -> Self {
        Self { next: draw_lasting(path, 0, rng) }
    }
}

//= docs/specs/round-robin.md#RR-3 no feedback
impl Balancer for RoundRobin {
    //= docs/specs/round-robin.md#RR-2 the next EV
    fn next_ev(&mut self, now: Now<'_>, _packet: &SendInfo, _rng: &mut Rng) -> Ev {
        let ev = self.next;
        self.next = ahead(ev, 1, now.path.evs);
        ev
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::path::{AckInfo, LossInfo};
    use crate::rng::stream;
    use crate::tests::path_of;

    #[test]
    fn every_value_is_used_once_per_round_from_a_seeded_start() {
        //= docs/specs/round-robin.md#RR-1 the first EV
        //= docs/specs/round-robin.md#RR-2 the next EV
        for evs in [1, 2, 32, 65_535] {
            let path = Path { evs, seed: Some(7), ..path_of(8_000_000, 10) };
            let mut rng = stream(1, 1);
            let mut balancer = RoundRobin::make(&NoSettings {}, &path, &mut rng);
            let mut round = || {
                (0..evs).map(|_| balancer.next_ev(path.at_ps(0), &SendInfo::default(), &mut rng)).collect::<Vec<_>>()
            };
            let first = round();
            assert_eq!(round(), first);
            let mut sorted = first.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), evs as usize);
            let mut again = RoundRobin::make(&NoSettings {}, &path, &mut stream(2, 2));
            assert_eq!(again.next_ev(path.at_ps(0), &SendInfo::default(), &mut rng), first[0], "only the seed decides");
        }
    }

    #[test]
    fn feedback_changes_nothing() {
        //= docs/specs/round-robin.md#RR-3 no feedback
        let path = path_of(8_000_000, 10);
        let mut rng = stream(1, 1);
        let mut balancer = RoundRobin::make(&NoSettings {}, &path, &mut rng);
        let first = balancer.next_ev(path.at_ps(0), &SendInfo::default(), &mut rng);
        balancer.on_ack(path.at_ps(1), &AckInfo { ev: first, marked: true, ..AckInfo::default() }, &mut ());
        balancer.on_loss(path.at_ps(2), &LossInfo { ev: first, ..LossInfo::default() }, &mut ());
        let second = balancer.next_ev(path.at_ps(3), &SendInfo::default(), &mut rng);
        assert_eq!(second.index(), (first.index() + 1) % path.evs);
    }
}
