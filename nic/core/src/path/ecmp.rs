//! ECMP: one path for the whole connection, drawn when it starts.

use rand_core::RngCore;

use super::{Balancer, Ev, NoSettings, Offers, PathConfigOf, Scheme, SendInfo, draw_lasting};

/// Keeps one entropy value for the whole connection, whatever comes back.
#[derive(Clone, Debug)]
pub struct Ecmp {
    ev: Ev,
}

impl Scheme for Ecmp {
    type Config = NoSettings;

    const STATE_BYTES: usize = size_of::<Ev>();
    const OFFERS: Offers = Offers::NOTHING;

    /// Draws the connection's entropy value, from the connection's own seed if it has one.
    fn make(_own: &NoSettings, path: &PathConfigOf<impl Copy>, rng: &mut impl RngCore) -> Self {
        Self { ev: draw_lasting(path, 0, rng) }
    }
}

impl Balancer for Ecmp {
    //= docs/specs/reps.md#REPS-21 ECMP
    #[inline]
    fn next_ev(&mut self, _now_ps: u64, _packet: &SendInfo, _rng: &mut impl RngCore) -> Ev {
        self.ev
    }
}
