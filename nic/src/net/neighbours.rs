//! The kernel's table of neighbours.

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

    /// The Ethernet address of a neighbour, if the kernel knows it, and whether its entry is permanent.
    pub(super) async fn ask_neighbour(
        &self,
        handle: &Handle,
        neighbour: IpAddr,
    ) -> Result<Option<([u8; 6], bool)>, NetError> {
        let entries = self.entries(handle, family(neighbour)).await?;
        let mut own = entries.iter().filter(|entry| destination(entry) == Some(neighbour));
        Ok(own.find_map(|entry| Some((link_address(entry)?, entry.header.state == NeighbourState::Permanent))))
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

/// The permanent entries by which frames go: no answer of the neighbour changes them.
#[derive(Clone, Debug, Default)]
pub struct PermanentNeighbours(Arc<Mutex<BTreeMap<IpAddr, [u8; 6]>>>);

impl PermanentNeighbours {
    /// Each neighbour, with its Ethernet address by that entry.
    #[must_use]
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

    /// A thread that panicked has left them as they were.
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
