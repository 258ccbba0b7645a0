//! Attaching to the interfaces of switches, and opening sockets on them.

use std::os::fd::AsFd;

use spray_fabric::{Fabric, Network, Node};
use spray_nic::device::{BindMode, BusyPoll, XskConfig, XskDevice};
use spray_nic::net::drivers::distrust;
use spray_pipeline::deployment::{Attachment, Cable};
use spray_pipeline::scheme::NO_PORT;

use super::boxes::Trunk;
use super::bridge::{Behind, Way, Ways};
use super::given::Given;
use super::hold::{Entry, Exit};
use crate::RunError;
use crate::program::SwitchProgram;
use crate::sites::Site;

/// Frames of a socket, and of each of many: 8 MiB and 2 MiB.
const FRAMES: u32 = 2048;
const FRAMES_OF_MANY: u32 = 512;
const MANY: usize = 64;

/// Where frames of a fabric that made its interfaces say that they come from: no switch has an address that anybody would write to.
const SWITCH_MAC: [u8; 6] = [0x02, 0x53, 0x57, 0, 0, 0];

/// The sockets of all interfaces of switches.
pub(super) struct Opening<'a> {
    fabric: &'a Fabric,
    pub entries: Vec<Entry>,
    pub exits: Vec<Option<Exit>>,
    /// Frames of a socket.
    frames: u32,
}

impl<'a> Opening<'a> {
    pub fn new(fabric: &'a Fabric, sockets: usize) -> Self {
        let frames = if sockets > MANY { FRAMES_OF_MANY } else { FRAMES };
        Self { fabric, entries: Vec::with_capacity(sockets), exits: vec![None; fabric.ports.len()], frames }
    }

    /// Opens a socket on every interface of a chassis, and attaches its program there. Runs in its namespace.
    pub fn open_made(&mut self, program: &mut SwitchProgram, site: &Site) -> Result<(), RunError> {
        let hosts = program.hosts()?;
        for interface in &site.interfaces {
            let Some((switch, port)) = interface.switch else { continue };
            let (own, to) = match self.fabric.ports[port].to {
                Node::Host(host) => ((self.fabric.ports.len() + host) as u32, self.fabric.hosts[host].mac),
                Node::Switch(_) => (NO_PORT, [0xff; 6]),
            };
            let holder = self.entries.len() as u32;
            let behind =
                Attachment { switch: switch as u32, own, holder, given: 0, at_once: 0, learns: 0, mac: [0; 8] };
            hosts.put_cable(port, &Cable { to, from: SWITCH_MAC })?;
            program.open_attachment(interface.index, &behind)?;
            self.open(program, &interface.name, &[BindMode::Auto], None, false)?;
            self.exits[port] = Some((holder as usize, 1));
        }
        Ok(())
    }

    /// Opens sockets on all interfaces that are given, as [`Opening::open_given`]. Returns the ways out, and what leads to other boxes.
    pub fn open_all(
        &mut self,
        program: &mut SwitchProgram,
        given: &[Given],
        network: &Network,
        at_once: bool,
    ) -> Result<(Ways, Vec<Trunk>), RunError> {
        let links: Vec<usize> = spray_fabric::ports(network).collect();
        let mut ways = Ways { hosts: vec![None; network.hosts.len()], trunks: Vec::new() };
        let mut trunks = Vec::new();
        for given in given {
            let port =
                links.iter().position(|link| *link == given.link).expect("a link that leaves a switch is a port");
            let behind = given.host.map_or(Behind::Trunk(trunks.len()), Behind::Host);
            let way = given.run(|| self.open_given(program, given, port, behind, at_once))??;
            match behind {
                Behind::Host(host) => ways.hosts[host] = Some(way),
                Behind::Trunk(_) => {
                    ways.trunks.push(way);
                    trunks.push(Trunk::new(port, given.link, given.mac, given.longest));
                }
            }
        }
        Ok((ways, trunks))
    }

    /// Opens a socket on every queue of an interface that is given, behind the program, which sends frames on `at_once` or has them held. Runs
    /// in its namespace; what is `behind` it sends. Returns the way there, by `port`.
    fn open_given(
        &mut self,
        program: &mut SwitchProgram,
        given: &Given,
        port: usize,
        behind: Behind,
        at_once: bool,
    ) -> Result<Way, RunError> {
        let name = &given.port.interface;
        let holder = self.entries.len();
        let [a, b, c, d, e, f] = given.mac;
        let attachment = Attachment {
            switch: self.fabric.ports[port].switch as u32,
            own: given.host.map_or(NO_PORT, |host| (self.fabric.ports.len() + host) as u32),
            holder: holder as u32,
            given: 1,
            at_once: at_once.into(),
            learns: given.host.is_some().into(),
            mac: [a, b, c, d, e, f, 0, 0],
        };
        program.open_attachment(given.index, &attachment)?;
        let refusal = program.refusal();
        if at_once {
            given.check_sends(refusal)?;
            program.egress(port, given.index)?;
        }
        let copies = refusal.is_some() || distrust(name).is_some();
        let modes = vec![if copies { BindMode::Copy } else { BindMode::Auto }; given.queues as usize];
        self.open(program, name, &modes, Some(behind), given.is_software)?;
        self.exits[port] = Some((holder, modes.len()));
        Ok(Way { port, ifindex: given.index, attachment })
    }

    /// Opens sockets on the queues of an interface, as many as `modes`.
    fn open(
        &mut self,
        program: &SwitchProgram,
        interface: &str,
        modes: &[BindMode],
        behind: Option<Behind>,
        is_software: bool,
    ) -> Result<(), RunError> {
        for (queue, mode) in (0..).zip(modes) {
            // The thread sleeps until frames are due.
            let sockets = XskConfig::with_frames(interface, queue, self.frames);
            let config = XskConfig { mode: *mode, busy_poll: BusyPoll::Off, ..sockets };
            let socket = XskDevice::open(&config).map_err(RunError::host(interface))?;
            program.hold(self.entries.len() as u32, socket.as_fd())?;
            self.entries.push(Entry { socket, behind, is_software });
        }
        Ok(())
    }
}
