//! Client and server over an in-memory network.

use serde_json::Value;
use spray_nic::device::{MemoryDevice, MemoryNetwork};
use spray_nic::{Endpoint, EndpointConfig, EndpointEvent, Peer, Time};

use super::adjust;
use super::board::Board;
use super::client::Client;
use super::format::{Message, Request, What};
use super::interval::Interval;
use super::measured::Measured;
use super::plan::Plan;
use super::serve::{Server, has_room};
use crate::failure::Outcome;
use crate::session::End;

const US: u64 = 1_000_000;
const MS: u64 = 1000 * US;

fn endpoint(network: &MemoryNetwork, number: u8) -> (Endpoint<MemoryDevice>, Peer) {
    let (address, mac) = ([10, 0, 0, number].into(), [2, 0, 0, 0, 0, number]);
    let mut config = EndpointConfig::real(address, mac, 3498).unwrap();
    adjust(&mut config);
    (Endpoint::new(network.attach(mac), config).unwrap(), Peer { address, mac })
}

/// Measures for 20 ms on two connections, with intervals of 5 ms, and returns the JSON.
fn measure(what: What, bytes: u32) -> Value {
    planned(what, bytes, |plan| plan).json("server")
}

/// Measures with a plan modified by `change`.
fn planned(what: What, bytes: u32, change: impl Fn(Plan) -> Plan) -> Measured {
    let request = Request { what, bytes, seconds: 60, rate_bps: 0 };
    let plan = Plan { request, parallel: 2, load: 0, time_ps: 20 * MS, interval_ps: 5 * MS };
    measure_with(change(plan))
}

fn measure_with(plan: Plan) -> Measured {
    let (measured, outcome) = measure_until(plan, u64::MAX);
    outcome.unwrap();
    measured
}

/// Measures with a server that disappears at this time.
fn measure_until(plan: Plan, gone_ps: u64) -> (Measured, Outcome) {
    let network = MemoryNetwork::default();
    let ((mut client, _), (mut server, peer)) = (endpoint(&network, 1), endpoint(&network, 2));
    let board = Board::new(1);
    let mut client_role = Client::all(plan, peer, &board).remove(0);
    let (mut server_role, mut now) = (Server::default(), Time::ZERO);
    loop {
        now = now.after(if now.ps() < gone_ps { 5 * US } else { MS });
        assert!(now.ps() < if gone_ps == u64::MAX { 1000 } else { 20_000 } * MS, "the measurement does not end");
        network.advance(now);
        client.poll(now);
        if now.ps() < gone_ps {
            server.poll(now);
            assert!(server_role.step(&mut server, now).is_ok());
        }
        if let Err(End(outcome)) = client_role.step(&mut client, now) {
            if outcome.is_err() {
                client_role.break_off();
            }
            return (Client::together(vec![client_role]), outcome);
        }
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn intervals_of_each_direction_add_up() {
    for (what, ways) in [(What::Up, &[true][..]), (What::Down, &[false]), (What::Both, &[true, false])] {
        let report = measure(what, 100_000);
        for (sender, suffix) in ways.iter().zip(["", "_bidir_reverse"]) {
            let intervals = report["intervals"].as_array().unwrap().iter().map(|ways| &ways[format!("sum{suffix}")]);
            let (own, theirs) = if *sender { ("sent", "received") } else { ("received", "sent") };
            let [own, theirs] = [own, theirs].map(|side| &report["end"][format!("sum_{side}{suffix}")]);
            assert!(intervals.clone().all(|way| way["sender"] == *sender), "{report}");
            let sum: f64 = intervals.clone().map(|way| number(&way["bytes"])).sum();
            // The last interval counts what was in flight at the end of the measurement.
            assert_eq!(sum, number(&own["bytes"]), "{what:?}");
            assert!((5..20).contains(&intervals.count()), "{what:?}: {report}");
            assert!(sum > 1e6, "{what:?}: {sum} bytes");
            let (bps, expected) = (number(&own["bits_per_second"]), sum * 8.0 / number(&own["seconds"]));
            assert!((bps - expected).abs() < 1e-3 * bps, "{bps} {expected}");
            assert!((0.02..0.1).contains(&number(&own["seconds"])), "{what:?}: {report}");
            assert_eq!(number(&theirs["bytes"]), sum, "{what:?}: {report}");
        }
        let end = &report["end"];
        assert_eq!(end["sum_sent_bidir_reverse"].is_null(), what != What::Both, "{report}");
        assert!(number(&end["cpu_utilization_percent"]["remote_total"]) >= 0.0, "{report}");
        assert!(end["latency_us"].is_null(), "{report}");
    }
}

/// The server's figures are missing whether it disappears before or after the end; totals cover the
/// time until then.
#[test]
fn a_server_that_disappears_is_an_error() {
    let usual = planned(What::Latency, 64, |plan| plan).plan;
    for what in [What::Up, What::Down, What::Both, What::Latency] {
        for time_ps in [20 * MS, 15_000 * MS] {
            let rate_bps = if what == What::Latency { 0 } else { 100_000_000 };
            let request = Request { what, bytes: 1000, seconds: 60, rate_bps };
            let (measured, outcome) = measure_until(Plan { request, time_ps, ..usual }, 12 * MS);
            let (why, report) = (outcome.unwrap_err().to_string(), measured.json("server"));
            assert!(why.starts_with("10.0.0.2"), "{what:?}: {why}");
            let end = |way: &Interval| way.seconds < 0.015 && way.seconds > 0.005 && way.bytes > 0;
            assert!(measured.total.iter().all(end), "{what:?}: {report}");
            assert!(measured.server.is_none(), "{what:?}: {report}");
        }
    }
}

#[test]
fn a_rate_is_kept_in_both_directions() {
    for what in [What::Up, What::Down] {
        let slow = |mut plan: Plan| {
            plan.request.rate_bps = 40_000_000;
            plan
        };
        let report = planned(what, 1000, slow).json("server");
        let bytes = number(&report["end"]["sum_received"]["bytes"]).min(number(&report["end"]["sum_sent"]["bytes"]));
        // Two connections for 20 ms.
        assert!((190_000.0..210_000.0).contains(&bytes), "{what:?}: {report}");
    }
}

/// Returns the sent and received payload of each direction, as counted by both sides.
fn counted(measured: &Measured) -> Vec<[u64; 2]> {
    let server = measured.server.unwrap();
    let way =
        |way: &Interval| if way.sender { [way.bytes, server.received_bytes] } else { [server.sent_bytes, way.bytes] };
    measured.total.iter().map(way).collect()
}

#[test]
fn both_sides_count_the_same_payload() {
    for what in [What::Up, What::Down, What::Both] {
        for bytes in [10, 1_000, 100_000, 1 << 20] {
            let rate_bps = if bytes < 100_000 { 100_000_000 } else { 0 };
            let request = |plan: Plan| Request { rate_bps, ..plan.request };
            let change = |plan| Plan { request: request(plan), time_ps: 2 * MS, ..plan };
            let measured = planned(what, bytes, change);
            let ways = counted(&measured);
            assert_eq!(ways.len(), if what == What::Both { 2 } else { 1 });
            assert!(ways.iter().all(|[sent, received]| sent == received && *sent > 0), "{what:?} {bytes}: {ways:?}");
        }
    }
}

#[test]
fn round_trips_are_measured_sequentially() {
    let report = measure(What::Latency, 64);
    let us = &report["end"]["latency_us"];
    let (count, p50) = (number(&us["count"]), number(&us["p50"]));
    // The in-memory network has no delay; the clock advances by 5 us.
    assert!((5.0..60.0).contains(&p50), "{report}");
    assert!(count * p50 / 2.0 < 30_000.0 && count > 100.0, "{report}");
    assert!(report["intervals"].as_array().unwrap().is_empty());
    let rising = ["min", "p50", "p90", "p99", "p99_9", "p99_99", "max"].map(|name| number(&us[name]));
    assert!(rising.is_sorted() && (rising[0]..=rising[6]).contains(&number(&us["mean"])), "{report}");
}

#[test]
fn round_trips_are_measured_under_load() {
    let report = planned(What::Latency, 64, |plan| Plan { load: 1, ..plan }).json("server");
    assert!(number(&report["end"]["sum_sent"]["bytes"]) > 1e6, "{report}");
    assert!(number(&report["end"]["latency_us"]["count"]) > 10.0, "{report}");
    let [sent, received] = ["sum_sent", "sum_received"].map(|sum| number(&report["end"][sum]["bytes"]));
    assert_eq!(sent, received, "{report}");
}

#[test]
fn a_client_without_a_request_is_disconnected() {
    let network = MemoryNetwork::default();
    let ((mut client, _), (mut server, peer)) = (endpoint(&network, 1), endpoint(&network, 2));
    let (mut server_role, mut now) = (Server::default(), Time::ZERO);
    client.connect(now, peer, None).unwrap();
    let ended = loop {
        now = now.after(50 * MS);
        network.advance(now);
        client.poll(now);
        server.poll(now);
        assert!(server_role.step(&mut server, now).is_ok());
        if std::iter::from_fn(|| client.poll_event()).any(|event| matches!(event, EndpointEvent::Failed { .. })) {
            break now;
        }
        assert!(now.ps() < 20_000 * MS, "the idle client is not disconnected");
    };
    assert!(ended.ps() > 10_000 * MS && server.connections() == 0, "{ended:?}");
}

/// 64 connections, from one address or from 64, that send a byte every 2 s after their requests.
#[test]
//= docs/specs/endpoint.md#END-27 holds 64 connections
fn slow_clients_do_not_keep_others_out() {
    for hosts in [1, 64] {
        let network = MemoryNetwork::default();
        let (_, peer) = endpoint(&network, 2);
        let mut config = EndpointConfig::real(peer.address, [2, 0, 0, 0, 0, 200], 3498).unwrap();
        has_room(&mut config);
        let peer = Peer { mac: config.mac, ..peer };
        let mut server = Endpoint::new(network.attach(config.mac), config).unwrap();
        let request = Request { what: What::Up, bytes: 1, seconds: 9999, rate_bps: 0 };
        let mut slow: Vec<_> = (0..hosts).map(|host| endpoint(&network, 10 + host).0).collect();
        let mut connections = Vec::new();
        for place in 0..64 {
            let host = place % usize::from(hosts);
            let connection = slow[host].connect(Time::ZERO, peer, None).unwrap();
            slow[host].send(connection, Message::Request(request).encode()).unwrap();
            connections.push((host, connection));
        }
        let (mut client, _) = endpoint(&network, 1);
        let (mut server_role, mut now, mut connection) = (Server::default(), Time::ZERO, None);
        let mut is_open = false;
        while now.ps() < 40_000 * MS {
            now = now.after(20 * MS);
            network.advance(now);
            if now.ps() % (2000 * MS) == 0 {
                // An evicted connection sends nothing more.
                for &(host, id) in &connections {
                    let _ = slow[host].send(id, vec![2].into());
                }
            }
            if now.ps() == 25_000 * MS {
                assert_eq!(server.connections(), 64, "all places are occupied");
                connection = Some(client.connect(now, peer, None).unwrap());
                client.send(connection.unwrap(), Message::Request(request).encode()).unwrap();
            }
            for endpoint in slow.iter_mut().chain([&mut client, &mut server]) {
                endpoint.poll(now);
            }
            assert!(server_role.step(&mut server, now).is_ok());
            while let Some(event) = client.poll_event() {
                assert!(!matches!(event, EndpointEvent::Failed { .. }), "{hosts} hosts: {event:?}");
                is_open |= matches!(event, EndpointEvent::Delivered { .. });
            }
            if let Some(id) = connection.filter(|_| is_open) {
                let _ = client.send(id, vec![2; 100_000].into());
            }
        }
        assert!(is_open, "{hosts} hosts");
        assert_eq!(server.connections(), 64, "one of them was evicted");
    }
}
