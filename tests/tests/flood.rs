//! `spray recv` while an attacker floods its link with hostile frames.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use spray_test_support::Folder;
use spray_tests::flood::Flood;
use spray_tests::routers::Routers;
use spray_tests::running::{Running, inbox, payload};
use spray_tests::{namespaces_of, spray, turn};

/// The limits stated in `docs/security.md`: the receiver's maximum memory, and the bytes sent to an
/// unvalidated address per byte received.
const MOST_MEMORY_KIB: u64 = 64 << 10;
const MOST_ANSWERED: u64 = 3;
/// Frames per millisecond.
const RATE: u64 = 30;
/// The minimum number of frames for a valid test.
const LEAST_FRAMES: u64 = 20_000;

#[test]
fn a_transfer_with_keys_succeeds_during_a_flood() {
    arrives(true);
}

#[test]
fn a_transfer_without_keys_succeeds_during_a_flood() {
    arrives(false);
}

//= docs/specs/endpoint.md#END-2 address validation
//= docs/specs/endpoint.md#END-45 no answer to unauthenticated peers
fn arrives(sealed: bool) {
    let Some(_turn) = turn() else { return };
    let routers = Routers::new().unwrap();
    let folder = Folder::new();
    let (file, out) = (payload(&folder, 16 << 20), inbox(&folder));
    let key = folder.join("key");
    assert!(spray().args(["keygen", &key]).output().unwrap().status.success());
    let spawn = |side: usize, command: &mut Command| {
        command.args(["--interface", Routers::INTERFACE, "--timeout", "20"]);
        if sealed {
            command.args(["--key", &key])
        } else {
            command.arg("--insecure")
        };
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Running(routers.run_in(side, || command.spawn()).unwrap().unwrap())
    };
    let from = Routers::address(1, 0).to_string();
    let mut receiving = spawn(1, spray().args(["recv", "--from", &from, "--out"]).arg(&out)).listening();
    let mut flood = Flood::new(&routers);
    // The flood starts before the honest sender.
    for _ in 0..300 {
        wave(&mut flood);
    }
    // 16 MiB take 2.7 s.
    let slow = ["--cc", "fixed-rate", "--set", "transport.fixed-rate.rate_gbps=0.05", "--to", &from];
    let mut sending = spawn(0, spray().arg("send").arg(&file).args(slow));
    let mut memory_kib = 0;
    while sending.is_running() {
        wave(&mut flood);
        memory_kib = memory_kib.max(receiving.kib("VmHWM:"));
    }
    let (sent, received) = (sending.end(), receiving.end());
    assert!(sent.success() && received.code() == Some(0), "{}{}", sending.stderr(), receiving.stderr());
    assert!(fs::read(&file).unwrap() == fs::read(out.join("payload")).unwrap());
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "no other files are left");
    let Flood { frames, replayed, spoofed_bytes, answered_bytes, .. } = flood;
    eprintln!("{frames} frames, {replayed} replayed; {answered_bytes} bytes for {spoofed_bytes}; {memory_kib} KiB");
    assert!(frames > LEAST_FRAMES && replayed > LEAST_FRAMES / 4, "{frames} frames, {replayed} of the sender's");
    assert_eq!(answered_bytes > 0, !sealed, "a Connect is answered, unless the sender does not know the key");
    assert!(answered_bytes <= MOST_ANSWERED * spoofed_bytes, "{answered_bytes} bytes for {spoofed_bytes}");
    assert!(0 < memory_kib && memory_kib <= MOST_MEMORY_KIB, "{memory_kib} KiB");
    let mut links = Command::new("ip");
    let links = routers.run_in(1, || links.args(["-details", "link", "show", Routers::INTERFACE]).output()).unwrap();
    let links = String::from_utf8(links.unwrap().stdout).unwrap();
    assert!(links.contains(Routers::INTERFACE) && !links.contains("xdp"), "its program is detached: {links}");
    drop(routers);
    assert_eq!(namespaces_of(std::process::id()), [""; 0]);
}

/// Sends the flood of one millisecond.
fn wave(flood: &mut Flood) {
    flood.send_frames(RATE);
    flood.capture();
    std::thread::sleep(Duration::from_millis(1));
}
