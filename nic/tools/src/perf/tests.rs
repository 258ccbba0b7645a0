//! Client and server over a network in memory.

use spray_nic::device::{MemoryDevice, MemoryNetwork};
use spray_nic::{Endpoint, EndpointConfig, EndpointEvent, Peer, Time};

use super::adjust;
use super::board::Board;
use super::client::{Client, Plan};
use super::format::{Request, What};
use super::serve::Server;
use crate::session::End;

const US: u64 = 1_000_000;
const MS: u64 = 1000 * US;

fn endpoint(network: &MemoryNetwork, number: u8) -> (Endpoint<MemoryDevice>, Peer) {
    let (address, mac) = ([10, 0, 0, number].into(), [2, 0, 0, 0, 0, number]);
    let mut config = EndpointConfig::real(address, mac, 3498).unwrap();
    adjust(&mut config);
    (Endpoint::new(network.attach(mac), config).unwrap(), Peer { address, mac })
}

/// Measures for 20 ms on two connections, with a look every 5, and returns what is said as JSON.
fn measure(what: What, bytes: u32) -> serde_json::Value {
    let network = MemoryNetwork::default();
    let ((mut client, _), (mut server, peer)) = (endpoint(&network, 1), endpoint(&network, 2));
    let request = Request { what, bytes, seconds: 60 };
    let plan = Plan { request, parallel: 2, time_ps: 20 * MS, interval_ps: 5 * MS };
    let board = Board::new(1);
    let mut asks = Client::all(plan, peer, &board).remove(0);
    let (mut answers, mut now) = (Server::default(), Time::ZERO);
    loop {
        now = now.after(5 * US);
        assert!(now.ps() < 1000 * MS, "it goes on and on");
        network.advance(now);
        client.poll(now);
        server.poll(now);
        assert!(answers.step(&mut server, now).is_ok());
        if let Err(End(outcome)) = asks.step(&mut client, now) {
            outcome.unwrap();
            return asks.json("server");
        }
    }
}

#[test]
fn each_way_is_measured_in_intervals_that_add_up() {
    for (what, ways) in [(What::Up, &["up"][..]), (What::Down, &["down"]), (What::Both, &["up", "down"])] {
        let said = measure(what, 100_000);
        let (intervals, total) = (said["intervals"].as_array().unwrap(), said["total"].as_array().unwrap());
        assert_eq!(total.iter().map(|total| total["way"].as_str().unwrap()).collect::<Vec<_>>(), ways);
        for (total, way) in total.iter().zip(ways) {
            let own = intervals.iter().filter(|interval| interval["way"] == *way);
            let sum: u64 = own.clone().map(|interval| interval["bytes"].as_u64().unwrap()).sum();
            assert_eq!((own.count(), Some(sum)), (4, total["bytes"].as_u64()), "{what:?}");
            assert!(sum > 1_000_000, "{what:?}: {sum} bytes");
            let gbps = total["goodput_gbps"].as_f64().unwrap();
            assert!((gbps - sum as f64 * 8.0 / 0.02 / 1e9).abs() < 1e-3 * gbps, "{gbps}");
        }
    }
}

#[test]
fn round_trips_are_measured_one_by_one() {
    let said = measure(What::Latency, 64);
    let us = &said["latency_us"];
    let (count, p50) = (us["count"].as_u64().unwrap(), us["p50"].as_f64().unwrap());
    // The network in memory takes no time; the clock steps by 5 us.
    assert!((5.0..60.0).contains(&p50), "{said}");
    assert!((count as f64) * p50 / 2.0 < 30_000.0 && count > 100, "{said}");
    assert!(said["intervals"].as_array().unwrap().is_empty());
}

#[test]
fn who_asks_for_nothing_gives_its_place_up() {
    let network = MemoryNetwork::default();
    let ((mut client, _), (mut server, peer)) = (endpoint(&network, 1), endpoint(&network, 2));
    let (mut answers, mut now) = (Server::default(), Time::ZERO);
    client.connect(now, peer, None).unwrap();
    let ended = loop {
        now = now.after(50 * MS);
        network.advance(now);
        client.poll(now);
        server.poll(now);
        assert!(answers.step(&mut server, now).is_ok());
        if std::iter::from_fn(|| client.poll_event()).any(|event| matches!(event, EndpointEvent::Failed { .. })) {
            break now;
        }
        assert!(now.ps() < 20_000 * MS, "it may stay for ever");
    };
    assert!(ended.ps() > 10_000 * MS && server.connections() == 0, "{ended:?}");
}
