//! The kernel's table of neighbours.

use std::net::IpAddr;

use futures_util::TryStreamExt;
use rtnetlink::Handle;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};

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

    /// Those of an IP version.
    pub(super) async fn ask_neighbours(
        &self,
        handle: &Handle,
        family: AddressFamily,
    ) -> Result<Vec<(IpAddr, [u8; 6])>, NetError> {
        let mut table = handle.neighbours().get().set_address_family(family).execute();
        let mut known = Vec::new();
        while let Some(entry) = table.try_next().await.map_err(NetError::netlink)? {
            if entry.header.ifindex == self.index {
                known.extend(destination(&entry).zip(link_address(&entry)));
            }
        }
        Ok(known)
    }
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
