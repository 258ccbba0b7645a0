//! The examples, each between two network namespaces, as their first lines say. Without root they skip.
#![cfg(feature = "xdp")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use spray_test_support::{Folder, built, has_root, text};

/// Two namespaces joined by a veth; gone when dropped.
struct Pair([String; 2]);

impl Pair {
    fn new(name: &str) -> Self {
        // `spray clean` knows what begins so.
        let pair = Self([0, 1].map(|side| format!("spray-{}-{name}{side}", std::process::id())));
        let [near, far] = &pair.0;
        for line in [
            format!("netns add {near}"),
            format!("netns add {far}"),
            format!("-n {near} link add eth0 mtu 3498 type veth peer name eth0 mtu 3498 netns {far}"),
            format!("-n {near} address add 10.78.0.1/24 dev eth0"),
            format!("-n {far} address add 10.78.0.2/24 dev eth0"),
            format!("-n {near} link set eth0 up"),
            format!("-n {far} link set eth0 up"),
        ] {
            let status = Command::new("ip").args(line.split(' ')).status().unwrap();
            assert!(status.success(), "ip {line}");
        }
        pair
    }

    fn start(&self, side: usize, example: &str, arguments: &[&str]) -> Child {
        let path = built(&format!("examples/{example}"), &["--package", "spray-nic", "--examples"]);
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[side]]).arg(path).args(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.0.iter().for_each(|name| drop(Command::new("ip").args(["netns", "del", name]).status()));
    }
}

/// A process that does not outlive its test, and the namespaces that it needs until its end.
struct Server(Child, Pair);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs both sides of an example; what the client says.
fn run(example: &str, server: &[&str], client: &[&str]) -> Option<(String, Server)> {
    if !has_root() {
        return None;
    }
    let pair = Pair::new(example);
    let process = pair.start(1, example, &[&["server", "eth0"], server].concat());
    let mut serving = Server(process, pair);
    let mut line = String::new();
    BufReader::new(serving.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "listening on 10.78.0.2\n");
    let asking = serving.1.start(0, example, &[&["client", "eth0", "10.78.0.2"], client].concat());
    let output = asking.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stdout));
    Some((text(&output.stdout), serving))
}

#[test]
fn echo() {
    let Some((said, _)) = run("echo", &[], &[]) else { return };
    assert!(said.starts_with("100 messages there and back"), "{said}");
}

#[test]
fn file() {
    let folder = Folder::new();
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect();
    let (from, to) = (folder.file("from", &content), folder.path().join("to"));
    let Some((said, mut serving)) = run("file", &[to.to_str().unwrap()], &[&from]) else { return };
    assert_eq!(said, "sent 3000000 bytes\n");
    assert!(serving.0.wait().unwrap().success());
    assert!(fs::read(to).unwrap() == content);
}

#[test]
fn iperf() {
    let Some((said, _)) = run("iperf", &[], &["1"]) else { return };
    assert!(said.contains(" Gb/s\n") && said.contains(" packets, "), "{said}");
}
