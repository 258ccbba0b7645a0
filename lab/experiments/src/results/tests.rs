//! The files of a run and the table, compared with literal text.

mod demo;

use spray_core::flow::{OrderStats, ReceiverStats, ReorderDegrees, SenderStats};
use spray_fabric::{Bin, HashFunction, HashSeed, Scheme, Switching};

use spray_settings::{Axis, AxisValue};

use super::*;

/// Returns a small run with one item of each kind; shared with the report's tests.
pub(crate) fn sample(balancer: &str, condition: &str, fcts: &[f64]) -> RunResult {
    let flow = |(index, fct): (usize, &f64)| FlowResult {
        flow: index as u32,
        src: format!("h{index}"),
        dst: format!("h{}", index + 4),
        bytes: 1_000_000,
        start_us: 0.0,
        end_us: Some(*fct),
        fct_us: Some(*fct),
        unloaded_fct_us: 82.0,
        last_bit_us: 2.0,
        link_us: 80.0,
        sender: sent(300, index as u64),
        receiver: received(OrderStats { reordered: 2, ..OrderStats::default() }),
        ..FlowResult::default()
    };
    RunResult {
        engine: "xdp".into(),
        scenario: "demo".into(),
        condition: condition.into(),
        balancer: balancer.into(),
        congestion_control: "dctcp".into(),
        seed: 7,
        end_us: fcts.iter().copied().fold(0.0, f64::max),
        engine_figures: EngineFigures { dilation: 400.0, wall_s: 3.25, ..EngineFigures::default() },
        flows: fcts.iter().enumerate().map(flow).collect(),
        ports: ports(),
        port_samples: port_samples(fcts),
        delivered: (0..=100).map(|i| (2_000_000 * i, 40_000 * i)).collect(),
        events: events(),
        evs: vec![ConnectionEvs {
            connection: "h0->h4".into(),
            begin_us: 0.0,
            bin_us: 16.0,
            bins: vec![EvBin { packets: [0, 5, 3, 1], bands: vec![(3, [0, 5, 0, 0]), (9, [0, 0, 3, 1])] }],
        }],
        payload_verified: Some(true),
        loss_duration_us: Some(41.5),
        ..RunResult::default()
    }
}

/// Marks a flow as incomplete, in a run or connection that ended at `end_us`.
pub(crate) fn incomplete(flow: &mut FlowResult, why: Incomplete, end_us: f64) {
    (flow.fct_us, flow.end_us, flow.incomplete) = (None, None, Some(why));
    flow.elapsed_us = (why != Incomplete::NotStarted).then_some(end_us - flow.start_us);
    flow.given_up_us = (why == Incomplete::GivenUp).then_some(end_us);
}

fn sent(packets_sent: u64, retransmits: u64) -> SenderStats {
    let mut stats = SenderStats::default();
    (stats.packets_sent, stats.retransmits) = (packets_sent, retransmits);
    stats
}

fn received(order: OrderStats) -> ReceiverStats {
    let mut stats = ReceiverStats::default();
    stats.order = order;
    stats
}

/// Returns degrees with these counts of packets late by one place, two to three, four to seven.
fn degrees(counts: &[u64]) -> ReorderDegrees {
    let mut degrees = ReorderDegrees::default();
    counts.iter().enumerate().for_each(|(power, &count)| (0..count).for_each(|_| degrees.count(1 << power)));
    degrees
}

fn ports() -> Vec<PortOutcome> {
    let port = |(index, name): (usize, &str)| PortOutcome {
        name: name.into(),
        layer: name.replace(|c: char| c.is_ascii_digit(), ""),
        uplink: true,
        rate_bps: 100_000_000_000,
        counters: PortCounters {
            frames: 500,
            bytes: 2_000_000 + index as u64,
            trims: index as u64,
            drops_silent: 3,
            drops_queue: 1,
            queue_max: 5_000 * (index as u64 + 1),
            ..PortCounters::default()
        },
        queue_mean_bytes: 1_000.0 * index as f64,
        pauses: index as u64,
        paused_ps: 1_500_000 * index as u64,
    };
    ["leaf0->spine0", "leaf0->spine1", "leaf1->spine0"].into_iter().enumerate().map(port).collect()
}

fn port_samples(fcts: &[f64]) -> Vec<PortSamples> {
    let end_ps = fcts.iter().copied().fold(100.0, f64::max) * 1e6;
    let bin = |i: u32, scale: f64| {
        let queue = ((f64::from(i) / 9.0).sin().abs() * 90_000.0 * scale) as u64;
        Bin {
            queue_max: queue,
            queue_sum: 4 * queue,
            queued: 4,
            sent_bytes: (12_000.0 * scale) as u64,
            ..Bin::default()
        }
    };
    let bins = |port| (1..=80).map(|i| bin(i, 1.0 / (1.0 + port as f64))).collect();
    let bin_ps = (end_ps / 80.0) as u64;
    let series = |port| PortSamples { port, bin_ps, before: Bin::default(), bins: bins(port) };
    (0..3).map(series).collect()
}

fn events() -> Vec<EventRow> {
    let event = |time_us, kind, subject: &str, detail: &str| EventRow {
        time_us,
        kind,
        subject: subject.into(),
        detail: detail.into(),
        ..EventRow::default()
    };
    let failure = event(50.0, EventKind::Failure, "leaf0->spine0", "");
    vec![
        EventRow { action: "rate", value: Some(0.5), until_us: Some(120.0), ..failure },
        event(62.125, EventKind::FreezeEntered, "h0", "flow 0, \"first\""),
        event(91.5, EventKind::LastDrop, "leaf0->spine0", ""),
        event(120.0, EventKind::Recovered, "leaf0->spine0", ""),
    ]
}

#[test]
fn summary_adds_up_flows_and_ports() {
    let s = sample("reps", "silent drop", &[100.0, 200.0, 160.0, 180.0]).summary();
    let FlowFigures { fct_mean_us, fct_p50_us, fct_p99_us, fct_max_us, fct_cv, makespan_us, .. } = s.flows;
    assert_eq!((s.flows.flows_total, s.flows.flows_completed), (4, 4));
    assert_eq!([fct_mean_us, fct_p50_us, fct_p99_us, fct_max_us], [160.0, 160.0, 200.0, 200.0].map(Some));
    assert_eq!((s.flows.fct_p99_9_us, fct_cv), (None, Some(0.234)), "too few for a p99.9");
    // Each host's link is busy for 80 us, and the latency is 2 us.
    assert_eq!((makespan_us, s.flows.jct_ratio, s.flows.goodput_gbps), (Some(200.0), Some(2.439), 160.0));
    assert_eq!((s.flows.packets_sent, s.flows.retransmits, s.flows.resent_percent), (1_200, 6, 0.5));
    assert_eq!((s.flows.reordered_packets, s.flows.reordered_percent), (8, 0.667));
    assert_eq!((s.fabric.drops, s.fabric.drops_queue, s.fabric.drops_link, s.fabric.trims), (12, 3, 9, 3));
    assert!(s.is_complete());
}

#[test]
fn summary_has_the_queues_of_all_ports_and_by_layer() {
    let mut run = sample("ops", "healthy", &[100.0]);
    run.ports[2].layer = "spine->leaf".into();
    let host = PortOutcome { layer: "host->leaf".into(), queue_mean_bytes: 9e9, ..PortOutcome::default() };
    run.ports.push(host);
    let s = run.summary();
    assert_eq!((s.fabric.queue_max_bytes, s.fabric.queue_mean_bytes), (15_000, 1_000.0));
    let layer = |layer: &str, ports, queue_max_bytes, queue_mean_bytes| LayerFigures {
        layer: layer.into(),
        ports,
        queue_max_bytes,
        queue_mean_bytes,
        overload_percent: 0.0,
    };
    assert_eq!(s.layers, [layer("leaf->spine", 2, 10_000, 500.0), layer("spine->leaf", 1, 15_000, 2_000.0)]);
}

#[test]
fn uplinks_are_as_even_as_the_worst_layer() {
    let mut run = sample("ops", "healthy", &[100.0]);
    run.ports[2].layer = "spine->leaf".into();
    (run.ports[0].counters.bytes, run.ports[1].counters.bytes) = (3_000, 1_000);
    let s = run.summary();
    assert_eq!([s.fabric.jain_uplinks, s.fabric.max_mean_uplinks, s.fabric.cv_uplinks], [0.8, 1.5, 0.5].map(Some));
    assert_eq!(s.layers[0].overload_percent, 50.0);
}

#[test]
fn a_run_without_started_flows_has_no_figures_and_is_never_best() {
    let mut run = sample("ecmp", "healthy", &[100.0, 200.0]);
    run.flows.iter_mut().for_each(|flow| incomplete(flow, Incomplete::NotStarted, 0.0));
    let s = run.summary();
    assert_eq!((s.flows.flows_completed, s.flows.flows_not_started, s.flows.goodput_gbps), (0, 2, 0.0));
    let FlowFigures { fct_mean_us, fct_p50_us, fct_p99_us, fct_max_us, makespan_us, jct_ratio, .. } = s.flows;
    assert_eq!([fct_mean_us, fct_p50_us, fct_p99_us, fct_max_us, makespan_us, jct_ratio], [None; 6]);
    assert!(!s.is_complete() && s.lower_bounds.is_empty());
    let json = serde_json::to_value(&s).unwrap();
    assert!(json["fct_mean_us"].is_null() && json["workloads"][0]["slowdown_p99"].is_null(), "{json}");
    assert_eq!(serde_json::from_value::<Summary>(json).unwrap(), s);
    // Beside a complete run: a dash, and the number of completed flows.
    let all = [s, sample("reps", "healthy", &[100.0]).summary()];
    for table in [table(&all), sweep_table(&all)] {
        let line: Vec<&str> = table.lines().nth(2).unwrap().split_whitespace().collect();
        assert!(line.contains(&"-") && line.iter().any(|cell| cell.starts_with("0/")), "{table}");
        assert!(!line.contains(&"-0.0"), "{table}");
    }
    assert!(
        csv(&run, "workloads").lines().nth(1).unwrap().contains(",2,0,0.000,0,,,0,2,,,,,,,,,0.000,,,,"),
        "{}",
        csv(&run, "workloads")
    );
}

/// The fast flow completed; of the others, one was given up and one cut off. The mean of completed
/// flows alone would be 100 us.
#[test]
fn an_incomplete_flow_counts_with_its_elapsed_time() {
    let mut run = sample("ecmp", "healthy", &[100.0, 100.0, 100.0, 100.0]);
    (run.end_us, run.time_limit_us, run.give_up_us) = (1000.0, Some(1000.0), Some(200.0));
    incomplete(&mut run.flows[1], Incomplete::GivenUp, 700.0);
    incomplete(&mut run.flows[2], Incomplete::CutOff, 1000.0);
    incomplete(&mut run.flows[3], Incomplete::NotStarted, 0.0);
    run.flows[2].receiver.bytes = 250_000;
    let s = run.summary();
    let FlowFigures { flows_given_up, flows_cut_off, flows_not_started, given_up_first_us, .. } = s.flows;
    assert_eq!((flows_given_up, flows_cut_off, flows_not_started, given_up_first_us), (1, 1, 1, Some(700.0)));
    assert_eq!(
        (s.flows.fct_mean_us, s.flows.fct_max_us, s.flows.makespan_us),
        (Some(600.0), Some(1000.0), Some(1000.0))
    );
    // 1.25 MB in 1 ms.
    assert_eq!((s.flows.goodput_gbps, s.flows.completed_percent, s.flows.fct_cv), (10.0, 25.0, None));
    let bounds = "fct_mean_us fct_p50_us fct_p99_us fct_max_us makespan_us jct_ratio slowdown_mean slowdown_p99";
    assert_eq!(s.lower_bounds.join(" "), bounds);
    assert_eq!(s.workloads[0].lower_bounds, s.lower_bounds);
    assert_eq!((s.time_limit_us, s.give_up_us), (Some(1000.0), Some(200.0)));
    let whole = sample("reps", "healthy", &[400.0, 500.0]).summary();
    let both = [s.clone(), whole.clone()];
    for text in [table(&both), sweep_table(&both)] {
        assert!(text.lines().nth(2).unwrap().contains("  > 600.0  "), "{text}");
        assert!(text.contains("warning: not all flows completed: ecmp 25.0 % (1 of 4)\n"), "{text}");
        assert!(text.contains("`give_up_us`") && text.contains("`time_limit_us`"), "{text}");
    }
    let folder = spray_test_support::Folder::new();
    let both = [s, whole];
    write_sweep(folder.path(), &both).unwrap();
    let csv = folder.read("runs.csv");
    assert!(
        csv.lines()
            .nth(1)
            .unwrap()
            .contains(&format!(",false,{bounds},1000.000,200.000,4,1,25.000,1,700.000,700.000,1,1,600.000,")),
        "{csv}"
    );
    assert!(csv.lines().nth(2).unwrap().contains(",true,,,,2,2,100.000,0,,,0,0,450.000,"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&folder.read("sweep.json")).unwrap();
    let figures = |run: usize| json[run]["figures"]["fct_mean_us"]["lower_bound"].clone();
    assert_eq!((figures(0), figures(1)), (true.into(), false.into()));
    assert_eq!(json[0]["figures"]["completed_percent"]["mean"], 25.0);
}

#[test]
fn results_without_payload_do_not_report_verification() {
    let run = RunResult { payload_verified: None, ..sample("reps", "healthy", &[100.0]) };
    let (summary, text) = (run.summary(), serde_json::to_string(&run.summary()).unwrap());
    assert!(summary.is_complete() && !text.contains("payload_verified"), "{text}");
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
    assert!(table(&[run.summary()]).lines().nth(2).unwrap().ends_with(" -"));
}

#[test]
fn summary_json_round_trips_and_has_the_documented_keys() {
    let summary = sample("reps", "healthy", &[100.0]).summary();
    let text = serde_json::to_string(&summary).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let whole = RunResult { sim: Some(SimFigures::default()), ..sample("reps", "healthy", &[100.0]) }.summary();
    for measure in measures::all() {
        let optional = measure.of(&whole).is_none();
        assert!(optional || value.get(measure.key).is_some() || measure.of(&summary).is_none(), "{}", measure.key);
        assert_eq!(measures::all().filter(|other| other.key == measure.key).count(), 1, "{}", measure.key);
    }
    assert_eq!(value["fct_p99_us"], 100.0);
}

#[test]
fn the_summary_has_the_counters_of_switch_schemes() {
    let mut run = sample("reps", "healthy", &[100.0]);
    let named = |run: &RunResult| {
        let value = serde_json::to_value(run.summary()).unwrap();
        (value["switch"].clone(), value.get("hash").cloned())
    };
    assert_eq!(named(&run), ("ecmp".into(), None));
    run.switching = Switching::all(Scheme::Ofan);
    assert_eq!(named(&run), ("ofan".into(), None));
    run.switching.schemes = vec![Scheme::Ecmp, Scheme::Rr, Scheme::Rr];
    run.switching.hash.function = HashFunction::Crc16;
    run.switching.hash_seed = HashSeed::Same;
    let hash = serde_json::json!({ "function": "crc16", "fields": "five-tuple", "seed": "same" });
    assert_eq!(named(&run), ("tor=ecmp,agg=rr,core=rr".into(), Some(hash)));
}

/// Returns a table of the run as CSV.
fn csv(run: &RunResult, table: &str) -> String {
    let tables = tables::of_run(run, &run.summary());
    columns::csv(&tables.iter().find(|(name, _)| *name == table).unwrap().1)
}

#[test]
fn csv_files_are_as_documented() {
    let mut run = sample("reps", "healthy", &[100.0, 123.4567]);
    incomplete(&mut run.flows[1], Incomplete::CutOff, 200.0);
    run.flows[0].sender.drained_ps = 12_500_000;
    run.flows[0].receiver.order = OrderStats { reordered: 2, unexpected: 5, degrees: degrees(&[2, 0, 1]) };
    let [workload, balancer, control] = ["storage", "ops", "nscc"].map(String::from);
    (run.flows[0].workload, run.flows[0].balancer, run.flows[0].congestion_control) = (workload, balancer, control);
    (run.flows[0].unloaded_fct_us, run.flows[0].step) = (80.0, Some(3));
    let expected = "engine,scenario,condition,balancer,congestion_control,switch,seed,flow,src,dst,bytes,start_us,end_us,fct_us,retransmits,reordered,drained_us,unexpected,degrees,\
                    workload,flow_balancer,flow_congestion_control,slowdown,unloaded_fct_us,step,incomplete,elapsed_us\n\
                    xdp,demo,healthy,reps,dctcp,ecmp,7,0,h0,h4,1000000,0.000,100.000,100.000,0,2,12.500,5,2 0 1,storage,ops,nscc,1.250,80.000,3,,\n\
                    xdp,demo,healthy,reps,dctcp,ecmp,7,1,h1,h5,1000000,0.000,,,1,2,0.000,0,,,,,,82.000,,cut-off,200.000\n";
    assert_eq!(csv(&run, "flows"), expected);
    let evs = |value| Axis { path: "transport.evs".into(), value: AxisValue::Whole(value) };
    let ack = Axis { path: "x".into(), value: AxisValue::Text("a,b".into()) };
    run.axes = vec![evs(32), ack];
    let events = csv(&run, "events");
    let lines: Vec<&str> = events.lines().collect();
    assert_eq!(
        lines[0],
        "engine,scenario,condition,balancer,congestion_control,switch,seed,transport.evs,x,time_us,kind,subject,action,value,until_us,packet,detail"
    );
    let leading = "xdp,demo,healthy,reps,dctcp,ecmp,7,32,\"a,b\"";
    assert_eq!(lines[1], format!("{leading},50.000,failure,leaf0->spine0,rate,0.500,120.000,,"));
    assert_eq!(lines[2], format!("{leading},62.125,freeze_entered,h0,,,,,\"flow 0, \"\"first\"\"\""));
    let ports = csv(&sample("reps", "healthy", &[100.0]), "ports");
    let own = "leaf0->spine1,true,100.000,500,2000001,0,0,1,1,3,0,0,10000,1000.000,leaf->spine,1,1.500";
    assert_eq!(ports.lines().nth(2), Some(format!("xdp,demo,healthy,reps,dctcp,ecmp,7,{own}").as_str()));
    assert_eq!(csv(&run, "goodput").lines().nth(2).unwrap().rsplit(',').next(), Some("160.000"));
    assert_eq!(csv(&run, "queues").lines().count(), 1 + 3 * 80);
}

/// Every table of a run has the same content in Parquet and in CSV.
#[test]
fn parquet_and_csv_have_the_same_content() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    let mut run = sample("reps", "healthy", &[100.0, 123.4567]);
    incomplete(&mut run.flows[1], Incomplete::GivenUp, 200.0);
    let axis = |path: &str, value| Axis { path: path.into(), value };
    run.axes = vec![
        axis("a.b", AxisValue::Number(0.25)),
        axis("c", AxisValue::Flag(true)),
        axis("d", AxisValue::Text("x \"y\"".into())),
    ];
    for (name, columns) in tables::of_run(&run, &run.summary()) {
        let file = bytes::Bytes::from(columns::parquet(&columns).unwrap());
        let reader = SerializedFileReader::new(file).unwrap();
        let mut rows = reader.get_row_iter(None).unwrap();
        let csv = columns::csv(&columns);
        let mut lines = csv.lines();
        assert_eq!(
            lines.next().unwrap(),
            columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(",")
        );
        let mut count = 0;
        for line in lines {
            let row = rows.next().unwrap().unwrap();
            let fields = row.get_column_iter().zip(&columns).map(|((name, field), column)| {
                assert_eq!(*name, column.name);
                match (field, column.kind) {
                    (Field::Null, _) => String::new(),
                    (Field::Str(text), _) if text.contains([',', '"']) => format!("\"{}\"", text.replace('"', "\"\"")),
                    (Field::Str(text), _) => text.clone(),
                    (Field::Long(number), _) => number.to_string(),
                    (Field::Double(number), columns::Kind::Real(Some(3))) => format!("{number:.3}"),
                    (Field::Double(number), _) => number.to_string(),
                    (Field::Bool(flag), _) => flag.to_string(),
                    other => panic!("{other:?}"),
                }
            });
            assert_eq!(fields.collect::<Vec<_>>().join(","), line, "{name}");
            count += 1;
        }
        assert!(rows.next().is_none() && count > 0, "{name}");
    }
}

#[test]
fn every_key_and_column_has_a_description() {
    let found = documentation();
    for undescribed in [" |  |\n", "| |\n"] {
        assert!(!found.contains(undescribed), "a key or column has no description");
    }
}

#[test]
fn the_table_is_aligned_in_columns() {
    let runs = [sample("ecmp", "healthy", &[100.0, 200.0]), sample("reps", "half-rate uplink", &[100.0, 120.0])];
    let expected = "\
condition         switch  balancer   Gb/s  mean us  p99 us  max us  drops:queue  link  random  trims  retx  reordered  loss us   payload
----------------  ------  --------  -----  -------  ------  ------  -----------  ----  ------  -----  ----  ---------  -------  --------
healthy           ecmp    ecmp       80.0    150.0   200.0   200.0            3     9       0      3     1          4     41.5  verified
half-rate uplink  ecmp    reps      133.3    110.0   120.0   120.0            3     9       0      3     1          4     41.5  verified
p99 of 2 flows rests on the slowest; a p99 to rely on needs 1000 flows
time dilated 400 times; late frames per run (emulation error, 0 is exact): 0; p99 0 us
";
    assert_eq!(table(&runs.map(|run| run.summary())), expected);
}

#[test]
fn drains_are_shown_if_any_flow_drained() {
    let mut run = sample("flowcut", "healthy", &[100.0, 200.0, 400.0]);
    for (flow, drained_us) in run.flows.iter_mut().zip([10, 50, 399]) {
        flow.sender.drained_ps = drained_us * 1_000_000;
    }
    // Incomplete flows count with the share up to the end of the run.
    incomplete(&mut run.flows[2], Incomplete::CutOff, 399.0);
    assert_eq!(run.summary().flows.drain_percent_of_fct, 45.0);
    let text = table(&[sample("ecmp", "healthy", &[100.0]).summary(), run.summary()]);
    assert!(text.lines().next().unwrap().trim_end().ends_with("payload"), "{text}");
    let ends = |line: usize, end: &str| text.lines().nth(line).unwrap().ends_with(end);
    assert!(ends(2, "            0.00           verified") && ends(3, "45.00  2/3 flows, 66.6 %"), "{text}");
}

#[test]
fn the_table_names_failures() {
    let mut lossy = sample("ops", "healthy", &[100.0, 200.0]);
    lossy.testbed_losses = TestbedLosses { veth: 3, rx_ring_full: 2, ..Default::default() };
    lossy.payload_verified = Some(false);
    (lossy.engine_figures.late_packets, lossy.engine_figures.lateness_p99_us) = (7, 1.5);
    let mut unfinished = sample("ecmp", "healthy", &[100.0, 200.0]);
    incomplete(&mut unfinished.flows[0], Incomplete::CutOff, 200.0);
    let text = table(&[lossy.summary(), unfinished.summary()]);
    assert!(text.contains("WRONG\n") && text.contains("1/2 flows, 50.0 %\n"), "{text}");
    assert!(
        text.contains(
            "late frames per run (emulation error, 0 is exact): 0 to 7; p99 at most 1.500 us (healthy, ops)\n"
        ),
        "{text}"
    );
    let warning = "warning: healthy, ops: the testbed itself lost 5 frames (veth 3, rx ring 2, fill ring 0, other 0)\n";
    assert!(text.contains(warning), "{text}");
}

#[test]
fn a_run_is_written_completely_or_not_at_all_and_read_again() {
    let folder = spray_test_support::Folder::new();
    let dir = folder.path();
    let mut run = sample("reps", "Silent drop!", &[100.0, 120.0]);
    run.axes = vec![Axis { path: "transport.evs".into(), value: AxisValue::Whole(32) }];
    let name = folder_name(&run.condition, &run.axes, &run.switching, &run.balancer, run.seed);
    let conga = Switching::all(Scheme::Conga);
    assert_eq!(folder_name("healthy", &[], &conga, "ops", 3), "healthy-conga-ops-seed3");
    assert_eq!(name, "silent-drop-evs=32-reps-seed7");
    let part = dir.join(format!("{name}{PART}"));
    std::fs::create_dir_all(part.join("left behind")).unwrap();
    let record = Record { key: "k".into(), seed: 7, machine: Machine::this(), ..Record::default() };
    write_run(&dir.join(&name), &run, "name = \"x\"\n", &record, Extras::default()).unwrap();
    assert!(!part.exists());
    for table in ["flows", "ports", "events", "goodput", "queues", "evs"] {
        let is_there = |kind: &str| dir.join(&name).join(format!("{table}.{kind}")).is_file();
        assert_eq!([is_there("parquet"), is_there("csv")], [true, !tables::SERIES.contains(&table)], "{table}");
    }
    assert_eq!(FinishedRun::record(&dir.join(&name)), Some(record.clone()));
    let found = FinishedRun::load(dir, &name).unwrap();
    assert_eq!((found.summary.clone(), found.folder.as_str()), (run.summary(), name.as_str()));
    assert_eq!((found.fct_us.len(), found.fct_us[0], found.fct_us[51]), (101, 100.0, 120.0));
    assert_eq!((found.delivered.len(), found.delivered[100]), (101, (200.0, 4_000_000.0)));
    write_overview(dir, std::slice::from_ref(&found)).unwrap();
    assert!(folder.read("report.html").contains(&format!("href=\"{name}/report.html\"")));
    assert!(
        write_run(&dir.join(&name), &run, "", &record, Extras::default()).is_err(),
        "existing files are not overwritten"
    );
}

#[test]
fn completion_by_workload_is_read_again() {
    let folder = spray_test_support::Folder::new();
    let mut run = sample("reps", "healthy", &[100.0, 120.0, 130.0]);
    let load = |run: &RunResult, name: &str| {
        write_run(&folder.path().join(name), run, "", &Record::default(), Extras::default()).unwrap();
        FinishedRun::load(folder.path(), name).unwrap()
    };
    assert_eq!(load(&run, "one").workloads, []);
    run.flows[1].workload = "background".into();
    run.flows[1].unloaded_fct_us = 48.0;
    incomplete(&mut run.flows[2], Incomplete::CutOff, 164.0);
    let found = load(&run, "two");
    let names: Vec<&str> = found.summary.workloads.iter().map(|own| own.name.as_str()).collect();
    assert_eq!((names.len(), names[1], found.workloads.len()), (2, "background", 2));
    let [first, second] = &found.workloads[..] else { panic!("two workloads") };
    assert_eq!((first.fct_us.len(), first.fct_us[0]), (51, 100.0), "half of its flows completed");
    assert_eq!((first.sizes[0].flows, first.sizes[0].p99), (2, 2.0), "an incomplete flow counts with its elapsed time");
    assert_eq!((&second.fct_us, second.sizes[0].mean), (&vec![120.0; 101], 2.5));
    assert_eq!(found.fct_us.len(), 67, "of all flows");
}

#[test]
fn write_run_reports_the_path_of_an_error() {
    let run = sample("reps", "healthy", &[1.0]);
    let error =
        write_run(std::path::Path::new("/proc/nowhere"), &run, "", &Record::default(), Extras::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot write /proc/nowhere.part/scenario.toml"), "{error}");
}
