//! `spray tunnel`: kernel TCP over it, while links fail, and while an end is restarted.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use spray_benches::net::Pair;
use spray_test_support::text;
use spray_tests::real_network::{Condition, Contender, transfer};
use spray_tests::routers::Routers;
use spray_tests::running::{Running, both_ways, wait_until};
use spray_tests::{shared_turn, spray, turn};

use crate::metrics::{request, value};

#[test]
fn tcp_through_a_tunnel_survives_a_link_failure() {
    let Some(_turn) = turn() else { return };
    let routers = Routers::new().unwrap();
    // Only the size of the file is used: other bytes are sent.
    let folder = spray_test_support::Folder::new();
    let file = folder.file("payload", vec![0; 24 << 20]);
    let command = spray();
    for condition in [Condition::Healthy, Condition::Silent] {
        let tunnel = Contender::Tunnel(Vec::new());
        let done = transfer(&routers, command.get_program().as_ref(), file.as_ref(), &tunnel, condition).unwrap();
        assert!(done.mbps.is_some(), "{}: {}", condition.name(), done.output);
        assert!(!done.output.contains("connecting again"), "{}: {}", condition.name(), done.output);
    }
}

fn end(pair: &Pair, side: usize, rest: &[&str]) -> Running {
    let peer = Pair::address(1 - side, false).to_string();
    let address = format!("10.9.0.{}/24", side + 1);
    let mut command = spray();
    command.args(["tunnel", "--insecure", "--interface", Pair::INTERFACE, "--peer", &peer, "--address", &address]);
    command.args(rest).stdout(Stdio::null()).stderr(Stdio::piped());
    Running(pair.run_in(side, || command.spawn()).unwrap().unwrap())
}

/// Sends different bytes in both directions of one TCP connection at the same time, and compares
/// them.
fn exchange(pair: &Pair, port: u16) {
    let listener = pair.run_in(1, || TcpListener::bind(("10.9.0.2", port))).unwrap().unwrap();
    let near = pair.run_in(0, || TcpStream::connect(("10.9.0.2", port))).unwrap().unwrap();
    let (far, _) = listener.accept().unwrap();
    both_ways([near, far], 3_000_000);
}

#[test]
fn a_restarted_end_reconnects_and_ctrl_c_leaves_nothing() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    let connected = "connected to ";
    let mut far = end(&pair, 1, &["--name", "far"]);
    let mut near = end(&pair, 0, &["--name", "near", "--timeout", "1"]).until(connected);
    far = far.until(connected);
    exchange(&pair, 5001);
    // One end is killed; the other connects to its successor.
    far.kill();
    far = end(&pair, 1, &["--name", "far", "--mtu", "9000"]).until(connected);
    near = near.until("connecting again").until(connected);
    exchange(&pair, 5001);
    // A route directs packets of the tunnel into the tunnel.
    let outer = Pair::address(1, false).to_string();
    let lead = ["route", "add", &outer, "dev", "near"];
    assert!(pair.run_in(0, || Command::new("ip").args(lead).status()).unwrap().unwrap().success());
    let stray = || UdpSocket::bind(("0.0.0.0", 0))?.send_to(&[0], (outer.as_str(), 9));
    pair.run_in(0, stray).unwrap().unwrap();
    near = near.until("and dropped: see `ip route");
    for (side, running) in [&mut near, &mut far].into_iter().enumerate() {
        kill(Pid::from_raw(running.0.id() as i32), Signal::SIGINT).unwrap();
        assert_eq!(running.end().code(), Some(130), "{}", running.stderr());
        let links = pair.run_in(side, || Command::new("ip").args(["-details", "link"]).output()).unwrap().unwrap();
        let links = text(&links.stdout);
        assert!(!links.contains("near") && !links.contains("far") && !links.contains("prog/xdp"), "{links}");
    }
}

/// Packets read by each thread use its own connection, and return on any.
#[test]
fn each_thread_of_a_host_has_its_queue_and_connections() {
    let Some(_turn) = turn() else { return };
    let pair = Pair::with_queues(2).unwrap();
    let threads = std::thread::available_parallelism().unwrap().get().min(2) as f64;
    let publish = format!("{}:9464", Pair::address(1, false));
    let far = end(&pair, 1, &["--metrics", &publish]);
    let mut near = end(&pair, 0, &[]).until("connected to ");
    let far = far.until("connected to ");
    let metrics = || pair.run_in(0, || request(&publish, "/metrics")).unwrap();
    let open = || value(&metrics()?, "spray_connections");
    wait_until("all connections to be open", || open() == Some(2.0 * threads));
    std::thread::scope(|scope| {
        for flow in 0..6 {
            let pair = &pair;
            scope.spawn(move || exchange(pair, 5001 + flow));
        }
    });
    kill(Pid::from_raw(near.0.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(near.end().code(), Some(130));
    // Dropped packets are not compared, because a full queue drops some. A thread without a
    // connection would not have delivered its flows.
    let stderr = near.stderr();
    assert!(stderr.contains(" 0 refused"), "{stderr}");
    drop(far);
}

/// A public key of another machine.
const KEY: &str = "3860838b6935ac2120ee847b4a2e6cd0ecae8f5c3e33c7de0734a4522a029f5a";
const OTHERS: &str = "10.0.0.9=3860838b6935ac2120ee847b4a2e6cd0ecae8f5c3e33c7de0734a4522a029f5a";

#[test]
fn impossible_requests_are_rejected_with_the_reason() {
    for (arguments, why) in [
        (&["--peer", "10.0.0.2", "--address", "10.9.0.1/24"][..], "no key"),
        (&["--peer", "10.0.0.2", "--address", "10.9.0.1/24", "--insecure"], "there is no interface spray-nope"),
        (&["--peer", "10.0.0.2", "--address", "10.9.0.1/33", "--insecure"], "such as 10.9.0.1/24"),
        (&["--peer", "10.0.0.2", "--address", "10.0.0.5/24", "--insecure"], "would loop"),
        (&["--peer", "10.0.0.2", "--address", "10.9.0.1/0", "--insecure"], "would loop"),
        (&["--peer", "10.0.0.2", "--peer", "10.0.0.3", "--address", "10.9.0.1/24", "--insecure"], "10.0.0.2=10.9.0.2"),
        (
            &["--insecure", "--peer", "10.0.0.2=10.9.0.2", "--peer", "10.0.0.2=10.9.0.3", "--address", "10.9.0.1/24"],
            "twice",
        ),
        (
            &["--insecure", "--peer", "10.0.0.2=10.9.0.2", "--peer", "fd00::2=10.9.0.3", "--address", "10.9.0.1/24"],
            "IP version",
        ),
        (
            &[
                "--key",
                "nope",
                "--trust",
                KEY,
                "--peer",
                "10.0.0.2=10.9.0.2",
                "--peer",
                "10.0.0.3=10.9.0.3",
                "--address",
                "10.9.0.1/24",
            ],
            "--trust 10.0.0.2=KEY",
        ),
        (
            &["--key", "nope", "--trust", OTHERS, "--peer", "10.0.0.2", "--address", "10.9.0.1/24"],
            "10.0.0.2 has no key",
        ),
    ] {
        let output = spray().args(["tunnel", "--interface", "spray-nope"]).args(arguments).output().unwrap();
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains(why), "{arguments:?}: {stderr}");
    }
}
