//! OPS, oblivious packet spraying: a new random path for every packet (REPS §2.2).

use super::{Balancer, Ev, Features, NoSettings, Now, Path, Rng, Scheme, SendInfo, draw};

/// Draws an entropy value for each packet and ignores feedback.
#[derive(Clone, Debug)]
pub struct Ops;

impl Scheme for Ops {
    type Config = NoSettings;

    const STATE_BYTES: usize = 0;

    fn make(_own: &NoSettings, _path: &Path, _rng: &mut Rng) -> Self {
        Self
    }
}

impl Balancer for Ops {
    fn features(&self) -> Features {
        Features { sprays: true, ..Features::default() }
    }

    //= docs/specs/reps.md#REPS-22 OPS
    fn next_ev(&mut self, now: Now<'_>, _packet: &SendInfo, rng: &mut Rng) -> Ev {
        draw(now.path.evs, rng)
    }
}
