//! ECMP: one path for the whole connection, drawn when it starts.

use super::{Balancer, Ev, NoSettings, Now, Path, Rng, Scheme, SendInfo, draw_lasting};

/// Keeps one entropy value for the whole connection, regardless of feedback.
#[derive(Clone, Debug)]
pub struct Ecmp {
    ev: Ev,
}

impl Scheme for Ecmp {
    type Config = NoSettings;

    const STATE_BYTES: usize = size_of::<Ev>();

    fn make(_own: &NoSettings, path: &Path, rng: &mut Rng) -> Self {
        Self { ev: draw_lasting(path, 0, rng) }
    }
}

impl Balancer for Ecmp {
    //= docs/specs/reps.md#REPS-21 ECMP
    fn next_ev(&mut self, _now: Now<'_>, _packet: &SendInfo, _rng: &mut Rng) -> Ev {
        self.ev
    }
}
