//! The rows of the REPS paper's simulator.

use spray_core::cc::CcKind;
use spray_core::path::BalancerKind;

use spray_experiments::sim::same_for_all_pairs;
use spray_fabric::LinkAction;

use super::rows::{Flows, Row};
use super::{Chooser, Reference};

/// The published simulator of the REPS paper.
pub(super) static REPS: Reference = Reference {
    head: HEAD,
    table: include_str!("../../../../tests/reference/expected.csv"),
    rows: &ROWS,
    strict: &[BalancerKind::Ops, BalancerKind::Reps],
    settings: same_for_all_pairs,
};

/// The text of the document before the table.
const HEAD: &str = "
## The REPS paper's simulator

The results are in `tests/reference/expected.csv`, with three seeds, 24 of `ops` with 32 entropy values. `adaptive-roce` takes the shortest queue at the switches; the file
calls it `switch-ar`. `perm128-failed10` has the reference's dead cables: they are nominally random, but are the first uplink of every \
leaf with any seed.

The tolerance is 3 % of the mean and 6 % of the largest for `ops` and `reps`, 10 % of the mean for the others, and 3 % of the ring's
makespan. Two differences of the models are known. Our queues mark a frame when it arrives, theirs when it leaves (`queue.mark_at = \"departure\"` does
so too: it improves the means of `reps` from within 2.6 % to within 1.1 %, except `ack16to1`, and does not change those of `ops`). In ours a control frame
does not wait for the data frame that is being sent.

Across seeds the standard deviation of the largest completion time of a run is 8 % with 32 entropy values, 3 to 4 % with a slow
uplink and 1 to 3 % otherwise, in either simulator. A mean over three seeds, and our difference from it, is therefore uncertain by 5 % with 32 entropy values.
Over 24 seeds each, on nine permutations of 32 to 128 hosts under leaves and spines that are not among the rows, for which we ran
their program, ours is from 1.3 % below to 2.9 % above theirs with 32 entropy values, 0.8 % above on average.

The queue of a link that is slow from the start is reduced by the same factor, as in theirs (`SW-23`): with a full queue, largest completion times of
2 MiB would be 12 % above theirs.
";

const fn row(scenario: &'static str, topology: &'static str, matrix: &'static str) -> Row {
    Row {
        scenario,
        topology,
        matrix: Flows::File(matrix),
        evs: 65_535,
        ack_every: 1,
        cc: CcKind::Dctcp,
        links: None,
        few: false,
        makespan: false,
        small: false,
        explained: &[],
        choosers: PAPERS,
    }
}

const LEAF_SPINE_32: &str = include_str!("../../../../tests/reference/leafspine_32_400g.topo");
const LEAF_SPINE_128: &str = include_str!("../../../../tests/reference/leafspine_128_400g.topo");
const FAT_TREE_128: &str = include_str!("../../../../tests/reference/fattree_128_400g.topo");
const PERM_32: &str = include_str!("../../../../tests/reference/perm_n32_s4194304.cm");
const PERM_128: &str = include_str!("../../../../tests/reference/perm_n128_s8388608.cm");
const TORNADO_128: &str = include_str!("../../../../tests/reference/tornado_n128_s8388608.cm");
const INCAST: &str = include_str!("../../../../tests/reference/incast_n128_d16_s4194304.cm");
const FOUR: &str = include_str!("../../../../tests/reference/four_n128_s33554432.cm");
const PAPERS: &[Chooser] = &[
    Some(BalancerKind::Ecmp),
    Some(BalancerKind::Ops),
    Some(BalancerKind::Reps),
    Some(BalancerKind::Plb),
    Some(BalancerKind::Mprdma),
    Some(BalancerKind::Bitmap),
    Some(BalancerKind::Flowlet),
    None,
];
const SPRAYERS: &[Chooser] = &[Some(BalancerKind::Ops), Some(BalancerKind::Reps)];

const fn perm(scenario: &'static str) -> Row {
    row(scenario, LEAF_SPINE_128, PERM_128)
}

const fn evs(scenario: &'static str, evs: u32) -> Row {
    Row { evs, choosers: SPRAYERS, ..perm(scenario) }
}

const fn ack(scenario: &'static str, ack_every: u32) -> Row {
    Row { ack_every, choosers: SPRAYERS, ..perm(scenario) }
}

const HALF: LinkAction = LinkAction::Rate { ppm: 500_000 };

static ROWS: [Row; 15] = [
    Row { small: true, ..row("perm32", LEAF_SPINE_32, PERM_32) },
    perm("perm128"),
    row("tornado128", LEAF_SPINE_128, TORNADO_128),
    Row { small: true, ..row("incast16", LEAF_SPINE_128, INCAST) },
    Row { links: Some(("leaf0->spine0", HALF)), ..perm("perm128-slow-uplink") },
    Row { small: true, few: true, explained: FOUR_PATHS, ..row("four3t", FAT_TREE_128, FOUR) },
    Row {
        small: true,
        few: true,
        links: Some(("tor0->agg0", HALF)),
        explained: FOUR_PATHS,
        ..row("four3t-slow-uplink", FAT_TREE_128, FOUR)
    },
    Row { small: true, makespan: true, matrix: Flows::Made(ring_text), ..row("ring32", LEAF_SPINE_32, "") },
    evs("perm128-evs32", 32),
    evs("perm128-evs256", 256),
    ack("perm128-ack2to1", 2),
    ack("perm128-ack4to1", 4),
    Row { explained: &[(BalancerKind::Ops, THREE_RUNS)], ..ack("perm128-ack8to1", 8) },
    Row { explained: &[(BalancerKind::Ops, ACKS), (BalancerKind::Reps, ACKS)], ..ack("perm128-ack16to1", 16) },
    Row {
        small: true,
        links: Some(("leaf*->spine0", LinkAction::SilentDrop)),
        explained: &[(BalancerKind::Ops, PARTS_OF_PACKETS)],
        choosers: SPRAYERS,
        ..perm("perm128-failed10")
    },
];

/// The reason why an ACK per 8 packets differs.
const THREE_RUNS: &str = "\
The reference's three largest completion times under `ops` are 206, 210 and 226 us, so that their mean is uncertain by 6 us, which is 3 %. Ours \
vary by 8 us from run to run, and 24 of them average 226.5 us. The means over all flows agree within 0.5 %";

/// The reason why an ACK per 16 packets differs.
const ACKS: &str = "\
The reference's largest completion time is 254.6 to 255.2 us under either balancer and every seed. Its independence of balancer and seed suggests the retransmission timer: some of its flows seem to wait for a \
timeout of their last packets, 42 us in addition to about 200. We did not reproduce that, so this row is open. \
The known difference is: when the triggering packet is marked, its ACK covers 64 packets from that one on, and \
earlier packets are not acknowledged; ours covers 256 packets and everything that arrived since the last ACK, \
and a complete message is acknowledged at once";

/// The reason why `ops` differs with a loss of one eighth of its packets.
const PARTS_OF_PACKETS: &str = "\
Under `ops`, which loses an eighth of its packets until the end, windows shrink to a few packets. The \
reference's sender sends a packet if any part of it fits its window, ours if the whole packet does. With our \
rule patched into it, the reference takes 2,478 us on average instead of 2,094. Under `reps`, where windows stay \
large, the patch has no effect";

/// The reason why four flows with one path each differ.
const FOUR_PATHS: &[(BalancerKind, &str)] = &[(BalancerKind::Plb, DRAWS), (BalancerKind::Flowlet, DRAWS)];

const DRAWS: &str = "\
With four flows on one path each, means differ widely between runs, of which the reference has three. Our runs \
of its simulator with seeds 1 to 20 give mean completion times of 1,160 us for `plb` in `four3t` and 1,396 us in `four3t-slow-uplink` (single runs from 694 to \
1,478 and from 1,031 to 1,768), and of 1,297 and 1,447 us for `flowlet` (705 to 2,636 and 892 to 1,872). Ours are within 5 % of those, except for `flowlet` with the slow uplink: in two of our twenty runs three or four \
flows use it, which takes over 3,000 us and occurs in none of theirs; the other eighteen average 1,460 us";

/// Returns the matrix of a ring AllReduce of 4 MiB over 32 hosts. Every host sends 62 times 128 KiB
/// to the next host. A flow starts when the previous one is acknowledged.
fn ring_text() -> String {
    let (hosts, steps) = (32, 62);
    let mut text = format!("Nodes {hosts}\nConnections {}\n", hosts * steps);
    let mut triggers = String::new();
    let (mut id, mut trigger) = (0, 0);
    for host in 0..hosts {
        for step in 0..steps {
            id += 1;
            let start = if step == 0 { "start 0".into() } else { format!("trigger {trigger}") };
            text += &format!("{host}->{} id {id} {start} size 131072", (host + 1) % hosts);
            if step + 1 < steps {
                trigger += 1;
                text += &format!(" send_done_trigger {trigger}");
                triggers += &format!("trigger id {trigger} oneshot\n");
            }
            text.push('\n');
        }
    }
    text + &triggers
}
