//! `spray send` and `spray recv` on interfaces with several queues, all of which a sprayed
//! connection uses.

use std::io::Read;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use spray_benches::net::Pair;
use spray_test_support::{Folder, text};
use spray_tests::content::Content;
use spray_tests::real_network::{Condition, Contender, Transfer, transfer};
use spray_tests::routers::Routers;
use spray_tests::running::{Running, wait_until};
use spray_tests::{spray, turn};

use crate::metrics::{get, value};

/// The ports of each packet determine the receive queue of the host after the last router.
#[test]
fn a_sprayed_connection_uses_all_queues_and_loses_nothing() {
    let Some(_turn) = turn() else { return };
    let file = Content::new(4_000_000);
    let routers = Routers::with_queues(2).unwrap();
    let command = spray();
    let by = |arguments: &[&str]| -> Transfer {
        let contender = Contender::Spray(arguments.iter().map(ToString::to_string).collect());
        transfer(&routers, command.get_program().as_ref(), file.path(), &contender, Condition::Healthy).unwrap()
    };
    for balancer in ["ecmp", "ops", "reps-plus"] {
        for round in 0..2 {
            let done = by(&[&format!("--balancer={balancer}")]);
            assert!(done.mbps.is_some(), "{balancer}, round {round}: {}", done.output);
            assert!(!done.output.contains("without a socket"), "{}", done.output);
        }
    }
    // The sender uses one of its two queues, while ACKs arrive on both.
    let done = by(&["--balancer=ops", "--queue=0"]);
    assert!(done.output.contains("frames arrived on queues without a socket"), "{}", done.output);
}

fn send(pair: &Pair, file: &str, arguments: &[&str]) -> Output {
    let mut command = spray();
    let to = Pair::address(1, false).to_string();
    command.args(["send", file, "--insecure", "--interface", Pair::INTERFACE, "--to", &to]).args(arguments);
    pair.run_in(0, || command.output()).unwrap().unwrap()
}

/// Without routers frames arrive on the queue on which they were sent.
#[test]
fn frames_on_an_unused_queue_are_counted_and_reported() {
    let Some(_turn) = turn() else { return };
    let (pair, folder) = (Pair::with_queues(2).unwrap(), Folder::new());
    let file = folder.file("payload", [7; 100_000]);
    let mut command = spray();
    let from = Pair::address(1, false).to_string();
    command.args(["recv", "--insecure", "--interface", Pair::INTERFACE, "--from", &from, "--out", &folder.join("")]);
    command.stderr(Stdio::piped());
    let receiver = Running(pair.run_in(1, || command.spawn()).unwrap().unwrap()).listening();
    // The receiver's first queue answers, while the sender uses the second.
    let refused = send(&pair, &file, &["--queue", "1", "--timeout", "1"]);
    drop(receiver);
    assert_eq!(refused.status.code(), Some(1));
    let stderr = text(&refused.stderr);
    assert!(stderr.contains("frames arrived on queues without a socket and were lost: leave out --queue"), "{stderr}");
}

#[test]
fn more_queues_than_sockets_are_rejected_with_the_remedy() {
    let Some(_turn) = turn() else { return };
    let (pair, folder) = (Pair::with_queues(65).unwrap(), Folder::new());
    let refused = send(&pair, &folder.file("payload", "x"), &[]);
    let stderr = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("has 65 queues, and 64 can be served") && stderr.contains("`ethtool -L eth0 rx 1`"),
        "{stderr}"
    );
}

#[test]
fn several_connections_use_the_maximum_number_of_queues() {
    let Some(_turn) = turn() else { return };
    let pair = Pair::with_queues(64).unwrap();
    let mut server = spray();
    server.args([
        "serve",
        "--insecure",
        "--interface",
        Pair::INTERFACE,
        "--from",
        &Pair::address(1, false).to_string(),
    ]);
    let _serving =
        Running(pair.run_in(1, || server.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()).unwrap().unwrap())
            .listening();
    let mut client = spray();
    client.args(["perf", &Pair::address(1, false).to_string(), "--insecure", "--interface", Pair::INTERFACE]);
    client.args(["--json", "-t", "1", "-P", "4"]);
    let output = pair.run_in(0, || client.output()).unwrap().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let measured: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(measured["interface"]["queues"], 64, "{measured}");
    assert!(measured["end"]["sum_sent"]["bytes"].as_u64().unwrap() > 1 << 20, "{measured}");
}

/// With routers half of the frames arrive on the queue of the other thread, which forwards them.
#[test]
fn a_thread_for_each_queue_serves_and_measures() {
    let Some(_turn) = turn() else { return };
    let routers = Routers::with_queues(2).unwrap();
    let (mut server, folder) = (spray(), Folder::new());
    server.args(["serve", "--insecure", "--interface", Routers::INTERFACE]);
    server.args(["--metrics", &format!("{}:9464", Routers::address(1, 0))]);
    server.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut serving = Running(routers.run_in(1, || server.spawn()).unwrap().unwrap()).listening();
    let threads = std::thread::available_parallelism().unwrap().get().min(2);
    let mut received = 0;
    for (parallel, rest) in [("1", ""), ("3", ""), ("2", "-R"), ("2", "--latency")] {
        let mut client = spray();
        let address = Routers::address(1, 0).to_string();
        client.args(["perf", &address, "--insecure", "--interface", Routers::INTERFACE, "--json", "-t", "1"]);
        client.args(["-P", parallel, "--pcap", &folder.join(format!("{parallel}{rest}"))]);
        client.args((!rest.is_empty()).then_some(rest));
        let output = routers.run_in(0, || client.output()).unwrap().unwrap();
        let stderr = text(&output.stderr);
        assert!(output.status.success(), "-P {parallel} {rest}: {stderr}");
        let measured: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let expected = if parallel == "1" { 1 } else { threads };
        assert_eq!(measured["interface"]["queues"], 2, "{measured}");
        assert_eq!(measured["interface"]["threads"], expected, "{measured}");
        assert!(!stderr.contains("without a socket"), "{stderr}");
        assert!(stderr.contains("frames.pcapng: ") && !stderr.contains("not whole"), "{stderr}");
        received += if rest.is_empty() { measured["end"]["sum_sent"]["bytes"].as_u64().unwrap() } else { 0 };
        if rest == "--latency" {
            assert!(measured["end"]["latency_us"]["count"].as_u64().unwrap() > 100, "{measured}");
        } else {
            assert!(measured["end"]["sum_received"]["bytes"].as_u64().unwrap() > 1 << 20, "{measured}");
        }
    }
    let counted = || value(&get(&routers, 9464, "/metrics").unwrap_or_default(), "spray_receiver_bytes_total");
    wait_until("the metrics to include all threads", || counted().is_some_and(|sum| sum >= received as f64));
    kill(Pid::from_raw(serving.0.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(serving.end().code(), Some(130), "{}", serving.stderr());
}

/// Senders with other addresses connect to other ports, and so to other threads.
#[test]
fn a_receiver_of_many_transfers_has_a_thread_for_each_queue() {
    let Some(_turn) = turn() else { return };
    let (pair, folder) = (Pair::with_queues(2).unwrap(), Folder::new());
    let mut receiver = spray();
    receiver.args(["recv", "--insecure", "--keep", "--json", "--interface", Pair::INTERFACE]);
    receiver.args(["--from", &Pair::address(1, false).to_string(), "--out", &folder.join("")]);
    receiver.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut receiver = Running(pair.run_in(1, || receiver.spawn()).unwrap().unwrap()).listening();
    for number in 11..17 {
        let (own, content) = (format!("10.0.0.{number}"), [number; 300_000]);
        let sources = folder.path().join(&own);
        std::fs::create_dir(&sources).unwrap();
        let file = sources.join(format!("payload-{number}"));
        std::fs::write(&file, content).unwrap();
        let add = |side: usize, arguments: &[&str]| {
            let done = pair.run_in(side, || Command::new("ip").args(arguments).status()).unwrap().unwrap();
            assert!(done.success(), "{arguments:?}");
        };
        add(0, &["address", "add", &format!("{own}/24"), "dev", Pair::INTERFACE]);
        let sent = send(&pair, file.to_str().unwrap(), &["--from", &own]);
        assert!(sent.status.success(), "{own}: {}", text(&sent.stderr));
        assert!(std::fs::read(folder.path().join(format!("payload-{number}"))).unwrap() == content, "{own}");
    }
    kill(Pid::from_raw(receiver.0.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(receiver.end().code(), Some(130), "{}", receiver.stderr());
    let mut reports = String::new();
    receiver.0.stdout.take().unwrap().read_to_string(&mut reports).unwrap();
    let threads = std::thread::available_parallelism().unwrap().get().min(2);
    let reports = serde_json::Deserializer::from_str(&reports).into_iter::<serde_json::Value>();
    let reports: Vec<_> = reports.map(Result::unwrap).collect();
    assert_eq!(reports.len(), 6, "{reports:?}");
    assert!(reports.iter().all(|transfer| transfer["interface"]["threads"] == threads), "{reports:?}");
}
