//! Hosts on UDP sockets.

use std::net::IpAddr;

use super::Host;
use crate::device::{Device, UdpConfig, UdpDevice, UdpError};
use crate::endpoint::{EndpointConfig, Peer};

impl Host<UdpDevice> {
    /// Opens UDP sockets of an address of this machine, as any user, with the defaults of [`UdpConfig::at`] and [`EndpointConfig::real`].
    ///
    /// # Errors
    /// Says what stands in the way, and what to do about it.
    pub fn open_udp(address: IpAddr) -> Result<Self, UdpError> {
        let config = UdpConfig::at(address);
        Self::open_udp_with(config, config.endpoint()?)
    }

    /// As [`open_udp`](Self::open_udp), with settings of one's choice. Address and ports are those of the sockets.
    ///
    /// # Errors
    /// As [`open_udp`](Self::open_udp).
    pub fn open_udp_with(config: UdpConfig, endpoint: EndpointConfig) -> Result<Self, UdpError> {
        Self::open_udp_as(config, endpoint, |device| device)
    }
}

impl<D: Device> Host<D> {
    /// As [`Host::open_udp_with`], on what `wrap` makes of the device.
    ///
    /// # Errors
    /// As [`Host::open_udp_with`].
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
    /// The settings of an endpoint on these sockets.
    ///
    /// # Errors
    /// When the MTU is too small.
    pub fn endpoint(&self) -> Result<EndpointConfig, UdpError> {
        let endpoint = EndpointConfig::real(self.address, [0; 6], self.mtu)?;
        Ok(EndpointConfig { ports: self.ports, ..endpoint })
    }
}

impl Peer {
    /// The peer at an address, for a device that finds the way there by itself, as [`UdpDevice`] does.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        Self { address, mac: [0; 6] }
    }
}
