//! The kind of an interface, its addresses, its MTU, and its other users: `spray send` and `spray
//! recv` in two namespaces.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use spray_test_support::{Folder, Pair, detach_programs, text};
use spray_tests::running::{Running, inbox, payload};
use spray_tests::{shared_turn, spray};

pub const BYTES: usize = 4 << 20;
pub const PEER: &str = "10.78.0.2";

/// Runs `ip` on a side; returns whether it succeeded, because not every kernel supports each
/// command.
fn try_ip(pair: &Pair, side: usize, arguments: &str) -> bool {
    ip_output(pair, side, arguments).status.success()
}

pub fn ip(pair: &Pair, side: usize, arguments: &str) {
    let output = ip_output(pair, side, arguments);
    assert!(output.status.success(), "ip {arguments}: {}", text(&output.stderr));
}

pub fn ip_output(pair: &Pair, side: usize, arguments: &str) -> Output {
    pair.command(side, Path::new("ip")).args(arguments.split(' ')).output().unwrap()
}

pub fn receive(pair: &Pair, side: usize, out: &Path, arguments: &str) -> Running {
    let mut command = pair.command(side, Path::new(spray().get_program()));
    command.args(["recv", "--insecure", "--out"]).arg(out).args(arguments.split(' '));
    Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()).listening()
}

pub fn send(pair: &Pair, file: &Path, arguments: &str) -> Output {
    let mut command = pair.command(0, Path::new(spray().get_program()));
    command.arg("send").arg(file).arg("--insecure").args(arguments.split(' ')).output().unwrap()
}

/// Returns the output of a sender that is expected to reject its arguments.
fn refused(pair: &Pair, arguments: &str) -> Output {
    send(pair, &spray_test_support::root().join("Cargo.toml"), arguments)
}

/// Sends a file with the arguments `from` to a receiver with the arguments `to`. Returns the
/// standard errors of both.
fn transfer(pair: &Pair, to: &str, from: &str) -> [String; 2] {
    let folder = Folder::new();
    let (file, out) = (payload(&folder, BYTES), inbox(&folder));
    let mut receiver = receive(pair, 1, &out, to);
    let sent = send(pair, &file, from);
    assert!(sent.status.success() && receiver.end().success(), "{from}: {}", text(&sent.stderr));
    assert!(std::fs::read(&file).unwrap() == std::fs::read(out.join("payload")).unwrap());
    [text(&sent.stderr), receiver.stderr()]
}

/// Moves the address of side 0 from `eth0` to another interface.
fn move_address(pair: &Pair, to: &str) {
    ip(pair, 0, "address flush dev eth0");
    ip(pair, 0, &format!("address add 10.78.0.1/24 dev {to}"));
    ip(pair, 0, &format!("link set {to} up"));
}

#[test]
fn a_bridge_is_usable_by_itself_and_through_its_member() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new("bridge").unwrap();
    ip(&pair, 0, "link add br0 type bridge");
    ip(&pair, 0, "link set br0 address 02:00:00:00:00:99");
    ip(&pair, 0, "link set eth0 master br0");
    move_address(&pair, "br0");
    let to = format!("--timeout 20 --to {PEER}");
    for (interface, mode) in [("eth0", "native"), ("br0", "generic")] {
        let [stderr, _] = transfer(&pair, "--interface eth0", &format!("--interface {interface} {to}"));
        assert!(stderr.contains(&format!("{interface}: {mode} XDP")), "{stderr}");
    }
    let folder = Folder::new();
    let mut receiver = receive(&pair, 0, &inbox(&folder), "--interface eth0 --from 10.78.0.1");
    let mut sender = pair.command(1, Path::new(spray().get_program()));
    sender.arg("send").arg(payload(&folder, BYTES)).args(["--insecure", "--interface", "eth0", "--to", "10.78.0.1"]);
    let sent = sender.output().unwrap();
    assert!(sent.status.success() && receiver.end().success(), "{}", text(&sent.stderr));
}

/// Interfaces on top of another one, of the kinds that the kernel supports.
#[test]
fn a_stacked_interface_works_and_its_address_is_rejected_below() {
    let Some(_turn) = shared_turn() else { return };
    for kind in ["macvlan mode private", "ipvlan mode l2", "vlan id 5"] {
        let pair = Pair::new("above").unwrap();
        if !try_ip(&pair, 0, &format!("link add link eth0 name up0 type {kind}")) {
            continue;
        }
        let is_vlan = kind.starts_with("vlan");
        let peer = if is_vlan { "up0" } else { "eth0" };
        if is_vlan {
            ip(&pair, 1, "link add link eth0 name up0 type vlan id 5");
            ip(&pair, 1, "address flush dev eth0");
            ip(&pair, 1, &format!("address add {PEER}/24 dev up0"));
            ip(&pair, 1, "link set up0 up");
        }
        move_address(&pair, "up0");
        let to = format!("--timeout 20 --to {PEER}");
        transfer(&pair, &format!("--interface {peer}"), &format!("--interface up0 {to}"));
        let below = refused(&pair, &format!("--interface eth0 --from 10.78.0.1 {to}"));
        let (stderr, name) = (text(&below.stderr), kind.split(' ').next().unwrap());
        assert!(
            below.status.code() == Some(2) && stderr.contains(&format!("belongs to up0 ({name}) on top of eth0")),
            "{stderr}"
        );
    }
}

#[test]
fn unsupported_interfaces_are_named_before_anything_is_attached() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new("unfit").unwrap();
    let unfit = |interface: &str, reasons: [&str; 2]| {
        let output = refused(&pair, &format!("--interface {interface} --to {PEER}"));
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(reasons.iter().all(|reason| stderr.contains(reason)) && stderr.contains("--device udp"), "{stderr}");
        assert!(!stderr.contains("XDP,"), "{stderr}");
    };
    unfit("lo", ["lo is the loopback", "use a NIC"]);
    ip(&pair, 0, "tuntap add tun0 mode tun");
    ip(&pair, 0, "link set tun0 up");
    unfit("tun0", ["tun0 is an interface without Ethernet (tun)", "use a NIC"]);
    if try_ip(&pair, 0, "link add link eth0 name up0 type ipvlan mode l3") {
        unfit("up0", ["up0 is an interface without Ethernet (ipvlan)", "use a NIC"]);
        ip(&pair, 0, "link del up0");
    }
    if try_ip(&pair, 0, "link add dummy0 type dummy") {
        unfit("dummy0", ["dummy0 is a dummy", "use a NIC"]);
    }
    if try_ip(&pair, 0, "link add bond0 type bond") {
        ip(&pair, 0, "link set eth0 down");
        ip(&pair, 0, "link set eth0 master bond0");
        move_address(&pair, "bond0");
        unfit("bond0", ["bond0 is a bond", "`ip link set eth0 nomaster`"]);
        unfit("eth0", ["eth0 is a part of bond0 (bond)", "`ip link set eth0 nomaster`"]);
    }
}

/// Returns the first link-local address of a side's `eth0`.
fn link_local(pair: &Pair, side: usize) -> String {
    let listing = text(&ip_output(pair, side, "-o -6 address show dev eth0 scope link").stdout);
    listing.split_whitespace().nth(3).and_then(|word| word.split('/').next()).expect("a link-local address").into()
}

#[test]
fn link_local_and_further_addresses_are_used_as_the_kernel_would() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new("addresses").unwrap();
    let (own, peer) = (link_local(&pair, 0), link_local(&pair, 1));
    let listens = format!("--interface eth0 --from {peer}");
    for from in [String::new(), format!(" --from {own}")] {
        let [_, stderr] = transfer(&pair, &listens, &format!("--interface eth0 --timeout 20 --to {peer}{from}"));
        assert!(stderr.contains(&own), "{stderr}");
    }
    for (arguments, reason) in [
        (format!("--interface eth0 --to {peer}%eth0"), format!("give {peer} without %eth0")),
        (format!("--interface eth0 --device udp --to {peer}"), "goes with --device xdp only".into()),
    ] {
        let output = refused(&pair, &arguments);
        assert!(output.status.code() == Some(2) && text(&output.stderr).contains(&reason), "{}", text(&output.stderr));
    }
    for (side, own, v6) in [(0, "192.168.5.1/24", "fd00::1/64"), (1, "192.168.5.2/24", "fd00::2/64")] {
        ip(&pair, side, &format!("address add {own} dev eth0"));
        ip(&pair, side, &format!("address add {v6} dev eth0 nodad"));
    }
    for (peer, own) in [(PEER, "10.78.0.1"), ("192.168.5.2", "192.168.5.1"), ("fd00::2", "fd00::1")] {
        let listens = format!("--interface eth0 --from {peer}");
        let [_, stderr] = transfer(&pair, &listens, &format!("--interface eth0 --to {peer}"));
        assert!(stderr.contains(&format!("connected: {own}\n")), "{stderr}");
    }
}

/// Frames of the kernel have several buffers then; those of spray have one.
#[test]
fn native_xdp_works_with_an_mtu_of_9000() {
    let Some(_turn) = shared_turn() else { return };
    for sides in [&[0][..], &[1], &[0, 1]] {
        let (pair, out) = (Pair::new("jumbo").unwrap(), Folder::new());
        sides.iter().for_each(|&side| ip(&pair, side, "link set eth0 mtu 9000"));
        let mut held = receive(&pair, 1, &inbox(&out), "--interface eth0 --keep --port 49984");
        // Packets of UDP sockets with up to 9,000 bytes pass the program.
        let to = format!("--to {PEER} --timeout 20");
        transfer(&pair, &format!("--device udp --from {PEER}"), &format!("--device udp {to}"));
        held.kill();
        let [stderr, _] = transfer(&pair, "--interface eth0", &format!("--interface eth0 {to}"));
        assert!(stderr.contains("eth0: native XDP"), "{sides:?}: {stderr}");
    }
}

/// An IPv6 address is tentative while the link is down.
#[test]
fn a_link_that_comes_up_later_reaches_an_ipv6_peer() {
    let Some(_turn) = shared_turn() else { return };
    let (pair, folder) = (Pair::new("tentative").unwrap(), Folder::new());
    let (file, out) = (payload(&folder, BYTES), inbox(&folder));
    ip(&pair, 1, "link set eth0 down");
    for side in [0, 1] {
        ip(&pair, side, &format!("address add fd00::{}/64 dev eth0", side + 1));
    }
    assert!(text(&ip_output(&pair, 0, "-6 address show dev eth0").stdout).contains("tentative"));
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| send(&pair, &file, "--interface eth0 --to fd00::2 --timeout 30"));
        std::thread::sleep(Duration::from_millis(1500));
        ip(&pair, 1, "link set eth0 up");
        let mut receiver = receive(&pair, 1, &out, "--interface eth0 --from fd00::2");
        let sent = sender.join().unwrap();
        assert!(sent.status.success() && receiver.end().success(), "{}", text(&sent.stderr));
    });
}

/// Sends 24 MiB in 2 s, with further arguments, and calls `change` meanwhile. Returns whether all
/// arrived, and the standard errors of both sides.
pub fn transfer_during(further: &str, change: impl FnOnce(&Pair)) -> (bool, [String; 2]) {
    static PAIRS: AtomicUsize = AtomicUsize::new(0);
    let pair = Pair::new(&format!("meanwhile{}-", PAIRS.fetch_add(1, Ordering::Relaxed))).unwrap();
    let folder = Folder::new();
    let (file, out) = (payload(&folder, 24 << 20), inbox(&folder));
    let receiver = receive(&pair, 1, &out, "--interface eth0 --timeout 3");
    let slow = format!(
        "--interface eth0 --to {PEER} --timeout 3 --cc fixed-rate --set transport.fixed-rate.rate_gbps=0.1{further}"
    );
    let (sent, mut receiver) = std::thread::scope(|scope| {
        let sender = scope.spawn(|| send(&pair, &file, &slow));
        let receiver = receiver.until("connected: ");
        std::thread::sleep(Duration::from_millis(300));
        change(&pair);
        (sender.join().unwrap(), receiver)
    });
    let both = sent.status.success() && receiver.end().success();
    if both {
        assert!(std::fs::read(&file).unwrap() == std::fs::read(out.join("payload")).unwrap());
    }
    receiver.end();
    (both, [text(&sent.stderr), receiver.stderr()])
}

/// As [`transfer_during`], with a change of the MTU of `sides` to `mtu`.
fn with_mtu(sides: &[usize], mtu: u32) -> (bool, [String; 2]) {
    transfer_during("", |pair| sides.iter().for_each(|&side| ip(pair, side, &format!("link set eth0 mtu {mtu}"))))
}

#[test]
fn a_smaller_mtu_is_reported_and_a_larger_one_has_no_effect() {
    let Some(_turn) = shared_turn() else { return };
    let changed = "the MTU of eth0 has decreased from 3498 to 1400";
    // The MTU of the sender does not limit frames that the kernel copies to the wire.
    let (arrived, [stderr, _]) = with_mtu(&[0], 1400);
    assert!(arrived && stderr.contains(changed), "{stderr}");
    for sides in [&[1][..], &[0, 1]] {
        let (arrived, [sender, receiver]) = with_mtu(sides, 1400);
        assert!(!arrived && sender.contains("packets of up to 3498 bytes no longer arrive"), "{sender}");
        assert!(receiver.contains(changed) && sender.contains(changed) == (sides.len() == 2), "{sender}{receiver}");
    }
    let (arrived, outputs) = with_mtu(&[0, 1], 3506);
    assert!(arrived && !outputs.concat().contains("MTU"), "{outputs:?}");
}

/// An additional namespace, removed when dropped.
pub struct Namespace(pub String);

impl Namespace {
    pub fn new(name: &str) -> Self {
        let this = Self(format!("spray-{}-{name}", std::process::id()));
        assert!(Command::new("ip").args(["netns", "add", &this.0]).status().unwrap().success());
        this
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

#[test]
fn the_user_of_an_interface_is_named_and_another_interface_works() {
    let Some(_turn) = shared_turn() else { return };
    let (pair, folder, out) = (Pair::new("second").unwrap(), Folder::new(), Folder::new());
    let mut first = receive(&pair, 0, out.path(), "--interface eth0");
    let second = refused(&pair, &format!("--interface eth0 --to {PEER}"));
    let (stderr, pid) = (text(&second.stderr), first.0.id());
    assert_eq!(second.status.code(), Some(2), "{stderr}");
    for part in ["`steer`, held by spray (process ", &format!("`kill {pid}`"), "`bpftool link detach id "] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    // As in a container: within one namespace the kernel would answer for both addresses on either
    // interface.
    let beside = Namespace::new("beside");
    if try_ip(&pair, 0, &format!("link add beside link eth0 netns {} type macvlan mode bridge", beside.0)) {
        ip(&pair, 0, &format!("-n {} address add 10.78.0.3/24 dev beside", beside.0));
        ip(&pair, 0, &format!("-n {} link set beside up", beside.0));
        let (out, program) = (inbox(&folder), spray().get_program().to_owned());
        let mut receiver = receive(&pair, 1, &out, "--interface eth0");
        let mut sender = pair.command(0, Path::new("ip"));
        sender.args(["netns", "exec", &beside.0]).arg(program).arg("send").arg(payload(&folder, BYTES));
        let sent =
            sender.args(["--insecure", "--interface", "beside", "--to", PEER, "--timeout", "20"]).output().unwrap();
        assert!(sent.status.success() && receiver.end().success(), "{}{}", text(&sent.stderr), receiver.stderr());
    }
    let file = payload(&folder, BYTES);
    let mut sender = pair.command(1, Path::new(spray().get_program()));
    let sent = sender.arg("send").arg(&file).args(["--insecure", "--interface", "eth0", "--to", "10.78.0.1"]).output();
    let sent = sent.unwrap();
    assert!(sent.status.success() && first.end().success(), "{}{}", text(&sent.stderr), first.stderr());
}

#[test]
fn a_detached_program_ends_the_receiver() {
    let Some(_turn) = shared_turn() else { return };
    let (pair, folder) = (Pair::new("detached").unwrap(), Folder::new());
    let mut receiver = receive(&pair, 1, folder.path(), "--interface eth0 --keep");
    detach_programs(receiver.0.id()).unwrap();
    let ended = receiver.end();
    let stderr = receiver.stderr();
    assert!(ended.code() == Some(1) && stderr.contains("spray's XDP program was detached"), "{ended}: {stderr}");
}

#[test]
fn a_stale_neighbour_entry_is_resolved_again() {
    let Some(_turn) = shared_turn() else { return };
    let pair = Pair::new("stale").unwrap();
    ip(&pair, 0, &format!("neigh replace {PEER} lladdr 02:00:00:00:00:99 dev eth0 nud stale"));
    transfer(&pair, "--interface eth0", &format!("--interface eth0 --to {PEER}"));
}
