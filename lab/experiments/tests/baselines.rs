//! The relative performance of the baselines of REPS §4.1, in the simulator with the published
//! settings: 32 hosts at 400 Gb/s, a permutation of 8 MiB each. Times are whole nanoseconds, summed
//! over the seeds.

use spray_core::path::BalancerKind::{self, Bitmap, Ecmp, Flowcell, Flowlet, Mprdma, Ops, Plb, Reps};
use spray_core::path::{FlowletClock, PlbRule, Schemes};
use spray_core::units::ByteSize;
use spray_experiments::scenario::Scenario;
use spray_experiments::sim::{FctEnd, Simulation, reference};
use spray_experiments::workload::{Pattern, parse_matrix};
use spray_fabric::{LinkAction, LinkEvent, TopoFile};

const FABRIC: &str = include_str!("../../../tests/reference/leafspine_32_400g.topo");
const MATRIX: &str = include_str!("../../../tests/reference/perm_n32_s4194304.cm");

fn permutation(change: impl FnOnce(&mut Schemes)) -> Scenario {
    let matrix = parse_matrix(&MATRIX.replace("4194304", "8388608"), 32).unwrap();
    let network = TopoFile::parse(FABRIC).unwrap().network();
    let mut scenario = reference("baselines", network, Pattern::Matrix(matrix));
    scenario.simulation.fct_end = FctEnd::Acked;
    change(&mut scenario.transport.schemes);
    scenario
}

/// One uplink that is down from the start in one direction, without trimming; the bitmap has the
/// authors' number of entropy values.
fn one_dead_cable() -> Scenario {
    let mut scenario = permutation(|_| {});
    scenario.transport.evs = Some(256);
    scenario.queue.trimming = false;
    let (name, action) = ("leaf0->spine0", LinkAction::SilentDrop);
    let links = scenario.network.links_named(name).unwrap();
    scenario.link_events.push(LinkEvent { name: name.into(), links, at_ps: 0, until_ps: None, action });
    scenario
}

#[derive(Clone, Copy, Debug)]
struct Figures {
    mean: u64,
    max: u64,
    reordered: u64,
}

fn run(scenario: &Scenario, balancer: BalancerKind) -> Figures {
    over(4, scenario, balancer)
}

/// As [`run`], over this number of seeds.
fn over(seeds: u64, scenario: &Scenario, balancer: BalancerKind) -> Figures {
    let mut figures = Figures { mean: 0, max: 0, reordered: 0 };
    for seed in 1..=seeds {
        let flows = Simulation::new(scenario).run(balancer, seed, &[]).unwrap().flows;
        let times: Vec<u64> =
            flows.iter().map(|flow| (flow.fct_us.expect("a complete flow") * 1e3).round() as u64).collect();
        figures.mean += times.iter().sum::<u64>() / times.len() as u64;
        figures.max += times.iter().max().unwrap();
        figures.reordered += flows.iter().map(|flow| flow.receiver.order.reordered).sum::<u64>();
    }
    println!("{balancer}: {figures:?}");
    figures
}

/// Published maximum completion times in us: REPS 202.9, bitmap 389.9, PLB 645.4, flowlets 741.6,
/// OPS 9,265.8. The maxima of PLB and of flowlets vary more between seeds than they differ.
#[test]
fn one_dead_cable_puts_the_baselines_in_the_published_order() {
    let scenario = one_dead_cable();
    let of = |seeds, balancer| over(seeds, &scenario, balancer).max / seeds;
    let [reps, bitmap, plb, flowlet] = [Reps, Bitmap, Plb, Flowlet].map(|balancer| of(24, balancer));
    // These never leave the failed cable and take so long that four seeds must suffice.
    let [mprdma, ops] = [Mprdma, Ops].map(|balancer| of(4, balancer));
    assert!(reps < bitmap && bitmap < plb.min(flowlet) && 8 * plb.max(flowlet) < ops);
    // Each is within a fifth of the published figure.
    for (found_ns, published_ns) in [(bitmap, 389_900), (plb, 645_400), (flowlet, 741_600)] {
        assert!(found_ns.abs_diff(published_ns) < published_ns / 5, "{found_ns} against {published_ns}");
    }
    // Not published: MPRDMA sprays without reacting to losses, and its reuse of good paths halves
    // the effect that the failure has on `ops`.
    assert!(4 * flowlet < mprdma && mprdma < ops);
}

#[test]
fn a_finer_grain_balances_better_and_reorders_more() {
    let healthy = permutation(|_| {});
    let [ecmp, flowcell, ops] = [Ecmp, Flowcell, Ops].map(|balancer| run(&healthy, balancer));
    let fine = run(&permutation(|of| of.flowcell.cell_bytes = ByteSize::kib(16)), Flowcell);
    assert!(ops.mean < fine.mean && fine.mean < flowcell.mean && flowcell.mean < ecmp.mean);
    assert!(ops.reordered > fine.reordered && fine.reordered > flowcell.reordered && ecmp.reordered == 0);
    let packets = run(&permutation(|of| of.flowlet.clock = FlowletClock::Packets), Flowlet);
    assert!(packets.reordered < flowcell.reordered / 10, "flowlets are rare and far apart");
}

#[test]
fn penalties_help_if_values_are_reused() {
    let with = |evs, balancer| {
        let mut scenario = permutation(|_| {});
        scenario.transport.evs = Some(evs);
        run(&scenario, balancer)
    };
    let (bitmap, ops) = (with(32, Bitmap), with(32, Ops));
    assert!(bitmap.mean * 100 < ops.mean * 95, "{bitmap:?} against {ops:?}");
    let (bitmap, ops) = (with(65_535, Bitmap), with(65_535, Ops));
    assert!(bitmap.mean.abs_diff(ops.mean) * 100 < ops.mean * 2, "{bitmap:?} against {ops:?}");
}

#[test]
fn plb_repaths_in_every_variant_but_that_of_linux_too_late_for_short_messages() {
    let ecmp = run(&permutation(|_| {}), Ecmp);
    let [reps, ofan, linux] =
        [PlbRule::Reps, PlbRule::Ofan, PlbRule::Linux].map(|rule| run(&permutation(|of| of.plb.rule = rule), Plb));
    assert_eq!((linux.mean, linux.max, linux.reordered), (ecmp.mean, ecmp.max, 0));
    assert!(reps.max * 10 < ecmp.max * 9 && ofan.max * 10 < ecmp.max * 9, "{reps:?} and {ofan:?} against {ecmp:?}");
}
