//! `spray send` and `spray recv` as two processes, in two namespaces that a veth pair joins.
#![expect(clippy::disallowed_methods, reason = "how long real processes take is what is tested")]

use std::io::{Read, Write};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use spray_benches::net::Pair;
use spray_test_support::Folder;
use spray_tests::impostor::Impostor;
use spray_tests::routers::Routers;
use spray_tests::running::{Running, inbox, payload, wait_until};
use spray_tests::{shared_turn, spray};

fn receiver(pair: &Pair, out: &Path, v6: bool) -> Running {
    let mut command = spray();
    let from = Pair::address(1, v6).to_string();
    command.args(["recv", "--insecure", "--interface", Pair::INTERFACE, "--from", &from, "--out"]).arg(out);
    let child = pair.run_in(1, || command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()).unwrap().unwrap();
    Running(child).listening()
}

fn sender(file: &Path, v6: bool, rest: &[&str]) -> Command {
    let mut command = spray();
    let to = Pair::address(1, v6).to_string();
    command.arg("send").arg(file).args(["--insecure", "--interface", Pair::INTERFACE, "--to", &to]).args(rest);
    command
}

#[test]
fn a_file_arrives_as_it_was_sent_with_either_ip_version() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    for v6 in [false, true] {
        let folder = Folder::new();
        let file = payload(&folder, 8 << 20);
        let mut receiver = receiver(&pair, &inbox(&folder), v6);
        let mut command = sender(&file, v6, &[]);
        let sent = pair.run_in(0, || command.output()).unwrap().unwrap();
        let received = receiver.end();
        assert!(sent.status.success() && received.success(), "{}", String::from_utf8_lossy(&sent.stderr));
        assert!(std::fs::read(&file).unwrap() == std::fs::read(folder.path().join("in/payload")).unwrap());
    }
}

#[test]
fn files_go_to_who_has_the_key_and_to_nobody_else() {
    let Some(_turn) = shared_turn() else { return };
    let (pair, folder) = (Pair::new().unwrap(), Folder::new());
    let file = payload(&folder, 8 << 20);
    let keygen = |name: &str| {
        let path = folder.join(name);
        let made = spray().args(["keygen", &path]).output().unwrap();
        assert!(made.status.success());
        (path, String::from_utf8(made.stdout).unwrap().trim().to_string())
    };
    let ((a, a_public), (b, b_public), (c, _)) = (keygen("a"), keygen("b"), keygen("c"));
    let (address, inbox) = (Pair::address(1, false).to_string(), inbox(&folder));
    let receive = |arguments: &[&str]| {
        let mut command = spray();
        command.args(["recv", "--keep", "--interface", Pair::INTERFACE, "--from", &address, "--out"]);
        command.arg(&inbox).args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
        Running(pair.run_in(1, || command.spawn()).unwrap().unwrap()).listening()
    };
    let send = |arguments: &[&str]| {
        let mut command = spray();
        command.arg("send").arg(&file).args(["--interface", Pair::INTERFACE, "--to", &address]).args(arguments);
        let sent = pair.run_in(0, || command.output()).unwrap().unwrap();
        (sent.status.code(), String::from_utf8_lossy(&sent.stderr).into_owned())
    };
    let mut receiver = receive(&["--key", &b, "--peer", &a_public]);
    let (refused, silence) = ("do not have each other's keys", "Strangers get no answer");
    for (others, says) in [
        (&["--key", &c, "--peer", &b_public][..], refused),
        (&["--key", &a], silence),
        (&["--key", &c], silence),
        (&["--insecure"], silence),
    ] {
        let (code, said) = send(&[others, &["--timeout", "1"]].concat());
        assert!(code == Some(1) && said.contains(says), "{others:?} {said}");
        assert!(!folder.path().join("in/payload").exists());
    }
    assert_eq!(send(&["--key", &a, "--peer", &b_public]).0, Some(0));
    assert!(std::fs::read(&file).unwrap() == std::fs::read(folder.path().join("in/payload")).unwrap());
    receiver.kill();
    std::fs::remove_file(folder.path().join("in/payload")).unwrap();
    let mut receiver = receive(&["--key", &a]);
    assert_eq!(send(&["--key", &a]).0, Some(0), "one key for both");
    assert!(std::fs::read(&file).unwrap() == std::fs::read(folder.path().join("in/payload")).unwrap());
    receiver.kill();
    std::fs::remove_file(folder.path().join("in/payload")).unwrap();
    let _receiver = receive(&["--key", &a, "--psk", &b]);
    for (others, code) in [(&["--psk", &b][..], 0), (&["--psk", &c], 1), (&[], 1)] {
        assert_eq!(send(&[&["--key", &a, "--timeout", "1"], others].concat()).0, Some(code), "{others:?}");
    }
}

/// Another host of the segment connects under the sender's address, again and again.
//= docs/specs/endpoint.md#END-47 to the next hop that the kernel
#[test]
fn a_host_of_the_segment_ends_no_transfer_of_another() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    let IpAddr::V4(client) = Pair::address(0, false) else { panic!("IPv4") };
    let mut impostor = Impostor::new(&pair, client);
    let folder = Folder::new();
    let file = payload(&folder, 24 << 20);
    let mut receiving = receiver(&pair, &inbox(&folder), false);
    let mut command = sender(&file, false, &["--cc", "fixed-rate", "--gbps", "0.1"]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut sending = Running(pair.run_in(0, || command.spawn()).unwrap().unwrap());
    let mut number = 0;
    while sending.is_running() {
        impostor.connect(number);
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(2));
            impostor.answer();
        }
        number += 1;
    }
    assert!(number > 20, "it was too fast");
    let (sent, received) = (sending.end(), receiving.end());
    assert!(sent.success() && received.success(), "{}{}", sending.said(), receiving.said());
    assert!(std::fs::read(&file).unwrap() == std::fs::read(folder.path().join("in/payload")).unwrap());
    let (said, answers) = (receiving.said(), impostor.answers);
    assert_eq!(said.matches("connected: ").count(), 1, "{answers} answers: {said}");
}

#[test]
fn a_killed_receiver_ends_its_sender_with_an_error_in_bounded_time() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    let folder = Folder::new();
    let (mut sending, mut receiving) = under_way(&pair, &folder, &["--timeout", "2"]);
    assert!(sending.is_running(), "it was too fast");
    receiving.kill();
    let killed = Instant::now();
    let status = sending.end();
    assert!(!status.success());
    assert!(killed.elapsed() < Duration::from_secs(15), "{:?}", killed.elapsed());
}

#[test]
fn the_report_says_what_limited_the_transfer_and_how_round_trips_were_spread() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    for (limit, rest) in [
        ("window", &["--cc", "fixed-window", "--set", "transport.fixed-window.window_bytes=4000"][..]),
        ("pacing", &["--cc", "fixed-rate", "--gbps", "0.1"]),
    ] {
        let folder = Folder::new();
        let file = payload(&folder, 8 << 20);
        let mut receiver = receiver(&pair, &inbox(&folder), false);
        let mut command = sender(&file, false, &[rest, &["--json"]].concat());
        let sent = pair.run_in(0, || command.output()).unwrap().unwrap();
        assert!(sent.status.success() && receiver.end().success(), "{}", String::from_utf8_lossy(&sent.stderr));
        let report: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
        let shares = report["limited_by"].as_object().unwrap();
        let share = |name: &str| shares[name].as_f64().unwrap();
        // What the machine's threads and its disk take has no bound.
        let by_rule = ["window", "pacing", "receiver", "balancer"];
        assert!(share(limit) > 0.0 && by_rule.iter().all(|other| share(other) <= share(limit)), "{limit}: {report}");
        assert!((shares.keys().map(|name| share(name)).sum::<f64>() - 1.0).abs() < 1e-6, "{report}");
        let us = |name: &str| report[name].as_f64().unwrap();
        assert!(0.0 < us("rtt_min_us") && us("rtt_min_us") <= us("rtt_p50_us"), "{report}");
        assert!(us("rtt_p50_us") <= us("rtt_p99_us") && us("rtt_p99_us") < 1e6, "{report}");
    }
}

/// Runs `ip` in a side's namespace.
fn ip(pair: &Pair, side: usize, arguments: &str) {
    let mut command = Command::new("ip");
    command.args(arguments.split(' '));
    assert!(pair.run_in(side, || command.status()).unwrap().unwrap().success(), "ip {arguments}");
}

/// A transfer of half a gigabyte that is under way, in processes whose standard errors are kept. `rest` is for the sender.
fn under_way(pair: &Pair, folder: &Folder, rest: &[&str]) -> (Running, Running) {
    let file = payload(folder, 512 << 20);
    let out = inbox(folder);
    let receiving = receiver(pair, &out, false);
    let mut sending = sender(&file, false, rest);
    sending.stdout(Stdio::null()).stderr(Stdio::piped());
    let sending = Running(pair.run_in(0, || sending.spawn()).unwrap().unwrap());
    wait_until("the first of the file", || std::fs::read_dir(&out).unwrap().count() > 0);
    (sending, receiving)
}

#[test]
fn an_interface_that_is_down_for_a_moment_ends_no_transfer() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    let folder = Folder::new();
    let (mut sending, mut receiving) = under_way(&pair, &folder, &[]);
    ip(&pair, 0, "link set eth0 down");
    std::thread::sleep(Duration::from_millis(300));
    ip(&pair, 0, "link set eth0 up");
    let (sent, received) = (sending.end(), receiving.end());
    assert!(sent.success() && received.success(), "{}{}", sending.said(), receiving.said());
    assert!(std::fs::metadata(folder.path().join("in/payload")).is_ok());
}

#[test]
fn an_interface_that_is_removed_ends_both_ends_and_says_so() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    let folder = Folder::new();
    let (mut sending, mut receiving) = under_way(&pair, &folder, &[]);
    ip(&pair, 1, "link delete eth0");
    for running in [&mut sending, &mut receiving] {
        assert_eq!(running.end().code(), Some(1));
        assert!(running.said().contains("interface eth0 was removed"));
    }
}

#[test]
fn smaller_mtus_are_named_at_the_receiver_and_on_the_way() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    let folder = Folder::new();
    let (file, out) = (payload(&folder, 1 << 20), inbox(&folder));
    ip(&pair, 1, "link set eth0 mtu 1500");
    let mut receiving = receiver(&pair, &out, false);
    let mut command = sender(&file, false, &[]);
    let sent = pair.run_in(0, || command.output()).unwrap().unwrap();
    assert!(sent.status.success() && receiving.end().success(), "{}", String::from_utf8_lossy(&sent.stderr));
    assert!(String::from_utf8_lossy(&sent.stdout).contains("bytes would fit here"));
    // This receiver has said what it takes before its link takes less.
    let mut receiving = receiver(&pair, &out.join("other"), false);
    ip(&pair, 1, "link set eth0 mtu 1000");
    let mut command = sender(&file, false, &["--timeout", "1"]);
    let sent = pair.run_in(0, || command.output()).unwrap().unwrap();
    assert_eq!((sent.status.code(), receiving.end().code()), (Some(1), Some(1)));
    assert!(String::from_utf8_lossy(&sent.stderr).contains("a link on the way may have a smaller MTU"));
}

#[test]
fn one_receiver_serves_several_senders_at_once() {
    let Some(_turn) = shared_turn() else { return };
    let routers = Routers::new().unwrap();
    routers.add_interface().unwrap();
    let folder = Folder::new();
    let out = inbox(&folder);
    let spawn = |side: usize, interface: &str, command: &mut Command| {
        command.args(["--interface", interface]).stdout(Stdio::null()).stderr(Stdio::piped());
        Running(routers.run_in(side, || command.spawn()).unwrap().unwrap())
    };
    let mut receiving =
        spawn(1, Routers::INTERFACE, spray().args(["recv", "--insecure", "--keep", "--out"]).arg(&out)).listening();
    let to = Routers::address(1, 0).to_string();
    let content = std::fs::read(payload(&folder, 32 << 20)).unwrap();
    let files = ["eth0", "eth1"].map(|interface| (interface, folder.file(&format!("from-{interface}"), &content)));
    // Either takes 2.7 s: the other begins within that time.
    let slow = ["--cc", "fixed-rate", "--gbps", "0.1"];
    let mut sending = files.map(|(interface, file)| {
        spawn(0, interface, spray().arg("send").arg(&file).args(["--insecure", "--to", &to]).args(slow))
    });
    wait_until("both files", || std::fs::read_dir(&out).unwrap().count() == 2);
    assert!(!out.join("from-eth0").exists() && !out.join("from-eth1").exists(), "one was over before the other began");
    for running in &mut sending {
        assert!(running.end().success(), "{}", running.said());
    }
    for interface in ["eth0", "eth1"] {
        assert!(std::fs::read(out.join(format!("from-{interface}"))).unwrap() == content, "{interface}");
    }
    assert!(receiving.is_running(), "with --keep it goes on");
}

/// The writer pauses for longer than the timeout: an open connection is kept alive.
#[test]
fn a_stream_goes_from_standard_input_to_standard_output() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    let mut receive = spray();
    receive.args([
        "recv",
        "--insecure",
        "--interface",
        Pair::INTERFACE,
        "--from",
        &Pair::address(1, false).to_string(),
        "--out",
        "-",
    ]);
    receive.args(["--timeout", "1"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut receiving = Running(pair.run_in(1, || receive.spawn()).unwrap().unwrap()).listening();
    let mut send = sender(Path::new("-"), false, &["--timeout", "1"]);
    send.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut sending = Running(pair.run_in(0, || send.spawn()).unwrap().unwrap());
    let content: Vec<u8> = (0..5_000_001u32).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect();
    let (mut input, mut output) = (sending.0.stdin.take().unwrap(), receiving.0.stdout.take().unwrap());
    let arrived = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut arrived = Vec::new();
            output.read_to_end(&mut arrived).map(|_| arrived)
        });
        let (first, second) = content.split_at(3_000_000);
        let _ = input.write_all(first);
        std::thread::sleep(Duration::from_millis(2500));
        let _ = input.write_all(second);
        drop(input);
        reader.join().unwrap().unwrap()
    });
    let (sent, received) = (sending.end(), receiving.end());
    let (theirs, ours) = (sending.said(), receiving.said());
    assert!(sent.success() && received.success(), "{theirs}{ours}");
    assert!(arrived == content, "{} bytes arrived", arrived.len());
    assert!(ours.contains("received 5000001 bytes into standard output"), "{ours}");
}

/// What becomes of the next hop in the middle of a transfer.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// The router on this side has another Ethernet address, and says so.
    Address(usize),
    /// As above, but it does not say so.
    Silent(usize),
    /// The sender's route leads to another router, and the old one is gone.
    Route,
}

impl Change {
    fn happen(self, routers: &Routers) {
        const ADDRESS: &str = "ip link set hosts address 02:00:00:00:00:99";
        match self {
            Self::Address(side) => {
                let notify = "echo 1 > /proc/sys/net/ipv4/conf/hosts/arp_notify";
                routers.at_gateway(side, &format!("{notify}\n{ADDRESS}")).unwrap();
            }
            Self::Silent(side) => routers.at_gateway(side, ADDRESS).unwrap(),
            Self::Route => {
                let other =
                    "ip link add other link hosts type macvlan mode bridge\nip address add 10.1.0.254/24 dev other";
                routers.at_gateway(0, &format!("{other}\nip link set other up\n{ADDRESS}")).unwrap();
                let mut route = Command::new("ip");
                route.args("route replace default via 10.1.0.254".split(' '));
                assert!(routers.run_in(0, || route.status()).unwrap().unwrap().success());
            }
        }
    }
}

#[test]
fn a_transfer_follows_its_next_hop() {
    let Some(_turn) = shared_turn() else { return };
    for change in [Change::Address(0), Change::Address(1), Change::Route, Change::Silent(0)] {
        let routers = Routers::new().unwrap();
        let folder = Folder::new();
        // It takes 0.7 s.
        let (file, out) = (payload(&folder, 24 << 20), inbox(&folder));
        let slow = ["--cc", "fixed-rate", "--gbps", "0.3"];
        // For a second after it has learned of a neighbour, a kernel believes nothing else of it.
        let believe = || std::fs::write("/proc/sys/net/ipv4/neigh/eth0/locktime", "0").unwrap();
        (0..2).for_each(|side| routers.run_in(side, believe).unwrap());
        let spawn = |side: usize, command: &mut Command| {
            command.args(["--interface", Routers::INTERFACE, "--timeout", "20"]);
            command.stdout(Stdio::null()).stderr(Stdio::piped());
            Running(routers.run_in(side, || command.spawn()).unwrap().unwrap())
        };
        let mut receiving = spawn(1, spray().args(["recv", "--insecure", "--out"]).arg(&out)).listening();
        let to = Routers::address(1, 0).to_string();
        let mut sending = spawn(0, spray().arg("send").arg(&file).args(["--insecure", "--to", &to]).args(slow));
        wait_until("the first of the file", || std::fs::read_dir(&out).unwrap().count() > 0);
        change.happen(&routers);
        assert!(sending.is_running(), "it was too fast");
        let (sent, received) = (sending.end(), receiving.end());
        assert!(sent.success() && received.success(), "{change:?}: {}{}", sending.said(), receiving.said());
    }
}
