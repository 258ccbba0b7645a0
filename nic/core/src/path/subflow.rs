//! A few labels in turn, each on a lasting path (OFAN §3.2, table 2): `docs/specs/subflow.md`.

use super::labels::Labels;
use super::{Balancer, Ev, Now, Path, Rng, Scheme, SendInfo, settings};

settings! {
    /// The settings of [`Subflow`].
    pub struct SubflowConfig {
        /// Labels of a connection. OFAN's comparison uses 4.
        #[schemars(range(min = 1, max = 1_024))]
        pub subflows: u16 = 4,
    }
}

/// Uses a few labels in turn, regardless of feedback.
#[derive(Clone, Debug)]
pub struct Subflow {
    labels: Labels,
    next: u16,
}

impl Scheme for Subflow {
    type Config = SubflowConfig;

    const STATE_BYTES: usize = size_of::<Ev>() + size_of::<u16>();

    //= docs/specs/subflow.md#SUB-1 labels
    fn make(own: &SubflowConfig, path: &Path, rng: &mut Rng) -> Self {
        Self { labels: Labels::new(path, own.subflows, rng), next: 0 }
    }
}

//= docs/specs/subflow.md#SUB-3 no feedback
impl Balancer for Subflow {
    //= docs/specs/subflow.md#SUB-2 labels in turn
    fn next_ev(&mut self, _now: Now<'_>, _packet: &SendInfo, _rng: &mut Rng) -> Ev {
        let label = self.next;
        self.next = self.labels.after(label);
        self.labels.ev(label)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::rng::stream;
    use crate::tests::path_of;

    #[test]
    fn labels_are_distinct_and_constant_and_take_turns() {
        //= docs/specs/subflow.md#SUB-1 labels
        //= docs/specs/subflow.md#SUB-2 labels in turn
        //= docs/specs/subflow.md#SUB-3 no feedback
        for (evs, subflows, distinct) in [(65_535, 4, 4), (256, 8, 8), (3, 8, 3), (1, 8, 1)] {
            let own = SubflowConfig { subflows };
            let path = Path { evs, seed: Some(7), ..path_of(8_000_000, 10) };
            let mut rng = stream(1, 1);
            let mut balancer = Subflow::make(&own, &path, &mut rng);
            let mut send = || balancer.next_ev(path.at_ps(0), &SendInfo::default(), &mut rng);
            let first: Vec<_> = (0..distinct).map(|_| send()).collect();
            let mut sorted = first.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), distinct);
            assert!((0..5).all(|_| (0..distinct).all(|label| send() == first[label])));
            let mut again = Subflow::make(&own, &path, &mut stream(2, 2));
            assert_eq!(again.next_ev(path.at_ps(0), &SendInfo::default(), &mut rng), first[0], "only the seed decides");
        }
    }
}
