//! Machines that run one switch of a fabric each, as users of `spray switch --node` have them, joined by veth that the test makes by `ip`.

use std::process::Command;

use serde_json::Value;
use spray_test_support::text;

use crate::deployment::{self, exchange, run, run_by};
use crate::machines::{Machines, ip};
use crate::running::wait_until;
use crate::{scenarios, spray};

/// The switches of `pod.toml`, each a machine of its own, and four hosts, each with a namespace.
pub struct Boxes {
    prefix: String,
}

/// Those switches.
pub const SWITCHES: [&str; 4] = ["leaf0", "leaf1", "spine0", "spine1"];

impl Boxes {
    /// The boxes' interfaces are called after what is at their other end. Hosts have `eth0`, and the addresses of [`Machines`]'s.
    pub fn new(name: &str) -> Self {
        let this = Self { prefix: format!("test-{}-{name}", std::process::id()) };
        let hosts: Vec<String> = (0..4).map(|host| format!("h{host}")).collect();
        for name in hosts.iter().map(String::as_str).chain(SWITCHES) {
            ip(&format!("netns add {}", this.place(name)));
        }
        for (host, name) in hosts.iter().enumerate() {
            this.cable((name, "eth0"), (SWITCHES[host / 2], name));
            let own = this.place(name);
            ip(&format!("-n {own} address add 10.79.0.{}/24 dev eth0", host + 1));
            ip(&format!("-n {own} address add fd79::{}/64 dev eth0 nodad", host + 1));
        }
        for leaf in &SWITCHES[..2] {
            SWITCHES[2..].iter().for_each(|spine| this.cable((leaf, spine), (spine, leaf)));
        }
        this
    }

    /// A cable between two nodes, each with the name of its interface.
    fn cable(&self, (a, at_a): (&str, &str), (b, at_b): (&str, &str)) {
        let [a, b] = [a, b].map(|node| self.place(node));
        ip(&format!("link add {at_a} netns {a} type veth peer name {at_b} netns {b}"));
        ip(&format!("-n {a} link set {at_a} up"));
        ip(&format!("-n {b} link set {at_b} up"));
    }

    /// Has all interfaces take packets of so many bytes.
    pub fn set_mtu(&self, bytes: u32) {
        let set =
            |node: &str, interface: &str| ip(&format!("-n {} link set {interface} mtu {bytes}", self.place(node)));
        (0..4).for_each(|host| drop(set(&format!("h{host}"), "eth0")));
        for switch in SWITCHES {
            Self::ends(switch).iter().for_each(|end| drop(set(switch, end)));
        }
    }

    /// What a switch has cables to.
    fn ends(switch: &str) -> &'static [&'static str] {
        match switch {
            "leaf0" => &["h0", "h1", "spine0", "spine1"],
            "leaf1" => &["h2", "h3", "spine0", "spine1"],
            _ => &["leaf0", "leaf1"],
        }
    }

    /// The network namespace of a host or a switch.
    pub fn place(&self, node: &str) -> String {
        format!("{}-{node}", self.prefix)
    }

    /// Has a machine play its switch; returns what it says.
    pub fn play(&self, switch: &str, more: &[&str]) -> (i32, String, String) {
        self.play_by(spray(), switch, more)
    }

    /// As [`Boxes::play`], by a command that runs `spray`.
    pub fn play_by(&self, command: Command, switch: &str, more: &[&str]) -> (i32, String, String) {
        let (name, file) = (self.place(switch), scenarios().join("pod.toml").display().to_string());
        let ports: Vec<String> = Self::ends(switch).iter().map(|end| format!("{end}={end}@{name}")).collect();
        let mut arguments = vec!["switch", "--json", "-q", "--name", &name, &file, "--node", switch];
        ports.iter().for_each(|port| arguments.extend(["--port", port]));
        run_by(command, &[&arguments[..], more].concat())
    }

    /// Has all machines play their switches, and waits until they hear each other.
    pub fn play_all(&self, more: &[&str]) {
        for switch in SWITCHES {
            let (code, said, errors) = self.play(switch, more);
            assert!(code == 0 && errors.is_empty(), "{switch}: {said}{errors}");
        }
        wait_until("the boxes to hear each other", || SWITCHES.iter().all(|switch| self.hears(switch)));
    }

    /// What `spray switch` says of a box.
    pub fn shown(&self, switch: &str) -> Value {
        let (code, said, errors) = run(&["switch", "--json", "--name", &self.place(switch)]);
        assert_eq!(code, 0, "{errors}");
        serde_json::from_str(&said).unwrap()
    }

    /// Whether it hears who is at the other ends of all its cables.
    pub fn hears(&self, switch: &str) -> bool {
        let shown = self.shown(switch);
        shown["cables"].as_array().unwrap().iter().all(|cable| cable["state"] == "connected")
    }

    /// The links of a box that `links` means, after these changes.
    pub fn links(&self, switch: &str, links: &str, changes: &[&str]) -> Vec<Value> {
        deployment::links(&self.place(switch), links, changes)
    }

    /// What these links of a box have carried.
    pub fn bytes(&self, switch: &str, links: &str) -> u64 {
        deployment::sum(&self.place(switch), links, "bytes")
    }

    /// Sends over TCP from one host to another.
    pub fn exchange(&self, from: usize, to: usize, v6: bool, bytes: usize) {
        let [own, other] = [from, to].map(|host| self.place(&format!("h{host}")));
        exchange(&own, &other, Machines::address(to, v6), bytes);
    }

    /// What goes on at both spines while h0 and h2 exchange bytes.
    fn carried(&self) -> [u64; 2] {
        let bytes = || {
            ["spine0", "spine1"].map(|spine| {
                let is_up = spray_switch::deployed().contains(&self.place(spine));
                if is_up { self.bytes(spine, &format!("{spine}->leaf*")) } else { 0 }
            })
        };
        let before = bytes();
        // Several flows: ECMP takes one path for each.
        (0..6).for_each(|_| self.exchange(0, 2, false, 20_000));
        let after = bytes();
        [after[0] - before[0], after[1] - before[1]]
    }

    /// Waits until all goes over one spine, from every sender.
    pub fn assert_only_by(&self, spine: &str) {
        let other = usize::from(spine == "spine0");
        wait_until("the other spine to be avoided", || self.carried()[other] == 0);
    }

    /// Waits until both spines carry something again.
    pub fn assert_by_both(&self) {
        wait_until("both spines to be used", || self.carried().iter().all(|bytes| *bytes > 0));
    }

    /// Removes all boxes' switches; their interfaces are as they were.
    pub fn down(&self) {
        for switch in SWITCHES {
            let (code, _, errors) = run(&["down", &self.place(switch)]);
            assert_eq!(code, 0, "{errors}");
        }
        for switch in SWITCHES {
            let said = text(&ip(&format!("-n {} -d link show type veth", self.place(switch))).stdout);
            assert!(!said.contains("xdp") && !said.contains("promiscuity 1"), "{said}");
        }
    }
}

impl Drop for Boxes {
    fn drop(&mut self) {
        for switch in SWITCHES {
            // In a test that passes it has gone already.
            let _ = spray().args(["down", &self.place(switch)]).output();
        }
        for name in SWITCHES.iter().copied().chain(["h0", "h1", "h2", "h3"]) {
            let _ = Command::new("ip").args(["netns", "del", &self.place(name)]).output();
        }
    }
}
