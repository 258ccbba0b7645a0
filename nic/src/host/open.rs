//! Interfaces become hosts.

use std::{net::IpAddr, time::Duration};

use super::Host;
use crate::device::{Device, TakeOverError, XskConfig, XskInterface};
use crate::endpoint::{ConfigError, EndpointConfig, Peer, Shard};
use crate::net::{Interface, Mtu, NetError, NextHops, PermanentNeighbours, Resolver, Source};

/// What [`Host::open_with`] opens, and how.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// The interface.
    pub interface: Interface,
    /// The endpoint. Frames to its address and ports come to it, all others to the kernel.
    pub endpoint: EndpointConfig,
    /// The sockets: sizes of rings, copy or zero-copy. The interface's name and the queue in it do not count.
    pub sockets: XskConfig,
    /// The only queue to take, to which the NIC must put the ports' frames; by default all queues.
    pub queue: Option<u32>,
    /// Endpoints, each with some of the queues and for a thread of its own; where there are fewer queues, as many. See [`Host::open_shards`].
    pub shards: usize,
    /// Whether frames go where the kernel's routes lead, and follow their changes. Without, they go to the Ethernet addresses that peers have.
    pub follows_routes: bool,
}

impl HostConfig {
    /// The defaults for an interface of this thread's network namespace, at its first address: those of [`EndpointConfig::real`] for its
    /// Ethernet address, MTU and link's rate; all queues, zero-copy where the driver has it, and the kernel's routes.
    ///
    /// # Errors
    /// When there is no such interface, it has no address, or its MTU is too small.
    pub fn of(interface: &str) -> Result<Self, NetError> {
        let interface = Interface::find(interface)?;
        interface.check_kind()?;
        let address = interface.own_address(None)?;
        Self::on(interface, address)
    }

    /// As [`of`](Self::of), at an address of one's choice.
    ///
    /// # Errors
    /// When the MTU is too small.
    pub fn on(interface: Interface, address: IpAddr) -> Result<Self, NetError> {
        let mut endpoint =
            EndpointConfig::real(address, interface.station().mac, interface.longest_packet()).map_err(|error| {
                match error {
                    ConfigError::Mtu { mtu, needed } => {
                        NetError::Mtu { interface: interface.name.clone(), mtu, needed }
                    }
                    other => NetError::Netlink(other.to_string()),
                }
            })?;
        endpoint.link_bps = interface.link_bps.unwrap_or(endpoint.link_bps);
        let sockets = XskConfig::new(interface.name.clone(), 0);
        Ok(Self { interface, endpoint, sockets, queue: None, shards: 1, follows_routes: true })
    }
}

impl Host<XskInterface> {
    /// Takes an interface of this thread's network namespace over, with the defaults of [`HostConfig::of`]. Needs root, or the rights
    /// that errors name.
    ///
    /// # Errors
    /// Says what stands in the way, and what to do about it.
    pub fn open(interface: &str) -> Result<Self, TakeOverError> {
        Self::open_with(HostConfig::of(interface)?)
    }

    /// As [`open`](Self::open), with settings of one's choice. It starts no thread.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(config: HostConfig) -> Result<Self, TakeOverError> {
        Self::open_as(config, |device| device)
    }

    /// The peer at an address, with the Ethernet address to which the kernel's routes send what goes there. Where the kernel does not know
    /// that, it is made to ask.
    ///
    /// # Errors
    /// When there is no route, or no link or no answer of the next hop for as long as a connection waits for its peer
    /// ([`EndpointConfig::with_give_up`]).
    pub fn peer(&self, address: IpAddr) -> Result<Peer, NetError> {
        peer(self.endpoint.device(), self, address)
    }
}

impl<D: Device> Host<D> {
    /// As [`Host::open_with`], on what `wrap` makes of the device.
    ///
    /// # Errors
    /// As [`Host::open_with`].
    pub fn open_as(config: HostConfig, wrap: impl FnMut(XskInterface) -> D) -> Result<Self, TakeOverError> {
        let mut shards = Self::open_shards(HostConfig { shards: 1, ..config }, wrap)?;
        Ok(shards.remove(0))
    }

    /// As [`open_as`](Self::open_as), with a host for each of the configuration's shards: each is for a thread of its own, has connections of
    /// its own, and all have one address. Connections of peers come to each in turn. The first one has to run.
    ///
    /// # Errors
    /// As [`Host::open_with`].
    pub fn open_shards(
        config: HostConfig,
        mut wrap: impl FnMut(XskInterface) -> D,
    ) -> Result<Vec<Self>, TakeOverError> {
        let HostConfig { interface, endpoint, sockets, queue, shards, follows_routes } = config;
        let source = source(&interface, &endpoint);
        let devices = XskInterface::open(interface, endpoint.address, endpoint.ports, sockets, queue, shards)?;
        let count = devices.len();
        let mut routes = NextHops::open(source, count, follows_routes)?.into_iter();
        let host = |(device, shard)| {
            let endpoint = EndpointConfig { shard, ..endpoint.clone() };
            let mut host = Self { routes: routes.next(), ..Self::new(wrap(device), endpoint)? };
            if follows_routes {
                host.endpoint.resolve_next_hops();
            }
            Ok(host)
        };
        devices.into_iter().zip(Shard::all(count)).map(host).collect()
    }
}

/// From where the endpoint of this configuration sends.
fn source(interface: &Interface, endpoint: &EndpointConfig) -> Source {
    let patience = Duration::from_micros(endpoint.flow.give_up_ps / 1_000_000);
    Source::of(interface, endpoint.address, patience)
}

impl<D> Host<D> {
    /// The interface's MTU, which may change while the host runs; `None` on a device of one's own.
    #[must_use]
    pub fn mtu(&self) -> Option<Mtu> {
        self.routes.as_ref().map(NextHops::mtu)
    }

    /// The permanent entries of the kernel's table of neighbours by which frames go; `None` on a device of one's own.
    #[must_use]
    pub fn permanent_neighbours(&self) -> Option<PermanentNeighbours> {
        self.routes.as_ref().map(NextHops::permanent)
    }

    /// Tells next hops, from any thread, once the host has been started; `None` where it follows no routes.
    #[must_use]
    pub fn resolver(&self) -> Option<Resolver> {
        self.routes.as_ref()?.resolver()
    }
}

#[cfg(feature = "udp")]
impl Host<crate::device::Nic> {
    /// The peer at an address: as that of an interface that is taken over, or just there, where the device is UDP sockets.
    ///
    /// # Errors
    /// As on an interface.
    pub fn peer(&self, address: IpAddr) -> Result<Peer, NetError> {
        let interface = self.endpoint.device().xdp();
        interface.map_or(Ok(Peer::at(address)), |device| peer(device, self, address))
    }
}

fn peer<D: Device>(device: &XskInterface, host: &Host<D>, address: IpAddr) -> Result<Peer, NetError> {
    let mut source = source(&device.taken_over().interface, host.endpoint.config());
    source.permanent = host.permanent_neighbours().unwrap_or_default();
    Ok(Peer { address, mac: source.resolve(address)? })
}
