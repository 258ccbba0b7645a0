//! `spray switch --node`: machines that play one switch each, joined by cables that the test made by `ip`.

use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use spray_tests::machines::{Machines, ip};
use spray_tests::running::wait_until;
use spray_tests::standing::{self, exchange, run};
use spray_tests::{scenarios, shared_turn, turn};

/// The switches of `pod.toml`, each a machine of its own, and four hosts, each with a namespace.
struct Boxes {
    prefix: String,
}

const SWITCHES: [&str; 4] = ["leaf0", "leaf1", "spine0", "spine1"];

impl Boxes {
    /// Interfaces are called after what is at their other end.
    fn new(name: &str) -> Self {
        let this = Self { prefix: format!("test-{}-{name}", std::process::id()) };
        let hosts: Vec<String> = (0..4).map(|host| format!("h{host}")).collect();
        for name in hosts.iter().map(String::as_str).chain(SWITCHES) {
            ip(&format!("netns add {}", this.place(name)));
        }
        for (host, name) in hosts.iter().enumerate() {
            let leaf = SWITCHES[host / 2];
            this.cable(name, leaf);
            let own = this.place(name);
            ip(&format!("-n {own} address add 10.79.0.{}/24 dev {leaf}", host + 1));
            ip(&format!("-n {own} address add fd79::{}/64 dev {leaf} nodad", host + 1));
        }
        for leaf in &SWITCHES[..2] {
            SWITCHES[2..].iter().for_each(|spine| this.cable(leaf, spine));
        }
        this
    }

    fn cable(&self, a: &str, b: &str) {
        let [at, bt] = [self.place(a), self.place(b)];
        ip(&format!("link add {b} netns {at} type veth peer name {a} netns {bt}"));
        ip(&format!("-n {at} link set {b} up"));
        ip(&format!("-n {bt} link set {a} up"));
    }

    /// The network namespace of a host or a switch.
    fn place(&self, node: &str) -> String {
        format!("{}-{node}", self.prefix)
    }

    /// Has a machine play its switch; returns what it says.
    fn play(&self, switch: &str, more: &[&str]) -> (i32, String, String) {
        let ends: &[&str] = match switch {
            "leaf0" => &["h0", "h1", "spine0", "spine1"],
            "leaf1" => &["h2", "h3", "spine0", "spine1"],
            _ => &["leaf0", "leaf1"],
        };
        let (name, file) = (self.place(switch), scenarios().join("pod.toml").display().to_string());
        let ports: Vec<String> = ends.iter().map(|end| format!("{end}={end}@{name}")).collect();
        let mut arguments = vec!["switch", "--json", "-q", "--name", &name, &file, "--node", switch];
        ports.iter().for_each(|port| arguments.extend(["--port", port]));
        run(&[&arguments[..], more].concat())
    }

    fn play_all(&self) {
        for switch in SWITCHES {
            let (code, said, errors) = self.play(switch, &[]);
            assert!(code == 0 && errors.is_empty(), "{switch}: {said}{errors}");
        }
        wait_until("the boxes to hear each other", || SWITCHES.iter().all(|switch| self.hears(switch)));
    }

    fn shown(&self, switch: &str) -> Value {
        let (code, said, errors) = run(&["switch", "--json", "--name", &self.place(switch)]);
        assert_eq!(code, 0, "{errors}");
        serde_json::from_str(&said).unwrap()
    }

    /// Whether it hears who is at the other ends of all its cables.
    fn hears(&self, switch: &str) -> bool {
        let shown = self.shown(switch);
        shown["cables"].as_array().unwrap().iter().all(|cable| cable["state"] == "heard")
    }

    fn links(&self, switch: &str, links: &str, changes: &[&str]) -> Vec<Value> {
        standing::links(&self.place(switch), links, changes)
    }

    fn bytes(&self, switch: &str, links: &str) -> u64 {
        standing::sum(&self.place(switch), links, "bytes")
    }

    /// Sends over TCP from one host to another.
    fn exchange(&self, from: usize, to: usize, v6: bool, bytes: usize) {
        let [own, other] = [from, to].map(|host| self.place(&format!("h{host}")));
        exchange(&own, &other, Machines::address(to, v6), bytes);
    }

    fn down(&self) {
        for switch in SWITCHES {
            let (code, _, errors) = run(&["down", &self.place(switch)]);
            assert_eq!(code, 0, "{errors}");
        }
        for switch in SWITCHES {
            let said = spray_test_support::text(&ip(&format!("-n {} -d link show type veth", self.place(switch))).stdout);
            assert!(!said.contains("xdp") && !said.contains("promiscuity 1"), "{said}");
        }
    }
}

impl Drop for Boxes {
    fn drop(&mut self) {
        for switch in SWITCHES {
            // In a test that passes it has gone already.
            let _ = spray_tests::spray().args(["down", &self.place(switch)]).output();
        }
        for name in SWITCHES.iter().copied().chain(["h0", "h1", "h2", "h3"]) {
            let _ = Command::new("ip").args(["netns", "del", &self.place(name)]).output();
        }
    }
}

#[test]
fn hosts_find_each_other_across_boxes() {
    let Some(_turn) = shared_turn() else { return };
    let boxes = Boxes::new("boxes");
    boxes.play_all();
    for v6 in [false, true] {
        boxes.exchange(0, 2, v6, 500_000);
        boxes.exchange(3, 1, v6, 100_000);
        boxes.exchange(1, 0, v6, 100_000);
    }
    for switch in ["spine0", "spine1"] {
        assert!(boxes.bytes(switch, &format!("{switch}->leaf*")) > 0, "{switch} has carried nothing");
    }
    let across: u64 = ["spine0", "spine1"].iter().map(|spine| boxes.bytes(spine, "*")).sum();
    assert!((2_400_000..3_600_000).contains(&across), "{across}");
    assert_eq!(boxes.shown("leaf0")["hosts"][0]["host"], "h0");
    assert!(boxes.shown("leaf1")["hosts"].to_string().contains("10.79.0.3"));
    boxes.down();
}
