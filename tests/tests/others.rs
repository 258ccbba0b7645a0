//! Packets of other programs on an interface that `spray` uses.

use std::net::UdpSocket;
use std::process::Stdio;
use std::time::Duration;

use spray_benches::net::Pair;
use spray_test_support::{Folder, text};
use spray_tests::running::{Running, inbox, payload};
use spray_tests::{shared_turn, spray};

#[test]
fn datagrams_of_other_programs_on_our_ports_arrive_during_a_transfer() {
    let Some(_turn) = shared_turn() else { return };
    let (pair, folder) = (Pair::new().unwrap(), Folder::new());
    let range = || std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "61440 61503");
    pair.run_in(1, range).unwrap().unwrap();
    let [own, peer] = [0, 1].map(|side| Pair::address(side, false));
    let start = |side, arguments: &[&str]| {
        let mut command = spray();
        command.args(arguments).args(["--insecure", "--interface", Pair::INTERFACE]);
        let process = pair.run_in(side, || command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn());
        Running(process.unwrap().unwrap())
    };
    let (address, out) = (peer.to_string(), inbox(&folder));
    let mut receiver = start(1, &["recv", "--from", &address, "--out", out.to_str().unwrap()])
        .until("ports 61440 to 61503 overlap the kernel's range of ephemeral ports")
        .listening();
    let bind = |side, address| pair.run_in(side, || UdpSocket::bind((address, 0))).unwrap().unwrap();
    let (server, client) = (bind(0, own), bind(1, peer));
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert!((61_440..=61_503).contains(&client.local_addr().unwrap().port()));
    let mut message = [0; 64];
    for number in 0..50 {
        client.send_to(&[0x12, number, 1, 0], server.local_addr().unwrap()).unwrap();
        let (bytes, from) = server.recv_from(&mut message).unwrap();
        server.send_to(&message[..bytes], from).unwrap();
        assert_eq!(client.recv(&mut message).unwrap(), 4, "answer {number}");
    }
    let file = payload(&folder, 4 << 20).display().to_string();
    let mut sender = start(0, &["send", &file, "--to", &address]);
    assert!(sender.end().success() && receiver.end().success(), "{}{}", sender.stderr(), receiver.stderr());
    let doctor = pair.run_in(1, || spray().arg("doctor").output()).unwrap().unwrap();
    let stdout = text(&doctor.stdout);
    assert!(
        stdout.contains("UDP ports") && stdout.contains("add 61440-61503 to `sysctl net.ipv4.ip_local_reserved_ports`"),
        "{stdout}"
    );
}
