//! Algorithms of another crate behave like those of this one.

use std::boxed::Box;

use super::pair::{Channel, Pair};
use super::*;
use crate::cc::{self, CustomCc, Nscc, NsccConfig};
use crate::path::{self, CustomBalancer, RepsPlus, RepsPlusConfig};

#[test]
fn algorithms_of_another_crate_behave_alike() {
    let own_balancer = CustomBalancer {
        name: "ours",
        make: &|path, rng| Box::new(<RepsPlus as path::Scheme>::make(&RepsPlusConfig::default(), path, rng)),
    };
    let own_cc =
        CustomCc { name: "ours", make: &|path| Box::new(<Nscc as cc::Scheme>::make(&NsccConfig::default(), path)) };
    let ours = FlowConfig { balancer: BalancerKind::RepsPlus.into(), cc: CcKind::Nscc.into(), ..config() };
    let theirs = FlowConfig { balancer: own_balancer.into(), cc: own_cc.into(), ..config() };
    for learns_path in [false, true] {
        let ends = [ours, theirs].map(|config| {
            let config = if learns_path { config.learning() } else { config };
            let channel = Channel { loss: 20, mark: 100, jitter_ps: 5 * US, ..Channel::default() };
            let mut pair = Pair::new(config, channel, &[400_000, 0, 7_000], 3);
            pair.run().unwrap();
            (pair.now, *pair.sender.stats(), *pair.sender.limits())
        });
        assert!(ends[0].1.retransmits > 0 && ends[0].1.marked_acks > 0, "{:?}", ends[0]);
        assert_eq!(ends[0], ends[1], "learning: {learns_path}");
    }
}
