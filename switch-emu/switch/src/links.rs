//! veth pairs, addresses and neighbours, through netlink.

use std::future::Future;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

use futures_util::TryStreamExt;
use rtnetlink::packet_route::address::AddressHeaderFlags;
use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkAttribute};
use rtnetlink::packet_route::neighbour::NeighbourState;
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec, LinkVeth, new_connection};

use spray_pipeline::shim::SHIM_BYTES;

use crate::error::RunError;
use crate::netns::Namespace;

/// MTU of every link: the maximum for native XDP on veth, one page.
pub const MTU: u32 = spray_fabric::MAX_IP_BYTES + SHIM_BYTES as u32;

/// One end of a veth pair to create.
pub struct End<'a> {
    /// The namespace of the interface.
    pub namespace: &'a Namespace,
    /// The name of the interface.
    pub name: String,
    /// The MAC address.
    pub mac: [u8; 6],
}

/// Runs `work` with a netlink connection of the namespace.
pub fn in_namespace<T, F: Future<Output = Result<T, RunError>>>(
    namespace: &Namespace,
    work: impl FnOnce(Handle) -> F,
) -> Result<T, RunError> {
    let inside = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let runtime = runtime.map_err(|error| RunError::io("starting a runtime for netlink", error))?;
        runtime.block_on(async {
            let (connection, handle, _) =
                new_connection().map_err(|error| RunError::io("opening a netlink socket", error))?;
            let task = tokio::spawn(connection);
            let result = work(handle).await;
            task.abort();
            result
        })
    };
    namespace.run(inside)?
}

fn failed(name: &str, doing: &'static str) -> impl Fn(rtnetlink::Error) -> RunError {
    move |source| RunError::Link { name: name.to_string(), doing, source: Box::new(source) }
}

/// Creates a veth pair, down, with `queues` queues each way. Runs in `near`'s namespace.
pub async fn add_pair(handle: &Handle, near: &End<'_>, far: &End<'_>, queues: u32) -> Result<(), RunError> {
    let peer = LinkMessageBuilder::<LinkUnspec>::new().name(far.name.clone());
    let peer = configure(peer, far.mac, queues).setns_by_fd(far.namespace.file().as_raw_fd()).build();
    let pair = configure(LinkMessageBuilder::<LinkVeth>::new(&near.name, &far.name), near.mac, queues)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(peer)))
        .build();
    handle.link().add(pair).execute().await.map_err(failed(&near.name, "making a veth pair"))
}

fn configure<T>(end: LinkMessageBuilder<T>, mac: [u8; 6], queues: u32) -> LinkMessageBuilder<T> {
    end.address(mac.to_vec())
        .mtu(MTU)
        .append_extra_attribute(LinkAttribute::NumTxQueues(queues))
        .append_extra_attribute(LinkAttribute::NumRxQueues(queues))
}

/// Returns the index of interface `name`.
pub async fn index(handle: &Handle, name: &str) -> Result<u32, RunError> {
    let mut links = handle.link().get().match_name(name.to_string()).execute();
    let link = links.try_next().await.map_err(failed(name, "looking it up"))?;
    link.map(|link| link.header.index).ok_or_else(|| failed(name, "looking it up")(rtnetlink::Error::RequestFailed))
}

/// Brings interface `index` up, without multicast, so that the kernel itself sends nothing.
pub async fn up(handle: &Handle, name: &str, index: u32) -> Result<(), RunError> {
    let link = LinkUnspec::new_with_index(index).multicast(false).up().build();
    handle.link().set(link).execute().await.map_err(failed(name, "bringing it up"))
}

/// Disables address resolution on an interface: the program that forwards writes the MACs.
pub async fn without_neighbours(handle: &Handle, name: &str, index: u32) -> Result<(), RunError> {
    let link = LinkUnspec::new_with_index(index).arp(false).build();
    handle.link().set(link).execute().await.map_err(failed(name, "switching address resolution off"))
}

/// Adds an address to interface `index`.
pub async fn add_address(handle: &Handle, index: u32, address: IpAddr) -> Result<(), RunError> {
    let prefix = if address.is_ipv4() { 8 } else { 64 };
    let mut request = handle.address().add(index, address, prefix);
    if address.is_ipv6() {
        // Usable at once, without duplicate address detection.
        request.message_mut().header.flags |= AddressHeaderFlags::Nodad;
    }
    request.execute().await.map_err(failed("eth0", "adding an address"))
}

/// Adds a permanent neighbour to interface `index`.
pub async fn add_neighbour(handle: &Handle, index: u32, address: IpAddr, mac: [u8; 6]) -> Result<(), RunError> {
    let request = handle.neighbours().add(index, address).state(NeighbourState::Permanent).link_layer_address(&mac);
    request.execute().await.map_err(failed("eth0", "adding a neighbour"))
}
