//! OPS, oblivious packet spraying: a new random path for every packet (REPS §2.2).

use rand_core::RngCore;

use super::{Balancer, Ev, NoSettings, Offers, PathConfigOf, Scheme, SendInfo, draw};

/// Draws an entropy value for each packet and learns nothing.
#[derive(Clone, Debug)]
pub struct Ops {
    evs: u16,
}

impl Scheme for Ops {
    type Config = NoSettings;

    const STATE_BYTES: usize = 0;
    const OFFERS: Offers = Offers::NOTHING;

    fn make(_own: &NoSettings, path: &PathConfigOf<impl Copy>, _rng: &mut impl RngCore) -> Self {
        Self { evs: path.ev_count() }
    }
}

impl Balancer for Ops {
    //= docs/specs/reps.md#REPS-22 OPS
    #[inline]
    fn next_ev(&mut self, _now_ps: u64, _packet: &SendInfo, rng: &mut impl RngCore) -> Ev {
        draw(self.evs, rng)
    }
}
