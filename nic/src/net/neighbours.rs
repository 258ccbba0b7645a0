//! The kernel's table of neighbours.

use std::future::ready;
use std::net::IpAddr;

use futures_util::TryStreamExt;
use rtnetlink::Handle;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};

use super::{Interface, NetError, ask};

impl Interface {
    /// The neighbours that the kernel knows there, with their Ethernet addresses.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn neighbours(&self) -> Result<Vec<(IpAddr, [u8; 6])>, NetError> {
        ask(async |handle| {
            let mut known = self.ask_neighbours(&handle, AddressFamily::Inet).await?;
            known.extend(self.ask_neighbours(&handle, AddressFamily::Inet6).await?);
            Ok(known)
        })
    }

    /// Asks for the neighbours of an IP version.
    pub(super) async fn ask_neighbours(
        &self,
        handle: &Handle,
        family: AddressFamily,
    ) -> Result<Vec<(IpAddr, [u8; 6])>, NetError> {
        let entries = self.entries(handle, family).await?;
        Ok(entries.iter().filter_map(|entry| destination(entry).zip(link_address(entry))).collect())
    }

    /// Has the kernel forget what it has learned of a neighbour and not confirmed since, so that it asks anew: the Ethernet address may be
    /// another one by now, and the kernel would check it 8 s after the first packet. Who may not change the table goes on with
    /// what it says.
    pub(super) async fn forget_stale(&self, handle: &Handle, neighbour: IpAddr) -> Result<(), NetError> {
        for entry in self.entries(handle, family(neighbour)).await? {
            let is_stale = entry.header.state == NeighbourState::Stale;
            // Others, such as routing daemons, put entries that no asking would bring back.
            let was_put = entry.header.flags.contains(NeighbourFlags::ExtLearned);
            if destination(&entry) == Some(neighbour) && is_stale && !was_put {
                let _ = handle.neighbours().del(entry).execute().await;
            }
        }
        Ok(())
    }

    async fn entries(&self, handle: &Handle, family: AddressFamily) -> Result<Vec<NeighbourMessage>, NetError> {
        let table = handle.neighbours().get().set_address_family(family).execute();
        let own = table.try_filter(|entry| ready(entry.header.ifindex == self.index));
        own.try_collect().await.map_err(NetError::netlink)
    }
}

/// The family of an address.
pub(super) fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn destination(entry: &NeighbourMessage) -> Option<IpAddr> {
    entry.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(v4)) => Some(IpAddr::V4(*v4)),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(v6)) => Some(IpAddr::V6(*v6)),
        _ => None,
    })
}

fn link_address(entry: &NeighbourMessage) -> Option<[u8; 6]> {
    entry.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(bytes) => bytes.as_slice().try_into().ok(),
        _ => None,
    })
}
