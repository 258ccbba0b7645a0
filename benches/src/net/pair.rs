//! Two namespaces joined by a veth pair, without switches or programs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use spray_switch::links::{self, End};
use spray_switch::netns::Namespace;
use spray_switch::netns_nodes::{NEW_INTERFACES, disable_autoconfiguration};
use spray_switch::program::{AttachMode, SteerProgram};
use spray_switch::{RunError, prefix};

/// Two namespaces with the interface [`Pair::INTERFACE`] each. Dropping it removes them.
#[derive(Debug)]
pub struct Pair {
    sides: [Namespace; 2],
}

impl Pair {
    /// Name of either interface.
    pub const INTERFACE: &str = "eth0";

    /// Creates the namespaces. Needs root. On an error what was created is removed.
    pub fn new() -> Result<Self, RunError> {
        Self::with_queues(1)
    }

    /// As [`new`](Self::new), with `queues` queues per interface.
    pub fn with_queues(queues: u32) -> Result<Self, RunError> {
        let prefix = prefix();
        let make = |side: usize| {
            let namespace = Namespace::create(format!("{prefix}side{side}"))?;
            namespace.run(|| disable_autoconfiguration(&NEW_INTERFACES, true))?;
            Ok::<_, RunError>(namespace)
        };
        let sides = [make(0)?, make(1)?];
        let end = |side: usize| End { namespace: &sides[side], name: Self::INTERFACE.into(), mac: Self::mac(side) };
        let (near, far) = (end(0), end(1));
        links::in_namespace(&sides[0], async |handle| links::add_pair(&handle, &near, &far, queues).await)?;
        for (side, namespace) in sides.iter().enumerate() {
            links::in_namespace(namespace, async |handle| {
                let index = links::index(&handle, Self::INTERFACE).await?;
                links::up(&handle, Self::INTERFACE, index).await?;
                for v6 in [false, true] {
                    links::add_address(&handle, index, Self::address(side, v6)).await?;
                    links::add_neighbour(&handle, index, Self::address(1 - side, v6), Self::mac(1 - side)).await?;
                }
                Ok(())
            })?;
        }
        Ok(Self { sides })
    }

    /// Returns the address of a side, 0 or 1.
    pub fn address(side: usize, v6: bool) -> IpAddr {
        match v6 {
            false => Ipv4Addr::new(10, 0, 0, side as u8 + 1).into(),
            true => Ipv6Addr::new(0xfd53, 0x5052, 0x4159, 0, 0, 0, 0, side as u16 + 1).into(),
        }
    }

    fn mac(side: usize) -> [u8; 6] {
        [0x02, 0x53, 0x50, 0, 0, side as u8 + 1]
    }

    /// Attaches the steering program to a side's interface until it is dropped.
    pub(super) fn steer(&self, side: usize) -> Result<(SteerProgram, AttachMode), RunError> {
        let index =
            links::in_namespace(&self.sides[side], async |handle| links::index(&handle, Self::INTERFACE).await)?;
        let own = [false, true].map(|v6| Self::address(side, v6));
        let mut program = SteerProgram::load(Self::mac(side), &own, spray_wire::Ports::DEFAULT)?;
        let mode = self.run_in(side, || program.attach(index))??;
        Ok((program, mode))
    }

    /// Runs `work` on this thread in a side's namespace, which processes that it starts inherit.
    pub fn run_in<T>(&self, side: usize, work: impl FnOnce() -> T) -> Result<T, RunError> {
        self.sides[side].run(work)
    }
}
