//! The kernel's neighbour table.

use std::collections::BTreeMap;
use std::future::ready;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::TryStreamExt;
use rtnetlink::Handle;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};

use super::{Interface, NetError, netlink};

impl Interface {
    /// Returns the kernel's neighbour entries on this interface that have Ethernet addresses.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn neighbours(&self) -> Result<Vec<(IpAddr, [u8; 6])>, NetError> {
        netlink(async |handle| {
            let mut known = self.query_neighbours(&handle, AddressFamily::Inet).await?;
            known.extend(self.query_neighbours(&handle, AddressFamily::Inet6).await?);
            Ok(known)
        })
    }

    pub(super) async fn query_neighbours(
        &self,
        handle: &Handle,
        family: AddressFamily,
    ) -> Result<Vec<(IpAddr, [u8; 6])>, NetError> {
        let entries = self.entries(handle, family).await?;
        Ok(entries.iter().filter_map(|entry| destination(entry).zip(link_address(entry))).collect())
    }

    /// Returns a neighbour's Ethernet address, if known, and whether its entry is permanent.
    pub(super) async fn query_neighbour(
        &self,
        handle: &Handle,
        neighbour: IpAddr,
    ) -> Result<Option<([u8; 6], bool)>, NetError> {
        let entries = self.entries(handle, family(neighbour)).await?;
        let mut own = entries.iter().filter(|entry| destination(entry) == Some(neighbour));
        Ok(own.find_map(|entry| Some((link_address(entry)?, entry.header.state == NeighbourState::Permanent))))
    }

    /// Deletes a neighbour entry that is stale, so that the kernel resolves it again: the kernel
    /// itself would verify it 8 s after the first packet. Without permission the entry stays.
    pub(super) async fn delete_stale(&self, handle: &Handle, neighbour: IpAddr) -> Result<(), NetError> {
        for entry in self.entries(handle, family(neighbour)).await? {
            let is_stale = entry.header.state == NeighbourState::Stale;
            // Entries of routing daemons cannot be resolved again.
            let is_external = entry.header.flags.contains(NeighbourFlags::ExtLearned);
            if destination(&entry) == Some(neighbour) && is_stale && !is_external {
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

/// The permanent neighbour entries in use: no answer of a neighbour overrides them.
#[derive(Clone, Debug, Default)]
pub struct PermanentNeighbours(Arc<Mutex<BTreeMap<IpAddr, [u8; 6]>>>);

impl PermanentNeighbours {
    /// Returns each neighbour's IP and Ethernet address.
    pub fn all(&self) -> Vec<(IpAddr, [u8; 6])> {
        self.entries().iter().map(|(neighbour, mac)| (*neighbour, *mac)).collect()
    }

    pub(super) fn set(&self, neighbour: IpAddr, mac: Option<[u8; 6]>) {
        let mut entries = self.entries();
        match mac {
            Some(mac) => entries.insert(neighbour, mac),
            None => entries.remove(&neighbour),
        };
    }

    // A thread that panicked has left the entries intact.
    fn entries(&self) -> MutexGuard<'_, BTreeMap<IpAddr, [u8; 6]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn family(address: IpAddr) -> AddressFamily {
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
