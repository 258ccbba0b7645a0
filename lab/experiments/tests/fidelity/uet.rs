//! The rows of Ultra Ethernet's simulator. `tests/reference/README.md` describes how its results
//! were obtained.

use spray_core::cc::CcKind;
use spray_core::link::PS_PER_S;
use spray_core::path::{BalancerKind, RepsRule};
use spray_core::units::{ByteSize, Micros};

use spray_experiments::scenario::{MarkAt, QueueLength, Scenario};
use spray_fabric::LinkAction;

use super::Reference;
use super::rows::{Flows, Row};

/// Ultra Ethernet's public simulator.
pub(super) static UET: Reference = Reference {
    head: HEAD,
    table: include_str!("../../../../tests/reference/uet_expected.csv"),
    rows: &ROWS,
    strict: &[BalancerKind::Ops, BalancerKind::Bitmap, BalancerKind::Reps, BalancerKind::Mixed],
    settings,
};

/// The text of the document before the table.
const HEAD: &str = "
## Ultra Ethernet's simulator

The reference is `htsim_uec`, published by Ultra Ethernet's congestion management group. Its results are in
`tests/reference/uet_expected.csv`, with six seeds (three of 1,024 hosts, twelve with slow links), and `tests/reference/README.md` has the command lines. `nscc` is its
sender-based control, `rccc` its receiver-based control, which is our `eqds`, and `both` the combination, our `nscc-eqds`; its `oblivious` is our `ops`, and we run `reps` with
`rule = \"ultra-ethernet\"`.
`2t` and `3t` are fabrics of two and three tiers, `tapered` has leaves with four times the capacity below as above. In `slow` all cables of one of eight
spines have a quarter of their rate, or all links from the cores to one aggregation switch. `ack4` acknowledges every 16 KiB, ours every four packets.
All else is acknowledged packet by packet.

Ours uses its sizes: 64 entropy values, packets of 4,150 bytes of which 64 are header, queues of one BDP in whole packets that mark between 20 % and
80 % of that, as a packet leaves; a target delay of three quarters of the longest base round-trip time for all pairs; a timeout of 15 us and six queues;
with credit an initial window and requests of 1.5 BDP, and pulls of 16 KiB. The last port of a path trims with a separate DSCP.

The tolerance is 3 % of the mean and 6 % of the largest for all four balancers. These differences of the models are known. Its `oblivious` uses
entropy values in turn, in an order that is redrawn every 64 packets; `ops` draws each. With equal probability their full queue trims the arriving packet or the
last queued one; ours trims the arriving one. With credit its switches do not mark packets to a host. Its senders measure their base round-trip time; in ours
it is configured.
";

const fn row(scenario: &'static str, topology: &'static str, matrix: Flows) -> Row {
    Row {
        scenario,
        topology,
        matrix,
        evs: 64,
        ack_every: 1,
        cc: CcKind::Nscc,
        links: None,
        few: false,
        makespan: false,
        small: false,
        explained: &[],
        choosers: &[
            Some(BalancerKind::Ops),
            Some(BalancerKind::Bitmap),
            Some(BalancerKind::Reps),
            Some(BalancerKind::Mixed),
        ],
    }
}

/// Returns the same row with another congestion control.
const fn under(cc: CcKind, row: Row, scenario: &'static str) -> Row {
    Row { scenario, cc, ..row }
}

const LEAF_SPINE_32: &str = include_str!("../../../../tests/reference/leafspine_32_100g.topo");
const LEAF_SPINE: &str = include_str!("../../../../tests/reference/leafspine_128_100g.topo");
const TAPERED: &str = include_str!("../../../../tests/reference/leafspine_128_100g_tapered.topo");
const FAT_TREE: &str = include_str!("../../../../tests/reference/fattree_128_100g.topo");
const FAT_TREE_1024: &str = include_str!("../../../../tests/reference/fattree_1024_100g.topo");
const PERM: Flows = Flows::File(include_str!("../../../../tests/reference/perm_n128_s2097152.cm"));
const PERM_1024: Flows =
    Flows::Made(|| flows(1_024, 2 << 20, (0..1_024).map(|from| (from, (389 * from + 517) % 1_024))));
const INCAST_16: Flows = Flows::Made(|| incast(16));
const INCAST_32: Flows = Flows::Made(|| incast(32));
const ALL_TO_ALL: Flows =
    Flows::Made(|| flows(32, 64 << 10, (0..32 * 31).map(|flow| (flow / 31, (flow / 31 + flow % 31 + 1) % 32))));
const QUARTER: LinkAction = LinkAction::Rate { ppm: 250_000 };

const TWO: Row = Row { small: true, ..row("nscc-perm128-2t", LEAF_SPINE, PERM) };
const THREE: Row = row("nscc-perm128-3t", FAT_TREE, PERM);
const BOTTOM: Row = row("nscc-perm128-tapered", TAPERED, PERM);
const LARGE: Row = row("nscc-perm1024-3t", FAT_TREE_1024, PERM_1024);
const SLOW_TWO: Row = Row { links: Some(("spine0", QUARTER)), ..row("nscc-perm128-2t-slow", LEAF_SPINE, PERM) };
const SLOW_THREE: Row = Row { links: Some(("core*->agg0", QUARTER)), ..row("nscc-perm128-3t-slow", FAT_TREE, PERM) };
const TO_ONE_16: Row = Row { small: true, ..row("nscc-incast16-2t", LEAF_SPINE, INCAST_16) };
const TO_ONE_32: Row = row("nscc-incast32-2t", LEAF_SPINE, INCAST_32);
const TO_ONE_16_OF_THREE: Row = row("nscc-incast16-3t", FAT_TREE, INCAST_16);
const TO_ONE_32_OF_THREE: Row = row("nscc-incast32-3t", FAT_TREE, INCAST_32);
const ALL: Row = Row { small: true, ..row("nscc-all-to-all32", LEAF_SPINE_32, ALL_TO_ALL) };

static ROWS: [Row; 34] = [
    TWO,
    BOTTOM,
    THREE,
    LARGE,
    SLOW_TWO,
    SLOW_THREE,
    TO_ONE_16,
    TO_ONE_32,
    TO_ONE_16_OF_THREE,
    TO_ONE_32_OF_THREE,
    ALL,
    Row { scenario: "nscc-perm128-2t-ack4", ack_every: 4, small: false, explained: ASKED_FOR, ..TWO },
    Row { scenario: "nscc-perm128-3t-ack4", ack_every: 4, explained: ASKED_FOR, ..THREE },
    under(CcKind::Eqds, TWO, "rccc-perm128-2t"),
    under(CcKind::Eqds, BOTTOM, "rccc-perm128-tapered"),
    under(CcKind::Eqds, THREE, "rccc-perm128-3t"),
    under(CcKind::Eqds, LARGE, "rccc-perm1024-3t"),
    under(CcKind::Eqds, SLOW_TWO, "rccc-perm128-2t-slow"),
    under(CcKind::Eqds, SLOW_THREE, "rccc-perm128-3t-slow"),
    under(CcKind::Eqds, TO_ONE_16, "rccc-incast16-2t"),
    under(CcKind::Eqds, TO_ONE_32, "rccc-incast32-2t"),
    under(CcKind::Eqds, TO_ONE_16_OF_THREE, "rccc-incast16-3t"),
    under(CcKind::Eqds, TO_ONE_32_OF_THREE, "rccc-incast32-3t"),
    Row { explained: SHARED_REQUESTS, ..under(CcKind::Eqds, ALL, "rccc-all-to-all32") },
    under(CcKind::NsccEqds, TWO, "both-perm128-2t"),
    under(CcKind::NsccEqds, BOTTOM, "both-perm128-tapered"),
    under(CcKind::NsccEqds, THREE, "both-perm128-3t"),
    under(CcKind::NsccEqds, SLOW_TWO, "both-perm128-2t-slow"),
    under(CcKind::NsccEqds, SLOW_THREE, "both-perm128-3t-slow"),
    under(CcKind::NsccEqds, TO_ONE_16, "both-incast16-2t"),
    under(CcKind::NsccEqds, TO_ONE_32, "both-incast32-2t"),
    under(CcKind::NsccEqds, TO_ONE_16_OF_THREE, "both-incast16-3t"),
    under(CcKind::NsccEqds, TO_ONE_32_OF_THREE, "both-incast32-3t"),
    Row { explained: SHARED_REQUESTS, ..under(CcKind::NsccEqds, ALL, "both-all-to-all32") },
];

/// The reason why an ACK per four packets differs.
const ASKED_FOR: &[(BalancerKind, &str)] = &[(BalancerKind::Ops, ASKED), (BalancerKind::Reps, ASKED)];

const ASKED: &str = "\
Its sender requests an acknowledgement with every packet that fills its window; ours does not. With that removed \
from its source, its largest completion times under `ops` and `reps` are 274 and 245 us on two tiers, and 288 and 261 us on \
three (four seeds): ours are within 2 % of these";

/// The reason why an all-to-all with credit differs.
const SHARED_REQUESTS: &[(BalancerKind, &str)] = &[
    (BalancerKind::Ops, SHARED),
    (BalancerKind::Bitmap, SHARED),
    (BalancerKind::Reps, SHARED),
    (BalancerKind::Mixed, SHARED),
];

const SHARED: &str = "\
Its sender divides the credit that a flow requests by the number of its flows with data to send. A flow whose \
last request was too small waits until its receiver has served all others and grants unrequested credit. With \
the division removed from its source, the mean is 166 us and the largest 186 to 199 us (three seeds); our mean then lies 3 % \
above, our largest within 2 %";

/// Applies the settings of its command lines.
fn settings(scenario: &mut Scenario) {
    let rtt_ps = scenario.base_rtt_ps(&scenario.paths());
    let (rate_bps, packet_bytes) = (scenario.network.links[0].rate_bps, u64::from(scenario.packet_bytes()));
    let bdp_bytes = rate_bps / 8 * rtt_ps / PS_PER_S;
    let bdp_packets = bdp_bytes.div_ceil(packet_bytes);
    let share = |percent: u64| QueueLength::Packets((bdp_packets * percent).div_ceil(100) as f64);
    let queue = &mut scenario.queue;
    (queue.limit, queue.mark_min, queue.mark_max) = (share(100), share(20), share(80));
    queue.mark_at = MarkAt::Departure;
    queue.trim_dscps = 2;
    let transport = &mut scenario.transport;
    let drain_ps = bdp_packets * packet_bytes * 8 * PS_PER_S / rate_bps;
    transport.rto_min_us = Some(Micros::from_ps(15_000_000 + 6 * drain_ps));
    transport.schemes.reps.rule = RepsRule::UltraEthernet;
    transport.cc_schemes.nscc.target_delay_us = Some(Micros::from_ps(rtt_ps * 3 / 4));
    let eqds = &mut transport.cc_schemes.eqds;
    eqds.pull_bytes = Some(ByteSize::new(16 << 10));
    eqds.speculative_bytes = Some(ByteSize::new(bdp_bytes * 3 / 2));
    eqds.request_bytes = eqds.speculative_bytes;
}

/// Returns an incast of 1 MiB to the first host from `senders` of the 128 hosts, evenly spread.
fn incast(senders: usize) -> String {
    flows(128, 1 << 20, (0..senders).map(|sender| (sender * 128 / senders + 1, 0)))
}

/// Returns a matrix of flows of `bytes` each that start at the same time.
fn flows(hosts: usize, bytes: u64, pairs: impl ExactSizeIterator<Item = (usize, usize)>) -> String {
    let head = format!("Nodes {hosts}\nConnections {}\n", pairs.len());
    let line = |(id, (from, to)): (usize, (usize, usize))| format!("{from}->{to} id {} start 0 size {bytes}\n", id + 1);
    head + &pairs.enumerate().map(line).collect::<String>()
}
