//! ECMP: one path for the whole connection, drawn when it starts.

use rand_core::RngCore;

use super::{AckInfo, Balancer, Ev, LossInfo, PathConfig, SendInfo, draw};
use crate::event::Publisher;
use crate::rng::stream;

/// One entropy value per connection, whatever happens to it.
#[derive(Clone, Debug)]
pub struct Ecmp {
    ev: Ev,
}

impl Ecmp {
    /// Draws the connection's entropy value, from the connection's own seed if it has one.
    pub fn new(config: &PathConfig, rng: &mut impl RngCore) -> Self {
        let evs = config.ev_count();
        Self { ev: config.seed.map_or_else(|| draw(evs, rng), |seed| draw(evs, &mut stream(seed, 0))) }
    }
}

impl Balancer for Ecmp {
    //= docs/specs/reps.md#REPS-21
    #[inline]
    fn next_ev(&mut self, _now_ps: u64, _packet: &SendInfo, _rng: &mut impl RngCore) -> Ev {
        self.ev
    }

    #[inline]
    fn on_ack(&mut self, _now_ps: u64, _ack: &AckInfo, _publisher: &mut impl Publisher) {}

    #[inline]
    fn on_loss(&mut self, _now_ps: u64, _loss: &LossInfo, _publisher: &mut impl Publisher) {}
}
