//! Attaching to the interfaces of switches, and opening sockets on them.

use std::os::fd::AsFd;

use spray_fabric::{Fabric, Network, Node};
use spray_nic::device::{BindMode, BusyPoll, XskConfig, XskDevice};
use spray_nic::net::drivers::zero_copy_defect;
use spray_pipeline::deployment::{Attachment, MacRewrite};
use spray_pipeline::scheme::NO_PORT;

use super::bridge::{EgressPort, EgressPorts, Source};
use super::delay_queue::{EgressSocket, QueueSocket};
use super::interface::ExternalInterface;
use super::link_state::Trunk;
use crate::RunError;
use crate::netns_nodes::NetnsNode;
use crate::program::SwitchProgram;

/// UMEM frames of a socket: 8 MiB, and 2 MiB where there are more than [`MANY`] sockets.
const FRAMES: u32 = 2048;
const FRAMES_OF_MANY: u32 = 512;
const MANY: usize = 64;

/// The source MAC of routed frames between veths: switches have no address of their own.
const SWITCH_MAC: [u8; 6] = [0x02, 0x53, 0x57, 0, 0, 0];

/// The sockets of all interfaces of switches.
pub(super) struct InterfaceSockets<'a> {
    fabric: &'a Fabric,
    pub sockets: Vec<QueueSocket>,
    pub egress: Vec<Option<EgressSocket>>,
    /// UMEM frames of each socket.
    frames: u32,
}

impl<'a> InterfaceSockets<'a> {
    pub fn new(fabric: &'a Fabric, sockets: usize) -> Self {
        let frames = if sockets > MANY { FRAMES_OF_MANY } else { FRAMES };
        Self { fabric, sockets: Vec::with_capacity(sockets), egress: vec![None; fabric.ports.len()], frames }
    }

    /// Attaches a program to a chassis's interfaces, and opens sockets. Runs in their namespace.
    pub fn open_veths(&mut self, program: &mut SwitchProgram, node: &NetnsNode) -> Result<(), RunError> {
        let hosts = program.hosts()?;
        for interface in &node.interfaces {
            let Some((switch, port)) = interface.switch else { continue };
            let (host_link, to) = match self.fabric.ports[port].to {
                Node::Host(host) => ((self.fabric.ports.len() + host) as u32, self.fabric.hosts[host].mac),
                Node::Switch(_) => (NO_PORT, [0xff; 6]),
            };
            let socket = self.sockets.len() as u32;
            let attachment = Attachment { switch: switch as u32, host_link, socket, ..Attachment::default() };
            hosts.set_mac_rewrite(port, &MacRewrite { to, from: SWITCH_MAC })?;
            program.attach_interface(interface.index, &attachment)?;
            self.open(program, &interface.name, &[BindMode::Auto], None, false)?;
            self.egress[port] = Some((socket as usize, 1));
        }
        Ok(())
    }

    /// Opens all external interfaces. Returns the egress ports, and the trunks to other machines.
    pub fn open_all(
        &mut self,
        program: &mut SwitchProgram,
        interfaces: &[ExternalInterface],
        network: &Network,
        undelayed: bool,
    ) -> Result<(EgressPorts, Vec<Trunk>), RunError> {
        let links: Vec<usize> = spray_fabric::ports(network).collect();
        let mut egress = EgressPorts { hosts: vec![None; network.hosts.len()], trunks: Vec::new() };
        let mut trunks = Vec::new();
        for interface in interfaces {
            let port = links.iter().position(|link| *link == interface.link);
            let port = port.expect("a link that leaves a switch is a port");
            let source = interface.host.map_or(Source::Trunk(trunks.len()), Source::Host);
            let to = interface.run(|| self.open_external(program, interface, port, source, undelayed))??;
            match source {
                Source::Host(host) => egress.hosts[host] = Some(to),
                Source::Trunk(_) => {
                    egress.trunks.push(to);
                    trunks.push(Trunk::new(port, interface.link, interface.mac, interface.longest));
                }
            }
        }
        Ok((egress, trunks))
    }

    /// Attaches the program, and opens a socket on each queue. Runs in the interface's namespace.
    fn open_external(
        &mut self,
        program: &mut SwitchProgram,
        interface: &ExternalInterface,
        port: usize,
        source: Source,
        undelayed: bool,
    ) -> Result<EgressPort, RunError> {
        let name = &interface.port.interface;
        let socket = self.sockets.len();
        let [a, b, c, d, e, f] = interface.mac;
        let attachment = Attachment {
            switch: self.fabric.ports[port].switch as u32,
            host_link: interface.host.map_or(NO_PORT, |host| (self.fabric.ports.len() + host) as u32),
            socket: socket as u32,
            external: 1,
            undelayed: undelayed.into(),
            learns: interface.host.is_some().into(),
            mac: [a, b, c, d, e, f, 0, 0],
        };
        program.attach_interface(interface.index, &attachment)?;
        let refusal = program.refusal();
        if undelayed {
            interface.check_forwards(refusal)?;
            program.egress(port, interface.index)?;
        }
        let copies = refusal.is_some() || zero_copy_defect(name).is_some();
        let modes = vec![if copies { BindMode::Copy } else { BindMode::Auto }; interface.queues as usize];
        self.open(program, name, &modes, Some(source), interface.is_software)?;
        self.egress[port] = Some((socket, modes.len()));
        Ok(EgressPort { port, ifindex: interface.index, attachment })
    }

    /// Opens a socket on each of the first `modes.len()` queues of an interface.
    fn open(
        &mut self,
        program: &SwitchProgram,
        interface: &str,
        modes: &[BindMode],
        source: Option<Source>,
        is_software: bool,
    ) -> Result<(), RunError> {
        for (queue, mode) in (0..).zip(modes) {
            // The thread sleeps until frames are due.
            let sockets = XskConfig::with_frames(interface, queue, self.frames);
            let config = XskConfig { mode: *mode, busy_poll: BusyPoll::Off, ..sockets };
            let socket = XskDevice::open(&config).map_err(RunError::host(interface))?;
            program.register_socket(self.sockets.len() as u32, socket.as_fd())?;
            self.sockets.push(QueueSocket { socket, source, is_software });
        }
        Ok(())
    }
}
