//! The doctor on a veth pair with injected faults. Each test has its own network namespaces, which
//! end with its threads.

use std::process::Command;
use std::sync::mpsc;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;
use spray_nic::Ports;
use spray_nic::net::Interface;
use spray_nic::net::ethtool::Ethtool;
use spray_nic::xdp::SteerProgram;

use super::examine::examine;
use super::*;

const PEER: &str = "10.79.0.2";

/// Runs `test` in a namespace with `eth0`, a veth of two queues, and a responder at [`PEER`] in
/// another namespace.
fn on_veth(test: impl FnOnce() + Send) {
    if !spray_test_support::has_root() {
        return;
    }
    let (sender, receiver) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let (ready, wait) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            sender.send(gettid()).unwrap();
            wait.recv().unwrap();
            ip(&format!("address add {PEER}/24 dev eth0"));
            ip("link set eth0 up");
            // Returns when the test drops its side of the channel.
            let _ = ended.recv();
        });
        let run = move || {
            let _end = end;
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            let queues = "numtxqueues 2 numrxqueues 2";
            let peer = receiver.recv().unwrap();
            ip(&format!("link add eth0 mtu 3498 {queues} type veth peer name eth0 mtu 3498 {queues} netns {peer}"));
            ip("address add 10.79.0.1/24 dev eth0");
            ip("link set eth0 up");
            ready.send(()).unwrap();
            carrier();
            test();
        };
        scope.spawn(run).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Runs `ip` in this thread's namespace, and returns whether it succeeded.
fn tried(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).output().expect("iproute2 is installed").status.success()
}

fn ip(arguments: &str) {
    assert!(tried(arguments), "ip {arguments}");
}

fn carrier() {
    for _ in 0..100 {
        if Interface::find("eth0").unwrap().carrier {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the other end did not come up");
}

fn doctor(interface: &str, change: impl FnOnce(&mut Doctor)) -> Vec<Check> {
    let mut arguments = Doctor { interface: None, peer: None, fix: false, no_probe: false };
    change(&mut arguments);
    examine(interface, &arguments).unwrap().into_iter().flat_map(|group| group.checks).collect()
}

fn facts(interface: &str) -> Vec<Check> {
    doctor(interface, |arguments| arguments.no_probe = true)
}

fn fix() -> Vec<Check> {
    doctor("eth0", |arguments| (arguments.fix, arguments.no_probe) = (true, true))
}

fn find<'a>(checks: &'a [Check], name: &str) -> &'a Check {
    checks.iter().find(|check| check.check == name).unwrap_or_else(|| panic!("no {name} in {checks:#?}"))
}

/// Asserts that a check has this status, and these parts of its finding and remedy.
fn expect(checks: &[Check], name: &str, status: Status, (found, remedy): (&str, &str)) {
    let check = find(checks, name);
    assert!(check.status == status && check.found.contains(found) && check.remedy.contains(remedy), "{check:#?}");
}

#[test]
fn a_healthy_veth_needs_no_change_and_echoes_on_every_queue() {
    on_veth(|| {
        let checks = doctor("eth0", |arguments| arguments.peer = PEER.parse().ok());
        let minded: Vec<_> = checks.iter().filter(|check| check.status != Status::Ok).collect();
        assert!(minded.is_empty(), "{minded:#?}");
        expect(&checks, "driver", Status::Ok, ("veth", ""));
        expect(&checks, "attach", Status::Ok, ("native", ""));
        expect(&checks, "copy", Status::Ok, ("2 of 2 queues bind and send, 16 echoes of each came back", ""));
        assert!(Interface::find("eth0").unwrap().xdp_program.is_none(), "the program is detached");
        expect(&fix(), "fix", Status::Ok, ("nothing", ""));
    });
}

#[test]
fn every_fault_is_reported_with_its_remedy() {
    on_veth(|| {
        ip("link property add dev eth0 altname other");
        expect(&facts("other"), "name", Status::Ok, ("other is another name of eth0", ""));
        ip("link set eth0 mtu 3600");
        expect(
            &facts("eth0"),
            "MTU",
            Status::Ok,
            ("3600: veth declares native XDP with frames of several buffers; packets of spray have at most 3506", ""),
        );
        Ethtool::open("eth0").unwrap().set_feature("rx-udp-gro-forwarding", true).unwrap();
        let remedy = "`ethtool -K eth0 rx-udp-gro-forwarding off`";
        expect(&facts("eth0"), "merging", Status::Warn, ("rx-udp-gro-forwarding on", remedy));
        ip("address flush dev eth0");
        expect(&facts("eth0"), "addresses", Status::Warn, ("none", "`ip address add ADDRESS/BITS dev eth0`"));
        ip("link set eth0 down");
        let checks = doctor("eth0", |_| {});
        expect(&checks, "link", Status::Fail, ("down", "`ip link set eth0 up`"));
        expect(&checks, "probe", Status::Warn, ("the interface is down", "run the doctor again"));
    });
}

#[test]
fn a_silent_peer_is_reported_and_queues_are_still_probed() {
    on_veth(|| {
        let checks = doctor("eth0", |arguments| arguments.peer = "10.79.0.9".parse().ok());
        expect(&checks, "peer", Status::Fail, ("10.79.0.9", "answers `ping`"));
        expect(&checks, "copy", Status::Ok, ("2 of 2 queues bind and send", ""));
        assert!(!find(&checks, "copy").found.contains("echoes"));
    });
}

#[test]
fn missing_echoes_are_counted() {
    on_veth(|| {
        ip("neighbour add 10.79.0.9 lladdr 02:00:00:00:00:09 dev eth0");
        let checks = doctor("eth0", |arguments| arguments.peer = "10.79.0.9".parse().ok());
        let found = "queue 0: 0 of 16 echoes came back within a second\nqueue 1: 0 of 16";
        expect(&checks, "copy", Status::Fail, (found, "the lines above"));
    });
}

#[test]
fn another_program_is_reported_with_its_owner_and_kept() {
    on_veth(|| {
        let eth0 = Interface::find("eth0").unwrap();
        let mut steer = SteerProgram::load(eth0.mac, &[], Ports::DEFAULT).unwrap();
        steer.attach(eth0.index).unwrap();
        let checks = doctor("eth0", |_| {});
        let id = Interface::find("eth0").unwrap().xdp_program.unwrap();
        let own = std::process::id();
        expect(
            &checks,
            "XDP program",
            Status::Fail,
            (&format!("native: XDP program {id} `steer`, held by "), "bpftool link detach id"),
        );
        expect(&checks, "XDP program", Status::Fail, (&format!("(process {own})"), &format!("`kill {own}`")));
        expect(&checks, "probe", Status::Warn, ("another program", "above"));
        assert_eq!(Interface::find("eth0").unwrap().xdp_program, Some(id));
    });
}

#[test]
fn a_driver_that_refuses_the_program_is_reported() {
    on_veth(|| {
        ip("link add br1 type bridge");
        ip("link set br1 up");
        expect(
            &doctor("br1", |_| {}),
            "attach",
            Status::Warn,
            ("generic (slow), since the driver refuses the program", "common reasons are a long MTU"),
        );
    });
}

/// Skipped for kinds that the kernel does not support; the tests of `support` cover all kinds.
#[test]
fn the_kind_of_an_interface_is_reported() {
    on_veth(|| {
        ip("link add br0 type bridge");
        ip("link set eth0 master br0");
        expect(&facts("br0"), "kind", Status::Warn, ("a bridge: it has no native XDP", "(eth0)"));
        expect(&facts("eth0"), "part of", Status::Ok, ("br0 (bridge), whose addresses", ""));
        ip("link set eth0 nomaster");
        expect(&facts("lo"), "kind", Status::Fail, ("the loopback", "use a NIC"));
        expect(&doctor("lo", |_| {}), "probe", Status::Warn, ("not the one to use", ""));
        for (kind, add) in [
            ("vlan", "link add link eth0 name v5 type vlan id 5"),
            ("macvlan", "link add link eth0 name m0 type macvlan"),
        ] {
            let name = add.split(' ').nth(5).unwrap();
            if tried(add) {
                expect(&facts(name), "kind", Status::Warn, (kind, "(eth0)"));
            }
        }
        if tried("link add bond0 type bond") {
            ip("link set eth0 down");
            ip("link set eth0 master bond0");
            let remedy = "`ip link set eth0 nomaster`";
            expect(&facts("bond0"), "kind", Status::Fail, ("a bond", remedy));
            expect(&facts("eth0"), "kind", Status::Fail, ("a part of bond0 (bond)", remedy));
        }
    });
}

#[test]
fn what_is_fixed_is_told_with_the_old_value() {
    on_veth(|| {
        let ethtool = Ethtool::open("eth0").unwrap();
        let forwarding = "rx-udp-gro-forwarding";
        let state = || (ethtool.mtu().unwrap(), ethtool.feature(forwarding).unwrap());
        ip("link set eth0 mtu 9000");
        ethtool.set_feature(forwarding, true).unwrap();
        let checks = fix();
        expect(&checks, "set", Status::Ok, (forwarding, ""));
        expect(&checks, "MTU", Status::Ok, ("9000", ""));
        expect(&checks, "merging", Status::Ok, ("none of", ""));
        assert_eq!(state(), (9000, Some(false)));
        ip("link set eth0 mtu 1500");
        expect(
            &facts("eth0"),
            "MTU",
            Status::Warn,
            ("1500, of 3506", "`ip link set eth0 mtu 3506`, the same on the other side"),
        );
        expect(&fix(), "set", Status::Ok, ("mtu 1500 -> mtu 3506", ""));
    });
}

#[test]
fn an_interface_that_is_not_there_is_refused() {
    let arguments = Doctor { interface: None, peer: None, fix: false, no_probe: true };
    let refused = examine("spray-nope", &arguments).err().unwrap();
    assert!(!refused.is_failed() && refused.to_string().contains("`ip link` lists them"), "{refused}");
}

#[test]
fn the_jit_is_known_in_other_network_namespaces() {
    on_veth(|| {
        let check = &kernel()[2];
        assert_eq!((check.check, check.found == "unknown"), ("BPF JIT", false));
    });
}

#[test]
fn lines_hold_status_finding_and_remedy() {
    assert_eq!(Check::ok("kernel", "6.18").line(), "ok    kernel          6.18");
    let line = Check::fail("rights", "not root", "run as root").line();
    assert_eq!(line, "fail  rights          not root\n                      -> run as root");
    let line = Check::fail("rights", "one\ntwo", "three").line();
    assert_eq!(line.lines().nth(1), Some("                      two"));
}

#[test]
fn every_failed_check_has_a_remedy() {
    for check in kernel().into_iter().chain(packets()) {
        assert!(check.status == Status::Ok || !check.remedy.is_empty(), "{check:?}");
        assert!(!check.found.is_empty(), "{check:?}");
    }
}
