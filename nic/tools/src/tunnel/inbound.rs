//! Connections that other machines have opened, and their packets.

use std::collections::HashMap;

use bytes::Bytes;
use spray_nic::device::Device;
use spray_nic::{ConnectionId, Endpoint};

use super::lanes::Lanes;
use super::link::Gateway;
use super::packet;
use super::remote::behind;

/// Also limits connections from one machine to another.
//= docs/specs/endpoint.md#END-43 at most eight times
pub const THREADS: usize = 8;

#[derive(Debug)]
pub struct Inbound {
    connections: HashMap<ConnectionId, From>,
    begun: u64,
    most: usize,
}

#[derive(Debug)]
struct From {
    at: usize,
    begun: u64,
    lanes: Lanes,
}

impl Inbound {
    pub fn new(threads: usize) -> Self {
        Self { connections: HashMap::new(), begun: 0, most: Self::most(threads) }
    }

    /// From one machine: its own, and as many left behind by its predecessor.
    //= docs/specs/endpoint.md#END-43 twice its share
    pub fn most(threads: usize) -> usize {
        2 * THREADS.div_ceil(threads)
    }

    /// Returns the oldest one of machine `at` if it has to be closed.
    pub fn accept(&mut self, connection: ConnectionId, at: usize) -> Option<ConnectionId> {
        self.begun += 1;
        self.connections.insert(connection, From { at, begun: self.begun, lanes: Lanes::new() });
        let of_it = || self.connections.iter().filter(|(_, from)| from.at == at);
        let oldest = of_it().min_by_key(|(_, from)| from.begun).map(|(&id, _)| id);
        let gone = oldest.filter(|_| of_it().count() > self.most);
        gone.inspect(|id| self.end(*id))
    }

    pub fn end(&mut self, connection: ConnectionId) {
        self.connections.remove(&connection);
    }

    /// Passes packets in order to `out`, with lane and `virtio_net_hdr`.
    pub fn receive<D: Device>(
        &mut self,
        endpoint: &mut Endpoint<D>,
        links: &mut [Gateway],
        connection: ConnectionId,
        message: Bytes,
        mut out: impl FnMut(u16, &[u8]) -> bool,
    ) {
        let Some(From { at, lanes, .. }) = self.connections.get_mut(&connection) else { return };
        let (at, mut received, mut refused) = (*at, 0, 0);
        let is_behind = |source| behind(links.iter().map(|link| &link.remote), source) == Some(at);
        //= docs/specs/endpoint.md#END-42 its source is behind that peer
        // A packet with a foreign source is dropped, but its number counts.
        let taken = packet::packets(message).try_for_each(|next| {
            let (place, packet, flow) = next?;
            let packet = if is_behind(flow.source) { packet } else { Bytes::new() };
            let out = |packet: Bytes| {
                let is_taken = !packet.is_empty() && out(place.lane, &packet);
                *(if is_taken { &mut received } else { &mut refused }) += 1;
            };
            lanes.take(place, packet, out)
        });
        if taken.is_none() {
            refused += 1;
            endpoint.abort(connection);
            self.end(connection);
        }
        let counted = &mut links[at].counted;
        counted.received += received;
        counted.refused += refused;
    }
}

#[cfg(test)]
mod tests {
    use spray_nic::device::{MemoryConfig, MemoryNetwork};
    use spray_nic::net::Tun;
    use spray_nic::{EndpointConfig, Peer, Time};

    use super::super::packet::{Packer, Place};
    use super::*;

    #[test]
    //= docs/specs/endpoint.md#END-43 the oldest is closed
    fn the_oldest_of_too_many_connections_of_a_machine_is_closed() {
        let config = EndpointConfig::real([10, 0, 0, 1].into(), [2; 6], 1500).unwrap();
        let config = EndpointConfig { max_connections: 1000, ..config };
        let network = MemoryNetwork::new(MemoryConfig::default());
        let mut endpoint = Endpoint::new(network.attach([2; 6]), config).unwrap();
        let mut begin = |machine| {
            let peer = Peer { address: [10, 0, 0, machine].into(), mac: [4; 6] };
            endpoint.connect(Time::ZERO, peer, None).unwrap()
        };
        for (threads, most) in [(1, 16), (2, 8), (3, 6), (8, 2)] {
            let (mut inbound, mut begun) = (Inbound::new(threads), Vec::new());
            for number in 0..most + 4 {
                begun.push(begin(2));
                let closed = inbound.accept(begun[number], 0);
                assert_eq!(closed, number.checked_sub(most).map(|oldest| begun[oldest]), "{threads} threads");
                if number < most {
                    assert_eq!(inbound.accept(begin(3), 1), None, "another machine's connections stay");
                }
            }
            assert_eq!(inbound.connections.len(), 2 * most);
        }
    }

    /// One machine's network is within the other's: packets from it are accepted from that machine
    /// only.
    #[test]
    //= docs/specs/endpoint.md#END-42 its source is behind that peer
    fn packets_are_accepted_only_from_the_machine_of_their_source() {
        let config = EndpointConfig::real([10, 0, 0, 1].into(), [2; 6], 1500).unwrap();
        let mut endpoint = Endpoint::new(MemoryNetwork::default().attach([2; 6]), config).unwrap();
        let mut links = ["10.0.0.2=10.9.0.0/16", "10.0.0.3=10.9.5.0/24"].map(|it| Gateway::new(it.parse().unwrap()));
        let mut inbound = Inbound::new(1);
        let connections = [2, 3].map(|machine| {
            let peer = Peer { address: [10, 0, 0, machine].into(), mac: [4; 6] };
            let connection = endpoint.connect(Time::ZERO, peer, None).unwrap();
            inbound.accept(connection, usize::from(machine - 2));
            connection
        });
        for (number, (at, source, is_taken)) in
            [(0, [10, 9, 1, 1], true), (0, [10, 9, 5, 1], false), (1, [10, 9, 5, 1], true), (1, [10, 9, 1, 1], false)]
                .into_iter()
                .enumerate()
        {
            let mut packet = [0; Tun::HEADER + 100];
            packet[Tun::HEADER] = 0x45;
            packet[Tun::HEADER + 12..Tun::HEADER + 16].copy_from_slice(&source);
            let mut packer = Packer::default();
            packer.add(Place { lane: 7, number: (number % 2) as u32 }, &packet);
            let mut taken = 0;
            let out = |_, _: &[u8]| {
                taken += 1;
                true
            };
            inbound.receive(&mut endpoint, &mut links, connections[at], packer.take().unwrap(), out);
            assert_eq!(taken == 1, is_taken, "{source:?} of machine {at}");
        }
        assert_eq!(links.map(|link| (link.counted.received, link.counted.refused)), [(1, 1); 2]);
    }
}
