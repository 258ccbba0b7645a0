//! Asynchronous handles on an in-memory network in real time.

mod streams;

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;

use super::*;
use crate::{
    clock::{Clock, MonotonicClock},
    device::{Impairments, LinkState, MemoryConfig, MemoryNetwork},
    endpoint::{
        ConnectionError, HandshakeConfig, SendError,
        tests::{US, address, content, flow, mac, peer},
    },
};

/// A network in real time.
struct RunningNetwork {
    network: MemoryNetwork,
    stop: Arc<AtomicBool>,
    give_up: Duration,
}

impl RunningNetwork {
    /// Creates a network whose give-up time tolerates a machine that stalls for a second.
    fn new(impairments: Impairments) -> Self {
        Self::giving_up(impairments, Duration::from_secs(20))
    }

    fn giving_up(impairments: Impairments, give_up: Duration) -> Self {
        let network = MemoryNetwork::new(MemoryConfig { impairments, frame_size: 2048, ..MemoryConfig::default() });
        let stop = Arc::new(AtomicBool::new(false));
        let (clock, thread_network, thread_stop) = (MonotonicClock::new(), network.clone(), Arc::clone(&stop));
        std::thread::spawn(move || {
            while !thread_stop.load(Ordering::Relaxed) {
                thread_network.advance(clock.now());
                std::thread::sleep(Duration::from_micros(20));
            }
        });
        Self { network, stop, give_up }
    }

    fn spawn(&self, host: usize, accept: bool) -> Endpoint {
        let mut flow = crate::endpoint::tests::slow(flow(false));
        flow.give_up_ps = crate::real::ps(self.give_up);
        let config = EndpointConfig {
            accept,
            handshake: HandshakeConfig::within(self.give_up),
            ..EndpointConfig::new(address(host, false), mac(host), flow)
        };
        Endpoint::spawn(self.network.attach(mac(host)), config).unwrap()
    }
}

impl Drop for RunningNetwork {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), future).await.expect("in time") })
}

#[test]
fn many_messages_in_both_directions_over_a_lossy_network() {
    let rough = Impairments {
        delay_ps: 20 * US,
        jitter_ps: 50 * US,
        loss_ppm: 50_000,
        duplicate_ppm: 50_000,
        corrupt_ppm: 20_000,
        ..Impairments::default()
    };
    let network = RunningNetwork::new(rough);
    block_on(async {
        let (client, server) = (network.spawn(0, false), network.spawn(1, true));
        let (ours, theirs) = tokio::join!(client.connect(peer(1, false)), server.accept());
        let (mut ours, mut theirs) = (ours.unwrap(), theirs.unwrap());
        assert_eq!(theirs.peer().address, address(0, false));
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for seed in 0..20 {
            let (sent_up, sent_down) =
                tokio::join!(ours.send(content(seed, 20_000)), theirs.send(content(seed + 100, 10_000)));
            sent_up.unwrap();
            sent_down.unwrap();
            up.push(theirs.recv().await.unwrap().unwrap());
            down.push(ours.recv().await.unwrap().unwrap());
        }
        assert!(up.iter().all(|message| message.data == content(message.number as usize, 20_000)));
        assert!(down.iter().all(|message| message.data == content(message.number as usize + 100, 10_000)));
        assert!(ours.stats().await.unwrap().unwrap().sender.retransmits > 0);
        assert!(client.stats().await.unwrap().sent[spray_wire::Kind::Data] >= 400);
        ours.close().await.unwrap();
        assert!(theirs.recv().await.unwrap().is_none());
        assert!(matches!(theirs.send(content(0, 1)).await, Err(Error::Closed)));
    });
}

#[test]
fn concurrent_sends_beyond_every_queue() {
    let network = RunningNetwork::new(Impairments::default());
    block_on(async {
        let (client, server) = (network.spawn(0, false), network.spawn(1, true));
        let (ours, theirs) = tokio::join!(client.connect(peer(1, false)), server.accept());
        let (ours, mut theirs) = (Arc::new(ours.unwrap()), theirs.unwrap());
        let local = tokio::task::LocalSet::new();
        for seed in 0..3000 {
            let ours = Arc::clone(&ours);
            local.spawn_local(async move { ours.send(content(seed, 500)).await.unwrap() });
        }
        let receive = async {
            let mut numbers = Vec::new();
            for _ in 0..3000 {
                numbers.push(theirs.recv().await.unwrap().unwrap().number);
            }
            numbers.sort_unstable();
            assert!(numbers.iter().copied().eq(0..3000));
        };
        tokio::join!(local, receive);
    });
}

#[test]
fn a_removed_interface_ends_all_waits() {
    let network = RunningNetwork::new(Impairments::delay(US));
    block_on(async {
        let (client, server) = (network.spawn(0, false), network.spawn(1, true));
        let (ours, theirs) = tokio::join!(client.connect(peer(1, false)), server.accept());
        let (ours, mut theirs) = (ours.unwrap(), theirs.unwrap());
        // The server, on the second port, waits for a message and for a new connection.
        network.network.set_link(1, LinkState::Removed);
        let (message, client_error) = tokio::join!(theirs.recv(), server.accept());
        assert!(matches!(message, Err(Error::Connection(ConnectionError::InterfaceGone))));
        assert!(matches!(client_error, Err(Error::Stopped)));
        assert!(matches!(server.connect(peer(0, false)).await, Err(Error::Stopped)));
        drop(ours);
    });
}

#[test]
fn errors_reach_the_handles() {
    // On a busy machine a thread may be delayed by several tenths of a second.
    let network = RunningNetwork::giving_up(Impairments::delay(US), Duration::from_secs(2));
    block_on(async {
        let (client, server) = (network.spawn(0, true), network.spawn(1, false));
        let refused = client.connect(peer(1, false)).await;
        assert!(matches!(refused, Err(Error::Connection(ConnectionError::Refused))));
        let unreachable = client.connect(peer(7, false)).await;
        assert!(matches!(unreachable, Err(Error::Connection(ConnectionError::ConnectTimeout))));
        let unknown = client.connect(address(1, false)).await;
        assert!(matches!(unknown, Err(Error::NoRoutes(refused_address)) if refused_address == address(1, false)));
        let (theirs, ours) = tokio::join!(server.connect(peer(0, false)), client.accept());
        let (theirs, mut ours) = (theirs.unwrap(), ours.unwrap());
        let too_long = ours.send(vec![0; 65 << 20].into()).await;
        assert!(matches!(too_long, Err(Error::Send(SendError::Size { .. }))));
        network.network.set_impairments(Impairments { loss_ppm: 1_000_000, ..Impairments::default() });
        let unacknowledged = ours.send(content(1, 10)).await;
        assert!(matches!(unacknowledged, Err(Error::Connection(ConnectionError::PeerUnresponsive))));
        assert!(matches!(ours.recv().await, Err(Error::Connection(ConnectionError::PeerUnresponsive))));
        drop(theirs);
    });
}

/// Handles are dropped while messages wait for space in the endpoint and for delivery.
#[test]
fn a_closed_endpoint_has_delivered_everything() {
    let network = RunningNetwork::new(Impairments::delay(100 * US));
    block_on(async {
        let (client, server) = (network.spawn(0, false), network.spawn(1, true));
        let (ours, theirs) = tokio::join!(client.connect(peer(1, false)), server.accept());
        let (half, _) = ours.unwrap().split();
        let unsent: Vec<_> = (0..1100).map(|seed| half.submit(content(seed, 500))).collect();
        drop(half);
        let receive = async {
            let (mut theirs, mut received) = (theirs.unwrap(), 0);
            while theirs.recv().await.unwrap().is_some() {
                received += 1;
            }
            received
        };
        assert_eq!(tokio::join!(client.close(), receive).1, 1100);
        for delivered in unsent {
            delivered.await.unwrap().unwrap();
        }
    });
}

/// Also connections with live handles: everything sent arrives, then the handles report the close.
#[test]
fn closing_an_endpoint_closes_connections_in_use() {
    let network = RunningNetwork::new(Impairments::delay(100 * US));
    block_on(async {
        let (client, server) = (network.spawn(0, false), network.spawn(1, true));
        let (ours, theirs) = tokio::join!(client.connect(peer(1, false)), server.accept());
        let (mut ours, mut theirs) = (ours.unwrap(), theirs.unwrap());
        let (halves, _unused) = tokio::join!(client.connect(peer(1, false)), server.accept());
        let (sending, mut receiving) = halves.unwrap().split();
        let unsent: Vec<_> = (0..100).map(|seed| sending.submit(content(seed, 3000))).collect();
        client.close().await;
        for delivered in unsent {
            delivered.await.unwrap().unwrap();
        }
        assert!(matches!(ours.send(content(0, 1)).await, Err(Error::Closed | Error::Stopped)));
        assert!(ours.recv().await.unwrap().is_none() && receiving.recv().await.unwrap().is_none());
        assert!(theirs.recv().await.unwrap().is_none());
        server.close().await;
    });
}

#[test]
fn shards_share_the_connections_of_their_host() {
    const SHARDS: usize = 2;
    let network = MemoryNetwork::new(MemoryConfig {
        queues: SHARDS as u32,
        steering: crate::device::Steering::Hash,
        ..MemoryConfig::default()
    });
    let host = |number| {
        let config = EndpointConfig::real(address(number, false), mac(number), 3498).unwrap();
        let shards = network.attach_shards(mac(number)).unwrap().into_iter().zip(crate::Shard::all(SHARDS));
        let hosts =
            shards.map(|(device, shard)| Host::new(device, EndpointConfig { shard, ..config.clone() }).unwrap());
        Endpoint::start_all(hosts.collect(), DriverOptions::default()).unwrap()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (client, server) = (host(0), host(1));
        let mut pairs = Vec::new();
        for _ in 0..2 * SHARDS {
            let ours = client.connect(server.local()).await.unwrap();
            pairs.push((ours, server.accept().await.unwrap()));
        }
        for (number, (ours, theirs)) in pairs.iter_mut().enumerate() {
            let (sent, received) = tokio::join!(ours.send(content(number, 100_000)), theirs.recv());
            sent.unwrap();
            assert_eq!(received.unwrap().unwrap().data, content(number, 100_000));
        }
        let stats = server.stats().await.unwrap();
        assert_eq!((stats.received[spray_wire::Kind::Accept], stats.unknown_connection), (0, 0));
        assert!(stats.received[spray_wire::Kind::Data] >= 2 * SHARDS as u64 * 29, "{stats:?}");
        drop(pairs);
        tokio::join!(client.close(), server.close());
    });
}
