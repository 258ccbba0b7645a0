//! Machines that run one switch of a fabric each, as with `spray switch --node`, joined by veth
//! pairs created with `ip`.

use std::process::Command;

use serde_json::Value;
use spray_test_support::text;

use crate::deployment::{self, exchange, run, run_by};
use crate::machines::{Machines, ip};
use crate::running::wait_until;
use crate::{scenarios, spray};

/// The switches of `pod.toml`, each a separate machine, and four hosts, each in a namespace.
pub struct Boxes {
    prefix: String,
}

/// The names of the switches.
pub const SWITCHES: [&str; 4] = ["leaf0", "leaf1", "spine0", "spine1"];

impl Boxes {
    /// Creates the boxes. Their interfaces are named after the node at the other end. Hosts have
    /// `eth0`, and the addresses of [`Machines`]'s.
    pub fn new(name: &str) -> Self {
        let this = Self { prefix: format!("test-{}-{name}", std::process::id()) };
        let hosts: Vec<String> = (0..4).map(|host| format!("h{host}")).collect();
        for name in hosts.iter().map(String::as_str).chain(SWITCHES) {
            ip(&format!("netns add {}", this.namespace(name)));
        }
        for (host, name) in hosts.iter().enumerate() {
            this.cable((name, "eth0"), (SWITCHES[host / 2], name));
            let own = this.namespace(name);
            ip(&format!("-n {own} address add 10.79.0.{}/24 dev eth0", host + 1));
            ip(&format!("-n {own} address add fd79::{}/64 dev eth0 nodad", host + 1));
        }
        for leaf in &SWITCHES[..2] {
            SWITCHES[2..].iter().for_each(|spine| this.cable((leaf, spine), (spine, leaf)));
        }
        this
    }

    /// Creates a cable between two nodes, with the names of their interfaces.
    fn cable(&self, (a, at_a): (&str, &str), (b, at_b): (&str, &str)) {
        let [a, b] = [a, b].map(|node| self.namespace(node));
        ip(&format!("link add {at_a} netns {a} type veth peer name {at_b} netns {b}"));
        ip(&format!("-n {a} link set {at_a} up"));
        ip(&format!("-n {b} link set {at_b} up"));
    }

    /// Sets the MTU of all interfaces.
    pub fn set_mtu(&self, bytes: u32) {
        let set =
            |node: &str, interface: &str| ip(&format!("-n {} link set {interface} mtu {bytes}", self.namespace(node)));
        (0..4).for_each(|host| drop(set(&format!("h{host}"), "eth0")));
        for switch in SWITCHES {
            Self::neighbours(switch).iter().for_each(|end| drop(set(switch, end)));
        }
    }

    /// Returns the nodes that a switch has cables to.
    fn neighbours(switch: &str) -> &'static [&'static str] {
        match switch {
            "leaf0" => &["h0", "h1", "spine0", "spine1"],
            "leaf1" => &["h2", "h3", "spine0", "spine1"],
            _ => &["leaf0", "leaf1"],
        }
    }

    /// Returns the network namespace of a host or a switch.
    pub fn namespace(&self, node: &str) -> String {
        format!("{}-{node}", self.prefix)
    }

    /// Starts the switch of a machine; returns exit code, standard output and standard error.
    pub fn start(&self, switch: &str, more: &[&str]) -> (i32, String, String) {
        self.start_by(spray(), switch, more)
    }

    /// As [`Boxes::start`], with a command that runs `spray`.
    pub fn start_by(&self, command: Command, switch: &str, more: &[&str]) -> (i32, String, String) {
        let (name, file) = (self.namespace(switch), scenarios().join("pod.toml").display().to_string());
        let ports: Vec<String> = Self::neighbours(switch).iter().map(|end| format!("{end}={end}@{name}")).collect();
        let mut arguments = vec!["switch", "--json", "-q", "--name", &name, &file, "--node", switch];
        ports.iter().for_each(|port| arguments.extend(["--port", port]));
        run_by(command, &[&arguments[..], more].concat())
    }

    /// Starts the switches of all machines, and waits until their cables are connected.
    pub fn start_all(&self, more: &[&str]) {
        for switch in SWITCHES {
            let (code, stdout, errors) = self.start(switch, more);
            assert!(code == 0 && errors.is_empty(), "{switch}: {stdout}{errors}");
        }
        wait_until("the boxes to receive each other's messages", || {
            SWITCHES.iter().all(|switch| self.is_connected(switch))
        });
    }

    /// Returns the state of a box as reported by `spray switch`.
    pub fn status(&self, switch: &str) -> Value {
        let (code, stdout, errors) = run(&["switch", "--json", "--name", &self.namespace(switch)]);
        assert_eq!(code, 0, "{errors}");
        serde_json::from_str(&stdout).unwrap()
    }

    /// Returns whether the box receives the messages of the nodes at all of its cables.
    pub fn is_connected(&self, switch: &str) -> bool {
        let shown = self.status(switch);
        shown["cables"].as_array().unwrap().iter().all(|cable| cable["state"] == "connected")
    }

    /// Applies changes to the links of a box that match `links`; returns these links.
    pub fn links(&self, switch: &str, links: &str, changes: &[&str]) -> Vec<Value> {
        deployment::links(&self.namespace(switch), links, changes)
    }

    /// Returns the bytes that these links of a box have carried.
    pub fn bytes(&self, switch: &str, links: &str) -> u64 {
        deployment::sum(&self.namespace(switch), links, "bytes")
    }

    /// Sends bytes over TCP from one host to another.
    pub fn exchange(&self, from: usize, to: usize, v6: bool, bytes: usize) {
        let [own, other] = [from, to].map(|host| self.namespace(&format!("h{host}")));
        exchange(&own, &other, Machines::address(to, v6), bytes);
    }

    /// Returns the bytes forwarded by both spines while h0 and h2 exchange data.
    fn forwarded_bytes(&self) -> [u64; 2] {
        let bytes = || {
            ["spine0", "spine1"].map(|spine| {
                let is_up = spray_switch::deployed().contains(&self.namespace(spine));
                if is_up { self.bytes(spine, &format!("{spine}->leaf*")) } else { 0 }
            })
        };
        let before = bytes();
        // Several flows, because ECMP selects one path per flow.
        (0..6).for_each(|_| self.exchange(0, 2, false, 20_000));
        let after = bytes();
        [after[0] - before[0], after[1] - before[1]]
    }

    /// Waits until one spine carries all traffic in both directions.
    pub fn assert_only_by(&self, spine: &str) {
        let other = usize::from(spine == "spine0");
        wait_until("the other spine to be avoided", || self.forwarded_bytes()[other] == 0);
    }

    /// Waits until both spines carry traffic again.
    pub fn assert_by_both(&self) {
        wait_until("both spines to be used", || self.forwarded_bytes().iter().all(|bytes| *bytes > 0));
    }

    /// Removes the switches of all boxes; checks that their interfaces are restored.
    pub fn down(&self) {
        for switch in SWITCHES {
            let (code, _, errors) = run(&["down", &self.namespace(switch)]);
            assert_eq!(code, 0, "{errors}");
        }
        for switch in SWITCHES {
            let listing = text(&ip(&format!("-n {} -d link show type veth", self.namespace(switch))).stdout);
            assert!(!listing.contains("xdp") && !listing.contains("promiscuity 1"), "{listing}");
        }
    }
}

impl Drop for Boxes {
    fn drop(&mut self) {
        for switch in SWITCHES {
            // Fails if the test has already removed it.
            let _ = spray().args(["down", &self.namespace(switch)]).output();
        }
        for name in SWITCHES.iter().copied().chain(["h0", "h1", "h2", "h3"]) {
            let _ = Command::new("ip").args(["netns", "del", &self.namespace(name)]).output();
        }
    }
}
