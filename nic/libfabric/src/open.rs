//! An interface is taken over.

use std::net::IpAddr;

use spray_nic::device::{OpenError, TakeOverError, XskConfig, XskInterface};
use spray_nic::net::{Interface, NetError, NextHops, Source};
use spray_nic::{Endpoint, EndpointConfig};

use crate::engine::ways::Ways;
use crate::engine::{Bindings, Engine, header, sending};
use crate::error::Errno;
use crate::say;
use crate::settings::Settings;

/// Takes an interface over, for an endpoint on one of its addresses. What stands in the way is told.
///
/// # Errors
/// Says about what it is.
pub fn open(
    name: &str,
    address: IpAddr,
    settings: &Settings,
    bindings: Bindings,
) -> Result<Engine<XskInterface>, Errno> {
    let told = |why: &dyn ToString, errno| {
        say::warn(why.to_string());
        Errno(errno)
    };
    let net = |error: NetError| told(&error, net_errno(&error));
    let interface = Interface::find(name).map_err(net)?;
    let config = configure(EndpointConfig::on(&interface, address).map_err(net)?, settings)?;
    let device =
        XskInterface::open_with(&interface, (address, spray_nic::Ports::DEFAULT), &XskConfig::new(name, 0), None);
    let device = device.map_err(|error| told(&error, take_over_errno(&error)))?;
    let source = Source { interface: interface.name, index: interface.index, address };
    let ways = NextHops::open(source).and_then(Ways::follow).map_err(net)?;
    let endpoint = Endpoint::new(device, config).map_err(|error| told(&error, libc::EINVAL))?;
    say::inform(format!("{name} is taken over as {address}"));
    Ok(Engine::new(endpoint, ways, bindings, settings.max_message))
}

/// Each peer may have a connection here and be had one to, and while one of them begins anew, two.
fn configure(config: EndpointConfig, settings: &Settings) -> Result<EndpointConfig, Errno> {
    let config = config.with_max_message((settings.max_message + header::BYTES) as u64);
    let config = settings.balancer.map_or(config.clone(), |balancer| config.with_balancer(balancer));
    let config = settings.keys()?.map_or(config.clone(), |keys| config.with_keys(keys));
    let max_connections = (4 * settings.peers).min(65_536);
    Ok(EndpointConfig { max_connections, max_queued_messages: sending::MOST, ..config })
}

fn net_errno(error: &NetError) -> i32 {
    match error {
        NetError::Busy { .. } => libc::EBUSY,
        NetError::Down(_) => libc::ENETDOWN,
        _ => libc::ENODEV,
    }
}

fn take_over_errno(error: &TakeOverError) -> i32 {
    match error {
        TakeOverError::Net(error) => net_errno(error),
        TakeOverError::Open(OpenError::QueueBusy { .. }) | TakeOverError::Attach { .. } => libc::EBUSY,
        _ if !nix::unistd::geteuid().is_root() => libc::EPERM,
        _ => libc::ENODEV,
    }
}
