//! `reps-plus` against REPS in whole fabrics: ahead where REPS is weak, level elsewhere. Figures are sums over three seeds.

use spray_core::cc::{ControlConfig, DctcpConfig};

use super::*;

/// What is wrong with the fabric, or coarse about the transport.
#[derive(Clone, Copy)]
struct Row {
    ack_every: u32,
    ack_evs: u32,
    evs: u32,
    loss_ppm: u32,
    dead: bool,
    slow: bool,
    trim: bool,
}

const HEALTHY: Row = Row { ack_every: 1, ack_evs: 1, evs: 65_535, loss_ppm: 0, dead: false, slow: false, trim: true };

/// Sum of the flows' completion times in us over three seeds, of a permutation among 64 hosts on 8 leaves and 8 spines.
fn fct_us(row: Row, balancer: BalancerKind) -> u64 {
    // REPS's weaknesses show in flows of many round trips.
    let network = leaf_spine(8, 8, 8);
    // 13 is prime to 64: a permutation; 27 sends nobody to himself.
    let flows: Vec<_> = (0..64).map(|src| flow(src, (13 * src + 27) % 64, 2_000 * PAYLOAD)).collect();
    let links = |name: &str| network.links_named(name).unwrap();
    let event =
        |name: &str, action| LinkEvent { name: name.into(), links: links(name), at_ps: 0, until_ps: None, action };
    let mut events = Vec::new();
    if row.loss_ppm > 0 {
        let lossy = (0..64).map(|host| format!("leaf{}->h{host}", host / 8));
        events.extend(lossy.map(|name| event(&name, LinkAction::Loss { ppm: row.loss_ppm })));
    }
    if row.dead {
        events.push(event("leaf0-spine0", LinkAction::SilentDrop));
    }
    if row.slow {
        events.push(event("leaf0->spine0", LinkAction::Rate { ppm: 500_000 }));
    }
    let config = |_, _| {
        let mut config = flow_config(balancer);
        config.path.evs = row.evs;
        config.path.trimming = row.trim;
        // As in the published simulations.
        config.ack_marked = true;
        config.cc.control = ControlConfig::Dctcp(DctcpConfig { marked_by_trigger: true });
        FlowConfig { ack_every: row.ack_every, ack_evs: row.ack_evs, ack_delay_ps: 2 * US, ..config }
    };
    let run = |seed| {
        let spec = SimSpec {
            network: &network,
            events: &events,
            queue: &|rate| Thresholds { trim: row.trim, ..queue(rate) },
            flows: &flows,
            triggers: &[],
            flow_config: &config,
            ideal_code: false,
            frames: FrameBytes::all(64),
            seed,
            until_ps: 60_000 * US,
            sample_ps: 0,
        };
        let outcome = simulate(&spec).unwrap();
        outcome.flows.iter().map(|flow| flow.acked_ps.unwrap() / US).sum::<u64>()
    };
    (1..=3).map(run).sum()
}

fn both(row: Row) -> (u64, u64) {
    (fct_us(row, BalancerKind::RepsPlus), fct_us(row, BalancerKind::Reps))
}

//= docs/specs/reps-plus.md#RPP-13 A loss despite freezing
//= docs/specs/reps-plus.md#RPP-14 immunity
#[test]
fn it_is_ahead_under_random_loss() {
    for trim in [true, false] {
        let row = Row { loss_ppm: 10_000, trim, ..HEALTHY };
        let (plus, reps) = both(row);
        assert!(plus * 100 < reps * 96, "{plus} us against {reps} us");
        let ops = fct_us(row, BalancerKind::Ops);
        assert!(
            plus * 100 < ops * 102,
            "{plus} us against {ops} us: what is left is the retransmission timer's and the window's"
        );
    }
}

//= docs/specs/reps-plus.md#RPP-3 how many candidates count
#[test]
fn it_is_ahead_under_coarse_acks() {
    for ack_every in [8, 16] {
        let (plus, reps) = both(Row { ack_every, ..HEALTHY });
        assert!(plus * 100 < reps * 98, "{ack_every}: {plus} us against {reps} us");
    }
}

//= docs/specs/reps-plus.md#RPP-8 even exploring
#[test]
fn it_is_ahead_on_few_entropy_values() {
    let (plus, reps) = both(Row { evs: 32, ..HEALTHY });
    assert!(plus < reps, "{plus} us against {reps} us");
    let (plus, reps) = both(Row { evs: 32, ack_every: 8, ..HEALTHY });
    assert!(plus * 100 < reps * 90, "{plus} us against {reps} us");
}

#[test]
fn it_is_not_behind_elsewhere() {
    let rows = [
        HEALTHY,
        Row { slow: true, ..HEALTHY },
        Row { dead: true, ..HEALTHY },
        Row { dead: true, trim: false, ..HEALTHY },
        Row { ack_every: 8, dead: true, trim: false, ..HEALTHY },
    ];
    for (index, row) in rows.into_iter().enumerate() {
        let (plus, reps) = both(row);
        assert!(plus * 100 <= reps * 101, "row {index}: {plus} us against {reps} us");
    }
}

/// ACKs that carry the entropy values of all packets give REPS back what coarse ones take.
//= docs/specs/reps.md#REPS-4a several EVs in an ACK
#[test]
fn several_entropy_values_in_an_ack_feed_reps() {
    let coarse = Row { ack_every: 8, ..HEALTHY };
    let one = fct_us(coarse, BalancerKind::Reps);
    let eight = fct_us(Row { ack_evs: 8, ..coarse }, BalancerKind::Reps);
    assert!(eight * 100 < one * 98, "{eight} us against {one} us");
    let plus = fct_us(coarse, BalancerKind::RepsPlus);
    assert!(plus * 100 < eight * 101, "with one each: {plus} us against {eight} us");
}
