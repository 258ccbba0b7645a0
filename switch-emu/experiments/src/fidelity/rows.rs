//! The rows of the reference, and how each is run.

use spray_core::path::BalancerKind;

use super::{Chooser, Figures, expected, runs};
use crate::scenario::Scenario;
use crate::sim::published;
use spray_fabric::{LinkAction, LinkEvent, Switching};

const EXPECTED: &str = include_str!("../../../../tests/reference/expected.csv");

/// One scenario of the reference.
#[derive(Debug, PartialEq)]
pub struct Row {
    /// Its name in the reference's file.
    pub scenario: &'static str,
    topology: &'static str,
    /// `None` stands for the ring. Its matrix is long, so this file generates it.
    matrix: Option<&'static str>,
    evs: u32,
    ack_every: u32,
    /// A link at half rate.
    slow: Option<&'static str>,
    /// Whether it has few flows. Single runs then differ widely under `ecmp`.
    pub few: bool,
    /// Whether every leaf's link to the first spine drops all frames from the start, in that direction only: the "random" tenth of the
    /// cables that the reference takes with any seed.
    dead_uplinks: bool,
    /// Whether the makespan is compared instead of completion times.
    pub makespan: bool,
    /// Whether it is small enough for every test run.
    pub small: bool,
    /// Why figures differ from the reference's, by balancer.
    explained: &'static [(BalancerKind, &'static str)],
    choosers: &'static [Chooser],
}

const fn row(scenario: &'static str, topology: &'static str, matrix: &'static str) -> Row {
    Row {
        scenario,
        topology,
        matrix: Some(matrix),
        evs: 65_535,
        ack_every: 1,
        slow: None,
        few: false,
        dead_uplinks: false,
        makespan: false,
        small: false,
        explained: &[],
        choosers: PAPERS,
    }
}

const LEAF_SPINE_32: &str = include_str!("../../../../tests/reference/leafspine_32_400g.topo");
/// Leaves of the next.
const LEAVES_128: usize = 16;
const LEAF_SPINE_128: &str = include_str!("../../../../tests/reference/leafspine_128_400g.topo");
const FAT_TREE_128: &str = include_str!("../../../../tests/reference/fattree_128_400g.topo");
const PERM_32: &str = include_str!("../../../../tests/reference/perm_n32_s4194304.cm");
const PERM_128: &str = include_str!("../../../../tests/reference/perm_n128_s8388608.cm");
const TORNADO_128: &str = include_str!("../../../../tests/reference/tornado_n128_s8388608.cm");
const INCAST: &str = include_str!("../../../../tests/reference/incast_n128_d16_s4194304.cm");
const FOUR: &str = include_str!("../../../../tests/reference/four_n128_s33554432.cm");
const PAPERS: &[Chooser] = &[
    Chooser::Host(BalancerKind::Ecmp),
    Chooser::Host(BalancerKind::Ops),
    Chooser::Host(BalancerKind::Reps),
    Chooser::Host(BalancerKind::Plb),
    Chooser::Host(BalancerKind::Mprdma),
    Chooser::Host(BalancerKind::Bitmap),
    Chooser::Host(BalancerKind::Flowlet),
    Chooser::AdaptiveRoce,
];
const SPRAYERS: &[Chooser] = &[Chooser::Host(BalancerKind::Ops), Chooser::Host(BalancerKind::Reps)];

const fn perm(scenario: &'static str) -> Row {
    row(scenario, LEAF_SPINE_128, PERM_128)
}

const fn evs(scenario: &'static str, evs: u32) -> Row {
    Row { evs, choosers: SPRAYERS, ..perm(scenario) }
}

const fn ack(scenario: &'static str, ack_every: u32) -> Row {
    Row { ack_every, choosers: SPRAYERS, ..perm(scenario) }
}

/// Every scenario of the reference.
pub static ROWS: [Row; 15] = [
    Row { small: true, ..row("perm32", LEAF_SPINE_32, PERM_32) },
    perm("perm128"),
    row("tornado128", LEAF_SPINE_128, TORNADO_128),
    Row { small: true, ..row("incast16", LEAF_SPINE_128, INCAST) },
    Row { slow: Some("leaf0->spine0"), ..perm("perm128-slow-uplink") },
    Row { small: true, few: true, explained: FOUR_PATHS, ..row("four3t", FAT_TREE_128, FOUR) },
    Row {
        small: true,
        few: true,
        slow: Some("tor0->agg0"),
        explained: FOUR_PATHS,
        ..row("four3t-slow-uplink", FAT_TREE_128, FOUR)
    },
    Row { small: true, makespan: true, matrix: None, ..row("ring32", LEAF_SPINE_32, "") },
    evs("perm128-evs32", 32),
    evs("perm128-evs256", 256),
    ack("perm128-ack2to1", 2),
    ack("perm128-ack4to1", 4),
    Row { explained: &[(BalancerKind::Ops, THREE_RUNS)], ..ack("perm128-ack8to1", 8) },
    Row { explained: &[(BalancerKind::Ops, ACKS), (BalancerKind::Reps, ACKS)], ..ack("perm128-ack16to1", 16) },
    Row {
        small: true,
        dead_uplinks: true,
        explained: &[(BalancerKind::Ops, PARTS_OF_PACKETS)],
        choosers: SPRAYERS,
        ..perm("perm128-failed10")
    },
];

/// Why an ACK per 8 packets differs.
const THREE_RUNS: &str = "\
The reference's three largest completion times under `ops` are 206, 210 and 226 us, so that their mean is uncertain by 6 us, which is 3 %. Ours \
vary by 8 us from run to run, and 24 of them average 226.5 us. The means over all flows agree within 0.5 %";

/// Why an ACK per 16 packets differs.
const ACKS: &str = "\
The reference's largest completion time is 254.6 to 255.2 us under either balancer and every seed. That neither balancer \
nor seed moves it points to the retransmission timer: some of its flows seem to wait for a timeout for their last \
packets, 42 us on top of about 200. We did not reproduce that, so that this row is open. What differs is known: its ACK \
covers 64 packets from the one that triggered it on when that one is marked, so that packets before it go \
unacknowledged; ours covers 256 packets and everything that arrived since the last ACK, and a message that is complete \
is acknowledged at once";

/// Why `ops` differs where an eighth of its packets is lost.
const PARTS_OF_PACKETS: &str = "\
Under `ops`, which loses an eighth of its packets to the end, windows shrink to a few packets. The reference's sender \
sends a packet while any part of it fits its window, ours while the whole packet does. With our rule patched into it, \
the reference takes 2,478 us on average instead of 2,094. Under `reps`, whose windows stay large, the patch changes \
nothing";

/// Why four flows that each keep to a path differ.
const FOUR_PATHS: &[(BalancerKind, &str)] = &[(BalancerKind::Plb, DRAWS), (BalancerKind::Flowlet, DRAWS)];

const DRAWS: &str = "\
Four flows that each keep to a path give widely different means, of which the reference has three. Its simulator run by us with \
seeds 1 to 20 gives mean completion times of 1,160 us for `plb` in `four3t` and 1,396 us in `four3t-slow-uplink` (single runs from 694 to \
1,478 and from 1,031 to 1,768), and of 1,297 and 1,447 us for `flowlet` (705 to 2,636 and 892 to 1,872). Ours are within 5 % of those, \
but for `flowlet` with the slow uplink: two of our twenty draws put three or four flows on it and take over 3,000 us, as none of theirs \
does; the other eighteen average 1,460 us";

impl Row {
    /// What it is run under.
    pub fn choosers(&self) -> &'static [Chooser] {
        self.choosers
    }

    /// How many seeds we run: enough for our own means to vary by less than 3 %, more if single runs differ widely.
    pub(super) fn seeds(&self, chooser: Chooser) -> u64 {
        if chooser.keeps_paths() { 20 } else { 12 }
    }

    /// Why its figures under `chooser` differ from the reference's.
    pub(super) fn explained(&self, chooser: Chooser) -> Option<&'static str> {
        self.explained.iter().find(|(kind, _)| Chooser::Host(*kind) == chooser).map(|(_, why)| *why)
    }

    /// Runs it with seeds from 1 to `seeds`.
    pub(super) fn run(&self, chooser: Chooser, seeds: u64, threads: usize) -> Vec<Figures> {
        let mut scenario = self.scenario();
        scenario.network.switching = Switching::all(chooser.scheme());
        runs(&scenario, chooser.balancer(), &|_| Vec::new(), seeds, threads)
    }

    /// The reference's figures, by seed.
    pub(super) fn expected(&self, chooser: Chooser) -> Vec<Figures> {
        let figures = |[mean_us, p99_us, max_us, makespan_us]: [f64; 4]| Figures {
            mean_us,
            p99_us,
            max_us,
            makespan_us,
            ..Figures::default()
        };
        expected(EXPECTED, self.scenario, chooser.reference_name()).into_iter().map(figures).collect()
    }

    fn scenario(&self) -> Scenario {
        let matrix = self.matrix.map_or_else(ring_text, String::from);
        let mut scenario = published(self.scenario, self.topology, &matrix);
        scenario.transport.evs = self.evs;
        scenario.transport.ack_every = self.ack_every;
        let mut change = |name: &str, action| {
            let links = scenario.network.links_named(name).expect("a link of the topology");
            scenario.link_events.push(LinkEvent { name: name.into(), links, at_ps: 0, until_ps: None, action });
        };
        if let Some(name) = self.slow {
            change(name, LinkAction::Rate { ppm: 500_000 });
        }
        if self.dead_uplinks {
            (0..LEAVES_128).for_each(|leaf| change(&format!("leaf{leaf}->spine0"), LinkAction::SilentDrop));
        }
        scenario
    }
}

/// The matrix of a ring AllReduce of 4 MiB over 32 hosts. Every host sends 62 times 128 KiB to the next host. A flow starts when
/// the one before it is acknowledged.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_has_three_seeds_of_every_row() {
        for row in &ROWS {
            for chooser in row.choosers() {
                assert_eq!(row.expected(*chooser).len(), 3, "{} {chooser}", row.scenario);
            }
        }
    }
}
