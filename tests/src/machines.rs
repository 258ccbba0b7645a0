//! A machine between hosts, as for `spray switch`, with veth interfaces created with `ip`.

use std::net::IpAddr;
use std::process::{Command, Output};

use serde_json::Value;
use spray_test_support::text;

use crate::deployment::{self, run};
use crate::running::wait_until;
use crate::{scenarios, spray};

/// The number of hosts, and of the machine's interfaces toward them.
pub const HOSTS: usize = 4;

/// A machine with four interfaces, `p0` to `p3`, connected to four hosts, each in its own
/// namespace.
pub struct Machines {
    prefix: String,
    /// The name of its fabric.
    pub name: String,
}

/// Runs `ip` with these arguments, separated by spaces.
pub fn ip(arguments: &str) -> Output {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", text(&output.stderr));
    output
}

impl Machines {
    /// Creates the machine. Host `n` has 10.79.0.(n + 1) and fd79::(n + 1). The names of the
    /// namespaces are not those that `spray clean` removes.
    pub fn new(name: &str) -> Self {
        let this = Self {
            prefix: format!("test-{}-{name}", std::process::id()),
            name: format!("{name}-{}", std::process::id()),
        };
        ip(&format!("netns add {}", this.machine()));
        for host in 0..HOSTS {
            let (own, machine) = (this.host(host), this.machine());
            ip(&format!("netns add {own}"));
            let mac = Self::mac(host);
            ip(&format!("link add p{host} netns {machine} type veth peer name eth0 address {mac} netns {own}"));
            ip(&format!("-n {machine} link set p{host} up"));
            ip(&format!("-n {own} link set eth0 up"));
            ip(&format!("-n {own} address add 10.79.0.{}/24 dev eth0", host + 1));
            ip(&format!("-n {own} address add fd79::{}/64 dev eth0 nodad", host + 1));
        }
        this
    }

    /// Returns the machine's network namespace.
    pub fn machine(&self) -> String {
        format!("{}-box", self.prefix)
    }

    /// Returns the network namespace of a host.
    pub fn host(&self, host: usize) -> String {
        format!("{}{host}", self.prefix)
    }

    /// Returns the Ethernet address of a host.
    pub fn mac(host: usize) -> String {
        format!("02:79:00:00:00:0{host}")
    }

    /// Returns the IPv4 or IPv6 address of a host.
    pub fn address(host: usize, v6: bool) -> IpAddr {
        let number = host as u16 + 1;
        if v6 { [0xfd79, 0, 0, 0, 0, 0, 0, number].into() } else { [10, 79, 0, number as u8].into() }
    }

    /// Returns the arguments of a switch with all ports.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = ["switch", "--json", "-q", "--name", &self.name].map(Into::into).into();
        arguments.push(scenarios().join("pod.toml").display().to_string());
        for host in 0..HOSTS {
            arguments.extend(["--port".into(), format!("h{host}=p{host}@{}", self.machine())]);
        }
        arguments
    }

    /// Deploys the switches between the hosts.
    pub fn switch(&self, more: &[&str]) -> Value {
        let arguments = self.arguments();
        let all: Vec<&str> = arguments.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let (code, stdout, errors) = run(&all);
        assert!(code == 0 && errors.is_empty(), "{code}: {errors}");
        serde_json::from_str(&stdout).unwrap()
    }

    /// Returns the state of the fabric as reported by `spray switch`.
    pub fn status(&self) -> Value {
        let (code, stdout, errors) = run(&["switch", "--json", "--name", &self.name]);
        assert_eq!(code, 0, "{errors}");
        serde_json::from_str(&stdout).unwrap()
    }

    /// Applies changes to the links that match `links`; returns these links.
    pub fn links(&self, links: &str, changes: &[&str]) -> Vec<Value> {
        deployment::links(&self.name, links, changes)
    }

    /// Returns the sum of a field over these links.
    pub fn sum(&self, links: &str, field: &str) -> u64 {
        deployment::sum(&self.name, links, field)
    }

    /// Returns a command that runs in a namespace.
    pub fn command(namespace: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, program]);
        command
    }

    /// Returns the kernel's list of the machine's interfaces.
    pub fn interfaces(&self) -> String {
        text(&ip(&format!("-n {} -d link show type veth", self.machine())).stdout)
    }

    /// Checks that the machine's interfaces are as they were created.
    pub fn assert_as_it_was(&self) {
        wait_until("the interfaces to be as they were", || {
            let interfaces = self.interfaces();
            !interfaces.contains("xdp") && !interfaces.contains("promiscuity 1")
        });
        assert!(!spray_switch::control_socket(&self.name).exists());
    }

    /// Removes the switches, and checks that the machine is restored. Returns the report.
    pub fn down(&self) -> Value {
        let (code, stdout, errors) = run(&["down", "--json", &self.name]);
        assert!(code == 0 && stdout.contains(&self.name), "{errors}");
        self.assert_as_it_was();
        serde_json::from_str(&stdout).unwrap()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        // Fails if the test has already removed it.
        let _ = spray().args(["down", &self.name]).output();
        let all = (0..HOSTS).map(|host| self.host(host)).chain([self.machine()]);
        all.for_each(|name| drop(Command::new("ip").args(["netns", "del", &name]).output()));
    }
}
