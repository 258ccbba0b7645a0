//! `spray switch`: a scenario's switches between interfaces created with `ip`, as on a user's
//! machine.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use spray_nic::net::ethtool::Ethtool;
use spray_test_support::{Folder, text};
use spray_tests::deployment::{exchange, inside, run};
use spray_tests::machines::{HOSTS, Machines, ip};
use spray_tests::running::{Running, content, inbox, payload, wait_until};
use spray_tests::{shared_turn, spray, turn};

//= docs/specs/switch.md#SW-26 user-supplied interfaces
#[test]
fn hosts_find_each_other_and_the_machine_stays_reachable() {
    let Some(_turn) = shared_turn() else { return };
    let machines = Machines::new("find");
    ip(&format!("-n {} address add 10.79.0.9/24 dev p1", machines.machine()));
    let shown = machines.switch(&[]);
    assert_eq!(shown["hosts"][2]["interface"], format!("p2@{}", machines.machine()));
    for v6 in [false, true] {
        exchange(&machines.host(0), &machines.host(2), Machines::address(2, v6), 1_000_000);
        exchange(&machines.host(3), &machines.host(0), Machines::address(0, v6), 100_000);
    }
    exchange(&machines.host(1), &machines.machine(), [10, 79, 0, 9].into(), 100_000);
    let learned = machines.status()["hosts"][0]["addresses"].to_string();
    assert!(learned.contains("10.79.0.1") && learned.contains("fd79::1"), "{learned}");
    assert!(!machines.status()["hosts"].to_string().contains("10.79.0.9"), "the machine's address belongs to no host");
    let bytes = machines.sum("leaf0->spine*", "bytes");
    assert!((2_000_000..4_000_000).contains(&bytes), "{bytes}");
    assert_eq!(machines.sum("h1->leaf0", "bytes"), 0, "packets for the machine cross no switch");
    assert_eq!(machines.sum("*", "drops_ttl"), 0);
    let (code, _, errors) = run(&["shell", "h0", "--name", &machines.name, "--", "true"]);
    assert!(code == 2 && errors.contains("h0 is another machine, behind p0@"), "{errors}");
    machines.down();
    assert_eq!(run(&["down", &machines.name]).0, 2);
}

/// Sends from an address of a host, for which its kernel resolves the next hop by ARP or neighbour
/// discovery from that address.
fn use_address(machines: &Machines, host: usize, from: IpAddr, to: IpAddr) {
    let socket = inside(&machines.host(host), || std::net::UdpSocket::bind((from, 0))).unwrap();
    socket.send_to(&[0], (to, 9)).unwrap();
}

/// Removes a fabric, and returns its events.
fn events(machines: &Machines) -> Vec<String> {
    let report = machines.down();
    let of = |event: &serde_json::Value| {
        format!("{} {}", event["links"].as_str().unwrap(), event["change"].as_str().unwrap())
    };
    report["events"].as_array().unwrap().iter().map(of).collect()
}

/// The last host configures and uses the address of the first.
//= docs/specs/switch.md#SW-26 if none is answered
#[test]
fn an_address_is_taken_over_only_from_a_host_that_does_not_answer() {
    let Some(_turn) = shared_turn() else { return };
    let machines = Machines::new("take");
    machines.switch(&[]);
    let has = |host: usize, address: IpAddr| {
        let shown = machines.status()["hosts"][host]["addresses"].clone();
        shown.as_array().unwrap().iter().any(|it| it.as_str() == Some(&address.to_string()))
    };
    let (first, last) = (machines.host(0), machines.host(3));
    for v6 in [false, true] {
        let [address, other] = [0, 1].map(|host| Machines::address(host, v6));
        exchange(&machines.host(1), &first, address, 10_000);
        let flags = if v6 { "/64 dev eth0 nodad" } else { "/24 dev eth0" };
        ip(&format!("-n {last} address add {address}{flags}"));
        for _ in 0..20 {
            use_address(&machines, 3, address, other);
            ip(&format!("-n {last} neigh flush dev eth0"));
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(has(0, address) && !has(3, address), "{address}");
        exchange(&machines.host(1), &first, address, 10_000);
        ip(&format!("-n {first} address del {address}{}", if v6 { "/64 dev eth0" } else { "/24 dev eth0" }));
        wait_until("the address to move", || {
            use_address(&machines, 3, address, other);
            ip(&format!("-n {last} neigh flush dev eth0"));
            has(3, address)
        });
        assert!(!has(0, address));
        exchange(&machines.host(1), &last, address, 10_000);
    }
    let events = events(&machines);
    for address in ["10.79.0.1", "fd79::1"] {
        let claimed = format!("leaf1-h3 claims {address}, which remains assigned to h0");
        let took = format!("leaf1-h3 took {address}, which h0 no longer answers for");
        let place = |what: &str| events.iter().position(|event| event == what);
        // Claims are reported every 10 s.
        assert!(address == "fd79::1" || place(&claimed).is_some(), "{events:?}");
        assert!(place(&took).is_some_and(|at| place(&claimed).is_none_or(|before| before < at)), "{events:?}");
    }
}

//= docs/specs/switch.md#SW-26 never moves
#[test]
fn an_address_that_is_bound_to_a_port_stays_there() {
    let Some(_turn) = shared_turn() else { return };
    let machines = Machines::new("bound");
    let mut arguments = machines.arguments();
    arguments.iter_mut().find(|argument| argument.starts_with("h1=")).unwrap().push_str(",10.79.0.2");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (code, _, errors) = run(&arguments);
    assert_eq!(code, 0, "{errors}");
    let address = Machines::address(1, false);
    assert_eq!(machines.status()["hosts"][1]["addresses"][0], address.to_string(), "before it sends anything");
    ip(&format!("-n {} address del {address}/24 dev eth0", machines.host(1)));
    ip(&format!("-n {} address add {address}/24 dev eth0", machines.host(3)));
    for _ in 0..20 {
        use_address(&machines, 3, address, Machines::address(0, false));
        ip(&format!("-n {} neigh flush dev eth0", machines.host(3)));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(machines.status()["hosts"][1]["addresses"][0], address.to_string());
    let events = events(&machines);
    assert_eq!(events, ["leaf1-h3 claims 10.79.0.2, which remains assigned to h1"]);
}

/// Hosts with resolved neighbours, as after a restart of the switches: their packets pass the
/// switches without being flooded.
#[test]
#[expect(clippy::disallowed_methods, reason = "how many frames pass in real time is what is tested")]
fn hosts_with_resolved_neighbours_are_learned_from_their_packets() {
    let Some(_turn) = shared_turn() else { return };
    let machines = Machines::new("known");
    for (host, other) in [(0, 2), (2, 0)] {
        let (own, address, mac) = (machines.host(host), Machines::address(other, false), Machines::mac(other));
        ip(&format!("-n {own} neigh add {address} lladdr {mac} dev eth0 nud permanent"));
    }
    let own = machines.host(0);
    ip(&format!("-n {own} neigh add 10.79.0.99 lladdr 02:79:00:00:00:99 dev eth0 nud permanent"));
    machines.switch(&[]);
    exchange(&machines.host(0), &machines.host(2), Machines::address(2, false), 1_000_000);
    let bytes = machines.sum("leaf0->spine*", "bytes");
    assert!((1_000_000..1_200_000).contains(&bytes), "{bytes}");
    let received = || {
        let mut statistics = Machines::command(&machines.host(3), "cat");
        let output = statistics.arg("/sys/class/net/eth0/statistics/rx_packets").output().unwrap();
        text(&output.stdout).trim().parse::<u64>().unwrap()
    };
    let (before, begun) = (received(), std::time::Instant::now());
    let socket = inside(&machines.host(0), || std::net::UdpSocket::bind("10.79.0.1:0")).unwrap();
    for _ in 0..5000 {
        socket.send_to(&[0; 100], "10.79.0.99:9").unwrap();
    }
    wait_until("the excess to be reported", || machines.status()["lost_frames"].as_u64().unwrap() > 0);
    let (flooded, spans) = (received() - before, begun.elapsed().as_millis() as u64 / 100 + 2);
    assert!(flooded > 0 && flooded < 64 * spans + 20, "{flooded} in {spans} spans");
    machines.down();
}

#[test]
fn our_transport_sprays_despite_failed_links_and_unplugged_ports() {
    let Some(_turn) = turn() else { return };
    let (machines, folder) = (Machines::new("spray"), Folder::new());
    let trimming = ["--set", "queue.trimming=true", "--set", "queue.limit=\"20 packets\""];
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap().port().to_string();
    machines.switch(&[&trimming[..], &["--metrics", &port]].concat());
    let (file, out) = (payload(&folder, 32 << 20), inbox(&folder));
    let own = spray().get_program().to_str().unwrap().to_string();
    let mut receiver = Machines::command(&machines.host(2), &own);
    receiver.args(["recv", "--insecure", "--interface", "eth0", "--from", "10.79.0.3", "--out"]).arg(&out);
    let mut receiver = Running(receiver.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()).listening();
    let mut sender = Machines::command(&machines.host(0), &own);
    sender.arg("send").arg(&file).args(["--insecure", "--interface", "eth0", "--from", "10.79.0.1"]);
    sender
        .args([
            "--to",
            "10.79.0.3",
            "--timeout",
            "30",
            "--trimming",
            "--cc",
            "fixed-rate",
            "--set",
            "transport.fixed-rate.rate_gbps=0.25",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut sender = Running(sender.spawn().unwrap());
    wait_until("data on both spines", || {
        ["leaf0->spine0", "leaf0->spine1"].iter().all(|link| machines.sum(link, "bytes") > 200_000)
    });
    machines.links("leaf0-spine1", &["silent"]);
    let host = machines.host(2);
    ip(&format!("-n {host} link set eth0 down"));
    wait_until("the link to be down", || machines.links("leaf1->h2", &[])[0]["state"] == "down");
    ip(&format!("-n {host} link set eth0 up"));
    wait_until("the link to be up", || machines.links("leaf1->h2", &[])[0]["state"] == "up");
    let (sent, received) = (sender.end().success(), receiver.end().success());
    assert!(sent && received, "{}{}", sender.stderr(), receiver.stderr());
    assert!(std::fs::read(&file).unwrap() == std::fs::read(out.join("payload")).unwrap());
    assert!(machines.sum("leaf0->spine1", "drops_silent") > 0);
    assert!(machines.sum("*", "trims") > 0);
    let mut metrics = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    metrics.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    metrics.read_to_string(&mut page).unwrap();
    assert!(page.contains("spray_link_drops_total{link=\"leaf0->spine1\",cause=\"silent\"}"), "{page}");
    let report = machines.down();
    let events =
        report["events"].as_array().unwrap().iter().map(|event| format!("{} {}", event["links"], event["change"]));
    let expected = ["\"leaf0-spine1\" \"silent\"", "\"leaf1-h2\" \"disconnected\"", "\"leaf1-h2\" \"connected\""];
    assert_eq!(events.collect::<Vec<_>>(), expected);
    assert!(report["seconds"].as_f64().unwrap() > 1.0);
    let first = report["links"].as_array().unwrap().iter().find(|link| link["link"] == "h0->leaf0").unwrap();
    assert!(first["bytes"].as_u64().unwrap() > 32 << 20);
}

/// The machine is the router of hosts in two networks; the kernel's neighbour table determines
/// their ports.
#[test]
fn hosts_of_other_networks_are_routed() {
    let Some(_turn) = shared_turn() else { return };
    let machines = Machines::new("routed");
    let machine = machines.machine();
    for (host, net) in [(0, 80), (2, 81)] {
        let own = machines.host(host);
        ip(&format!("-n {machine} address add 10.{net}.0.9/24 dev p{host}"));
        ip(&format!("-n {own} address flush dev eth0"));
        ip(&format!("-n {own} address add 10.{net}.0.1/24 dev eth0"));
        ip(&format!("-n {own} route add default via 10.{net}.0.9"));
    }
    let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
    assert!(Machines::command(&machine, "sh").args(["-c", forward]).status().unwrap().success());
    machines.switch(&[]);
    exchange(&machines.host(0), &machines.host(2), [10, 81, 0, 1].into(), 10_000);
    wait_until("both hosts to be found", || {
        let hosts = machines.status()["hosts"].to_string();
        hosts.contains("10.80.0.1") && hosts.contains("10.81.0.1")
    });
    let before = machines.sum("leaf0->spine*", "bytes");
    exchange(&machines.host(0), &machines.host(2), [10, 81, 0, 1].into(), 500_000);
    let bytes = machines.sum("leaf0->spine*", "bytes") - before;
    assert!((500_000..700_000).contains(&bytes), "{bytes}");
    // Each switch decrements the TTL; the host's own link does not.
    let ttl = |count: u8| {
        let near = inside(&machines.host(0), || std::net::UdpSocket::bind("10.80.0.1:0")).unwrap();
        let far = inside(&machines.host(2), || std::net::UdpSocket::bind("10.81.0.1:0")).unwrap();
        near.set_ttl(count.into()).unwrap();
        far.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        near.send_to(&content(1, 100), far.local_addr().unwrap()).unwrap();
        far.recv_from(&mut [0; 200]).is_ok()
    };
    assert!(ttl(4) && !ttl(3), "leaf0, spine and leaf1 decrement it once each");
    machines.down();
}

/// Links faster than a thread can delay: drivers forward frames, and marks and drops are those of
/// the scenario.
#[test]
fn fast_links_are_not_delayed_by_a_thread() {
    let Some(_turn) = turn() else { return };
    let machines = Machines::new("fast");
    let arguments = machines.arguments();
    let fast = [
        "--set",
        "topology.host_gbps=5",
        "--set",
        "queue.mark_min=\"1 packets\"",
        "--set",
        "queue.mark_max=\"2 packets\"",
    ];
    let all: Vec<&str> = arguments.iter().map(String::as_str).chain(fast).collect();
    let (code, _, errors) = run(&all);
    assert!(code == 2 && errors.contains("`ethtool -K OTHER_END gro on`"), "{errors}");
    machines.assert_as_it_was();
    for host in 0..HOSTS {
        inside(&machines.host(host), || Ethtool::open("eth0").unwrap().set_feature("rx-gro", true).unwrap());
        let ecn = "echo 1 > /proc/sys/net/ipv4/tcp_ecn";
        assert!(Machines::command(&machines.host(host), "sh").args(["-c", ecn]).status().unwrap().success());
    }
    let short = ["--set", "topology.host_gbps=9.5", "--set", "transport.payload_bytes=64"];
    let all: Vec<&str> = arguments.iter().map(String::as_str).chain(short).collect();
    let (code, _, errors) = run(&all);
    assert!(code == 2 && errors.contains("processes at most") && errors.contains("% of the rates"), "{errors}");
    machines.assert_as_it_was();
    let shown = machines.switch(&fast);
    assert_eq!(shown["undelayed"], true);
    // A redirected frame keeps its checksum, which veth's sender leaves partial.
    for host in 0..HOSTS {
        inside(&machines.host(host), || {
            Ethtool::open("eth0").unwrap().set_feature("tx-checksum-ip-generic", false).unwrap();
        });
    }
    for v6 in [false, true] {
        exchange(&machines.host(0), &machines.host(2), Machines::address(2, v6), 4_000_000);
    }
    assert!(machines.sum("leaf0->spine*", "bytes") > 8_000_000);
    assert!(machines.sum("*", "marks") > 0);
    assert_eq!(machines.status()["lost_frames"], 0);
    machines.links("leaf0-spine*", &["loss=5%"]);
    // With segmentation offload these bytes are sent in few frames, none of which may be lost.
    let loses = |_| {
        exchange(&machines.host(0), &machines.host(2), Machines::address(2, false), 50_000);
        machines.sum("leaf0-spine*", "drops_random") > 0
    };
    assert!((0..50).any(loses), "5 % of the frames must be lost");
    machines.down();
}

/// Packets longer than an interface's MTU are dropped and reported, as are those to an interface
/// that is down; other hosts are not affected.
#[test]
fn packets_too_long_for_an_interface_do_not_affect_others() {
    let Some(_turn) = shared_turn() else { return };
    let machines = Machines::new("short");
    ip(&format!("-n {} link set p2 mtu 1280", machines.machine()));
    machines.switch(&[]);
    exchange(&machines.host(0), &machines.host(1), Machines::address(1, false), 1_000);
    exchange(&machines.host(1), &machines.host(2), Machines::address(2, false), 1_000);
    let socket = inside(&machines.host(1), || std::net::UdpSocket::bind("10.79.0.2:0")).unwrap();
    (0..10).for_each(|_| assert_eq!(socket.send_to(&[0; 1400], "10.79.0.3:9").unwrap(), 1400));
    wait_until("the losses to be reported", || machines.status()["lost_frames"] == 10);
    ip(&format!("-n {} link set p3 down", machines.machine()));
    for _ in 0..10 {
        // Fails if the host is reported as unreachable.
        let _ = socket.send_to(&[0; 100], "10.79.0.4:9");
    }
    exchange(&machines.host(0), &machines.host(1), Machines::address(1, false), 1_000_000);
    machines.down();
}

#[test]
fn a_killed_switch_leaves_nothing_on_the_interfaces() {
    let Some(_turn) = shared_turn() else { return };
    let machines = Machines::new("kill");
    let shown = machines.switch(&[]);
    let interfaces = machines.interfaces();
    assert!(interfaces.contains("xdp") && interfaces.contains("promiscuity 1"), "{interfaces}");
    kill(Pid::from_raw(shown["pid"].as_u64().unwrap() as i32), Signal::SIGKILL).unwrap();
    wait_until("the end of the process", || !spray_switch::deployed().contains(&machines.name));
    let (code, stdout, errors) = run(&["clean"]);
    assert!(code == 0 && stdout.contains(&machines.name), "{stdout}{errors}");
    machines.assert_as_it_was();
}

#[test]
fn impossible_requests_are_rejected_before_anything_is_attached() {
    let Some(_turn) = shared_turn() else { return };
    let machines = Machines::new("refused");
    let machine = machines.machine();
    ip(&format!("-n {machine} link add busy type veth peer name other"));
    ip(&format!("-n {machine} link set busy up"));
    let all = machines.arguments();
    let refused = |host: usize, port: &str, why: &str| {
        let mut arguments: Vec<&str> = all.iter().map(String::as_str).collect();
        arguments[7 + 2 * host] = port;
        let (code, stdout, errors) = run(&arguments);
        assert!(code == 2 && stdout.is_empty() && errors.contains(why), "{port}: {code}: {stdout}{errors}");
        machines.assert_as_it_was();
    };
    refused(3, &format!("h3=nope@{machine}"), "there is no interface nope");
    refused(3, "h3=eth0@nowhere", "there is no network namespace nowhere");
    refused(3, &format!("h9=p3@{machine}"), "the scenario has no host `h9`; its hosts: h0, h1, h2, h3");
    refused(3, &format!("h2=p3@{machine}"), "`h2` needs one port");
    refused(3, &format!("h3=p2@{machine}"), "is given twice, for h2 and h3");
    refused(3, &format!("h3=other@{machine}"), "interface other is down");
    refused(3, "h3", "HOST=INTERFACE");
    let other =
        Command::new("ip").args(["netns", "exec", &machines.host(0), "cat", "/sys/class/net/eth0/ifindex"]).output();
    let number: u32 = text(&other.unwrap().stdout).trim().parse().unwrap();
    ip(&format!("-n {machine} link add same index {} type veth peer name same-end", number + 1000));
    ip(&format!("-n {} link add same index {} type veth peer name same-end", machines.host(1), number + 1000));
    for namespace in [&machine, &machines.host(1)] {
        ip(&format!("-n {namespace} link set same up"));
    }
    let mut arguments: Vec<&str> = all.iter().map(String::as_str).collect();
    let ports = [format!("h2=same@{machine}"), format!("h3=same@{}", machines.host(1))];
    (arguments[11], arguments[13]) = (&ports[0], &ports[1]);
    let (code, _, errors) = run(&arguments);
    assert!(code == 2 && errors.contains("have the same index"), "{errors}");
    let mut arguments: Vec<&str> = all.iter().map(String::as_str).collect();
    arguments.extend(["--set", "topology.host_gbps=10"]);
    let (code, _, errors) = run(&arguments);
    assert!(code == 2 && errors.contains("--set topology.host_gbps=9.5"), "{errors}");
    // The program of another process is not replaced.
    machines.switch(&[]);
    let (code, _, errors) = run(&[&["switch", "--name", "another"][..], &arguments[5..arguments.len() - 2]].concat());
    assert!(code == 2 && errors.contains("`deployed`, held by spray"), "{errors}");
    machines.down();
}
