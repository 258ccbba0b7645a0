//! REPS's "bitmap" baseline (§4.1), after STrack (Le et al., 2024): `docs/specs/bitmap.md`.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec;

use super::{
    AckInfo, Balancer, Ev, LossCause, LossInfo, Now, Path, Publisher, Rng, Scheme, SendInfo, ahead, draw, draw_lasting,
    settings,
};

settings! {
    /// The settings of [`Bitmap`].
    pub struct BitmapConfig {
        /// Largest penalty of an entropy value; 1 makes it a bitmap.
        #[schemars(range(min = 1, max = 15))]
        pub max_penalty: u8 = 15,
        /// Penalty for a marked acknowledgement.
        #[schemars(range(min = 0, max = 15))]
        pub mark_penalty: u8 = 1,
        /// Penalty for a packet that was trimmed or lost because later ones arrived.
        #[schemars(range(min = 0, max = 15))]
        pub loss_penalty: u8 = 4,
        /// Penalty for a timeout.
        #[schemars(range(min = 0, max = 15))]
        pub timeout_penalty: u8 = 15,
        /// Which of the values skipped for one packet lose a point of their penalty.
        pub pardon: BitmapPardon = BitmapPardon::First,
    }

    /// Which of the values skipped for one packet lose a point of their penalty.
    #[derive(Default)]
    pub enum BitmapPardon {
        /// The first one.
        #[default]
        First,
        /// Each of them.
        Each,
    }
}

/// Takes entropy values in turn and skips those that have a penalty.
#[derive(Clone, Debug)]
pub struct Bitmap {
    state: Penalties,
    /// With penalties of at most 15.
    settings: BitmapConfig,
}

impl Bitmap {
    //= docs/specs/bitmap.md#BITMAP-3 increase of a penalty
    fn punish(&mut self, path: &Path, ev: Ev, points: u8) {
        if ev.index() < path.evs {
            self.state.update(ev, |penalty| (penalty + points).min(self.settings.max_penalty));
        }
    }

    /// Skips values that have a penalty, and reduces that of the first or of each.
    //= docs/specs/bitmap.md#BITMAP-4 skipping
    //= docs/specs/bitmap.md#BITMAP-5 maximum skips per packet
    #[cold]
    fn pass_over(&mut self, evs: u16, rng: &mut Rng) {
        for passed in 0..MAX_PASSED.min(evs) {
            let ev = self.state.current(evs);
            if self.state.penalty(ev) == 0 {
                return;
            }
            if passed == 0 || self.settings.pardon == BitmapPardon::Each {
                self.state.update(ev, |penalty| penalty.saturating_sub(1));
            }
            self.state.advance(evs, rng);
        }
    }
}

impl Scheme for Bitmap {
    type Config = BitmapConfig;

    /// Half a byte per entropy value, and four bytes of position. With 65,535 values: 32,772 bytes.
    const STATE_BYTES: usize = Self::EVS as usize / 2 + 2 * size_of::<Ev>();

    //= docs/specs/bitmap.md#BITMAP-7 256 EVs
    const EVS: u16 = 256;

    //= docs/specs/bitmap.md#BITMAP-1 A penalty for each EV
    fn make(own: &BitmapConfig, path: &Path, rng: &mut Rng) -> Self {
        let points = |value: u8| value.min(15);
        let settings = BitmapConfig {
            max_penalty: points(own.max_penalty),
            mark_penalty: points(own.mark_penalty),
            loss_penalty: points(own.loss_penalty),
            timeout_penalty: points(own.timeout_penalty),
            ..*own
        };
        let penalties = vec![0; usize::from(path.evs).div_ceil(2)].into_boxed_slice();
        Self { state: Penalties { penalties, turn: 0, first: draw_lasting(path, 0, rng) }, settings }
    }
}

impl Balancer for Bitmap {
    //= docs/specs/bitmap.md#BITMAP-2 round robin
    fn next_ev(&mut self, now: Now<'_>, _packet: &SendInfo, rng: &mut Rng) -> Ev {
        let evs = now.path.evs;
        if self.state.penalty(self.state.current(evs)) > 0 {
            self.pass_over(evs, rng);
        }
        let ev = self.state.current(evs);
        self.state.advance(evs, rng);
        ev
    }

    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo, _publisher: &mut dyn Publisher) {
        if ack.marked {
            self.punish(now.path, ack.ev, self.settings.mark_penalty);
        }
    }

    fn on_loss(&mut self, now: Now<'_>, loss: &LossInfo, _publisher: &mut dyn Publisher) {
        let BitmapConfig { timeout_penalty, loss_penalty, .. } = self.settings;
        self.punish(now.path, loss.ev, if loss.cause == LossCause::Timeout { timeout_penalty } else { loss_penalty });
    }
}

/// Maximum values skipped for one packet, to bound its cost when most have a penalty.
const MAX_PASSED: u16 = 32;

#[derive(Clone, Debug)]
struct Penalties {
    /// Two penalties in a byte; the even value's is the lower half.
    penalties: Box<[u8]>,
    /// The number of values passed in this turn.
    turn: u16,
    first: Ev,
}

impl Penalties {
    fn current(&self, evs: u16) -> Ev {
        ahead(self.first, self.turn, evs)
    }

    /// Advances to the next value. A new turn begins at a random one.
    //= docs/specs/bitmap.md#BITMAP-6 start of a round
    fn advance(&mut self, evs: u16, rng: &mut Rng) {
        self.turn += 1;
        if self.turn >= evs {
            self.turn = 0;
            self.first = draw(evs, rng);
        }
    }

    fn penalty(&self, ev: Ev) -> u8 {
        self.penalties.get(usize::from(ev.index() / 2)).map_or(0, |pair| pair >> shift(ev) & 15)
    }

    /// Changes a penalty; `change` must stay within 0 to 15.
    fn update(&mut self, ev: Ev, change: impl FnOnce(u8) -> u8) {
        let penalty = change(self.penalty(ev));
        if let Some(pair) = self.penalties.get_mut(usize::from(ev.index() / 2)) {
            *pair = *pair & !(15 << shift(ev)) | penalty << shift(ev);
        }
    }
}

const fn shift(ev: Ev) -> u32 {
    if ev.index().is_multiple_of(2) { 0 } else { 4 }
}
