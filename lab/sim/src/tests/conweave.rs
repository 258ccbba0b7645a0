//! ConWeave with flows that hash to the same links: effects of its switches on the hosts.

use rand_core::RngCore;
use spray_core::rng::stream;

use super::*;
use spray_fabric::{FatTree, Scheme, Switching, conweave, reunion};

const HOLDING: [Scheme; 2] = [Scheme::ConWeave, Scheme::ReunionConWeave];

fn switching(scheme: Scheme, conweave: conweave::Settings) -> Switching {
    let reunion = reunion::Settings { interval_ps: 20 * US, timeout_ps: 100 * US, ..reunion::Settings::default() };
    Switching { reunion, conweave, flowlet_gap_ps: US, ..Switching::all(scheme) }
}

fn reordered(outcome: &SimOutcome) -> u64 {
    outcome.flows.iter().map(|flow| flow.receiver.order.reordered).sum()
}

fn delivered(outcome: &SimOutcome) -> bool {
    outcome.flows.iter().all(|flow| flow.received_ps.is_some() && flow.given_up_ps.is_none())
}

/// Random flows in a random network of two or three tiers with some slow links.
struct Case {
    network: Network,
    events: Vec<LinkEvent>,
    flows: Vec<FlowSpec>,
    lossless: bool,
    seed: u64,
}

impl Case {
    fn new(scheme: Scheme, settings: conweave::Settings, seed: u64) -> Self {
        let mut rng = stream(seed, 1);
        let mut below = |bound: u64| rng.next_u64() % bound;
        let mut network = if below(3) == 0 {
            FatTree::uniform([4, 2, 2, 4, 2], BPS, US).network()
        } else {
            leaf_spine(2 + below(3) as usize, 2 + below(4) as usize, 1 + below(4) as usize)
        };
        network.switching = switching(scheme, settings);
        let hosts = network.hosts.len() as u64;
        let one = |_| {
            let src = below(hosts);
            let dst = (src + 1 + below(hosts - 1)) % hosts;
            let (bytes, at_ps) = (1 + below(400) * PAYLOAD, below(200) * US);
            FlowSpec {
                path_seed: Some(below(1 << 40)),
                start: Start::At(at_ps),
                ..flow(src as usize, dst as usize, bytes)
            }
        };
        let flows = (0..3 * hosts).map(one).collect();
        let links: Vec<usize> = (0..network.links.len()).filter(|link| network.links[*link].is_uplink()).collect();
        let slow = |_| LinkEvent {
            name: String::new(),
            links: vec![links[below(links.len() as u64) as usize]],
            at_ps: below(100) * US,
            until_ps: None,
            action: LinkAction::Rate { ppm: 100_000 + below(800_000) as u32 },
        };
        let events = (0..2).map(slow).collect();
        Self { network, events, flows, lossless: true, seed }
    }

    fn run(&self) -> SimOutcome {
        let lossless = |bps| Thresholds { limit_bytes: 150_000, trim: false, ..queue(bps) };
        let queue: &(dyn Fn(u64) -> Thresholds + Sync) = if self.lossless { &lossless } else { &queue };
        let config = |_| {
            let late = RtoConfig { initial_ps: 5_000 * US, min_ps: 5_000 * US, max_ps: 50_000 * US };
            let rto = if self.lossless { late } else { flow_config(BalancerKind::Ecmp).rto };
            FlowConfig { rto, ..flow_config(BalancerKind::Ecmp) }
        };
        let pfc = self.lossless.then_some(Pfc { frame_bytes: 4_150, headroom_bytes: None });
        let spec = spec(&self.network, &self.flows, &config);
        simulate(&SimSpec { events: &self.events, queue, pfc, seed: self.seed, ..spec }, 1).unwrap()
    }
}

/// Returns the switches' counter of this name.
fn count(outcome: &SimOutcome, name: &str) -> u64 {
    outcome.scheme_counters.get(&format!("conweave_{name}")).unwrap()
}

#[test]
fn packets_keep_their_order_unless_a_tail_times_out() {
    //= docs/specs/conweave.md#CWV-22 order
    let (mut rerouted, mut held, mut clean) = (0, 0, 0);
    for seed in 1..=RUNS {
        let settings = conweave::Settings {
            // A short deadline, so that much is rerouted.
            reply_extra_ps: [US / 10, US, 4 * US][(seed % 3) as usize],
            inactive_ps: 2_000 * US,
            resume_extra_ps: [16, 64, 500][(seed / 3 % 3) as usize] * US,
            ..conweave::Settings::default()
        };
        let case = Case::new(HOLDING[(seed % 2) as usize], settings, seed);
        let outcome = case.run();
        assert!(delivered(&outcome), "seed {seed}: a flow did not end");
        assert_eq!(outcome.frames_dropped, 0, "seed {seed}");
        let reasons = ["timeouts", "no_queue", "no_memory", "no_entry"];
        if reasons.into_iter().all(|key| count(&outcome, key) == 0) {
            assert_eq!(reordered(&outcome), 0, "seed {seed}: {:?}", outcome.scheme_counters);
            clean += 1;
        }
        rerouted += count(&outcome, "rerouted");
        held += count(&outcome, "held");
    }
    assert!(clean > RUNS / 2, "{clean} of {RUNS} runs without a timeout");
    assert!(rerouted > 10 * RUNS && held > 100 * RUNS, "{rerouted} flows rerouted, {held} packets held");
}

const RUNS: u64 = 60;

#[test]
fn without_queues_or_memory_packets_overtake_but_arrive() {
    //= docs/specs/conweave.md#CWV-13 reordering queues
    let base = conweave::Settings { reply_extra_ps: US / 10, ..conweave::Settings::default() };
    let scarce = [
        ("no_queue", conweave::Settings { queues: 1, ..base }),
        ("no_memory", conweave::Settings { held_bytes: 20_000, ..base }),
        ("timeouts", conweave::Settings { resume_extra_ps: 1, resume_default_ps: 1, ..base }),
    ];
    for (reason, settings) in scarce {
        let mut sum = 0;
        for seed in 1..=12 {
            let outcome = Case::new(Scheme::ConWeave, settings, seed).run();
            assert!(delivered(&outcome), "seed {seed}: a flow did not end");
            assert!(
                count(&outcome, "held_bytes") <= settings.held_bytes + 4_150,
                "{reason}: {:?}",
                outcome.scheme_counters
            );
            sum += count(&outcome, reason);
        }
        assert!(sum > 0, "{reason}");
    }
}

//= docs/specs/conweave.md#CWV-12 may be lost like any other
#[test]
fn the_wait_for_lost_tails_is_bounded() {
    //= docs/specs/conweave.md#CWV-16 a lost TAIL
    let (mut timeouts, mut held) = (0, 0);
    for seed in 1..=12 {
        let settings = conweave::Settings { reply_extra_ps: US / 10, ..conweave::Settings::default() };
        let mut case = Case { lossless: false, ..Case::new(HOLDING[(seed % 2) as usize], settings, seed) };
        case.events.iter_mut().for_each(|event| event.action = LinkAction::Loss { ppm: 100_000 });
        let outcome = case.run();
        assert!(delivered(&outcome), "seed {seed}: a flow did not end");
        timeouts += count(&outcome, "timeouts");
        held += count(&outcome, "held");
        assert_eq!(case.run(), outcome, "a second run is the same");
    }
    assert!(timeouts > 0 && held > 0, "{timeouts} queues timed out, {held} packets held");
}

/// Flows from each host to that `step` further on; returns the end of the last, and the switches'
/// counters.
fn ring(network: &Network, scheme: Scheme, step: usize, seed: u64) -> (u64, SimOutcome) {
    let mut network = network.clone();
    network.switching = switching(scheme, conweave::Settings::default());
    let hosts = network.hosts.len();
    let flows: Vec<_> = (0..hosts)
        .map(|src| FlowSpec { path_seed: Some(seed * 100 + src as u64), ..flow(src, (src + step) % hosts, 24_000_000) })
        .collect();
    let case = Case { network, events: vec![], flows, lossless: true, seed };
    let outcome = case.run();
    (outcome.flows.iter().filter_map(|flow| flow.received_ps).max().unwrap_or(0) / US, outcome)
}

#[test]
fn rings_complete_earlier() {
    //= docs/specs/conweave.md#CWV-6 a late reply
    for (network, least) in [(leaf_spine(4, 4, 4), 90), (FatTree::uniform([4, 2, 2, 4, 2], BPS, US).network(), 97)] {
        let sum = |scheme| (1..=4).map(|seed| ring(&network, scheme, 4, seed).0).sum::<u64>();
        let (ecmp, conweave) = (sum(Scheme::Ecmp), HOLDING.map(sum));
        assert!(conweave.iter().all(|us| us * 100 < ecmp * least), "{ecmp} us with ECMP, {conweave:?} with ConWeave");
    }
}
