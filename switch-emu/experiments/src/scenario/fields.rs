//! Every field of a scenario: its name, type, range and default, once, for the reader and for `docs/scenario.md`.

mod topology;

pub use topology::{GRAPH_LINK, TOPOLOGIES, TOPOLOGY};

/// A table of the scenario.
#[derive(Debug)]
pub struct Section {
    /// Its header in a file, as `[topology]`.
    pub header: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
}

/// One field.
#[derive(Debug)]
pub struct Field {
    /// Its key.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What happens without it; `required` where there is no default.
    pub default: &'static str,
    /// The values of the table's `kind` or `action` with which it may be given; empty: any.
    pub only: &'static [&'static str],
    /// What it means.
    pub about: &'static str,
}

/// What a field takes.
#[derive(Debug)]
pub enum Kind {
    /// A number in a unit, within bounds.
    Number(f64, f64, &'static str),
    /// A whole number in a unit, within bounds.
    Integer(u64, u64, &'static str),
    /// Bytes, within bounds.
    Bytes(u64, u64),
    /// Any text.
    Text,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// One or a list of some words.
    Choices(&'static [&'static str]),
    /// A list of names.
    Names,
    /// `true` or `false`.
    Flag,
    /// A length of queue.
    Queue,
    /// `"auto"` or a number within bounds.
    Auto(f64, f64),
    /// A table or a list of tables of its own.
    Tables,
}

impl Kind {
    /// The unit and what is allowed, as the documentation and errors put it.
    pub fn allowed(&self) -> (String, String) {
        let list = |words: &[&str]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        match self {
            Self::Number(min, max, unit) => (unit.to_string(), format!("{min} to {max}")),
            Self::Integer(min, max, unit) => (unit.to_string(), format!("whole, {min} to {max}")),
            Self::Bytes(min, max) => ("bytes".into(), format!("{min} to {max}, or with a suffix as \"4 MiB\"")),
            Self::Text => (String::new(), "text".into()),
            Self::Choice(words) => (String::new(), list(words)),
            Self::Choices(words) => (String::new(), format!("one or a list of {}", list(words))),
            Self::Names => (String::new(), "a list of names".into()),
            Self::Flag => (String::new(), "true, false".into()),
            Self::Queue => (
                String::new(),
                "\"120 kB\", \"100 packets\", \"1 bdp\", \"20 %\" (of the limit), or whole bytes".into(),
            ),
            Self::Auto(min, max) => (String::new(), format!("\"auto\", or {min} to {max}")),
            Self::Tables => (String::new(), "a table".into()),
        }
    }
}

const fn field(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Field {
    Field { name, kind, default, only: &[], about }
}

const fn only(
    only: &'static [&'static str],
    name: &'static str,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> Field {
    Field { name, kind, default, only, about }
}

/// Longest scenario time that a field takes: an hour.
const HOUR_US: f64 = 3.6e9;
const TIME: Kind = Kind::Number(0.0, HOUR_US, "us");
const LATENCY: Kind = Kind::Number(0.0, 1e6, "us");
const RATE: Kind = Kind::Number(0.01, 1000.0, "Gb/s");
const FLOW_BYTES: Kind = Kind::Bytes(1, 1 << 40);

/// Kinds of workload.
pub const WORKLOADS: &[&str] = &["cross-leaf-permutation", "permutation", "tornado", "incast", "flows", "matrix"];
/// What may befall a link.
pub const ACTIONS: &[&str] = &["down", "silent-drop", "rate", "loss", "flap"];
/// Variants of REPS.
pub const REPS_VARIANTS: &[&str] = &["paper", "artifact", "ultra-ethernet"];
const PATTERNS: &[&str] = &["cross-leaf-permutation", "permutation", "tornado", "incast"];
const BALANCERS: &[&str] = spray_core::path::BalancerKind::names();
const CCS: &[&str] = spray_core::cc::CcKind::names();

/// The fields before the first table.
pub static TOP: Section = Section {
    header: "Top level",
    fields: &[
        field("name", Kind::Text, "required", "Names the scenario and its results folder."),
        field("condition", Kind::Text, "from the link events", "Two or three words on what is wrong with the fabric."),
        field("seed", Kind::Integer(0, i64::MAX as u64, ""), "1", "Root of every random choice."),
        field(
            "time_limit_us",
            TIME,
            "50 times the ideal, at least 20000",
            "Scenario time after which a run is stopped; what has not arrived by then counts as not completed.",
        ),
        field(
            "sample_us",
            Kind::Number(0.0, 1e6, "us"),
            "20",
            "Scenario time between samples of queues and deliveries; 0 takes none.",
        ),
        field("topology", Kind::Tables, "required", "See `[topology]`."),
        field("workload", Kind::Tables, "required", "See `[workload]`."),
        field("transport", Kind::Tables, "defaults", "See `[transport]`."),
        field("queue", Kind::Tables, "defaults", "See `[queue]`."),
        field("emulation", Kind::Tables, "defaults", "See `[emulation]`."),
        field("link_event", Kind::Tables, "none", "See `[[link_event]]`."),
    ],
};

/// `[workload]`.
pub static WORKLOAD: Section = Section {
    header: "[workload]",
    fields: &[
        field("kind", Kind::Choice(WORKLOADS), "required", "Who sends to whom."),
        only(PATTERNS, "bytes", FLOW_BYTES, "the size of `payload`, else required", "Payload of each flow."),
        only(PATTERNS, "start_us", TIME, "0", "When all flows start."),
        only(
            &["incast"],
            "senders",
            Kind::Integer(1, 4096, ""),
            "all other hosts",
            "How many send; the farthest from the receiver come first.",
        ),
        only(&["incast"], "receiver", Kind::Text, "the first host", "Who receives."),
        only(&["flows"], "flow", Kind::Tables, "required", "The flows; see `[[workload.flow]]`."),
        only(
            &["matrix"],
            "file",
            Kind::Text,
            "required",
            "A `.cm` file; a relative path starts at the scenario's folder.",
        ),
        field(
            "payload",
            Kind::Text,
            "generated from the seed",
            "A file whose bytes every flow carries, from its start and over again; a relative path starts at the scenario's folder.",
        ),
    ],
};

/// `[[workload.flow]]`.
pub static FLOW: Section = Section {
    header: "[[workload.flow]]",
    fields: &[
        field("src", Kind::Text, "required", "Name of the sending host."),
        field("dst", Kind::Text, "required", "Name of the receiving host, another one."),
        field("bytes", FLOW_BYTES, "the size of `payload`, else required", "Payload."),
        field("start_us", TIME, "0", "When the message is handed to the sender."),
    ],
};

/// `[transport]`.
pub static TRANSPORT: Section = Section {
    header: "[transport]",
    fields: &[
        field(
            "balancer",
            Kind::Choices(BALANCERS),
            "\"reps\"",
            "What chooses paths; with a list each in turn. `arcane` is another name of `reps`.",
        ),
        field("cc", Kind::Choice(CCS), "\"dctcp\"", "Congestion control."),
        field("fixed_gbps", RATE, "the host's rate", "Wire rate of each flow under `fixed-rate`."),
        field(
            "initial_window_bytes",
            Kind::Bytes(1, 1 << 40),
            "1.5 BDP in whole packets",
            "Window before the first feedback.",
        ),
        field(
            "max_window_bytes",
            Kind::Bytes(1, 1 << 40),
            "1.5 BDP",
            "Largest window of `dctcp`; the whole window of `fixed-rate`, there without a limit by default.",
        ),
        field("ip", Kind::Choice(&["4", "6"]), "4", "IP version; a whole number does too."),
        field(
            "payload_bytes",
            Kind::Integer(64, 3_398, "bytes"),
            "3000",
            "Payload of a full packet. With IPv6 at most 3378: XDP on veth carries IP packets of at most 3,498 bytes.",
        ),
        field("ack_every", Kind::Integer(1, 64, "packets"), "1", "Data packets to one ACK."),
        field(
            "ack_evs",
            Kind::Integer(1, 16, ""),
            "1",
            "Most entropy values in an ACK: that of the packet that triggered it, then those of the latest others that it stands for.",
        ),
        field("ack_delay_us", TIME, "a quarter of the base RTT", "How long an ACK may wait for more packets."),
        field("evs", Kind::Integer(1, 65_535, ""), "65535", "Number of entropy values."),
        field(
            "window_packets",
            Kind::Integer(256, 16_384, "packets"),
            "4096",
            "Packets between the oldest unacknowledged and the newest; a power of two.",
        ),
        field(
            "sack_gap_packets",
            Kind::Integer(0, 16_384, "packets"),
            "8",
            "A packet is lost when so many sent later have arrived and the largest recent RTT has passed; 0 leaves losses to the timer and to trims.",
        ),
        field(
            "sack_rule",
            Kind::Choice(spray_core::loss::SackRule::NAMES),
            "\"patient\"",
            "`plain` leaves the time out of `sack_gap_packets`: so many later arrivals are a loss at once, as in OFAN's evaluation.",
        ),
        field(
            "erasure",
            Kind::Flag,
            "false",
            "Messages go in an ideal erasure code: whichever packets arrive, enough of them make a message. The simulator only.",
        ),
        field("rto_min_us", TIME, "base RTT and 4 full queues", "Least, and first, retransmission timeout."),
        field("rto_max_us", TIME, "16 times the least", "Largest retransmission timeout."),
        field("give_up_us", TIME, "20000", "Time without any progress after which a connection fails."),
        field("freezing_timeout_us", TIME, "10000", "REPS: least time spent frozen after a failure."),
        field("reps_buffer", Kind::Integer(1, 8, ""), "8", "REPS: entropy values cached."),
        field(
            "reps_variant",
            Kind::Choice(REPS_VARIANTS),
            "\"paper\"",
            "REPS: whose rules, where the paper and the published simulators differ.",
        ),
        field(
            "probe_us",
            TIME,
            "0",
            "REPS: time between probes while frozen, in place of the freezing timeout; 0 sends none.",
        ),
        field("params", Kind::Tables, "defaults", "Parameters of schemes; see `[transport.params]`."),
    ],
};

/// `[queue]`.
pub static QUEUE: Section = Section {
    header: "[queue]",
    fields: &[
        field(
            "limit",
            Kind::Queue,
            "\"1 bdp\"",
            "Data that may wait at a port; less than 4 GiB, at most 8323072 bytes on the `xdp` engine.",
        ),
        field("mark_min", Kind::Queue, "\"20 %\"", "Below it nothing is marked."),
        field("mark_max", Kind::Queue, "\"80 %\"", "From it on everything is marked; in between a growing share."),
        field("control_limit", Kind::Queue, "\"100 %\"", "ACKs and trimmed headers that may wait; they go first."),
        field(
            "trimming",
            Kind::Flag,
            "true",
            "Cut a data frame over the limit to its headers, instead of dropping it.",
        ),
    ],
};

/// `[[link_event]]`.
pub static LINK_EVENT: Section = Section {
    header: "[[link_event]]",
    fields: &[
        field(
            "link",
            Kind::Text,
            "required",
            "`leaf0->spine1` for one direction, `leaf0-spine1` for both, `#2` after it for the second of parallel cables. Links that leave a host cannot fail.",
        ),
        field("at_us", TIME, "0", "When it begins."),
        field("until_us", TIME, "never", "When it ends."),
        field(
            "action",
            Kind::Choice(ACTIONS),
            "required",
            "`down`: frames are dropped and routing learns of it; `silent-drop`: frames vanish and routing does not; `rate`: the link is slower; `loss`: frames vanish at random; `flap`: frames vanish during a part of every period.",
        ),
        only(&["down"], "convergence_us", TIME, "50", "When routing learns of the beginning, and of the end."),
        only(&["rate"], "factor", Kind::Number(0.001, 0.999, ""), "required", "Share of the rate that is left."),
        only(
            &["loss"],
            "probability",
            Kind::Number(0.000_001, 1.0, ""),
            "required",
            "Share of the frames that vanishes.",
        ),
        only(&["flap"], "period_us", Kind::Number(0.001, 1e6, "us"), "required", "Length of a cycle."),
        only(
            &["flap"],
            "down_us",
            Kind::Number(0.001, 1e6, "us"),
            "required",
            "Part of each cycle that is out, from its beginning; less than `period_us`.",
        ),
    ],
};

/// `[emulation]`.
pub static EMULATION: Section = Section {
    header: "[emulation]",
    fields: &[
        field(
            "dilation",
            Kind::Auto(1.0, 1e6),
            "\"auto\"",
            "How many times slower than scenario time the machine runs; `auto` measures what it can carry.",
        ),
        field(
            "chassis",
            Kind::Choice(&["fabric", "per-switch"]),
            "\"fabric\"",
            "One program for all switches, or one namespace for each, joined by veth.",
        ),
        field(
            "threads",
            Kind::Integer(0, 256, ""),
            "0",
            "Threads that poll hosts; 0 is one a core, at most one a host.",
        ),
    ],
};

/// All tables, in the order of the documentation.
pub static SECTIONS: [&Section; 9] =
    [&TOP, &TOPOLOGY, &GRAPH_LINK, &WORKLOAD, &FLOW, &TRANSPORT, &QUEUE, &LINK_EVENT, &EMULATION];

/// The tables as `docs/scenario.md` has them, in Markdown.
pub fn markdown(section: &Section) -> String {
    let mut text =
        format!("| {} field | unit | default | allowed | meaning |\n|---|---|---|---|---|\n", section.header);
    for field in section.fields {
        let (unit, allowed) = field.kind.allowed();
        let about = match field.only {
            [] => field.about.to_string(),
            kinds => format!("{} Only with {}.", field.about, kinds.join(", ")),
        };
        text += &format!("| `{}` | {unit} | {} | {allowed} | {about} |\n", field.name, field.default);
    }
    text
}
