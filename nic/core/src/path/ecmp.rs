//! ECMP: one path for the whole connection, drawn when it starts.

use rand_core::RngCore;

use super::{AckInfo, Balancer, Ev, LossInfo, PathConfig, SendInfo, draw};
use crate::event::Publisher;

/// One entropy value per connection, whatever happens to it.
#[derive(Clone, Debug)]
pub struct Ecmp {
    ev: Ev,
}

impl Ecmp {
    /// Draws the connection's entropy value.
    pub fn new(config: &PathConfig, rng: &mut impl RngCore) -> Self {
        Self { ev: draw(config.ev_count(), rng) }
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
