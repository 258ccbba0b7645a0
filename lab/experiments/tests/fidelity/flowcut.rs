//! Flowcut compared with its paper's fat-tree simulator: `tests/reference/flowcut_expected.csv`.

use rand_core::RngCore;
use spray_core::cc::CcKind;
use spray_core::path::{BalancerKind, FlowcutRule};
use spray_core::rng::stream;
use spray_core::units::{ByteSize, Ratio};
use spray_experiments::scenario::{QueueLength, Scenario};
use spray_experiments::sim::{FctEnd, reference};
use spray_experiments::workload::{FlowTemplate, Pattern, parse_matrix};
use spray_fabric::{LinkAction, LinkEvent, Network, Node, TopoFile};

use super::{Figures, average, runs};

const EXPECTED: &str = include_str!("../../../../tests/reference/flowcut_expected.csv");
const TOPOLOGY: &str = include_str!("../../../../tests/reference/fattree_128_200g.topo");
const MATRIX: &str = include_str!("../../../../tests/reference/perm_n128_s2097152.cm");

/// The window of the reference's runs in packets: its set-up replaces the configured 2,500,000
/// bytes by 1.2 bandwidth-delay products (390,240 bytes of 4,096 byte packets) before a flow
/// starts.
const REAL_PACKETS: u64 = 96;

/// 13.008 us at 200 Gb/s.
const BDP_BYTES: u64 = 325_200;

/// Payload of packets, as in the reference: 4,096 bytes, with a header of 64.
const PAYLOAD_BYTES: u32 = 4_096;
const HEADER_BYTES: u32 = 64;

/// Rate of the cable between a host and the switch that models the queue of its link: the maximum.
const INNER_BPS: u64 = 1_000_000_000_000;

/// Returns a row of the reference. `ratio` is the setting `rtt_ratio`; `None` runs `ecmp` instead
/// of Flowcut.
fn scenario(ratio: Option<u64>, rule: FlowcutRule) -> Scenario {
    let network = TopoFile::parse(TOPOLOGY).unwrap().network();
    let matrix = parse_matrix(MATRIX, network.hosts.len()).unwrap();
    let mut scenario = lossless(with_link_queues(&network), Pattern::Matrix(matrix));
    let window_bytes = REAL_PACKETS * u64::from(PAYLOAD_BYTES + HEADER_BYTES);
    scenario.transport.cc_schemes.fixed_window.window_bytes = Some(ByteSize::new(window_bytes));
    let flowcut = &mut scenario.transport.schemes.flowcut;
    flowcut.rule = rule;
    flowcut.rtt_ratio = Ratio::permille(1_000 * ratio.unwrap_or(4));
    if rule == FlowcutRule::Paper {
        // The product of the host's link, not that of the faster cable to its queue.
        flowcut.tail_bytes = Some(ByteSize::new(BDP_BYTES));
    }
    scenario
}

/// Runs a permutation of 8 MiB flows on the same fabric as figures 8 and 9 of the paper, with our
/// senders, the paper's rule, a window of 1.5 bandwidth-delay products, and `slow` cables at a
/// tenth of their rate.
pub fn figure(balancer: BalancerKind, slow_cables: usize, seeds: u64) -> Vec<Figures> {
    let network = TopoFile::parse(TOPOLOGY).unwrap().network();
    let each = FlowTemplate { bytes: 8 << 20, start_ps: 0 };
    let mut scenario = lossless(network, Pattern::Permutation(each));
    scenario.transport.cc_schemes.fixed_window.window_bytes = Some(ByteSize::new(BDP_BYTES * 3 / 2));
    let cables: Vec<usize> = between_switches(&scenario.network).collect();
    let slow = |seed: u64| -> Vec<LinkEvent> {
        let mut rng = stream(seed, SLOW_STREAM);
        let mut cable = || cables[(rng.next_u64() % cables.len() as u64) as usize];
        (0..slow_cables).map(|_| slow_cable(&scenario.network, cable())).collect()
    };
    runs(&scenario, balancer, &slow, seeds)
}

/// The random stream that selects slow cables.
const SLOW_STREAM: u64 = 0x510e;

/// Returns the first links of the cables between switches.
fn between_switches(network: &Network) -> impl Iterator<Item = usize> {
    (0..network.links.len()).step_by(2).filter(|link| network.links[*link].is_uplink())
}

fn slow_cable(network: &Network, link: usize) -> LinkEvent {
    LinkEvent {
        name: network.links[link].name.replacen("->", "-", 1),
        links: vec![link, link + 1],
        at_ps: 0,
        until_ps: None,
        action: LinkAction::Rate { ppm: 100_000 },
    }
}

/// Returns `pattern` on `network` with the reference's packet size and queues that never overflow.
fn lossless(network: Network, pattern: Pattern) -> Scenario {
    let mut scenario = reference("flowcut", network, pattern);
    let transport = &mut scenario.transport;
    transport.payload_bytes = PAYLOAD_BYTES;
    transport.window_packets = 1_024;
    transport.cc = CcKind::FixedWindow;
    scenario.queue.limit = QueueLength::Bytes(95_000_000);
    scenario.queue.marking = false;
    scenario.queue.trimming = false;
    let frames = &mut scenario.simulation;
    (frames.header_bytes, frames.control_bytes) = (Some(HEADER_BYTES), Some(HEADER_BYTES));
    frames.fct_end = FctEnd::Acked;
    scenario
}

/// Returns the same fabric with a switch between each host and its link, whose queue holds the
/// packets waiting for the link.
fn with_link_queues(network: &Network) -> Network {
    let mut out = Network::default();
    for host in &network.hosts {
        out.add_host(host.clone());
    }
    for switch in &network.switches {
        out.add_switch(switch.name.clone(), switch.latency_ps);
    }
    for cable in network.links.iter().step_by(2) {
        let (mut from, mut to) = (cable.from, cable.to);
        for end in [&mut from, &mut to] {
            if let Node::Host(host) = *end {
                let queue = out.add_switch(format!("nic{host}"), 0);
                out.add_cable(*end, queue, INNER_BPS, 1);
                *end = queue;
            }
        }
        out.add_cable(from, to, cable.rate_bps, cable.latency_ps);
    }
    out
}

/// Returns the reference's runs with a balancer, by seed.
fn expected(balancer: &str) -> Vec<Figures> {
    let figures = |[mean_us, p99_us, max_us, drain_percent]: [f64; 4]| Figures {
        mean_us,
        p99_us,
        max_us,
        drain_percent,
        ..Figures::default()
    };
    super::expected(EXPECTED, "perm128-2M", balancer).into_iter().map(figures).collect()
}

/// One of the reference's balancers, with its runs and ours by either rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The setting `rtt_ratio`; `None` runs `ecmp` instead of Flowcut.
    pub ratio: Option<u64>,
    /// The reference's runs.
    pub expected: Vec<Figures>,
    /// Our runs with the published rule.
    pub simple: Vec<Figures>,
    /// Our runs with the paper's rule; empty for `ecmp`.
    pub paper: Vec<Figures>,
}

/// Runs every balancer of the reference with seeds from 1 to `seeds`.
pub fn compare(seeds: u64) -> Vec<Comparison> {
    let one = |ratio: Option<u64>| {
        let balancer = if ratio.is_some() { BalancerKind::Flowcut } else { BalancerKind::Ecmp };
        let under = |rule| runs(&scenario(ratio, rule), balancer, &|_| Vec::new(), seeds);
        let paper = if ratio.is_some() { under(FlowcutRule::Paper) } else { Vec::new() };
        Comparison { ratio, expected: expected(&name(ratio)), simple: under(FlowcutRule::Simple), paper }
    };
    [None, Some(2), Some(3), Some(4), Some(6)].map(one).into()
}

impl Comparison {
    /// Returns whether our figures with the published rule match the reference: the mean within 5
    /// %, the maximum within 10 % and the drain share within 4 points; for `ecmp` only the mean.
    /// The paper's rule must be no worse than the published one.
    pub fn holds(&self) -> bool {
        let relative = |of: fn(&Figures) -> f64| (average(&self.simple, of) / average(&self.expected, of) - 1.0).abs();
        let drains = average(&self.simple, |run| run.drain_percent) - average(&self.expected, |run| run.drain_percent);
        let is_ecmp = self.ratio.is_none();
        relative(|run| run.mean_us) <= 0.05
            && (is_ecmp || relative(|run| run.max_us) <= 0.10 && drains.abs() <= 4.0 && self.paper_is_no_worse())
            && self.simple.iter().chain(&self.paper).all(|run| run.reordered == 0)
    }

    fn paper_is_no_worse(&self) -> bool {
        [|run: &Figures| run.mean_us, |run: &Figures| run.max_us]
            .iter()
            .all(|of| average(&self.paper, of) <= average(&self.simple, of))
    }
}

/// Returns the name of a balancer in the reference.
fn name(ratio: Option<u64>) -> String {
    ratio.map_or_else(|| "ecmp".into(), |ratio| format!("flowcut-ratio{ratio}"))
}

/// The text of the document before the table.
const HEAD: &str = "
## Flowcut

The reference is the Flowcut paper's fat-tree simulator (`tests/reference/flowcut_expected.csv`, three seeds). We run ten seeds with
that simulator's rule, and ten with the paper's full rule. The table has mean and largest completion times in us, and the share of its
completion time that a flow spent draining, in per cent. The tolerance is 5 % of the mean, 10 % of the largest and 4 points of the
share. No run reorders a packet.

Two properties of the reference matter. Its command line sets a window of 2,500,000 bytes, but its set-up replaces that by 1.2
bandwidth-delay products, 96 packets, before a flow starts. And its sender hands a whole window to its link at once, so that packets get
their path and their time before they wait at the link: here a switch before each host's link holds the waiting packets.

| balancer | mean: reference | ours | | largest: reference | ours | | drained: reference | ours | \
paper's rule: mean | largest | drained | |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|
";

/// Returns the section of the document.
pub(super) fn section(comparisons: &[Comparison]) -> String {
    let row = |one: &Comparison| {
        let of = |runs: &[Figures], of: fn(&Figures) -> f64, digits: usize| match runs {
            [] => String::new(),
            runs => format!("{:.digits$}", average(runs, of)),
        };
        let mean: fn(&Figures) -> f64 = |run| run.mean_us;
        let max: fn(&Figures) -> f64 = |run| run.max_us;
        let drained = |runs| of(runs, |run| run.drain_percent, 1);
        let against = |figure| {
            let relative = average(&one.simple, figure) / average(&one.expected, figure) - 1.0;
            format!("{} | {} | {:+.1} %", of(&one.expected, figure, 2), of(&one.simple, figure, 2), 100.0 * relative)
        };
        let cells = [
            name(one.ratio),
            against(mean),
            against(max),
            drained(&one.expected),
            drained(&one.simple),
            of(&one.paper, mean, 2),
            of(&one.paper, max, 2),
            drained(&one.paper),
            if one.holds() { "ok" } else { "**outside**" }.into(),
        ];
        format!("| {} |\n", cells.join(" | "))
    };
    HEAD.to_string() + &comparisons.iter().map(row).collect::<String>()
}
