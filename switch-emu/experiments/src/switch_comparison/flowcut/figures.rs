//! The figures: what is run, and what the paper says of it.

use std::path::Path;

use super::Contender::{
    self, Ecmp, FlowcutIngress, FlowcutNic, FlowcutSwitch, Flowlet, MpRdma, Spraying, Ugal, Valiant,
};
use super::{Check, Metric, Statement};
use crate::scenario::{Document, Scenario};

/// A figure of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Its number.
    pub number: u32,
    /// What it shows.
    pub title: &'static str,
    /// What we run.
    pub about: &'static str,
    /// What the paper shows of it, and what flowlets are tuned for.
    pub metric: Metric,
    /// Who is compared.
    pub contenders: &'static [Contender],
    /// Seeds, from 1 on.
    pub seeds: u64,
    /// What the paper says.
    pub statements: &'static [Statement],
    topology: &'static str,
    workload: &'static str,
}

impl Figure {
    /// The scenario, of ECMP.
    ///
    /// # Panics
    /// When the built-in text is wrong, which a test rules out.
    pub fn scenario(&self) -> Scenario {
        let Self { number, topology, workload, .. } = self;
        let text = format!(
            "name = \"flowcut-figure-{number}\"\ntime_limit_us = {TIME_LIMIT_US}\nsample_us = 0\n{workload}\n[topology]\n{topology}\n{COMMON}"
        );
        let document = Document::parse(Path::new("flowcut"), &text).expect("part of the program");
        Scenario::read(&document).expect("part of the program")
    }
}

/// Several times what any run takes. Pauses that wait for each other in a circle would never end one.
const TIME_LIMIT_US: u64 = 200_000;

/// Packets, window and switches of all figures. Marks are for MP-RDMA alone.
const COMMON: &str = "
host_gbps = 200
latency_us = 1
[transport]
balancer = \"ecmp\"
payload_bytes = 4096
window_packets = 1024
cc = \"fixed-window\"
fixed-window.window_bytes = 487800
sack_gap_packets = 0
rto_min_us = 4000
give_up_us = 1000000
[queue]
limit = \"1 bdp\"
pfc = true
trimming = false
mark_min = \"20 %\"
mark_max = \"80 %\"
";

const TREE: &str = "kind = \"fat-tree\"\npods = 8\ntors_per_pod = 4\naggs_per_pod = 4\ncores = 16\nhosts_per_tor = 4";
const HALF_TREE: &str =
    "kind = \"fat-tree\"\npods = 4\ntors_per_pod = 4\naggs_per_pod = 4\ncores = 16\nhosts_per_tor = 4";
const TAPERED_TREE: &str =
    "kind = \"fat-tree\"\npods = 8\ntors_per_pod = 4\naggs_per_pod = 2\ncores = 8\nhosts_per_tor = 4";
const DRAGONFLY: &str =
    "kind = \"dragonfly\"\ngroups = 4\nrouters_per_group = 8\nhosts_per_router = 4\nglobal_cables = 3";

const BEST: Contender = Flowlet { most_reordered: 20 };
const BALANCED: Contender = Flowlet { most_reordered: 5 };
const LOWEST: Contender = Flowlet { most_reordered: 2 };

/// On fat trees.
const ON_TREES: [Contender; 9] =
    [Ecmp, Spraying, BEST, BALANCED, LOWEST, MpRdma, FlowcutNic, FlowcutIngress, FlowcutSwitch];
/// On dragonflies.
const ON_DRAGONFLIES: [Contender; 9] =
    [Ecmp, Valiant, Ugal, BEST, BALANCED, LOWEST, FlowcutNic, FlowcutIngress, FlowcutSwitch];

const SEEDS: u64 = 3;

const fn ratio(says: &'static str, metric: Metric, of: Contender, to: Contender, least: f64, most: f64) -> Statement {
    Statement { says, check: Check::Ratio { metric, of, to, least, most } }
}

/// No more than the other's.
const fn below(says: &'static str, metric: Metric, of: Contender, to: Contender) -> Statement {
    ratio(says, metric, of, to, 0.0, 1.0)
}

/// "On par", "similar", "comparable": within a tenth.
const fn alike(says: &'static str, metric: Metric, of: Contender, to: Contender) -> Statement {
    ratio(says, metric, of, to, 0.9, 1.1)
}

/// "Slightly" more: up to a fifth.
const fn slightly_above(says: &'static str, metric: Metric, of: Contender, to: Contender) -> Statement {
    ratio(says, metric, of, to, 1.0, 1.2)
}

const fn least(says: &'static str, metric: Metric, of: Contender) -> Statement {
    Statement { says, check: Check::Least { metric, of } }
}

const fn most(says: &'static str, metric: Metric, of: Contender) -> Statement {
    Statement { says, check: Check::Most { metric, of } }
}

const fn reordered(says: &'static str, of: Contender, least: f64, most: f64) -> Statement {
    Statement { says, check: Check::Reordered { of, least, most } }
}

const IN_ORDER: Statement = reordered("Flowcut delivers in order", FlowcutNic, 0.0, 0.0);

/// All figures with completion times but 12, which shows the others' variants.
pub const FIGURES: [Figure; 6] = [
    Figure {
        number: 8,
        title: "permutation, healthy",
        about: "8 MiB from each host to one other; 128 hosts on three tiers.",
        metric: Metric::P99,
        contenders: &ON_TREES,
        seeds: SEEDS,
        statements: &[
            least("Spraying has the least p99", Metric::P99, Spraying),
            reordered("and more than half of its packets out of order", Spraying, 50.0, 100.0),
            most("ECMP has the largest p99", Metric::P99, Ecmp),
            IN_ORDER,
            below("Flowcut is below flowlets at 2 %", Metric::P99, FlowcutNic, LOWEST),
            alike("and on par with flowlets at 5 %", Metric::P99, FlowcutNic, BALANCED),
            slightly_above("MP-RDMA does slightly better than Flowcut", Metric::P99, FlowcutNic, MpRdma),
        ],
        topology: TREE,
        workload: "workload = {kind = \"permutation\", bytes = \"8 MiB\"}",
    },
    Figure {
        number: 9,
        title: "permutation, 1 % of the links at a tenth of their rate",
        about: "The same; three of the 256 cables between switches are slow.",
        metric: Metric::P99,
        contenders: &ON_TREES,
        seeds: SEEDS,
        statements: &[
            alike("The mean of Flowcut is like that of flowlets at 20 %", Metric::Mean, FlowcutNic, BEST),
            alike("of those at 5 %", Metric::Mean, FlowcutNic, BALANCED),
            alike("and of MP-RDMA", Metric::Mean, FlowcutNic, MpRdma),
            alike("In p99 Flowcut and flowlets at 20 % compete for the best", Metric::P99, FlowcutNic, BEST),
            ratio("Spraying lags behind Flowcut in p99", Metric::P99, Spraying, FlowcutNic, 1.1, f64::MAX),
            ratio("ECMP too: 5 times (§I-D)", Metric::P99, Ecmp, FlowcutNic, 4.0, 6.0),
            IN_ORDER,
        ],
        topology: TREE,
        workload: "workload = {kind = \"permutation\", bytes = \"8 MiB\"}\n\
                   failure = [{what = \"links\", share = 0.01, action = \"rate\", factor = 0.1}]",
    },
    Figure {
        number: 10,
        title: "all to all",
        about: "1 MiB from each host to each, one message of a host after the other; 64 hosts on three tiers.",
        metric: Metric::P99,
        contenders: &ON_TREES,
        seeds: SEEDS,
        statements: &[
            alike("Flowcut is comparable to flowlets at 5 %", Metric::P99, FlowcutNic, BALANCED),
            slightly_above("MP-RDMA does slightly worse than Flowcut", Metric::P99, MpRdma, FlowcutNic),
            IN_ORDER,
        ],
        topology: HALF_TREE,
        workload: "workload = {kind = \"all-to-all\", bytes = \"1 MiB\", open = 1}",
    },
    Figure {
        number: 11,
        title: "data mining on a 2:1 tapered tree",
        about: "Partner after partner, across leaves, sizes of data mining up to 32 MiB, 20 messages of each host; 128 hosts, \
                half of the uplinks.",
        metric: Metric::P99,
        contenders: &ON_TREES,
        seeds: SEEDS,
        statements: &[
            below("Flowcut does better than ECMP", Metric::P99, FlowcutNic, Ecmp),
            below("and than flowlets at 20 %", Metric::P99, FlowcutNic, BEST),
            below("at 5 %", Metric::P99, FlowcutNic, BALANCED),
            below("and at 2 %", Metric::P99, FlowcutNic, LOWEST),
            slightly_above("Spraying does slightly better than Flowcut", Metric::P99, FlowcutNic, Spraying),
            reordered("with almost half of its packets out of order", Spraying, 40.0, 50.0),
            slightly_above("MP-RDMA does slightly worse than Flowcut", Metric::P99, MpRdma, FlowcutNic),
            IN_ORDER,
        ],
        topology: TAPERED_TREE,
        workload: "workload = {kind = \"partner-after-partner\", sizes = \"data-mining\", max_bytes = \"32 MiB\", \
                   messages = 20, cross_leaf = true}",
    },
    Figure {
        number: 13,
        title: "random uniform on a dragonfly",
        about: "Partner after partner, sizes from 1 byte to 1 MiB, 50 messages of each host; 128 hosts in four groups of eight \
                switches, eight cables between two groups.",
        metric: Metric::Runtime,
        contenders: &ON_DRAGONFLIES,
        seeds: SEEDS,
        statements: &[
            alike("Flowcut comes close to flowlets at 5 %", Metric::Runtime, FlowcutNic, BALANCED),
            slightly_above("and is not far behind UGAL", Metric::Runtime, FlowcutNic, Ugal),
            most("Valiant does worst", Metric::Runtime, Valiant),
            IN_ORDER,
        ],
        topology: DRAGONFLY,
        workload: "workload = {kind = \"partner-after-partner\", sizes = \"uniform\", max_bytes = \"1 MiB\", \
                   messages = 50}",
    },
    Figure {
        number: 14,
        title: "enterprise on a dragonfly",
        about: "The same with 100 messages in sizes of the enterprise distribution, up to 32 MiB.",
        metric: Metric::Runtime,
        contenders: &ON_DRAGONFLIES,
        seeds: SEEDS,
        statements: &[
            alike("There is no gap between Flowcut and UGAL", Metric::Runtime, FlowcutNic, Ugal),
            alike("nor between Flowcut and flowlets at 5 %", Metric::Runtime, FlowcutNic, BALANCED),
            IN_ORDER,
        ],
        topology: DRAGONFLY,
        workload: "workload = {kind = \"partner-after-partner\", sizes = \"enterprise\", max_bytes = \"32 MiB\", \
                   messages = 100}",
    },
];
