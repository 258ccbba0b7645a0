//! Deployed fabrics on machines and in containers with other clocks: with a long uptime, or in a
//! time namespace.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::Value;
use spray_tests::boxes::{Boxes, SWITCHES};
use spray_tests::deployment::{inside, links, run, run_by, shifted};
use spray_tests::running::{content, wait_until};
use spray_tests::{scenarios, spray, turn};

/// The difference of the process's clock from the kernel's, in seconds. More than 18,446,744 s do
/// not fit 64 bits in picoseconds.
const OFFSETS: [i64; 4] = [0, 1_000, -60, 18_500_000];

/// A deployed fabric of `pod.toml`, removed when dropped.
struct Fabric {
    name: String,
    shown: Value,
}

impl Fabric {
    /// Deploys the fabric in a process with a clock that is `offset` seconds ahead of the kernel's.
    fn up(offset: i64) -> Self {
        let (name, scenario) = (format!("clocks-{}", std::process::id()), scenarios().join("pod.toml"));
        let arguments = ["up", scenario.to_str().unwrap(), "--name", &name, "--json", "-q"];
        let (code, stdout, errors) = run_by(shifted(offset), &arguments);
        assert!(code == 0 && errors.is_empty(), "{code}: {errors}");
        Self { name, shown: serde_json::from_str(&stdout).unwrap() }
    }

    fn namespace(&self, host: usize) -> &str {
        self.shown["hosts"][host]["namespace"].as_str().unwrap()
    }

    fn address(&self, host: usize) -> IpAddr {
        self.shown["hosts"][host]["ipv4"].as_str().unwrap().parse().unwrap()
    }

    fn down(&self) {
        let (code, _, errors) = run(&["down", &self.name]);
        assert_eq!(code, 0, "{errors}");
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        // Fails if the test has already removed it.
        let _ = spray().args(["down", &self.name]).output();
    }
}

/// Returns the minimum of several round-trip times from h0 to h2, which excludes delays of a busy
/// machine.
#[expect(clippy::disallowed_methods, reason = "round-trip times are what is tested")]
fn round_trip(fabric: &Fabric) -> Duration {
    let socket = |host| {
        let socket = inside(fabric.namespace(host), || UdpSocket::bind((fabric.address(host), 0))).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket
    };
    let (near, far) = (socket(0), socket(2));
    let way = |from: &UdpSocket, to: &UdpSocket| {
        from.send_to(&[7; 56], to.local_addr().unwrap()).unwrap();
        to.recv(&mut [0; 64]).unwrap();
    };
    let trip = || {
        let sent = Instant::now();
        way(&near, &far);
        way(&far, &near);
        sent.elapsed()
    };
    (0..20).map(|_| trip()).min().unwrap()
}

/// Returns the rate of a TCP connection from h0 to h2 in Mb/s.
#[expect(clippy::disallowed_methods, reason = "a rate is what is tested")]
fn rate(fabric: &Fabric) -> f64 {
    const BYTES: usize = 5_000_000;
    let listener = inside(fabric.namespace(2), || TcpListener::bind(SocketAddr::new(fabric.address(2), 0))).unwrap();
    let to = listener.local_addr().unwrap();
    let mut near = inside(fabric.namespace(0), || TcpStream::connect_timeout(&to, Duration::from_secs(30))).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    for stream in [&near, &far] {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    }
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || std::io::Write::write_all(&mut near, &content(1, BYTES)).unwrap());
        let got = std::io::copy(&mut far, &mut std::io::sink()).unwrap();
        assert_eq!(got, BYTES as u64);
    });
    BYTES as f64 * 8.0 / begun.elapsed().as_secs_f64() / 1e6
}

/// Returns whether a datagram from h0 to h2 arrives.
fn arrives(fabric: &Fabric) -> bool {
    let bind = |host| inside(fabric.namespace(host), || UdpSocket::bind((fabric.address(host), 0))).unwrap();
    let (near, far) = (bind(0), bind(2));
    far.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    near.send_to(&[7; 56], far.local_addr().unwrap()).unwrap();
    far.recv(&mut [0; 64]).is_ok()
}

/// Links of 200 us and 200 Mb/s: a packet of 98 bytes takes another 4 us at each of eight ports.
//= docs/specs/switch.md#SW-31 one clock
#[test]
fn delays_rates_and_link_states_do_not_depend_on_the_clock_of_the_process() {
    let Some(_turn) = turn() else { return };
    for offset in OFFSETS {
        let fabric = Fabric::up(offset);
        let took = round_trip(&fabric);
        assert!((Duration::from_micros(1_600)..Duration::from_millis(10)).contains(&took), "{offset} s: {took:?}");
        let mbps = rate(&fabric);
        assert!((40.0..201.0).contains(&mbps), "{offset} s: {mbps} Mb/s");
        let states = links(&fabric.name, "leaf0-spine*", &["down"]);
        assert!(states.len() == 4 && states.iter().all(|link| link["state"] == "down"), "{offset} s: {states:?}");
        assert!(!arrives(&fabric), "{offset} s: over a link that is down");
        links(&fabric.name, "leaf0-spine1", &["up"]);
        wait_until("routing to use the link", || arrives(&fabric));
        fabric.down();
    }
}

/// Boxes do not exchange times. Each detects by its own clock that a neighbour has failed.
//= docs/specs/switch.md#SW-31 one clock
#[test]
fn boxes_with_different_clocks_work_together() {
    let Some(_turn) = turn() else { return };
    let boxes = Boxes::new("shifted");
    let start = |(switch, offset): (&str, i64)| {
        let (code, stdout, errors) = boxes.start_by(shifted(offset), switch, &[]);
        assert!(code == 0 && errors.is_empty(), "{switch}: {stdout}{errors}");
    };
    SWITCHES.into_iter().zip([18_500_000, -60, 1_000, 0]).for_each(start);
    wait_until("the boxes to receive each other's messages", || {
        SWITCHES.iter().all(|switch| boxes.is_connected(switch))
    });
    boxes.exchange(0, 2, false, 100_000);
    boxes.exchange(3, 1, true, 100_000);
    boxes.links("spine0", "spine0->leaf1", &["down"]);
    boxes.links("leaf1", "leaf1->spine0", &["down"]);
    boxes.assert_only_by("spine1");
    boxes.links("spine0", "spine0->leaf1", &["up"]);
    boxes.links("leaf1", "leaf1->spine0", &["up"]);
    boxes.assert_by_both();
    assert_eq!(run(&["down", &boxes.namespace("spine0")]).0, 0);
    wait_until("leaf0 to detect the failure of spine0", || !boxes.is_connected("leaf0"));
    boxes.assert_only_by("spine1");
    start(("spine0", -60));
    boxes.assert_by_both();
    boxes.down();
}
