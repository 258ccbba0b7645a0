//! Opens interfaces as hosts.

use std::{net::IpAddr, time::Duration};

use super::Host;
use crate::device::{Device, TakeOverError, XskConfig, XskInterface};
use crate::endpoint::{ConfigError, EndpointConfig, Peer, Shard};
use crate::net::{Egress, Interface, Mtu, NetError, NextHops, PermanentNeighbours, Resolver};

/// Options of [`Host::open_with`].
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// The interface.
    pub interface: Interface,
    /// The endpoint. Frames to its address and ports are redirected to it, others to the kernel.
    pub endpoint: EndpointConfig,
    /// The sockets: ring sizes, copy or zero-copy. Interface name and queue are ignored.
    pub sockets: XskConfig,
    /// The only queue to use, to which the NIC must steer the ports' frames; by default all queues.
    pub queue: Option<u32>,
    /// Number of endpoints, at most one per queue, each for one thread. See [`Host::open_shards`].
    pub shards: usize,
    /// Follow the kernel's routes; otherwise frames go to the peers' Ethernet addresses.
    pub follows_routes: bool,
}

impl HostConfig {
    /// Returns the defaults for an interface of this thread's network namespace at its first
    /// address: [`EndpointConfig::real`], the link's rate, all queues, zero-copy if supported, and
    /// the kernel's routes.
    ///
    /// # Errors
    /// There is no such interface, it has no address, or its MTU is too small.
    pub fn new(interface: &str) -> Result<Self, NetError> {
        let interface = Interface::find(interface)?;
        interface.check_kind()?;
        let address = interface.own_address(None)?;
        Self::with_address(interface, address)
    }

    /// The same as [`new`](Self::new), at this address.
    ///
    /// # Errors
    /// The MTU is too small.
    pub fn with_address(interface: Interface, address: IpAddr) -> Result<Self, NetError> {
        let config = EndpointConfig::real(address, interface.l3_interface().mac, interface.longest_packet());
        let mut endpoint = config.map_err(|error| match error {
            ConfigError::Mtu { mtu, needed } => NetError::Mtu { interface: interface.name.clone(), mtu, needed },
            other => NetError::Netlink(other.to_string()),
        })?;
        endpoint.link_bps = interface.link_bps.unwrap_or(endpoint.link_bps);
        let sockets = XskConfig::new(interface.name.clone(), 0);
        Ok(Self { interface, endpoint, sockets, queue: None, shards: 1, follows_routes: true })
    }
}

impl Host<XskInterface> {
    /// Takes over an interface of this thread's network namespace, with the defaults of
    /// [`HostConfig::new`]. Needs root, or the capabilities that errors name.
    ///
    /// # Errors
    /// The cause, and how to resolve it.
    pub fn open(interface: &str) -> Result<Self, TakeOverError> {
        Self::open_with(HostConfig::new(interface)?)
    }

    /// The same as [`open`](Self::open), with these settings. It starts no thread.
    pub fn open_with(config: HostConfig) -> Result<Self, TakeOverError> {
        Self::open_as(config, |device| device)
    }

    /// Returns the peer at an address, with the next hop's Ethernet address according to the
    /// kernel's routes, resolved if necessary.
    ///
    /// # Errors
    /// There is no route or no link, or the next hop does not answer within
    /// [`EndpointConfig::with_give_up`].
    pub fn peer(&self, address: IpAddr) -> Result<Peer, NetError> {
        peer(self.endpoint.device(), self, address)
    }
}

impl<D: Device> Host<D> {
    /// The same as [`Host::open_with`], with a device wrapped by `wrap`.
    pub fn open_as(config: HostConfig, wrap: impl FnMut(XskInterface) -> D) -> Result<Self, TakeOverError> {
        let mut shards = Self::open_shards(HostConfig { shards: 1, ..config }, wrap)?;
        Ok(shards.remove(0))
    }

    /// The same as [`open_as`](Self::open_as), with one host per shard, each for one thread, with
    /// its own connections and the same address. Incoming connections are distributed in turn. The
    /// first host has to run.
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

fn source(interface: &Interface, endpoint: &EndpointConfig) -> Egress {
    let timeout = Duration::from_micros(endpoint.flow.give_up_ps / 1_000_000);
    Egress::of(interface, endpoint.address, timeout)
}

impl<D> Host<D> {
    /// Returns the interface's MTU, which may change at runtime; `None` on a custom device.
    pub fn mtu(&self) -> Option<Mtu> {
        self.routes.as_ref().map(NextHops::mtu)
    }

    /// Returns the permanent neighbour entries in use; `None` on a custom device.
    pub fn permanent_neighbours(&self) -> Option<PermanentNeighbours> {
        self.routes.as_ref().map(NextHops::permanent)
    }

    /// Returns the resolver of next hops, for any thread; `None` before start or without routes.
    pub fn resolver(&self) -> Option<Resolver> {
        self.routes.as_ref()?.resolver()
    }
}

#[cfg(feature = "udp")]
impl Host<crate::device::AnyDevice> {
    /// Returns the peer at an address: resolved on an interface, or as given on UDP sockets.
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
