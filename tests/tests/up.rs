//! `spray up`: arbitrary programs in deployed hosts, link failures, and the state after removal.

use std::fs;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};
use spray_switch::leftovers;
use spray_test_support::Folder;
use spray_tests::deployment::{self, run, run_by};
use spray_tests::running::{Running, content, wait_until};
use spray_tests::{namespaces_of, scenarios, spray, turn};

/// A deployed fabric, removed when dropped.
struct Fabric {
    name: String,
    shown: Value,
}

impl Fabric {
    fn up(name: &str) -> Self {
        Self::with(name, &[])
    }

    fn with(name: &str, more: &[&str]) -> Self {
        Self::by(spray(), name, more)
    }

    /// Deploys it with a command to which `spray`'s arguments are appended.
    fn by(command: Command, name: &str, more: &[&str]) -> Self {
        let name = format!("{name}-{}", std::process::id());
        let scenario = scenarios().join("pod.toml");
        let arguments = ["up", scenario.to_str().unwrap(), "--name", &name, "--json", "-q"];
        let (code, stdout, errors) = run_by(command, &[&arguments, more].concat());
        assert!(code == 0 && errors.is_empty(), "{code}: {errors}");
        Self { name, shown: serde_json::from_str(&stdout).unwrap() }
    }

    fn pid(&self) -> u32 {
        self.shown["pid"].as_u64().unwrap() as u32
    }

    fn host(&self, host: usize, field: &str) -> &str {
        self.shown["hosts"][host][field].as_str().unwrap()
    }

    fn address(&self, host: usize, v6: bool) -> IpAddr {
        self.host(host, if v6 { "ipv6" } else { "ipv4" }).parse().unwrap()
    }

    /// Runs `work` in a host; sockets that it opens stay there.
    fn inside<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        deployment::inside(self.host(host, "namespace"), work)
    }

    fn link(&self, links: &str, changes: &[&str]) -> Vec<Value> {
        deployment::links(&self.name, links, changes)
    }

    fn sum(&self, links: &str, field: &str) -> u64 {
        deployment::sum(&self.name, links, field)
    }

    fn down(&self) {
        let (code, stdout, errors) = run(&["down", &self.name]);
        assert!(code == 0 && stdout.contains(&self.name), "{errors}");
        self.assert_gone();
    }

    /// Checks that nothing of it is left.
    fn assert_gone(&self) {
        assert_eq!(namespaces_of(self.pid()), [""; 0]);
        assert!(!Path::new("/etc/netns").join(self.host(0, "namespace")).exists());
        assert!(!spray_switch::control_socket(&self.name).exists());
        assert!(leftovers().iter().all(|name| !name.contains(&self.pid().to_string()) && !name.contains(&self.name)));
        assert_eq!(run(&["link", "--name", &self.name]).0, 2);
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        // Fails if the test has already removed it.
        let _ = spray().args(["down", &self.name]).output();
    }
}

/// Sends bytes in both directions of one kernel TCP connection at the same time, and compares them.
fn exchange(fabric: &Fabric, hosts: [usize; 2], v6: bool, bytes: usize) {
    let [from, to] = hosts.map(|host| fabric.host(host, "namespace"));
    deployment::exchange(from, to, fabric.address(hosts[1], v6), bytes);
}

/// Sends a datagram from host 0 to host 2; returns whether it arrived within `patience`.
fn datagram(fabric: &Fabric, bytes: usize, patience: Duration) -> bool {
    let bind = |host| UdpSocket::bind((fabric.address(host, false), 0)).unwrap();
    let (near, far) = (fabric.inside(0, || bind(0)), fabric.inside(2, || bind(2)));
    far.set_read_timeout(Some(patience)).unwrap();
    let sent = content(3, bytes);
    near.send_to(&sent, far.local_addr().unwrap()).unwrap();
    let mut got = vec![0; 65_536];
    far.recv_from(&mut got).is_ok_and(|(len, _)| got[..len] == sent)
}

/// Sends an ICMPv6 echo request to a host, as `ping` does.
fn echo(fabric: &Fabric, from: usize, to: usize) {
    let socket = fabric.inside(from, || Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6)).unwrap());
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // Type, code, the checksum, which the kernel writes, identifier, sequence number.
    socket.send_to(&[128, 0, 0, 0, 7, 7, 0, 1], &SocketAddr::new(fabric.address(to, true), 0).into()).unwrap();
    let mut answer = [0; 64];
    let len = (&socket).read(&mut answer).unwrap();
    assert_eq!((answer[0], &answer[4..len]), (129, &[7, 7, 0, 1][..]));
}

//= docs/specs/switch.md#SW-25 deployed fabrics
#[test]
fn packets_of_any_program_cross_the_switches() {
    let Some(_turn) = turn() else { return };
    let fabric = Fabric::up("any");
    for v6 in [false, true] {
        exchange(&fabric, [0, 2], v6, 2_000_000);
        exchange(&fabric, [1, 0], v6, 200_000);
    }
    echo(&fabric, 3, 0);
    // Sent in fragments, which have no ports.
    assert!(datagram(&fabric, 9_000, Duration::from_secs(30)));
    let bytes = fabric.sum("leaf0->spine*", "bytes");
    assert!((4_000_000..6_000_000).contains(&bytes), "{bytes}");
    assert_eq!(bytes, fabric.sum("spine*->leaf1", "bytes"));
    assert!(fabric.sum("h1->leaf0", "bytes") > 400_000);
    fabric.down();
    assert_eq!(run(&["down", &fabric.name]).0, 2);
}

#[test]
fn flows_are_spread_and_routing_avoids_links_that_are_down() {
    let Some(_turn) = turn() else { return };
    let fabric = Fabric::up("spread");
    let flows = || (0..16).for_each(|_| exchange(&fabric, [0, 2], false, 20_000));
    flows();
    for spine in ["leaf0->spine0", "leaf0->spine1"] {
        assert!(fabric.sum(spine, "bytes") > 20_000, "{spine}: none of 16 flows uses it");
    }
    let states = fabric.link("leaf0-spine0", &["down"]);
    assert!(states.len() == 2 && states.iter().all(|link| link["state"] == "down"), "{states:?}");
    // By then routing has detected the failure and its end, with any changes in between.
    std::thread::sleep(Duration::from_millis(50));
    let before = fabric.sum("spine0", "frames");
    flows();
    assert_eq!(fabric.sum("spine0", "frames"), before);
    // Routing does not detect the failure of the remaining path, which drops everything.
    fabric.link("leaf0->spine1", &["silent"]);
    assert!(!datagram(&fabric, 100, Duration::from_millis(300)));
    assert!(fabric.sum("leaf0->spine1", "drops_silent") > 0);
    let states = fabric.link("leaf0->spine1", &["rate=25%", "loss=0.5%"]);
    assert_eq!(states[0]["state"], "rate=25%,loss=0.5%");
    for _ in 0..10 {
        // More changes than tables can hold.
        fabric.link("spine*", &["down"]);
        fabric.link("spine*", &["up"]);
    }
    std::thread::sleep(Duration::from_millis(50));
    flows();
    assert!(fabric.sum("spine0", "frames") > before);
    fabric.down();
}

/// Sends a packet from host 0 to host 2 with this TTL. Returns the switch that reports the expiry,
/// and the ICMP type and code.
fn expired_at(fabric: &Fabric, v6: bool, ttl: u32) -> (IpAddr, [u8; 2]) {
    let (domain, icmp, header) =
        if v6 { (Domain::IPV6, Protocol::ICMPV6, 0) } else { (Domain::IPV4, Protocol::ICMPV4, 20) };
    let raw = fabric.inside(0, || Socket::new(domain, Type::RAW, Some(icmp)).unwrap());
    raw.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let sends = fabric.inside(0, || Socket::new(domain, Type::DGRAM, None).unwrap());
    if v6 { sends.set_unicast_hops_v6(ttl) } else { sends.set_ttl_v4(ttl) }.unwrap();
    let number = 40_000 + ttl as u16;
    sends.send_to(&content(ttl.into(), 100), &SocketAddr::new(fabric.address(2, v6), number).into()).unwrap();
    let raw = UdpSocket::from(raw);
    let mut packet = [0; 2_000];
    loop {
        let (len, from) = raw.recv_from(&mut packet).unwrap();
        let packet = &packet[header..len];
        // Neighbour solicitations are received here too.
        if packet.len() > 8 + 20 + 8 && matches!((v6, packet[0]), (false, 11) | (true, 3)) {
            assert!(packet[8..].windows(2).any(|pair| pair == number.to_be_bytes()), "the packet is quoted");
            return (from.ip(), [packet[0], packet[1]]);
        }
    }
}

/// The switch at which a packet's TTL expires reports it.
//= docs/specs/switch.md#SW-30 TTL expiry
#[test]
fn switches_report_expired_packets_to_their_senders() {
    let Some(_turn) = turn() else { return };
    for more in [&[][..], &["--set", "emulation.chassis=per-switch"]] {
        let fabric = Fabric::with("expired", more);
        let (_, names, _) = run(&["shell", "h0", "--name", &fabric.name, "--", "cat", "/etc/hosts"]);
        let name = |address: IpAddr| {
            let line = names.lines().find(|line| line.split(' ').next() == Some(&address.to_string()));
            line.unwrap_or_else(|| panic!("{address} in {names}")).split(' ').nth(1).unwrap()
        };
        for (v6, expected) in [(false, [11, 0]), (true, [3, 0])] {
            let hops = [1, 2, 3].map(|ttl| {
                let (address, kind) = expired_at(&fabric, v6, ttl);
                assert_eq!(kind, expected);
                name(address)
            });
            assert!(matches!(hops, ["leaf0", "spine0" | "spine1", "leaf1"]), "{hops:?}");
        }
        assert_eq!(fabric.sum("*->*", "drops_ttl"), 6);
        fabric.down();
    }
}

//= docs/specs/switch.md#SW-29 impairments
#[test]
#[expect(clippy::disallowed_methods, reason = "how late frames are at least is what is tested")]
fn links_delay_reorder_corrupt_and_duplicate() {
    let Some(_turn) = turn() else { return };
    let fabric = Fabric::up("impaired");
    let bind = |host| UdpSocket::bind((fabric.address(host, false), 0)).unwrap();
    let (near, far) = (fabric.inside(0, || bind(0)), fabric.inside(2, || bind(2)));
    // Returns the numbers of the datagrams that arrive, of `count` that are sent.
    let numbers = |count: u8, patience: Duration| {
        for number in 0..count {
            near.send_to(&[number; 200], far.local_addr().unwrap()).unwrap();
        }
        far.set_read_timeout(Some(patience)).unwrap();
        let mut got = [0; 2_000];
        let next = || {
            far.recv_from(&mut got).ok().map(|(len, _)| {
                assert_eq!(got[..len], [got[0]; 200]);
                got[0]
            })
        };
        std::iter::from_fn(next).collect::<Vec<_>>()
    };
    let (brief, long) = (Duration::from_millis(300), Duration::from_secs(2));
    let up = "leaf0->spine*";
    assert_eq!(fabric.link(up, &["corrupt=100%"])[0]["state"], "corrupt=100%");
    assert_eq!(numbers(30, brief), [0; 0], "every bit of an IPv4 packet is covered by a checksum");
    fabric.link(up, &["duplicate=100%"]);
    assert_eq!(numbers(4, brief), [0, 0, 1, 1, 2, 2, 3, 3]);
    fabric.link(up, &["up", "delay=200ms"]);
    let sent = std::time::Instant::now();
    assert_eq!(numbers(4, long), [0, 1, 2, 3]);
    assert!(sent.elapsed() >= Duration::from_millis(200));
    fabric.link(up, &["delay=200ms", "reorder=50%"]);
    let received = numbers(40, long);
    let [early, late]: [Vec<u8>; 2] = {
        let falls = received.windows(2).position(|pair| pair[0] > pair[1]).unwrap();
        [received[..=falls].to_vec(), received[falls + 1..].to_vec()]
    };
    assert!(
        received.len() == 40 && early.is_sorted() && late.is_sorted(),
        "some packets overtake others: {received:?}"
    );
    fabric.link(up, &["jitter=100ms"]);
    let received = numbers(40, long);
    assert!(received.len() == 40 && !received.is_sorted());
    let (code, _, why) = run(&["link", "--name", &fabric.name, "leaf0->spine0", "reorder=1%"]);
    assert!(code == 2 && why.contains("needs a delay too"), "{why}");
    fabric.link(up, &["up"]);
    assert_eq!(numbers(4, brief), [0, 1, 2, 3]);
    fabric.down();
}

#[test]
fn the_default_queue_is_long_enough_for_tcp() {
    let Some(_turn) = turn() else { return };
    // The table without a limit replaces that of the scenario.
    let fabric = Fabric::with("roomy", &["--set", "queue={trimming=false}", "--set", "topology.latency_us=1"]);
    let near = fabric.inside(0, || UdpSocket::bind((fabric.address(0, false), 0))).unwrap();
    // More than a bandwidth-delay product, and fewer than 200 packets.
    for _ in 0..150 {
        near.send_to(&[0; 3_000], (fabric.address(2, false), 9)).unwrap();
    }
    assert_eq!(fabric.sum("h0->leaf0", "drops_queue"), 0);
    fabric.down();
}

#[test]
fn a_command_runs_in_a_host_and_its_exit_code_is_returned() {
    let Some(_turn) = turn() else { return };
    // Files with names are readable for all users, regardless of the umask of the user who starts
    // it.
    let mut strict = Command::new("sh");
    strict.args(["-c", "umask 077; exec \"$0\" \"$@\""]).arg(spray().get_program());
    let fabric = Fabric::by(strict, "shell", &[]);
    let files = Path::new("/etc/netns").join(fabric.host(1, "namespace"));
    for file in [files.clone(), files.join("hosts"), files.join("resolv.conf")] {
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o044, 0o044, "{}", file.display());
    }
    let shell = |host: &str, command: &str| run(&["shell", host, "--name", &fabric.name, "--", "sh", "-c", command]);
    let of_machine = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let (code, stdout, _) = shell("h1", "cat /etc/hosts /etc/resolv.conf; ls /sys/class/net; echo $SPRAY_HOST; exit 7");
    assert_eq!(code, 7);
    for part in ["10.0.0.3 h2", "::3 h2", "nameserver 127.0.0.1", "eth0", "h1"] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    for (arguments, why) in [
        (&["shell", "h9", "--name", &fabric.name, "--", "true"][..], "its hosts: h0, h1, h2, h3"),
        (&["shell", "h0", "--name", "nobody"], "no fabric `nobody`"),
        (&["link", "spine7", "down", "--name", &fabric.name], "no link `spine7`"),
        (&["link", "spine0", "slow", "--name", &fabric.name], "allowed: up, down, silent"),
        (&["link", "spine0", "loss=1", "--name", &fabric.name], "with a percent sign"),
        (&["link", "spine0", "down", "up", "--name", &fabric.name], "give it alone"),
        (&["up", "no-such-file.toml"], "no-such-file.toml"),
        (&["up", scenarios().join("pod.toml").to_str().unwrap(), "--name", &fabric.name], "is already running"),
        (&["up", scenarios().join("pod.toml").to_str().unwrap(), "--name", "a/b"], "letters"),
        (&["up", scenarios().join("lossless.toml").to_str().unwrap(), "--name", "other"], "`--engine sim`"),
    ] {
        let (code, stdout, errors) = run(arguments);
        assert!(code == 2 && stdout.is_empty() && errors.contains(why), "{arguments:?}: {code}: {stdout}{errors}");
    }
    assert_eq!(std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default(), of_machine);
    // Processes that still run in a host are listed when it is removed.
    let own = ["shell", "h1", "--name", &fabric.name, "--", "sh", "-c", "echo; read end"];
    let mut left = spray().args(own).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    left.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let (code, _, errors) = run(&["down", &fabric.name]);
    let line = format!("  {} in h1: sh -c echo; read end", left.id());
    assert!(code == 0 && errors.contains(&line) && errors.contains(&format!("`kill {}`", left.id())), "{errors}");
    fabric.assert_gone();
    drop(left.stdin.take());
    left.wait().unwrap();
}

/// A namespace of another program, removed when dropped.
struct ExistingNamespace(String);

impl ExistingNamespace {
    fn new(name: &str) -> Self {
        let existing = Self(format!("{name}-{}", std::process::id()));
        existing.ip(&["netns", "add", &existing.0]);
        existing
    }

    /// Returns the output of `ip`.
    fn ip(&self, arguments: &[&str]) -> String {
        let output = std::process::Command::new("ip").args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn links(&self) -> String {
        self.ip(&["-n", &self.0, "-o", "link"])
    }
}

impl Drop for ExistingNamespace {
    fn drop(&mut self) {
        let _ = std::process::Command::new("ip").args(["netns", "delete", &self.0]).output();
    }
}

#[test]
fn a_host_can_use_an_existing_namespace_which_is_restored() {
    let Some(_turn) = turn() else { return };
    let existing = ExistingNamespace::new("theirs");
    let setting =
        || deployment::inside(&existing.0, || std::fs::read_to_string("/proc/sys/net/ipv6/conf/all/accept_ra"));
    let (links, was) = (existing.links(), setting().ok());
    let placement = format!("h3={}", existing.0);
    let fabric = Fabric::with("lent", &["--host", &placement]);
    assert_eq!(fabric.host(3, "namespace"), format!("/run/netns/{}", existing.0));
    exchange(&fabric, [3, 0], false, 200_000);
    exchange(&fabric, [0, 3], true, 200_000);
    let (code, stdout, _) = run(&["shell", "h3", "--name", &fabric.name, "--", "ip", "-br", "address"]);
    assert!(code == 0 && stdout.contains("10.0.0.4/8"), "{stdout}");
    let pod = scenarios().join("pod.toml");
    for (host, why) in [
        (&*placement, "it is in use by another host"),
        ("h9=nobody", "there is no host h9"),
        ("h0=nobody", "/run/netns/nobody"),
        ("h0=/proc/self/ns/net", "this machine's own network"),
        ("h0=container:nobody-of-this-name", "there is no container"),
        ("h0", "h0=container:web"),
    ] {
        let (code, _, errors) = run(&["up", pod.to_str().unwrap(), "--name", "refused", "--host", host]);
        assert!(code == 2 && errors.contains(why), "{host}: {code}: {errors}");
    }
    fabric.down();
    wait_until("its interface to be removed", || existing.links() == links);
    assert_eq!(setting().ok(), was);
    // The name of a host's interface may be taken.
    existing.ip(&["-n", &existing.0, "link", "add", "eth0", "type", "veth", "peer", "name", "other"]);
    let (code, _, errors) = run(&["up", pod.to_str().unwrap(), "--name", "refused", "--host", &placement]);
    assert!(code == 2 && errors.contains("--network none"), "{errors}");
}

#[test]
fn our_transport_runs_in_deployed_hosts() {
    let Some(_turn) = turn() else { return };
    let fabric = Fabric::up("own");
    let own = spray().get_program().to_owned();
    let own = own.to_str().unwrap();
    let mut serve = spray();
    serve.args(["shell", "h2", "--name", &fabric.name, "--", own, "serve", "--interface", "eth0", "--insecure"]);
    let mut serve = Running(serve.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()).listening();
    let perf = ["perf", "10.0.0.3", "--interface", "eth0", "--insecure", "-t", "2", "--json"];
    let (code, stdout, errors) = run(&[&["shell", "h0", "--name", &fabric.name, "--", own][..], &perf].concat());
    assert_eq!(code, 0, "{errors}");
    let measured: Value = serde_json::from_str(&stdout).unwrap();
    assert!(measured["end"]["sum_sent"]["bytes"].as_u64().unwrap() > 1_000_000, "{measured}");
    // Packets are sprayed: one connection uses both spines.
    for spine in ["leaf0->spine0", "leaf0->spine1"] {
        assert!(fabric.sum(spine, "bytes") > 100_000, "{spine}");
    }
    kill(Pid::from_raw(serve.0.id() as i32), Signal::SIGINT).unwrap();
    serve.end();
    exchange(&fabric, [0, 2], false, 20_000);
    fabric.down();
}

#[test]
fn remains_of_a_kill_are_cleaned_and_ctrl_c_leaves_nothing() {
    let Some(_turn) = turn() else { return };
    let fabric = Fabric::up("killed");
    kill(Pid::from_raw(fabric.pid() as i32), Signal::SIGKILL).unwrap();
    wait_until("the end of the process", || !spray_switch::deployed().contains(&fabric.name));
    wait_until("its namespaces to be leftovers", || {
        leftovers().iter().any(|name| name.contains(&fabric.pid().to_string()))
    });
    let (code, stdout, errors) = run(&["clean"]);
    assert!(
        code == 0 && stdout.contains(fabric.host(0, "namespace")) && stdout.contains(&fabric.name),
        "{stdout}{errors}"
    );
    fabric.assert_gone();

    let folder = Folder::new();
    let scenario = std::fs::read_to_string(scenarios().join("pod.toml")).unwrap();
    let scenario = folder.file("large.toml", scenario.replace("hosts_per_leaf = 2", "hosts_per_leaf = 24"));
    let name = format!("stopped-{}", std::process::id());
    let mut up = spray();
    up.args(["up", &scenario, "--name", &name]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut up = Running(up.spawn().unwrap());
    wait_until("the set-up to begin", || spray_switch::control_socket(&name).exists());
    kill(Pid::from_raw(up.0.id() as i32), Signal::SIGINT).unwrap();
    let code = up.end().code();
    assert_eq!(code, Some(130), "{}", up.stderr());
    assert!(!spray_switch::control_socket(&name).exists());
    assert!(!spray_switch::deployed().contains(&name));
}

/// Its namespaces are mounts that are visible only to the process that keeps it, and to its
/// parents.
#[test]
fn a_fabric_of_another_mount_namespace_is_accessible_and_not_a_leftover() {
    let Some(_turn) = turn() else { return };
    let outer = format!("spray-test-outer-{}", std::process::id());
    let ip = |arguments: &[&str]| std::process::Command::new("ip").args(arguments).output().unwrap();
    assert!(ip(&["netns", "add", &outer]).status.success());
    let (name, scenario) = (format!("outer-{}", std::process::id()), scenarios().join("pod.toml"));
    let program = spray().get_program().to_owned();
    let up = ["up", scenario.to_str().unwrap(), "--name", &name, "--json", "-q"];
    let made = ip(&[&["netns", "exec", &outer, program.to_str().unwrap()][..], &up].concat());
    let shown: Value = serde_json::from_slice(&made.stdout).unwrap();
    let namespace = shown["hosts"][0]["namespace"].as_str().unwrap();
    let leftovers = leftovers();
    let (code, stdout, errors) = run(&["shell", "--name", &name, "h0", "--", "ip", "-br", "address"]);
    let down = run(&["down", &name]).0;
    ip(&["netns", "del", &outer]);
    assert!(code == 0 && stdout.contains(shown["hosts"][0]["ipv4"].as_str().unwrap()), "{code}: {stdout}{errors}");
    assert!(down == 0 && !leftovers.iter().any(|left| left == namespace), "{leftovers:?}");
}
