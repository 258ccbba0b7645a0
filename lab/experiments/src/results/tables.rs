//! The tables of a run, column by column.

use serde_json::json;
use spray_capture::Row;
use spray_fabric::{Bin, PortOutcome, PortSamples};
use spray_settings::AxisValue;

use super::columns::{Column, Kind, Values, count, flag, json_lines, parquet, real, text};
use super::measures::{self, Measure};
use super::{ConnectionEvs, EvBin, EventRow, FlowResult, RunResult, Summary, WorkloadSummary, gbps, us};

/// The first columns of every table. Columns for the axes of the sweep follow.
pub(super) const RUN: [Column<Summary>; 7] = [
    text("engine", "`xdp` or `sim`.", |s| s.engine.clone()),
    text("scenario", "The scenario's name.", |s| s.scenario.clone()),
    text("condition", "What is wrong with the fabric; `healthy` if nothing is.", |s| s.condition.clone()),
    text("balancer", "The run's balancer.", |s| s.balancer.clone()),
    text("congestion_control", "Its congestion control.", |s| s.congestion_control.clone()),
    text("switch", "Scheme of switches, or of each tier as in `tor=rr,agg=ofan,core=ofan`.", |s| s.switch.clone()),
    count(["seed", ""], "Its random seed.", |s| Some(s.seed)),
];

pub(super) const FLOWS: [Column<FlowResult>; 20] = [
    count(["flow", ""], "The flow's number in the run, from 0.", |f| Some(f.flow.into())),
    text("src", "The sending host.", |f| f.src.clone()),
    text("dst", "The receiving host.", |f| f.dst.clone()),
    count(["bytes", "bytes"], "Payload.", |f| Some(f.bytes)),
    real(["start_us", "us"], "When the sender was given the message.", |f| Some(f.start_us)),
    real(["end_us", "us"], "When the receiver had all of it; without a value if it never did.", |f| f.end_us),
    real(["fct_us", "us"], "Flow completion time: `end_us` less `start_us`.", |f| f.fct_us),
    count(["retransmits", "packets"], "Packets sent again.", |f| Some(f.sender.retransmits)),
    count(["reordered", "packets"], "Packets received after a later one.", |f| Some(f.receiver.order.reordered)),
    real(["drained_us", "us"], "Pauses to change the path.", |f| Some(us(f.sender.drained_ps))),
    count(["unexpected", "packets"], "Packets out of sequence.", |f| Some(f.receiver.order.unexpected)),
    text("degrees", "Reordered packets by distance: 1, 2 to 3, 4 to 7, ..., separated by spaces.", |f| {
        f.receiver.order.degrees.counts().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }),
    text("workload", "The name of its workload, or of the part of one.", |f| f.workload.clone()),
    text("flow_balancer", "What chose the paths of its packets.", |f| f.balancer.clone()),
    text("flow_congestion_control", "Its congestion control.", |f| f.congestion_control.clone()),
    real(["slowdown", ""], "`fct_us` over `unloaded_fct_us`.", |f| Some(f.fct_us? / f.unloaded_fct_us)),
    real(["unloaded_fct_us", "us"], "The time that the message takes alone in the fabric.", |f| {
        Some(f.unloaded_fct_us)
    }),
    count(["step", ""], "The collective that it is part of, by number within the workload.", |f| f.step.map(u64::from)),
    text("incomplete", "Reason if incomplete: `given-up`, `cut-off` by the end of the run, or `not-started`.", |f| {
        f.incomplete.map(|why| why.to_string()).unwrap_or_default()
    }),
    real(["elapsed_us", "us"], "Elapsed time of an incomplete flow until it gave up or the run ended.", |f| {
        f.elapsed_us
    }),
];

/// `workloads`: a row per workload. Its measures follow.
pub(super) const WORKLOADS: [Column<WorkloadSummary>; 4] = [
    text("workload", "Its name, or that of a part of one.", |w| w.name.clone()),
    text("flow_balancer", "What chose the paths of its packets.", |w| w.balancer.clone()),
    text("flow_congestion_control", "Its congestion control.", |w| w.congestion_control.clone()),
    text("lower_bounds", BOUNDS, |w| w.lower_bounds.join(" ")),
];

const BOUNDS: &str =
    "The measures of this row that are lower bounds, with spaces between; empty where all flows completed.";

fn workloads() -> Vec<Column<WorkloadSummary>> {
    let measures = measures::all().filter(|measure| measure.is_of_workloads());
    WORKLOADS.into_iter().chain(measures.map(|own| Column::of_measure(own, Measure::of_workload))).collect()
}

pub(super) const PORTS: [Column<PortOutcome>; 17] = [
    text("port", "The port: the link that leaves it.", |p| p.name.clone()),
    flag("uplink", "Whether it leads from switch to switch.", |p| p.uplink),
    real(["rate_gbps", "Gb/s"], "The link's full rate.", |p| Some(p.rate_bps as f64 / 1e9)),
    count(["frames", "frames"], "Data frames sent.", |p| Some(p.counters.frames)),
    count(["bytes", "bytes"], "Bytes of all frames, headers included.", |p| Some(p.counters.bytes)),
    count(["control_frames", "frames"], "Frames without payload: ACKs, ...", |p| Some(p.counters.control_frames)),
    count(["ecn_marks", "frames"], "Frames marked.", |p| Some(p.counters.marks)),
    count(["trims", "frames"], "Frames cut to their headers.", |p| Some(p.counters.trims)),
    count(["drops_queue", "frames"], "Frames dropped because the queue was full.", |p| Some(p.counters.drops_queue)),
    count(["drops_link", "frames"], "Frames dropped because the link had failed.", |p| Some(p.counters.drops_link())),
    count(["drops_random", "frames"], "Frames that a lossy link dropped.", |p| Some(p.counters.drops_random)),
    count(["drops_ttl", "frames"], "Frames dropped because their TTL ran out.", |p| Some(p.counters.drops_ttl)),
    count(["queue_max_bytes", "bytes"], "Maximum, with the frame being sent.", |p| Some(p.counters.queue_max)),
    real(["queue_mean_bytes", "bytes"], "Time average.", |p| Some(p.queue_mean_bytes)),
    text("layer", "The layer of the fabric, such as `leaf->spine`.", |p| p.layer.clone()),
    count(["pauses", ""], "How often the link's sender paused.", |p| Some(p.pauses)),
    real(["paused_us", "us"], "For how long.", |p| Some(us(p.paused_ps))),
];

pub(super) const EVENTS: [Column<EventRow>; 8] = [
    real(["time_us", "us"], "When.", |e| Some(e.time_us)),
    text("kind", EVENT_KINDS, |e| e.kind.to_string()),
    text("subject", "The port, host or flow that it happened to.", |e| e.subject.clone()),
    text("action", "Link behaviour as in `[[link_event]]`, or `given-up` of a connection.", |e| e.action.into()),
    real(["value", ""], "Share of the remaining rate, of lost frames, or of the time down.", |e| e.value),
    real(["until_us", "us"], "Of `failure`: when it ends. Of `last_drop`: when the failure began.", |e| e.until_us),
    count(["packet", ""], "Of `timeout`: the packet's sequence number.", |e| e.packet),
    text("detail", "The cycle of links of a `deadlock`; why a connection gave up.", |e| e.detail.clone()),
];

const EVENT_KINDS: &str =
    "`failure`, `recovered`, `last_drop`, `reroute`, `freeze_entered`, `freeze_exited`, `timeout`, `deadlock`.";

/// Time in ps and cumulative payload bytes, of the previous bin and of this one.
type Delivered = [(u64, u64); 2];

pub(super) const GOODPUT: [Column<Delivered>; 3] = [
    real(["time_us", "us"], "When the bin ends; the first row is that of time 0.", |[_, (at, _)]| Some(us(*at))),
    count(["delivered_bytes", "bytes"], "Cumulative payload received.", |[_, (_, bytes)]| Some(*bytes)),
    real(["goodput_gbps", "Gb/s"], "Its rate in the bin; missing in the first row.", |[a, b]| {
        (b.0 > a.0).then(|| gbps(b.1.saturating_sub(a.1), us(b.0 - a.0)))
    }),
];

/// Port name; end of the bin in ps and cumulative bytes sent; counters of the bin.
type PortBin = (String, (u64, u64), Bin);

pub(super) const QUEUES: [Column<PortBin>; 8] = [
    real(["time_us", "us"], "When the bin ends.", |(_, (at, _), _)| Some(us(*at))),
    text("port", "The port, as in `ports`.", |(port, ..)| port.clone()),
    count(["queue_bytes", "bytes"], "Maximum over arriving frames, with the frame.", |(.., bin)| Some(bin.queue_max)),
    real(["queue_mean_bytes", "bytes"], "Mean over arriving frames.", |(.., bin)| Some(bin.queue_mean())),
    count(["sent_bytes", "bytes"], "Cumulative bytes sent, with headers.", |(_, (_, sent), _)| Some(*sent)),
    count(["marks", "frames"], "Frames that it marked during the bin.", |(.., bin)| Some(bin.marks)),
    count(["trims", "frames"], "Frames that it cut to their headers.", |(.., bin)| Some(bin.trims)),
    count(["drops", "frames"], "Frames that went no further, for any reason.", |(.., bin)| Some(bin.drops)),
];

/// Connection, start and end of the bin, and its counts.
type EvTime = (String, [f64; 2], EvBin);

pub(super) const EVS: [Column<EvTime>; 8] = [
    text("connection", "Its sender and its receiver.", |(connection, ..)| connection.clone()),
    real(["time_us", "us"], "When the bin begins.", |(_, [from, _], _)| Some(*from)),
    real(["until_us", "us"], "When it ends.", |(_, [_, until], _)| Some(*until)),
    count(["chosen", "packets"], "Packets of schemes that do not recycle values.", |(.., bin)| Some(bin.packets[0])),
    count(["explored", "packets"], "Those with a new one.", |(.., bin)| Some(bin.packets[1])),
    count(["recycled", "packets"], "Those with one that came back unmarked.", |(.., bin)| Some(bin.packets[2])),
    count(["frozen", "packets"], "Those with one kept during freezing.", |(.., bin)| Some(bin.packets[3])),
    count(["bands", ""], "Number of bands, of 64, that have values.", |(.., bin)| Some(bin.bands.len() as u64)),
];

/// `runs`: a row per run of a sweep. The measures follow.
pub(super) const RUNS: [Column<Summary>; 4] = [
    flag("complete", "Whether all flows completed, with the payload that was sent.", Summary::is_complete),
    text("lower_bounds", BOUNDS, |s| s.lower_bounds.join(" ")),
    real(["time_limit_us", "us"], "The time limit, if it ended the run.", |s| s.time_limit_us),
    real(["give_up_us", "us"], "Time without acknowledgements until connections gave up.", |s| s.give_up_us),
];

fn runs() -> Vec<Column<Summary>> {
    RUNS.into_iter().chain(measures::all().map(|measure| Column::of_measure(measure, Measure::of))).collect()
}

pub(super) const TRACE: [Column<Row>; 9] = [
    real(["time_us", "us"], "When; negative before the scenario begins.", |r| Some(r.at_ps as f64 / 1e6)),
    count(["flow", ""], "The packet's flow, as in `flows`.", |r| Some(r.flow as u64)),
    count(["packet", ""], "Its sequence number, which a retransmission keeps.", |r| Some(r.packet)),
    count(["attempt", ""], "Transmission number, from 1; for events of senders the number so far.", |r| {
        Some(u64::from(r.attempt)).filter(|attempt| *attempt > 0)
    }),
    count(["ev", ""], "The entropy value of that transmission.", |r| r.ev.map(u64::from)),
    text("event", TRACE_EVENTS, |r| r.event.name().into()),
    text("place", "The host, or the port as in `ports`.", |r| r.place.clone()),
    count(["queue_bytes", "bytes"], "Bytes that waited at the port when it came there.", |r| r.queue_bytes),
    text("detail", "Cause; how it was received: `marked`, `trimmed`.", |r| r.detail.clone()),
];

const TRACE_EVENTS: &str = "`sent`; `queued`, `marked`, `trimmed` or `dropped` at a port; `received`, then `reordered` \
    if it was not retransmitted and a later one had arrived, or `duplicate`; `acked`, `nacked`, `timeout`; `retransmit` \
    before it is sent again.";

/// Encodes traced packets as Parquet.
///
/// # Errors
/// None for rows of a run.
pub fn trace_parquet(rows: &[Row]) -> Result<Vec<u8>, String> {
    let columns: Vec<Values> = TRACE.iter().map(|column| column.values(rows)).collect();
    parquet(&columns).map_err(|error| error.to_string())
}

/// Formats traced packets as JSON lines.
pub fn trace_json(rows: &[Row]) -> String {
    json_lines(&TRACE.iter().map(|column| column.values(rows)).collect::<Vec<_>>())
}

/// Stem of a table's files, and its columns.
pub(super) type Table = (&'static str, Vec<Values>);

/// Tables with a row per time bin.
pub(super) const SERIES: [&str; 3] = ["goodput", "queues", "evs"];

pub(super) fn of_run(run: &RunResult, summary: &Summary) -> [Table; 7] {
    let before = run.delivered.first().into_iter().chain(&run.delivered);
    let delivered: Vec<Delivered> = before.zip(&run.delivered).map(|(a, b)| [*a, *b]).collect();
    let of_port = |series: &PortSamples| {
        let name = run.ports.get(series.port).map(|port| port.name.clone()).unwrap_or_default();
        let ends = series.sent().skip(1).zip(&series.bins);
        ends.map(|(end, bin)| (name.clone(), end, *bin)).collect::<Vec<_>>()
    };
    let bins: Vec<PortBin> = run.port_samples.iter().flat_map(of_port).collect();
    let of_connection = |own: &ConnectionEvs| {
        let time = |bin: usize| own.begin_us + own.bin_us * bin as f64;
        let bins = own.bins.iter().enumerate();
        bins.map(|(at, bin)| (own.connection.clone(), [time(at), time(at + 1)], bin.clone())).collect::<Vec<_>>()
    };
    let evs: Vec<EvTime> = run.evs.iter().flat_map(of_connection).collect();
    [
        ("flows", with_run(summary, &FLOWS, &run.flows)),
        ("workloads", with_run(summary, &workloads(), &summary.workloads)),
        ("ports", with_run(summary, &PORTS, &run.ports)),
        ("events", with_run(summary, &EVENTS, &run.events)),
        ("goodput", with_run(summary, &GOODPUT, &delivered)),
        ("queues", with_run(summary, &QUEUES, &bins)),
        ("evs", with_run(summary, &EVS, &evs)),
    ]
}

pub(super) fn of_sweep(summaries: &[Summary]) -> Table {
    let own = RUN.iter().map(|column| column.values(summaries));
    let measures = runs().into_iter().map(|column| column.values(summaries)).filter(Values::has_any);
    ("runs", own.chain(axes(summaries)).chain(measures).collect())
}

fn with_run<R>(summary: &Summary, columns: &[Column<R>], rows: &[R]) -> Vec<Values> {
    let one = std::slice::from_ref(summary);
    let own = RUN.iter().map(|column| column.values(one)).chain(axes(one)).map(|column| column.repeated(rows.len()));
    own.chain(columns.iter().map(|column| column.values(rows))).collect()
}

/// Returns a column for each axis of the runs, which are of one sweep.
fn axes(runs: &[Summary]) -> Vec<Values> {
    let column = |(path, kind): (&String, &AxisValue)| {
        let kind = match kind {
            AxisValue::Flag(_) => Kind::Flag,
            AxisValue::Whole(_) => Kind::Whole,
            AxisValue::Number(_) => Kind::Real(None),
            AxisValue::Text(_) => Kind::Text,
        };
        Values::new(path.clone(), kind, runs.iter().map(|run| json!(run.axes.get(path))).collect())
    };
    runs.first().map_or_else(Vec::new, |first| first.axes.iter().map(column).collect())
}
