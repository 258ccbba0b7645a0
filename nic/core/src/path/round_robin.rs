//! Round robin: every entropy value in turn, whatever comes back. Clauses (RR-n) are in `docs/specs/round-robin.md`.

use rand_core::RngCore;

use super::{Balancer, Ev, NoSettings, Offers, PathConfigOf, Scheme, SendInfo, ahead, draw_lasting};

/// Each packet takes the entropy value after the last packet's.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    next: Ev,
    evs: u16,
}

impl Scheme for RoundRobin {
    type Config = NoSettings;

    /// The next packet's entropy value.
    const STATE_BYTES: usize = size_of::<Ev>();
    const OFFERS: Offers = Offers::NOTHING;

    //= docs/specs/round-robin.md#RR-1 the first EV
    fn make(_own: &NoSettings, path: &PathConfigOf<impl Copy>, rng: &mut impl RngCore) -> Self {
        Self { next: draw_lasting(path, 0, rng), evs: path.ev_count() }
    }
}

//= docs/specs/round-robin.md#RR-3 no feedback
impl Balancer for RoundRobin {
    //= docs/specs/round-robin.md#RR-2 the next EV
    #[inline]
    fn next_ev(&mut self, _now_ps: u64, _packet: &SendInfo, _rng: &mut impl RngCore) -> Ev {
        let ev = self.next;
        self.next = ahead(ev, 1, self.evs);
        ev
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::path::{AckInfo, BalancerKind, LossInfo, PathConfig};
    use crate::rng::stream;

    #[test]
    fn every_value_comes_once_a_round_from_a_lasting_start() {
        //= docs/specs/round-robin.md#RR-1 the first EV
        //= docs/specs/round-robin.md#RR-2 the next EV
        for evs in [1, 2, 32, 65_535] {
            let path = PathConfig { evs, seed: Some(7), ..PathConfig::new(BalancerKind::RoundRobin, 8_000_000, 10) };
            let mut rng = stream(1, 1);
            let mut balancer = RoundRobin::make(&NoSettings {}, &path, &mut rng);
            let mut round =
                || (0..evs).map(|_| balancer.next_ev(0, &SendInfo::default(), &mut rng)).collect::<Vec<_>>();
            let first = round();
            assert_eq!(round(), first);
            let mut sorted = first.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), evs as usize);
            let mut again = RoundRobin::make(&NoSettings {}, &path, &mut stream(2, 2));
            assert_eq!(again.next_ev(0, &SendInfo::default(), &mut rng), first[0], "the seed decides alone");
        }
    }

    #[test]
    fn feedback_changes_nothing() {
        //= docs/specs/round-robin.md#RR-3 no feedback
        let path = PathConfig::new(BalancerKind::RoundRobin, 8_000_000, 10);
        let mut rng = stream(1, 1);
        let mut balancer = RoundRobin::make(&NoSettings {}, &path, &mut rng);
        let first = balancer.next_ev(0, &SendInfo::default(), &mut rng);
        balancer.on_ack(1, &AckInfo { ev: first, marked: true, ..AckInfo::default() }, &mut ());
        balancer.on_loss(2, &LossInfo { ev: first, ..LossInfo::default() }, &mut ());
        let second = balancer.next_ev(3, &SendInfo::default(), &mut rng);
        assert_eq!(second.index(), (first.index() + 1) % path.ev_count());
    }
}
