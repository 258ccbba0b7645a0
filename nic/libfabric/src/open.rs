use std::net::IpAddr;

use spray_nic::device::{OpenError, TakeOverError, XskInterface};
use spray_nic::net::{Interface, NetError};
use spray_nic::{EndpointConfig, Host, HostConfig};

use crate::engine::next_hop::NextHops;
use crate::engine::{Bindings, Engine, header, rma, sending};
use crate::error::Errno;
use crate::log;
use crate::settings::Settings;

/// Opens an interface for an endpoint on one of its addresses. Logs errors.
pub fn open(
    name: &str,
    address: IpAddr,
    settings: &Settings,
    bindings: Bindings,
) -> Result<Engine<XskInterface>, Errno> {
    let failed = |why: &dyn ToString, errno| {
        log::warn(why.to_string());
        Errno(errno)
    };
    let net = |error: NetError| failed(&error, net_errno(&error));
    let mut config = Interface::find(name).and_then(|nic| HostConfig::with_address(nic, address)).map_err(net)?;
    config.endpoint = configure(config.endpoint, settings)?;
    let mut host = Host::open_with(config).map_err(|error| failed(&error, take_over_errno(&error)))?;
    host.start().map_err(|error| failed(&error, libc::EAGAIN))?;
    let next_hops = host.resolver().map(NextHops::Kernel).ok_or(Errno::BAD_STATE)?;
    log::info(format!("opened {name} as {address}"));
    Ok(Engine::new(host, next_hops, bindings, settings.max_message))
}

/// Each peer may have two connections, one per direction, and twice as many while it reconnects.
fn configure(config: EndpointConfig, settings: &Settings) -> Result<EndpointConfig, Errno> {
    let config = config.with_max_message((settings.max_message + header::BYTES + rma::BYTES) as u64);
    let config = settings.balancer.map_or(config.clone(), |balancer| config.with_balancer(balancer));
    let config = settings.keys()?.map_or(config.clone(), |keys| config.with_keys(keys));
    let max_connections = (4 * settings.peers).min(65_536);
    Ok(EndpointConfig { max_connections, max_queued_messages: sending::MAX_UNDELIVERED, ..config })
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
        TakeOverError::Config(_) => libc::EINVAL,
        TakeOverError::Open(OpenError::QueueBusy { .. }) | TakeOverError::Attach { .. } => libc::EBUSY,
        _ if !nix::unistd::geteuid().is_root() => libc::EPERM,
        _ => libc::ENODEV,
    }
}
