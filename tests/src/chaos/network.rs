//! The network of a run, its faults, and their repair.

use std::process::Command;

use crate::routers::{Interference, Routers};

use crate::chaos::port::{PORTS, Port};
use crate::chaos::{Event, Kind};
use crate::namespaces_of;

/// The usual MTU, and that of the event.
const MTU: u32 = 1500;
const SMALLER_MTU: u32 = 1000;

/// Two hosts with routers between them.
pub struct Network {
    pub routers: Routers,
}

impl Network {
    pub fn new() -> Self {
        let routers = Routers::new().unwrap();
        routers.add_interface().unwrap();
        Self { routers }
    }

    /// Runs shell commands at a host. Returns those that failed: another event may have removed an
    /// interface.
    fn at_host(&self, side: usize, script: &str) -> Result<(), String> {
        let mut shell = Command::new("sh");
        shell.args(["-ec", script]);
        let output = self.routers.run_in(side, || shell.output()).unwrap().unwrap();
        let stderr = spray_test_support::text(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("`{script}`: {stderr}")) }
    }

    fn at_gateway(&self, side: usize, script: &str) -> Result<(), String> {
        self.routers.at_gateway(side, script).map_err(|error| error.to_string())
    }

    /// Starts an event of the network; ignores others. Fails if another event has removed the
    /// object that it changes.
    pub fn begin(&self, event: &Event) -> Result<(), String> {
        let Port { side, interface, gateway, address, bits, .. } = PORTS[event.port];
        let spine = event.spine;
        let interfere = |interference| self.routers.interfere(spine, interference).map_err(|error| error.to_string());
        let lossy = |spine, rate, loss| self.routers.set_spine(spine, rate, loss).map_err(|error| error.to_string());
        match event.kind {
            Kind::InterfaceDown => self.at_host(side, &format!("ip link set {interface} down")),
            Kind::CarrierLost => self.at_gateway(side, &format!("ip link set {gateway} down")),
            Kind::InterfaceRemoved => self.at_host(side, &format!("ip link delete {interface}")),
            Kind::MtuSmaller => self.at_host(side, &format!("ip link set {interface} mtu {SMALLER_MTU}")),
            Kind::AddressRemoved => self.at_host(side, &format!("ip address delete {address}/{bits} dev {interface}")),
            Kind::RouterMoved => {
                let mac = format!("02:00:00:00:{:02x}:{:02x}", event.after_ms % 256, event.for_ms % 256);
                let notify = format!("echo 1 > /proc/sys/net/ipv4/conf/{gateway}/arp_notify");
                self.at_gateway(side, &format!("{notify}\nip link set {gateway} address {mac}"))
            }
            Kind::HostRouteRemoved => self.at_host(side, &format!("ip route delete default dev {interface}")),
            Kind::LeafRouteRemoved => self.at_gateway(0, "ip route delete 10.2.0.0/24"),
            Kind::SpineWithdrawn => self.routers.withdraw(spine).map_err(|error| error.to_string()),
            Kind::SpineFlaps => {
                let once = format!("ip link set up{spine} down\nsleep 0.1\nip link set up{spine} up\nsleep 0.05\n");
                self.at_gateway(side, &once.repeat(4))
            }
            Kind::SpineLossy => lossy(spine, Routers::RATE_BPS, 0.05 + event.after_ms as f64 / 5000.0),
            Kind::AllLossy => (0..Routers::SPINES).try_for_each(|spine| lossy(spine, Routers::RATE_BPS, 0.1)),
            Kind::SpineSilent => lossy(spine, Routers::RATE_BPS, 1.0),
            Kind::SpineSlow => lossy(spine, Routers::RATE_BPS / 10, 0.0),
            Kind::SpineRepeats => interfere(Interference::Repeats(0.3)),
            Kind::SpinePauses => interfere(Interference::Pauses { every_ms: 100, for_ms: 40 }),
            _ => Ok(()),
        }
    }

    /// Reverts an event of the network.
    pub fn end(&self, event: &Event) -> Result<(), String> {
        match event.kind {
            Kind::InterfaceDown
            | Kind::CarrierLost
            | Kind::InterfaceRemoved
            | Kind::MtuSmaller
            | Kind::AddressRemoved
            | Kind::HostRouteRemoved => self.repair(&PORTS[event.port]),
            Kind::LeafRouteRemoved
            | Kind::SpineWithdrawn
            | Kind::SpineFlaps
            | Kind::SpineLossy
            | Kind::AllLossy
            | Kind::SpineSilent
            | Kind::SpineSlow
            | Kind::SpineRepeats
            | Kind::SpinePauses => self.repair_spines(),
            _ => Ok(()),
        }
    }

    /// Repairs everything.
    pub fn repair_all(&self) {
        let repaired = PORTS.iter().try_for_each(|port| self.repair(port)).and_then(|()| self.repair_spines());
        repaired.unwrap_or_else(|error| panic!("the network cannot be repaired: {error}"));
    }

    /// Restores the missing configuration of a port.
    fn repair(&self, port: &Port) -> Result<(), String> {
        let Port { side, interface, gateway, address, router, bits, metric } = port;
        let leaf = namespaces_of(std::process::id()).into_iter().find(|name| name.ends_with(&format!("leaf{side}")));
        let leaf = leaf.ok_or("the leaf has no namespace")?;
        let queues = "numtxqueues 1 numrxqueues 1";
        let peer = format!("peer name {gateway} {queues} netns {leaf}");
        let make =
            format!("ip link show {interface} >/dev/null 2>&1 || ip link add {interface} {queues} type veth {peer}");
        self.at_host(*side, &make)?;
        let up = format!("ip link set {gateway} up mtu {MTU}\nip address replace {router}/{bits} dev {gateway}");
        self.at_gateway(*side, &up)?;
        let own = format!("ip link set {interface} up mtu {MTU}\nip address replace {address}/{bits} dev {interface}");
        let route = format!("ip route replace default via {router} dev {interface} {metric}");
        self.at_host(*side, &format!("{own}\n{route}"))
    }

    fn repair_spines(&self) -> Result<(), String> {
        let up: String = (0..Routers::SPINES).map(|spine| format!("ip link set up{spine} up\n")).collect();
        (0..2).try_for_each(|side| self.at_gateway(side, &up))?;
        self.routers.heal().map_err(|error| error.to_string())
    }
}
