//! Hosts on UDP sockets.

use std::net::IpAddr;

use super::Host;
use crate::device::{Device, UdpConfig, UdpDevice, UdpError};
use crate::endpoint::{EndpointConfig, Peer};

impl Host<UdpDevice> {
    /// Opens UDP sockets of a local address, as any user, with the defaults of [`UdpConfig::new`]
    /// and [`EndpointConfig::real`].
    ///
    /// # Errors
    /// The cause, and how to resolve it.
    pub fn open_udp(address: IpAddr) -> Result<Self, UdpError> {
        let config = UdpConfig::new(address);
        Self::open_udp_with(config, config.endpoint()?)
    }

    /// The same as [`open_udp`](Self::open_udp), with these settings. Address and ports are those
    /// of the sockets.
    pub fn open_udp_with(config: UdpConfig, endpoint: EndpointConfig) -> Result<Self, UdpError> {
        Self::open_udp_as(config, endpoint, |device| device)
    }
}

impl<D: Device> Host<D> {
    /// The same as [`Host::open_udp_with`], with a device wrapped by `wrap`.
    pub fn open_udp_as(
        config: UdpConfig,
        endpoint: EndpointConfig,
        wrap: impl FnOnce(UdpDevice) -> D,
    ) -> Result<Self, UdpError> {
        let endpoint = EndpointConfig { address: config.address, ports: config.ports, mac: [0; 6], ..endpoint };
        Ok(Self::new(wrap(UdpDevice::open(&config)?), endpoint)?)
    }
}

impl UdpConfig {
    /// Returns the settings of an endpoint on these sockets.
    ///
    /// # Errors
    /// The MTU is too small.
    pub fn endpoint(&self) -> Result<EndpointConfig, UdpError> {
        let endpoint = EndpointConfig::real(self.address, [0; 6], self.mtu)?;
        Ok(EndpointConfig { ports: self.ports, ..endpoint })
    }
}

impl Peer {
    /// Returns the peer at an address, for a device that resolves next hops, such as [`UdpDevice`].
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        Self { address, mac: [0; 6] }
    }
}
