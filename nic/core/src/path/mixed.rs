//! Ultra Ethernet's `mixed`: unmarked EVs once more, then the [`Bitmap`]'s: `docs/specs/mixed.md`.

use alloc::collections::VecDeque;

use super::{AckInfo, Balancer, Bitmap, BitmapConfig, Ev, LossInfo, Now, Path, Publisher, Rng, Scheme, SendInfo};

/// Recycles entropy values as REPS, without a buffer of fixed size, and explores as the bitmap.
#[derive(Clone, Debug)]
pub struct Mixed {
    bitmap: Bitmap,
    /// Values to reuse, the oldest first; at most [`KEPT`].
    returned: VecDeque<Ev>,
}

impl Scheme for Mixed {
    type Config = BitmapConfig;

    /// The bitmap's, and 512 bytes of values to reuse.
    const STATE_BYTES: usize = Bitmap::STATE_BYTES + KEPT * size_of::<Ev>();

    //= docs/specs/mixed.md#MIX-4 size of the bitmap's
    const EVS: u16 = Bitmap::EVS;

    fn make(own: &BitmapConfig, path: &Path, rng: &mut Rng) -> Self {
        Self { bitmap: Bitmap::make(own, path, rng), returned: VecDeque::with_capacity(KEPT) }
    }
}

impl Balancer for Mixed {
    //= docs/specs/mixed.md#MIX-2 recycled values first
    fn next_ev(&mut self, now: Now<'_>, packet: &SendInfo, rng: &mut Rng) -> Ev {
        self.returned.pop_front().unwrap_or_else(|| self.bitmap.next_ev(now, packet, rng))
    }

    //= docs/specs/mixed.md#MIX-1 unmarked values are kept
    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo, publisher: &mut dyn Publisher) {
        self.bitmap.on_ack(now, ack, publisher);
        if ack.marked || ack.ev.index() >= now.path.evs {
            return;
        }
        if self.returned.len() == KEPT {
            self.returned.pop_front();
        }
        self.returned.push_back(ack.ev);
    }

    //= docs/specs/mixed.md#MIX-3 feedback to the bitmap
    fn on_loss(&mut self, now: Now<'_>, loss: &LossInfo, publisher: &mut dyn Publisher) {
        self.bitmap.on_loss(now, loss, publisher);
    }
}

/// Maximum number of stored values: a window of 1 MB in packets of 4 KiB.
const KEPT: usize = 256;

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::feedback::LossCause;
    use crate::rng::stream;
    use crate::tests::{On, path_of};

    fn mixed(evs: u16) -> (On<Mixed>, Rng) {
        let path = Path { evs, seed: Some(5), ..path_of(1_000, 10) };
        (On { scheme: Mixed::make(&BitmapConfig::default(), &path, &mut stream(1, 0)), path }, stream(2, 0))
    }

    fn ack(mixed: &mut On<Mixed>, ev: u16, marked: bool) {
        let ack = AckInfo { ev: Ev::new(ev), marked, packets: 1, ..AckInfo::default() };
        mixed.scheme.on_ack(mixed.path.at_ps(0), &ack, &mut ());
    }

    fn sends(mixed: &mut On<Mixed>, count: usize, rng: &mut Rng) -> Vec<u16> {
        (0..count).map(|_| mixed.scheme.next_ev(mixed.path.at_ps(0), &SendInfo::default(), rng).index()).collect()
    }

    #[test]
    fn unmarked_values_are_reused_once_and_first() {
        //= docs/specs/mixed.md#MIX-1 unmarked values are kept
        //= docs/specs/mixed.md#MIX-2 recycled values first
        let (mut mixed, mut rng) = mixed(64);
        let first = sends(&mut mixed, 1, &mut rng)[0];
        let marked = (first + 40) % 64;
        [9, 9, 2, 64].iter().for_each(|ev| ack(&mut mixed, *ev, false));
        ack(&mut mixed, marked, true);
        assert_eq!(sends(&mut mixed, 3, &mut rng), [9, 9, 2]);
        let next: Vec<u16> = (1..4).map(|step| (first + step) % 64).collect();
        assert_eq!(sends(&mut mixed, 3, &mut rng), next);
    }

    #[test]
    fn a_full_buffer_drops_its_oldest_value() {
        //= docs/specs/mixed.md#MIX-1 unmarked values are kept
        let (mut mixed, mut rng) = mixed(1_000);
        (0..300).for_each(|ev| ack(&mut mixed, ev, false));
        let kept: Vec<u16> = (44..300).collect();
        assert_eq!(sends(&mut mixed, KEPT, &mut rng), kept);
    }

    #[test]
    fn exploring_skips_marked_and_lost_values() {
        //= docs/specs/mixed.md#MIX-3 feedback to the bitmap
        let (mut mixed, mut rng) = mixed(4);
        let turn = sends(&mut mixed, 4, &mut rng);
        ack(&mut mixed, turn[0], true);
        let lost = LossInfo { ev: Ev::new(turn[1]), cause: LossCause::Timeout, ..LossInfo::default() };
        mixed.scheme.on_loss(mixed.path.at_ps(0), &lost, &mut ());
        // The marked value is used again after being skipped once, the lost one after fifteen
        // times.
        let mut next = sends(&mut mixed, 8, &mut rng);
        assert!(!next.contains(&turn[1]), "{turn:?} {next:?}");
        next.sort_unstable();
        next.dedup();
        assert_eq!(next.len(), 3);
    }
}
