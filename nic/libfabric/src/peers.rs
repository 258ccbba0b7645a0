//! Peers of an address vector.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::abi::{FI_ADDR_NOTAVAIL, fi_addr_t};

#[derive(Debug, Default)]
pub struct Peers(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    peers: Vec<Option<SocketAddr>>,
    /// The first index of each host: an endpoint is identified by its address, without a port.
    numbers: HashMap<IpAddr, fi_addr_t>,
}

impl Peers {
    pub fn insert(&self, peer: SocketAddr) -> fi_addr_t {
        let mut table = self.lock();
        let number = table.peers.len() as fi_addr_t;
        table.peers.push(Some(peer));
        table.numbers.entry(peer.ip()).or_insert(number);
        number
    }

    /// Removes a peer; its index is not reused. Returns whether there was one.
    pub fn remove(&self, number: fi_addr_t) -> bool {
        let mut table = self.lock();
        let Some(peer) = table.peers.get_mut(number as usize).and_then(Option::take) else { return false };
        if table.numbers.get(&peer.ip()) == Some(&number) {
            table.numbers.remove(&peer.ip());
            let next = table.peers.iter().position(|other| other.is_some_and(|other| other.ip() == peer.ip()));
            next.map(|next| table.numbers.insert(peer.ip(), next as fi_addr_t));
        }
        true
    }

    pub fn get(&self, number: fi_addr_t) -> Option<SocketAddr> {
        *self.lock().peers.get(usize::try_from(number).ok()?)?
    }

    /// Returns the index of a host, or [`FI_ADDR_NOTAVAIL`].
    pub fn number(&self, host: IpAddr) -> fi_addr_t {
        self.lock().numbers.get(&host).copied().unwrap_or(FI_ADDR_NOTAVAIL)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // A panic cannot leave the table inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_addresses_share_the_first_number() {
        let peers = Peers::default();
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let entries = ["10.0.0.1:1", "10.0.0.2:1", "10.0.0.1:2", "[fd00::1]:1"].map(address);
        assert_eq!(entries.map(|entry| peers.insert(entry)), [0, 1, 2, 3]);
        assert_eq!(entries.map(|entry| peers.number(entry.ip())), [0, 1, 0, 3]);
        assert!(peers.remove(0) && !peers.remove(0) && !peers.remove(9) && !peers.remove(FI_ADDR_NOTAVAIL));
        assert_eq!((peers.get(0), peers.get(2)), (None, Some(entries[2])));
        assert_eq!(peers.number(entries[0].ip()), 2);
        assert!(peers.remove(2));
        assert_eq!(peers.number(entries[0].ip()), FI_ADDR_NOTAVAIL);
        assert_eq!(peers.insert(entries[0]), 4);
    }
}
