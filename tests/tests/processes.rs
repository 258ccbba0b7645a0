//! `spray send` and `spray recv` as two processes, in two namespaces joined by a veth pair.
#![expect(clippy::disallowed_methods, reason = "how long real processes take is what is tested")]

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
fn files_are_sent_only_to_the_holder_of_the_key() {
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
    let mut receiver = receive(&["--key", &b, "--trust", &a_public]);
    let (refused, silence) = ("do not have each other's keys", "Strangers get no answer");
    for (others, expected) in [
        (&["--key", &c, "--trust", &b_public][..], refused),
        (&["--key", &a], silence),
        (&["--key", &c], silence),
        (&["--insecure"], silence),
    ] {
        let (code, stderr) = send(&[others, &["--timeout", "1"]].concat());
        assert!(code == Some(1) && stderr.contains(expected), "{others:?} {stderr}");
        assert!(!folder.path().join("in/payload").exists());
    }
    assert_eq!(send(&["--key", &a, "--trust", &b_public]).0, Some(0));
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

/// A receiver refuses a name that exists (END-22), which reveals it to the sender. The endpoint
/// refuses senders without a listed key before they send a name.
//= docs/specs/endpoint.md#END-45 no answer to unauthenticated peers
#[test]
fn only_holders_of_a_listed_key_find_out_which_names_exist() {
    let Some(_turn) = shared_turn() else { return };
    let (pair, folder) = (Pair::new().unwrap(), Folder::new());
    let (file, inbox) = (payload(&folder, 1 << 20), inbox(&folder));
    let keygen = |name: &str| {
        let path = folder.join(name);
        let made = spray().args(["keygen", &path]).output().unwrap();
        (path, String::from_utf8(made.stdout).unwrap().trim().to_string())
    };
    let ((own, own_public), (listed, listed_public), (unlisted, _)) = (keygen("a"), keygen("b"), keygen("c"));
    let address = Pair::address(1, false).to_string();
    let mut command = spray();
    command.args(["recv", "--keep", "--interface", Pair::INTERFACE, "--from", &address, "--out"]).arg(&inbox);
    command.args(["--key", &own, "--trust", &listed_public]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut receiver = Running(pair.run_in(1, || command.spawn()).unwrap().unwrap()).listening();
    let send = |keys: &[&str]| {
        let mut command = spray();
        command.arg("send").arg(&file).args(["--interface", Pair::INTERFACE, "--to", &address, "--timeout", "1"]);
        let (begun, sent) = (Instant::now(), pair.run_in(0, || command.args(keys).output()).unwrap().unwrap());
        (sent.status.code(), String::from_utf8_lossy(&sent.stderr).into_owned(), begun.elapsed())
    };
    let strangers = [&["--key", &unlisted, "--trust", &own_public][..], &["--key", &unlisted], &["--insecure"]];
    let refused = || strangers.map(send);
    let absent = refused();
    let (code, said, _) = send(&["--key", &listed, "--trust", &own_public]);
    assert_eq!(code, Some(0), "{said}");
    let present = refused();
    for ((before, after), keys) in absent.iter().zip(&present).zip(strangers) {
        assert_eq!((before.0, &before.1), (Some(1), &after.1), "{keys:?}");
        assert!(!after.1.contains("exists"), "{}", after.1);
        // A refusal takes round trips, and silence the timeout.
        let (least, most) = (before.2.min(after.2), before.2.max(after.2));
        assert!(most < least * 3 + Duration::from_millis(500), "{keys:?}: {least:?} and {most:?}");
    }
    let (code, said, _) = send(&["--key", &listed, "--trust", &own_public]);
    assert!(code == Some(1) && said.contains("payload exists already"), "{said}");
    receiver.kill();
    let stderr = receiver.stderr();
    assert_eq!(stderr.matches("connected: ").count(), 2, "those with the listed key: {stderr}");
}

/// Another host of the segment connects under the sender's address, again and again.
//= docs/specs/endpoint.md#END-47 to the next hop that the kernel
#[test]
fn a_host_of_the_segment_cannot_end_a_transfer_of_another() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    let IpAddr::V4(client) = Pair::address(0, false) else { panic!("IPv4") };
    let mut impostor = Impostor::new(&pair, client);
    let folder = Folder::new();
    let file = payload(&folder, 24 << 20);
    let mut receiving = receiver(&pair, &inbox(&folder), false);
    let mut command = sender(&file, false, &["--cc", "fixed-rate", "--set", "transport.fixed-rate.rate_gbps=0.1"]);
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
    assert!(sent.success() && received.success(), "{}{}", sending.stderr(), receiving.stderr());
    assert!(std::fs::read(&file).unwrap() == std::fs::read(folder.path().join("in/payload")).unwrap());
    let (stderr, answers) = (receiving.stderr(), impostor.answers);
    assert_eq!(stderr.matches("connected: ").count(), 1, "{answers} answers: {stderr}");
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
fn the_report_has_the_limits_of_the_transfer_and_the_distribution_of_round_trips() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    for (limit, rest) in [
        ("window", &["--cc", "fixed-window", "--set", "transport.fixed-window.window_bytes=4000"][..]),
        ("pacing", &["--cc", "fixed-rate", "--set", "transport.fixed-rate.rate_gbps=0.1"]),
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
        // The times of the machine's threads and its disk are not bounded.
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

/// Starts a transfer of half a gigabyte in processes with pipes as standard errors. `rest` is for
/// the sender.
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
fn a_transfer_survives_a_short_outage_of_an_interface() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    let folder = Folder::new();
    let (mut sending, mut receiving) = under_way(&pair, &folder, &[]);
    ip(&pair, 0, "link set eth0 down");
    std::thread::sleep(Duration::from_millis(300));
    ip(&pair, 0, "link set eth0 up");
    let (sent, received) = (sending.end(), receiving.end());
    assert!(sent.success() && received.success(), "{}{}", sending.stderr(), receiving.stderr());
    assert!(std::fs::metadata(folder.path().join("in/payload")).is_ok());
}

#[test]
fn a_removed_interface_ends_both_ends_with_an_error() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new().unwrap();
    let folder = Folder::new();
    let (mut sending, mut receiving) = under_way(&pair, &folder, &[]);
    ip(&pair, 1, "link delete eth0");
    for running in [&mut sending, &mut receiving] {
        assert_eq!(running.end().code(), Some(1));
        assert!(running.stderr().contains("interface eth0 was removed"));
    }
}

#[test]
fn smaller_mtus_are_reported_at_the_receiver_and_on_the_path() {
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
    // This receiver has advertised its maximum before the MTU of its link is reduced.
    let other = out.join("other");
    std::fs::create_dir(&other).unwrap();
    let mut receiving = receiver(&pair, &other, false);
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
    // Either takes 2.7 s: the other starts within that time.
    let slow = ["--cc", "fixed-rate", "--set", "transport.fixed-rate.rate_gbps=0.1"];
    let mut sending = files.map(|(interface, file)| {
        spawn(0, interface, spray().arg("send").arg(&file).args(["--insecure", "--to", &to]).args(slow))
    });
    wait_until("both files", || std::fs::read_dir(&out).unwrap().count() == 2);
    assert!(!out.join("from-eth0").exists() && !out.join("from-eth1").exists(), "one ended before the other started");
    for running in &mut sending {
        assert!(running.end().success(), "{}", running.stderr());
    }
    for interface in ["eth0", "eth1"] {
        assert!(std::fs::read(out.join(format!("from-{interface}"))).unwrap() == content, "{interface}");
    }
    assert!(receiving.is_running(), "with --keep it continues");
}

/// The next hop changes during a transfer.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// The router on this side changes its Ethernet address, and announces it.
    Address(usize),
    /// As above, but without the announcement.
    Silent(usize),
    /// The sender's route changes to another router, and the old one is removed.
    Route,
}

impl Change {
    fn apply(self, routers: &Routers) {
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
        // The transfer takes 0.7 s.
        let (file, out) = (payload(&folder, 24 << 20), inbox(&folder));
        let slow = ["--cc", "fixed-rate", "--set", "transport.fixed-rate.rate_gbps=0.3"];
        // For a second after it has learned of a neighbour, a kernel believes nothing else of it.
        let accept_changes = || std::fs::write("/proc/sys/net/ipv4/neigh/eth0/locktime", "0").unwrap();
        (0..2).for_each(|side| routers.run_in(side, accept_changes).unwrap());
        let spawn = |side: usize, command: &mut Command| {
            command.args(["--interface", Routers::INTERFACE, "--timeout", "20"]);
            command.stdout(Stdio::null()).stderr(Stdio::piped());
            Running(routers.run_in(side, || command.spawn()).unwrap().unwrap())
        };
        let mut receiving = spawn(1, spray().args(["recv", "--insecure", "--out"]).arg(&out)).listening();
        let to = Routers::address(1, 0).to_string();
        let mut sending = spawn(0, spray().arg("send").arg(&file).args(["--insecure", "--to", &to]).args(slow));
        wait_until("the first of the file", || std::fs::read_dir(&out).unwrap().count() > 0);
        change.apply(&routers);
        assert!(sending.is_running(), "it was too fast");
        let (sent, received) = (sending.end(), receiving.end());
        assert!(sent.success() && received.success(), "{change:?}: {}{}", sending.stderr(), receiving.stderr());
    }
}
