//! OPS, oblivious packet spraying: a new random path for every packet (REPS §2.2).

use rand_core::RngCore;

use super::{AckInfo, Balancer, Ev, LossInfo, PathConfig, Scheme, SendInfo, draw};
use crate::event::Publisher;

/// A uniformly drawn entropy value per packet; nothing is learnt.
#[derive(Clone, Debug)]
pub struct Ops {
    evs: u16,
}

impl Ops {
    /// Sprays over the configured set.
    pub fn new(config: &PathConfig) -> Self {
        Self { evs: config.ev_count() }
    }
}

impl Scheme for Ops {
    const STATE_BYTES: usize = 0;

    fn make(config: &PathConfig, _rng: &mut impl RngCore) -> Self {
        Self::new(config)
    }
}

impl Balancer for Ops {
    //= docs/specs/reps.md#REPS-22
    #[inline]
    fn next_ev(&mut self, _now_ps: u64, _packet: &SendInfo, rng: &mut impl RngCore) -> Ev {
        draw(self.evs, rng)
    }

    #[inline]
    fn on_ack(&mut self, _now_ps: u64, _ack: &AckInfo, _publisher: &mut impl Publisher) {}

    #[inline]
    fn on_loss(&mut self, _now_ps: u64, _loss: &LossInfo, _publisher: &mut impl Publisher) {}
}
