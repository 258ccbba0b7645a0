//! `spray send` and `spray recv` as two processes, in two namespaces that a veth pair joins.
#![expect(clippy::disallowed_methods, reason = "how long real processes take is what is tested")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use spray_test_support::Folder;
use spray_testbed::Pair;
use spray_tests::{spray, turn};

/// A file of `bytes` bytes, different at every place.
fn payload(folder: &Folder, bytes: usize) -> PathBuf {
    let content: Vec<u8> = (0..bytes as u32 / 4).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_be_bytes()).collect();
    folder.file("payload", content).into()
}

/// A new folder in `folder`, for what is received.
fn inbox(folder: &Folder) -> PathBuf {
    let path = folder.path().join("in");
    std::fs::create_dir(&path).unwrap();
    path
}

/// A process that does not outlive its test.
struct Running(Child);

impl Running {
    /// Waits until it ends; at most 30 s.
    fn end(&mut self) -> ExitStatus {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(30) {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it has not ended within 30 s");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // In a test that passes it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn receiver(pair: &Pair, out: &Path, v6: bool) -> Running {
    let mut command = spray();
    let from = Pair::address(1, v6).to_string();
    command.args(["recv", "--interface", Pair::INTERFACE, "--from", &from, "--out"]).arg(out);
    let child = pair.run_in(1, || command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()).unwrap().unwrap();
    // Its program and socket need a moment; the sender tries again for longer than that.
    std::thread::sleep(Duration::from_millis(300));
    Running(child)
}

fn sender(file: &Path, v6: bool, rest: &[&str]) -> Command {
    let mut command = spray();
    let to = Pair::address(1, v6).to_string();
    command.arg("send").arg(file).args(["--interface", Pair::INTERFACE, "--to", &to]).args(rest);
    command
}

#[test]
fn a_file_arrives_as_it_was_sent_with_either_ip_version() {
    let Some(_turn) = turn() else { return };
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
fn a_killed_receiver_ends_its_sender_with_an_error_in_bounded_time() {
    let Some(_turn) = turn() else { return };
    let pair = Pair::new().unwrap();
    let folder = Folder::new();
    let file = payload(&folder, 512 << 20);
    let mut receiver = receiver(&pair, &inbox(&folder), false);
    let mut command = sender(&file, false, &["--timeout", "2"]);
    let sending = pair.run_in(0, || command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()).unwrap().unwrap();
    let mut sending = Running(sending);
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(sending.0.try_wait().unwrap(), None, "half a gigabyte takes longer");
    receiver.0.kill().unwrap();
    receiver.end();
    let killed = Instant::now();
    let status = sending.end();
    assert!(!status.success());
    assert!(killed.elapsed() < Duration::from_secs(15), "{:?}", killed.elapsed());
}

/// Runs `ip` in a side's namespace.
fn ip(pair: &Pair, side: usize, arguments: &str) {
    let mut command = Command::new("ip");
    command.args(arguments.split(' '));
    assert!(pair.run_in(side, || command.status()).unwrap().unwrap().success(), "ip {arguments}");
}

/// What a process that has ended said on standard error.
fn said(running: &mut Running) -> String {
    let mut text = String::new();
    running.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

/// A transfer of half a gigabyte that is under way, in processes whose standard errors are kept.
fn under_way(pair: &Pair, folder: &Folder) -> (Running, Running) {
    let file = payload(folder, 512 << 20);
    let out = inbox(folder);
    let mut receiving = spray();
    receiving.args(["recv", "--interface", Pair::INTERFACE, "--from", &Pair::address(1, false).to_string(), "--out"]);
    receiving.arg(&out).stdout(Stdio::null()).stderr(Stdio::piped());
    let receiving = Running(pair.run_in(1, || receiving.spawn()).unwrap().unwrap());
    std::thread::sleep(Duration::from_millis(300));
    let mut sending = sender(&file, false, &[]);
    sending.stdout(Stdio::null()).stderr(Stdio::piped());
    let sending = Running(pair.run_in(0, || sending.spawn()).unwrap().unwrap());
    let begun = Instant::now();
    while std::fs::read_dir(&out).unwrap().count() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(10), "nothing arrives");
        std::thread::sleep(Duration::from_millis(5));
    }
    (sending, receiving)
}

#[test]
fn an_interface_that_is_down_for_a_moment_ends_no_transfer() {
    let Some(_turn) = turn() else { return };
    let pair = Pair::new().unwrap();
    let folder = Folder::new();
    let (mut sending, mut receiving) = under_way(&pair, &folder);
    ip(&pair, 0, "link set eth0 down");
    std::thread::sleep(Duration::from_millis(300));
    ip(&pair, 0, "link set eth0 up");
    let (sent, received) = (sending.end(), receiving.end());
    assert!(sent.success() && received.success(), "{}{}", said(&mut sending), said(&mut receiving));
    assert!(std::fs::metadata(folder.path().join("in/payload")).is_ok());
}

#[test]
fn an_interface_that_is_removed_ends_both_ends_and_says_so() {
    let Some(_turn) = turn() else { return };
    let pair = Pair::new().unwrap();
    let folder = Folder::new();
    let (mut sending, mut receiving) = under_way(&pair, &folder);
    ip(&pair, 1, "link delete eth0");
    for running in [&mut sending, &mut receiving] {
        assert_eq!(running.end().code(), Some(1));
        assert!(said(running).contains("interface eth0 was removed"));
    }
    assert_eq!(std::fs::read_dir(folder.path().join("in")).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn what_a_killed_receiver_left_the_next_one_removes() {
    let Some(_turn) = turn() else { return };
    let pair = Pair::new().unwrap();
    let folder = Folder::new();
    let (mut sending, mut receiving) = under_way(&pair, &folder);
    receiving.0.kill().unwrap();
    receiving.end();
    sending.0.kill().unwrap();
    sending.end();
    let left = || std::fs::read_dir(folder.path().join("in")).unwrap().count();
    assert_eq!(left(), 1);
    let _next = receiver(&pair, &folder.path().join("in"), false);
    assert_eq!(left(), 0);
}

#[test]
fn smaller_mtus_are_named_at_the_receiver_and_on_the_way() {
    let Some(_turn) = turn() else { return };
    let pair = Pair::new().unwrap();
    let folder = Folder::new();
    let (file, out) = (payload(&folder, 1 << 20), inbox(&folder));
    ip(&pair, 1, "link set eth0 mtu 1500");
    let mut receiving = receiver(&pair, &out, false);
    let mut command = sender(&file, false, &[]);
    let sent = pair.run_in(0, || command.output()).unwrap().unwrap();
    assert!(sent.status.success() && receiving.end().success(), "{}", String::from_utf8_lossy(&sent.stderr));
    assert!(String::from_utf8_lossy(&sent.stdout).contains("payloads would fit here"));
    // This receiver has said what it takes before its link takes less.
    let mut receiving = receiver(&pair, &out.join("other"), false);
    ip(&pair, 1, "link set eth0 mtu 1000");
    let mut command = sender(&file, false, &["--timeout", "1"]);
    let sent = pair.run_in(0, || command.output()).unwrap().unwrap();
    assert_eq!((sent.status.code(), receiving.end().code()), (Some(1), Some(1)));
    assert!(String::from_utf8_lossy(&sent.stderr).contains("a link on the way may have a smaller MTU"));
}
