//! Networks that change while a command runs, or that become ready later: links, addresses, names
//! and namespaces, rules by source.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use spray_test_support::{Folder, Pair, text};
use spray_tests::running::{Running, inbox, payload};
use spray_tests::{shared_turn, spray};

use super::interfaces::{BYTES, Namespace, PEER, ip, receive, send, transfer_during};

#[test]
fn a_server_outlives_its_link_and_serves_the_next_client() {
    let Some(_turn) = shared_turn() else { return };
    let folder = Folder::new();
    let (file, out) = (payload(&folder, BYTES), inbox(&folder));
    let large = folder.file("large", vec![0; 24 << 20]);
    let sends = ["send", &large, "--cc", "fixed-rate", "--set", "transport.fixed-rate.rate_gbps=0.05", "--to", PEER];
    let serves = ["serve"];
    for (server, client) in
        [(&["recv", "--keep", "--out", out.to_str().unwrap()][..], &sends[..]), (&serves, &["perf", PEER, "-t", "20"])]
    {
        let pair = Pair::new("outage").unwrap();
        let start = |side, arguments: &[&str]| {
            let mut command = pair.command(side, Path::new(spray().get_program()));
            command.args(arguments).args(["--insecure", "--interface", "eth0", "--timeout", "1"]);
            Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
        };
        let mut running = start(1, server).listening();
        let mut first = start(0, client);
        std::thread::sleep(Duration::from_secs(1));
        ip(&pair, 1, "link set eth0 down");
        assert_eq!(first.end().code(), Some(1), "{}", first.stderr());
        std::thread::sleep(Duration::from_secs(1));
        ip(&pair, 1, "link set eth0 up");
        let next = match server[0] {
            "serve" => start(0, &["perf", PEER, "-t", "1"]).end(),
            _ => send(&pair, &file, &format!("--interface eth0 --to {PEER}")).status,
        };
        let goes_on = running.is_running();
        running.kill();
        assert!(next.success() && goes_on, "{server:?}: {}", running.stderr());
    }
}

#[test]
fn a_transfer_continues_when_an_ethernet_address_changes() {
    let Some(_turn) = shared_turn() else { return };
    let change = |pair: &Pair, side: usize| ip(pair, side, "link set eth0 address 02:00:00:00:77:01");
    for side in [0, 1] {
        let (arrived, outputs) = transfer_during("", |pair| change(pair, side));
        assert!(arrived, "{outputs:?}");
    }
    let (arrived, outputs) = transfer_during("", |pair| {
        ip(pair, 0, "link set eth0 down");
        change(pair, 0);
        ip(pair, 0, "link set eth0 up");
    });
    assert!(arrived, "{outputs:?}");
}

#[test]
fn a_wrong_permanent_neighbour_entry_is_reported() {
    let Some(_turn) = shared_turn() else { return };
    let entry = format!("neigh replace {PEER} lladdr 02:de:ad:00:00:01 nud permanent dev eth0");
    let named = format!(
        "frames went to 02:de:ad:00:00:01, by a permanent neighbour entry: if that is wrong, `ip neigh del {PEER}"
    );
    let (arrived, [stderr, _]) = transfer_during("", |pair| ip(pair, 0, &entry));
    assert!(!arrived && stderr.contains(&named), "{stderr}");
    let pair = Pair::new("permanent").unwrap();
    ip(&pair, 0, &entry);
    for device in ["--interface eth0", "--device udp"] {
        let sent = send(&pair, Path::new("/proc/self/status"), &format!("{device} --timeout 1 --to {PEER}"));
        assert!(text(&sent.stderr).contains(&named), "{device}: {}", text(&sent.stderr));
    }
}

#[test]
fn a_renamed_interface_keeps_working_and_a_moved_one_ends_the_command() {
    let Some(_turn) = shared_turn() else { return };
    for side in [0, 1] {
        let (arrived, outputs) = transfer_during("", |pair| ip(pair, side, "link set eth0 name eth9"));
        assert!(arrived, "{outputs:?}");
    }
    let elsewhere = Namespace::new("elsewhere");
    let (arrived, [stderr, _]) =
        transfer_during("", |pair| ip(pair, 0, &format!("link set eth0 netns {}", elsewhere.0)));
    assert!(!arrived && stderr.contains("interface eth0 was removed, or spray's XDP program was detached"), "{stderr}");
}

/// The peer is reachable only through a rule by source.
#[test]
fn a_rule_by_source_applies_to_the_given_address() {
    let Some(_turn) = shared_turn() else { return };
    let (pair, folder) = (Pair::new("rule").unwrap(), Folder::new());
    let (file, out) = (payload(&folder, BYTES), inbox(&folder));
    ip(&pair, 1, "address add 10.99.0.9/32 dev eth0");
    ip(&pair, 0, "rule add from 10.78.0.1 table 7");
    ip(&pair, 0, &format!("route add 10.99.0.9/32 via {PEER} table 7"));
    for device in ["--device udp", "--interface eth0"] {
        let mut receiver = receive(&pair, 1, &out, &format!("{device} --from 10.99.0.9"));
        let sent = send(&pair, &file, &format!("{device} --from 10.78.0.1 --to 10.99.0.9"));
        assert!(sent.status.success() && receiver.end().success(), "{device}: {}", text(&sent.stderr));
        std::fs::remove_file(out.join("payload")).unwrap();
    }
}

#[test]
fn udp_sockets_wait_for_an_ipv6_address_that_is_tentative() {
    let Some(_turn) = shared_turn() else { return };
    let (pair, folder) = (Pair::new("dad").unwrap(), Folder::new());
    let (file, out) = (payload(&folder, BYTES), inbox(&folder));
    ip(&pair, 1, "address add fd00::2/64 dev eth0");
    let mut receiver = receive(&pair, 1, &out, "--device udp --from fd00::2");
    for from in ["", " --from fd00::1"] {
        ip(&pair, 0, "address add fd00::1/64 dev eth0");
        let sent = send(&pair, &file, &format!("--device udp --to fd00::2{from}"));
        assert!(sent.status.success() && receiver.end().success(), "{from}: {}", text(&sent.stderr));
        ip(&pair, 0, "address del fd00::1/64 dev eth0");
        std::fs::remove_file(out.join("payload")).unwrap();
        receiver = receive(&pair, 1, &out, "--device udp --from fd00::2");
    }
}

#[test]
fn the_sender_of_an_icmp_error_is_named_immediately() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new("icmp").unwrap();
    ip(&pair, 0, &format!("route add 10.99.0.9/32 via {PEER}"));
    ip(&pair, 1, "route add prohibit 10.99.0.9/32");
    // Without the last two settings the kernel would answer only some of the attempts.
    for setting in ["net.ipv4.ip_forward=1", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0"] {
        assert!(pair.command(1, Path::new("sysctl")).args(["-qw", setting]).status().unwrap().success());
    }
    for side in [0, 1] {
        ip(&pair, side, &format!("address add fd00::{}/64 dev eth0 nodad", side + 1));
    }
    for (to, why) in
        [(PEER, "no program"), ("fd00::2", "no program"), ("10.99.0.9", "a firewall or a route prohibits it")]
    {
        let by = if to.contains(':') { to } else { PEER };
        let named = format!("{by} answers by ICMP that frames to {to} do not arrive: {why}");
        for device in ["--interface eth0", "--device udp"] {
            let sent = send(&pair, Path::new("/proc/self/status"), &format!("{device} --timeout 1 --to {to}"));
            let stderr = text(&sent.stderr);
            assert!(sent.status.code() == Some(1) && stderr.matches(&named).count() == 2, "{device}: {stderr}");
        }
    }
}
