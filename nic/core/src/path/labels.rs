//! A connection's labels: consecutive entropy values from a random one, which switches hash to
//! unrelated paths, as in the published artifacts. Numbers follow from values, without a table.

use super::{Ev, Path, Rng, ahead, draw_lasting};

#[derive(Clone, Copy, Debug)]
pub(super) struct Labels {
    first: Ev,
    count: u16,
    evs: u16,
}

impl Labels {
    /// Creates `count` labels, at most one per value. The first is the value that `ecmp` would use.
    pub(super) fn new(path: &Path, count: u16, rng: &mut Rng) -> Self {
        let evs = path.evs;
        Self { first: draw_lasting(path, 0, rng), count: count.clamp(1, evs), evs }
    }

    pub(super) fn count(&self) -> u16 {
        self.count
    }

    pub(super) fn ev(&self, label: u16) -> Ev {
        ahead(self.first, label, self.evs)
    }

    pub(super) fn label(&self, ev: Ev) -> Option<u16> {
        let (index, first) = (ev.index(), self.first.index());
        let offset = if index >= first { index - first } else { index + (self.evs - first) };
        (index < self.evs && offset < self.count).then_some(offset)
    }

    pub(super) fn after(&self, label: u16) -> u16 {
        if label + 1 < self.count { label + 1 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;
    use crate::tests::path_of;

    #[test]
    fn the_maps_of_values_and_labels_are_inverse() {
        for evs in [1, 2, 7, 300, 65_535] {
            for count in [0, 1, 3, 8, 1000] {
                for seed in 0..20 {
                    let config = Path { evs, seed: Some(seed), ..path_of(1_000_000, 10) };
                    let labels = Labels::new(&config, count, &mut stream(0, 0));
                    assert_eq!(labels.count(), count.clamp(1, evs));
                    let mut found = 0;
                    for ev in (0..=u16::MAX).map(Ev::new) {
                        let Some(label) = labels.label(ev) else { continue };
                        assert_eq!(labels.ev(label), ev);
                        found += 1;
                    }
                    assert_eq!(found, labels.count());
                }
            }
        }
    }
}
