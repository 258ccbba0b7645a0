//! The tables of a topology.

use super::{Kind, LATENCY, RATE, Section, field, only};

/// Kinds of topology.
pub const TOPOLOGIES: &[&str] = &["leaf-spine", "fat-tree", "dragonfly", "graph", "file"];
const LEAF_SPINE: &[&str] = &["leaf-spine"];
const FAT_TREE: &[&str] = &["fat-tree"];
const DRAGONFLY: &[&str] = &["dragonfly"];
const TREES: &[&str] = &["leaf-spine", "fat-tree"];
const COUNTED: &[&str] = &["leaf-spine", "fat-tree", "dragonfly"];

/// `[topology]`.
pub static TOPOLOGY: Section = Section {
    header: "[topology]",
    fields: &[
        field("kind", Kind::Choice(TOPOLOGIES), "required", "How the fabric is described."),
        only(LEAF_SPINE, "leaves", Kind::Integer(1, 1024, ""), "required", "Number of leaves, `leaf0` and on."),
        only(LEAF_SPINE, "spines", Kind::Integer(1, 1024, ""), "required", "Number of spines, `spine0` and on."),
        only(LEAF_SPINE, "hosts_per_leaf", Kind::Integer(1, 1024, ""), "required", "Hosts on each leaf, `h0` and on."),
        only(FAT_TREE, "pods", Kind::Integer(1, 256, ""), "required", "Number of pods."),
        only(FAT_TREE, "tors_per_pod", Kind::Integer(1, 128, ""), "required", "ToRs of a pod, `tor0` and on."),
        only(
            FAT_TREE,
            "aggs_per_pod",
            Kind::Integer(1, 128, ""),
            "required",
            "Aggregation switches of a pod, `agg0` and on; every ToR of the pod has cables to each.",
        ),
        only(
            FAT_TREE,
            "cores",
            Kind::Integer(1, 4096, ""),
            "required",
            "Cores, `core0` and on, a multiple of `aggs_per_pod`; the one of number c is joined to switch c modulo `aggs_per_pod` of each pod.",
        ),
        only(FAT_TREE, "hosts_per_tor", Kind::Integer(1, 1024, ""), "required", "Hosts on each ToR, `h0` and on."),
        only(DRAGONFLY, "groups", Kind::Integer(2, 1024, ""), "required", "Number of groups."),
        only(
            DRAGONFLY,
            "routers_per_group",
            Kind::Integer(1, 128, ""),
            "required",
            "Routers of a group, all joined with all, `g0r0` and on.",
        ),
        only(
            DRAGONFLY,
            "hosts_per_router",
            Kind::Integer(1, 128, ""),
            "required",
            "Hosts on each router, `h0` and on.",
        ),
        only(
            DRAGONFLY,
            "global_cables",
            Kind::Integer(1, 128, ""),
            "required",
            "Cables of each router to other groups; all those of a group are a multiple of the other groups.",
        ),
        only(TREES, "bundle", Kind::Integer(1, 16, ""), "1", "Parallel cables between two switches."),
        only(COUNTED, "host_gbps", RATE, "100", "Rate of the hosts' cables."),
        only(TREES, "uplink_gbps", RATE, "`host_gbps`", "Rate of the cables between the two lower tiers of switches."),
        only(FAT_TREE, "core_gbps", RATE, "`uplink_gbps`", "Rate of the cables to cores."),
        only(DRAGONFLY, "local_gbps", RATE, "`host_gbps`", "Rate of the cables within a group."),
        only(DRAGONFLY, "global_gbps", RATE, "`host_gbps`", "Rate of the cables between groups."),
        only(COUNTED, "latency_us", LATENCY, "1", "Propagation time of every cable."),
        only(COUNTED, "host_latency_us", LATENCY, "`latency_us`", "Propagation time of the hosts' cables."),
        only(DRAGONFLY, "global_latency_us", LATENCY, "`latency_us`", "Propagation time of the cables between groups."),
        only(COUNTED, "switch_latency_us", LATENCY, "0", "Time through a switch, on top of cables and queues."),
        only(&["graph"], "hosts", Kind::Names, "required", "Names of the hosts: 1 to 11 letters, digits, `.` or `_`."),
        only(&["graph"], "switches", Kind::Names, "required", "Names of the switches."),
        only(&["graph"], "link", Kind::Tables, "required", "The cables; see `[[topology.link]]`."),
        only(
            &["file"],
            "file",
            Kind::Text,
            "required",
            "A `.topo` file of two or three tiers; a relative path starts at the scenario's folder.",
        ),
    ],
};

/// `[[topology.link]]`.
pub static GRAPH_LINK: Section = Section {
    header: "[[topology.link]]",
    fields: &[
        field("a", Kind::Text, "required", "One end: a host or a switch. A host has exactly one cable."),
        field("b", Kind::Text, "required", "The other end."),
        field("gbps", RATE, "100", "Rate of either direction."),
        field("latency_us", LATENCY, "1", "Propagation time."),
    ],
};
