use std::net::IpAddr;
use std::time::Duration;

use caps::{CapSet, Capability};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use spray_nic::device::{AnyDevice, BindMode, BusyPoll, TakeOverError, UdpConfig};
use spray_nic::keys::Keys;
use spray_nic::net::{Interface, NetError};
use spray_nic::sys::check_open_files;
use spray_nic::{EndpointConfig, Host, HostConfig};
use tracing::debug_span;

use super::path::{PathOptions, Room, with_path};
use crate::args::{self, Device, Way};
use crate::failure::{Failure, Outcome};
use crate::{note, ports};

/// Capacity of the event log between two steps. Retransmissions are events, too.
const EVENTS: usize = 4096;

/// 16 transfers with 16 files each, sockets of queues, and others; not those of `--device udp`.
const FILES: u64 = 384;

pub fn name(way: &Way) -> String {
    way.interface.clone().unwrap_or_else(|| "UDP".into())
}

/// What the command line requests.
pub struct Request<'a> {
    pub arguments: &'a args::Interface,
    pub peer: Option<IpAddr>,
    pub path: &'a PathOptions,
    pub keys: Option<Keys>,
}

impl Request<'_> {
    /// Opens the device, with up to `most` shards; UDP sockets have one.
    pub fn open(self, most: usize, adjust: impl FnOnce(&mut EndpointConfig)) -> Outcome<Vec<Host<AnyDevice>>> {
        let steered = &self.arguments.steered;
        if let Some([clash, remedy]) = ports::clash(steered.ports) {
            note!("spray: warning: {clash}: {remedy}");
        }
        if let (Some(from), Some(peer)) = (steered.from, self.peer)
            && from.is_ipv4() != peer.is_ipv4()
        {
            return Err(Failure::refused(format!("--from {from} and --to {peer} are not of the same IP version")));
        }
        check_open_files(FILES).map_err(Failure::refused)?;
        if self.arguments.way.device == Some(Device::Udp) {
            let (sockets, mut endpoint) = self.udp()?;
            check_open_files(FILES + u64::from(sockets.evs)).map_err(Failure::refused)?;
            adjust(&mut endpoint);
            let host = Host::open_udp_as(sockets, endpoint, AnyDevice::Udp).map_err(Failure::refused)?;
            return Ok(vec![host]);
        }
        let mut config = self.xdp()?;
        config.shards = most;
        adjust(&mut config.endpoint);
        debug_span!("load and attach").in_scope(|| Host::open_shards(config, AnyDevice::Xdp)).map_err(without_rights)
    }

    fn xdp(self) -> Outcome<HostConfig> {
        let Self { arguments, peer, .. } = self;
        let interface = Interface::find(&name(&arguments.way)).map_err(Failure::refused)?;
        interface.check_available().map_err(without_rights)?;
        let address = own_address(&interface, arguments.steered.from, peer)?;
        let mut config = HostConfig::with_address(interface, address).map_err(Failure::refused)?;
        let room = Room { interface: Some(&config.interface.name), mtu: config.interface.longest_packet() };
        config.endpoint = self.endpoint(config.endpoint, &room)?;
        config.sockets.mode = match (arguments.zero_copy, arguments.copy) {
            (true, _) => BindMode::ZeroCopy,
            (_, true) => BindMode::Copy,
            _ => BindMode::Auto,
        };
        config.sockets.busy_poll = arguments.busy_poll;
        config.queue = arguments.steered.queue;
        Ok(config)
    }

    fn udp(self) -> Outcome<(UdpConfig, EndpointConfig)> {
        let Self { arguments, peer, path, .. } = self;
        let args::Interface { steered, zero_copy, copy, busy_poll, .. } = arguments;
        let polls = *busy_poll == BusyPoll::On;
        if *zero_copy || *copy || polls || steered.queue.is_some() {
            const XDP_ONLY: &str = "--queue, --copy, --zero-copy and --busy-poll";
            return Err(Failure::refused(format!("--device udp goes without {XDP_ONLY}")));
        }
        let mut sockets = sockets(arguments, peer)?;
        let is_link_local = |it: &IpAddr| matches!(it, IpAddr::V6(v6) if v6.is_unicast_link_local());
        if let Some(local) = [Some(sockets.address), peer].into_iter().flatten().find(is_link_local) {
            let message = format!("{local} is a link-local address, which goes with --device xdp only: use another");
            return Err(Failure::refused(message));
        }
        sockets.ports = steered.ports;
        sockets.evs = path.or("transport.evs", path.transport.evs(&path.transport.balancer[0].into()), sockets.evs);
        let room = Room { interface: arguments.way.interface.as_deref(), mtu: sockets.mtu };
        let config = sockets.endpoint().map_err(Failure::refused)?;
        Ok((sockets, self.endpoint(config, &room)?))
    }

    fn endpoint(self, config: EndpointConfig, room: &Room<'_>) -> Outcome<EndpointConfig> {
        let Self { arguments, path, keys, .. } = self;
        let config = match keys {
            Some(keys) => config.with_keys(keys),
            None => config,
        };
        let config = with_path(path, config.with_give_up(Duration::from_secs(arguments.timeout)), room)?;
        Ok(EndpointConfig { ports: arguments.steered.ports, event_log: EVENTS, ..config })
    }
}

fn without_rights(error: impl Into<TakeOverError>) -> Failure {
    let error = error.into();
    if let TakeOverError::Net(NetError::Unsuitable { .. }) = error {
        return Failure::refused(format!("{error}: --device udp, on all hosts"));
    }
    let has_rights = caps::has_cap(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap_or(true);
    let otherwise = if has_rights { "" } else { ". Without rights: --device udp, on all hosts" };
    Failure::refused(format!("{error}{otherwise}"))
}

/// Of the interface, or of the route.
fn sockets(arguments: &args::Interface, peer: Option<IpAddr>) -> Outcome<UdpConfig> {
    let from = arguments.steered.from;
    let of = |name: &str| {
        let interface = Interface::find(name).map_err(Failure::refused)?;
        let address = own_address(&interface, from, peer)?;
        Ok(UdpConfig { mtu: interface.mtu.min(UdpConfig::MAX_MTU), ..UdpConfig::new(address) })
    };
    if let Some(name) = &arguments.way.interface {
        return of(name);
    }
    // For a receiver, `peer` is its own address.
    match (from, peer.filter(|peer| Some(*peer) != from)) {
        (Some(from), None) => Ok(UdpConfig::new(from)),
        (Some(from), Some(peer)) => UdpConfig::for_path(from, peer).map_err(Failure::refused),
        (None, Some(peer)) => UdpConfig::for_peer(peer).map_err(Failure::refused),
        (None, None) => UdpConfig::for_default_route().or_else(|error| match only_interface() {
            Some(name) => of(&name),
            None => Err(Failure::refused(format!("{error} (--from)"))),
        }),
    }
}

/// If there is only one besides loopback.
fn only_interface() -> Option<String> {
    let leads =
        |flags: InterfaceFlags| flags.contains(InterfaceFlags::IFF_UP) && !flags.contains(InterfaceFlags::IFF_LOOPBACK);
    let found = getifaddrs().ok()?.filter(|found| leads(found.flags));
    let mut names: Vec<String> = found.map(|found| found.interface_name).collect();
    names.sort_unstable();
    names.dedup();
    (names.len() == 1).then(|| names.remove(0))
}

fn own_address(interface: &Interface, from: Option<IpAddr>, peer: Option<IpAddr>) -> Outcome<IpAddr> {
    let or_from = |error| Failure::refused(format!("{error}, or give one with --from"));
    from.map_or_else(|| interface.own_address(peer).map_err(or_from), Ok)
}
