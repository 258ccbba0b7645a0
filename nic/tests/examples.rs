//! Runs each example between two network namespaces, as its header describes. Skipped without root.
#![cfg(feature = "xdp")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use spray_test_support::{Folder, Pair, built, has_root, text};

fn start(pair: &Pair, side: usize, example: &str, arguments: &[&str]) -> Child {
    let path = built(&format!("examples/{example}"), &["--package", "spray-nic", "--examples"]);
    let mut command = pair.command(side, &path);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
}

/// A process that is killed when its test ends, and the namespaces in which it runs.
struct Server(Child, Pair);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs both sides of an example; returns the client's output.
fn run(example: &str, server: &[&str], client: &[&str]) -> Option<(String, Server)> {
    if !has_root() {
        return None;
    }
    let pair = Pair::new(example).unwrap();
    let process = start(&pair, 1, example, &[&["server", "eth0"], server].concat());
    let mut server_process = Server(process, pair);
    let mut line = String::new();
    BufReader::new(server_process.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "listening on 10.78.0.2\n");
    let client_process = start(&server_process.1, 0, example, &[&["client", "eth0", "10.78.0.2"], client].concat());
    let output = client_process.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stdout));
    Some((text(&output.stdout), server_process))
}

#[test]
fn echo() {
    let Some((output, _)) = run("echo", &[], &[]) else { return };
    assert!(output.starts_with("100 messages there and back"), "{output}");
}

#[test]
fn file() {
    let folder = Folder::new();
    let content: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect();
    let (from, to) = (folder.file("from", &content), folder.path().join("to"));
    let Some((output, mut server_process)) = run("file", &[to.to_str().unwrap()], &[&from]) else { return };
    assert_eq!(output, "sent 3000000 bytes\n");
    assert!(server_process.0.wait().unwrap().success());
    assert!(fs::read(to).unwrap() == content);
}

#[test]
fn iperf() {
    let Some((output, _)) = run("iperf", &[], &["1"]) else { return };
    assert!(output.contains(" Gb/s\n") && output.contains(" packets, "), "{output}");
}
