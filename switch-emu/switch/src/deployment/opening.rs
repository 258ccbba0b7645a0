//! Attaching to the interfaces of switches, and opening sockets on them.

use std::os::fd::AsFd;

use spray_fabric::{Fabric, Network, Node};
use spray_nic::device::{BindMode, BusyPoll, XskConfig, XskDevice};
use spray_nic::net::drivers::zero_copy_defect;
use spray_pipeline::deployment::{Attachment, Cable};
use spray_pipeline::scheme::NO_PORT;

use super::bridge::{EgressPort, EgressPorts, Source};
use super::delay_queue::{Exit, QueueSocket};
use super::interface::ExternalInterface;
use super::link_state::Trunk;
use crate::RunError;
use crate::program::SwitchProgram;
use crate::sites::Site;

/// UMEM frames of a socket: 8 MiB, and 2 MiB where there are more than [`MANY`] sockets.
const FRAMES: u32 = 2048;
const FRAMES_OF_MANY: u32 = 512;
const MANY: usize = 64;

/// The source MAC of routed frames between veths: switches have no address of their own.
const SWITCH_MAC: [u8; 6] = [0x02, 0x53, 0x57, 0, 0, 0];

/// The sockets of all interfaces of switches.
pub(super) struct Opening<'a> {
    fabric: &'a Fabric,
    pub sockets: Vec<QueueSocket>,
    pub exits: Vec<Option<Exit>>,
    /// UMEM frames of each socket.
    frames: u32,
}

impl<'a> Opening<'a> {
    pub fn new(fabric: &'a Fabric, sockets: usize) -> Self {
        let frames = if sockets > MANY { FRAMES_OF_MANY } else { FRAMES };
        Self { fabric, sockets: Vec::with_capacity(sockets), exits: vec![None; fabric.ports.len()], frames }
    }

    /// Attaches a program to a chassis's interfaces, and opens sockets. Runs in their namespace.
    pub fn open_veths(&mut self, program: &mut SwitchProgram, site: &Site) -> Result<(), RunError> {
        let hosts = program.hosts()?;
        for interface in &site.interfaces {
            let Some((switch, port)) = interface.switch else { continue };
            let (own, to) = match self.fabric.ports[port].to {
                Node::Host(host) => ((self.fabric.ports.len() + host) as u32, self.fabric.hosts[host].mac),
                Node::Switch(_) => (NO_PORT, [0xff; 6]),
            };
            let holder = self.sockets.len() as u32;
            let attachment =
                Attachment { switch: switch as u32, own, holder, given: 0, at_once: 0, learns: 0, mac: [0; 8] };
            hosts.put_cable(port, &Cable { to, from: SWITCH_MAC })?;
            program.open_attachment(interface.index, &attachment)?;
            self.open(program, &interface.name, &[BindMode::Auto], None, false)?;
            self.exits[port] = Some((holder as usize, 1));
        }
        Ok(())
    }

    /// Opens all external interfaces. Returns the egress ports, and the trunks to other machines.
    pub fn open_all(
        &mut self,
        program: &mut SwitchProgram,
        interfaces: &[ExternalInterface],
        network: &Network,
        at_once: bool,
    ) -> Result<(EgressPorts, Vec<Trunk>), RunError> {
        let links: Vec<usize> = spray_fabric::ports(network).collect();
        let mut egress = EgressPorts { hosts: vec![None; network.hosts.len()], trunks: Vec::new() };
        let mut trunks = Vec::new();
        for interface in interfaces {
            let port = links.iter().position(|link| *link == interface.link);
            let port = port.expect("a link that leaves a switch is a port");
            let source = interface.host.map_or(Source::Trunk(trunks.len()), Source::Host);
            let to = interface.run(|| self.open_external(program, interface, port, source, at_once))??;
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
        at_once: bool,
    ) -> Result<EgressPort, RunError> {
        let name = &interface.port.interface;
        let holder = self.sockets.len();
        let [a, b, c, d, e, f] = interface.mac;
        let attachment = Attachment {
            switch: self.fabric.ports[port].switch as u32,
            own: interface.host.map_or(NO_PORT, |host| (self.fabric.ports.len() + host) as u32),
            holder: holder as u32,
            given: 1,
            at_once: at_once.into(),
            learns: interface.host.is_some().into(),
            mac: [a, b, c, d, e, f, 0, 0],
        };
        program.open_attachment(interface.index, &attachment)?;
        let refusal = program.refusal();
        if at_once {
            interface.check_forwards(refusal)?;
            program.egress(port, interface.index)?;
        }
        let copies = refusal.is_some() || zero_copy_defect(name).is_some();
        let modes = vec![if copies { BindMode::Copy } else { BindMode::Auto }; interface.queues as usize];
        self.open(program, name, &modes, Some(source), interface.is_software)?;
        self.exits[port] = Some((holder, modes.len()));
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
            program.hold(self.sockets.len() as u32, socket.as_fd())?;
            self.sockets.push(QueueSocket { socket, source, is_software });
        }
        Ok(())
    }
}
