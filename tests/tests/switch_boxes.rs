//! `spray switch --node`: machines that run one switch each, joined by cables created with `ip`.

use std::net::UdpSocket;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use spray_test_support::Folder;
use spray_tests::boxes::Boxes;
use spray_tests::deployment::{exchange, inside, run};
use spray_tests::machines::{Machines, ip};
use spray_tests::running::{Running, inbox, payload, wait_until};
use spray_tests::{scenarios, shared_turn, spray, turn};

#[test]
fn hosts_find_each_other_across_boxes() {
    let Some(_turn) = shared_turn() else { return };
    let boxes = Boxes::new("boxes");
    boxes.start_all(&[]);
    for v6 in [false, true] {
        boxes.exchange(0, 2, v6, 500_000);
        boxes.exchange(3, 1, v6, 100_000);
        boxes.exchange(1, 0, v6, 100_000);
    }
    let across: u64 = ["spine0", "spine1"].iter().map(|spine| boxes.bytes(spine, "*")).sum();
    assert!((2_400_000..3_600_000).contains(&across), "{across}");
    boxes.assert_by_both();
    assert_eq!(boxes.status("leaf0")["hosts"][0]["host"], "h0");
    assert!(boxes.status("leaf1")["hosts"].to_string().contains("10.79.0.3"));
    boxes.down();
}

/// All machines detect a cable that is unplugged, a link that is set down and a box that fails, and
/// detect the repair.
#[test]
fn all_boxes_route_around_every_failure() {
    let Some(_turn) = turn() else { return };
    let boxes = Boxes::new("around");
    boxes.start_all(&[]);
    // The neighbour caches are filled, and h2 is silent from now on.
    boxes.exchange(0, 2, false, 1_000);
    let (leaf1, spine0) = (boxes.namespace("leaf1"), boxes.namespace("spine0"));
    ip(&format!("-n {leaf1} link set spine0 down"));
    boxes.assert_only_by("spine1");
    ip(&format!("-n {leaf1} link set spine0 up"));
    boxes.assert_by_both();
    // Each box has one direction.
    let both = [("spine1", "spine1->leaf1"), ("leaf1", "leaf1->spine1")];
    both.iter().for_each(|(switch, link)| drop(boxes.links(switch, link, &["down"])));
    boxes.assert_only_by("spine0");
    both.iter().for_each(|(switch, link)| drop(boxes.links(switch, link, &["up"])));
    boxes.assert_by_both();
    let pid = boxes.status("spine0")["pid"].as_u64().unwrap();
    kill(Pid::from_raw(pid as i32), Signal::SIGKILL).unwrap();
    wait_until("leaf0 to detect the failure of spine0", || !boxes.is_connected("leaf0"));
    boxes.assert_only_by("spine1");
    wait_until("the end of the process", || !spray_switch::deployed().contains(&spine0));
    let (code, _, errors) = boxes.start("spine0", &[]);
    assert_eq!(code, 0, "{errors}");
    boxes.assert_by_both();
    boxes.down();
}

#[test]
fn our_transport_sprays_across_boxes() {
    let Some(_turn) = turn() else { return };
    let (boxes, folder) = (Boxes::new("sprays"), Folder::new());
    boxes.start_all(&[]);
    boxes.links("leaf0", "leaf0->spine1", &["rate=25%"]);
    let (file, out) = (payload(&folder, 8 << 20), inbox(&folder));
    let own = spray().get_program().to_str().unwrap().to_string();
    let mut receiver = Machines::command(&boxes.namespace("h2"), &own);
    receiver.args(["recv", "--insecure", "--interface", "eth0", "--from", "10.79.0.3", "--out"]).arg(&out);
    let mut receiver = Running(receiver.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()).listening();
    let mut sender = Machines::command(&boxes.namespace("h0"), &own);
    sender.arg("send").arg(&file).args(["--insecure", "--interface", "eth0", "--from", "10.79.0.1"]);
    sender.args(["--to", "10.79.0.3", "--timeout", "30"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut sender = Running(sender.spawn().unwrap());
    let (sent, received) = (sender.end().success(), receiver.end().success());
    assert!(sent && received, "{}{}", sender.stderr(), receiver.stderr());
    assert!(std::fs::read(&file).unwrap() == std::fs::read(out.join("payload")).unwrap());
    let [fast, slow] = ["spine0->leaf1", "spine1->leaf1"].map(|link| boxes.bytes(&link[..6], link));
    assert!(fast > slow && slow > 100_000, "{fast} {slow}");
    boxes.down();
}

/// Hosts of two networks; the router of each is its leaf.
#[test]
fn hosts_of_other_networks_are_routed_across_boxes() {
    let Some(_turn) = shared_turn() else { return };
    let boxes = Boxes::new("routed");
    for (host, leaf, net) in [(0, "leaf0", 80), (2, "leaf1", 81)] {
        let (own, at) = (boxes.namespace(&format!("h{host}")), boxes.namespace(leaf));
        ip(&format!("-n {at} address add 10.{net}.0.9/24 dev h{host}"));
        ip(&format!("-n {own} address flush dev eth0"));
        ip(&format!("-n {own} address add 10.{net}.0.1/24 dev eth0"));
        ip(&format!("-n {own} route add default via 10.{net}.0.9"));
    }
    boxes.start_all(&[]);
    for (host, leaf, net) in [(0, "leaf0", 80), (2, "leaf1", 81)] {
        exchange(&boxes.namespace(&format!("h{host}")), &boxes.namespace(leaf), [10, net, 0, 9].into(), 1_000);
    }
    wait_until("both hosts to be found", || {
        boxes.status("leaf0")["hosts"].to_string().contains("10.80.0.1")
            && boxes.status("leaf1")["hosts"].to_string().contains("10.81.0.1")
    });
    exchange(&boxes.namespace("h0"), &boxes.namespace("h2"), [10, 81, 0, 1].into(), 500_000);
    let across: u64 = ["spine0", "spine1"].iter().map(|spine| boxes.bytes(spine, &format!("{spine}->leaf1"))).sum();
    assert!((500_000..700_000).contains(&across), "{across}");
    // The leaves and the spine decrement it once each.
    let ttl = |count: u8| {
        let near = inside(&boxes.namespace("h0"), || UdpSocket::bind("10.80.0.1:0")).unwrap();
        let far = inside(&boxes.namespace("h2"), || UdpSocket::bind("10.81.0.1:0")).unwrap();
        near.set_ttl(count.into()).unwrap();
        far.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        near.send_to(&[7; 100], far.local_addr().unwrap()).unwrap();
        far.recv_from(&mut [0; 200]).is_ok()
    };
    assert!(ttl(4) && !ttl(3));
    boxes.down();
}

#[test]
fn wrongly_plugged_cables_are_reported_and_impossible_requests_rejected() {
    let Some(_turn) = shared_turn() else { return };
    let boxes = Boxes::new("wrong");
    let rejects = |switch: &str, more: &[&str], why: &str| {
        let (code, stdout, errors) = boxes.start(switch, more);
        assert!(code == 2 && stdout.is_empty() && errors.contains(why), "{code}: {stdout}{errors}");
    };
    rejects("spine0", &["--set", "switch.scheme=\"conga\""], "--node with `conga`");
    rejects("spine0", &["--port", "leaf0=leaf1"], "`leaf0` needs one port");
    rejects("spine0", &["--port", "h0=leaf1"], "spine0 has no cable to `h0`; its cables lead to: leaf0, leaf1");
    let name = boxes.namespace("spine0");
    let file = scenarios().join("pod.toml").display().to_string();
    let (code, _, errors) = run(&["switch", "--name", &name, &file, "--node", "spine7", "--port", "leaf0=leaf0"]);
    assert!(code == 2 && errors.contains("no switch `spine7`; its switches: leaf0, leaf1, spine0, spine1"), "{errors}");
    assert_eq!(boxes.start("leaf0", &[]).0, 0);
    let [first, second] = ["leaf0=leaf1", "leaf1=leaf0"].map(|port| format!("{port}@{name}"));
    let swapped = ["switch", "-q", "--name", &name, &file, "--node", "spine0", "--port", &first, "--port", &second];
    let (code, _, errors) = run(&swapped);
    assert_eq!(code, 0, "{errors}");
    let state = |cable: usize| boxes.status("leaf0")["cables"][cable]["state"].as_str().unwrap().to_string();
    wait_until("leaf0 to detect it", || state(0).contains("connected to `spine0->leaf1`"));
    assert_eq!(boxes.links("leaf0", "leaf0->spine0", &[])[0]["state"], "down");
    let (code, _, errors) = run(&["link", "--name", &boxes.namespace("leaf0"), "spine0->leaf1", "down"]);
    assert!(code == 2 && errors.contains("`spine0->leaf1` belongs to switches of other machines"), "{errors}");
    assert_eq!(boxes.start("spine1", &["--set", "topology.host_gbps=0.1"]).0, 0);
    wait_until("leaf0 to detect that too", || state(1).contains("another scenario"));
    for switch in ["leaf0", "spine0", "spine1"] {
        assert_eq!(run(&["down", &boxes.namespace(switch)]).0, 0);
    }
}
