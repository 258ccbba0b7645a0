//! Devices on loopback addresses, without privileges: frames that arrive, and datagrams that are
//! not frames.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use spray_core::path::BalancerKind;
use spray_wire::{Body, Common, Data, Ev, Ports, Reset, emit};

use super::*;
use crate::driver::Idle;
use crate::endpoint::tests::content;
use crate::{EndpointConfig, EndpointEvent, Host, Peer};

/// Returns an address of the loopback interface that no other test uses, in this process or
/// another.
fn unused_address() -> IpAddr {
    static USED: AtomicU8 = AtomicU8::new(1);
    let [high, low] = (std::process::id() as u16).to_be_bytes();
    Ipv4Addr::new(127, 64 | high & 63, low, USED.fetch_add(1, Ordering::Relaxed)).into()
}

fn open(config: UdpConfig) -> UdpDevice {
    UdpDevice::open(&config).unwrap()
}

/// Writes a data frame with this entropy value and stages it for the next flush.
fn queue(device: &mut UdpDevice, to: &UdpDevice, ev: u16, ecn: Ecn, payload: &[u8]) {
    queue_to(device, (to.address, to.port), ev, ecn, payload);
}

fn queue_to(device: &mut UdpDevice, (dst, dst_port): (IpAddr, u16), ev: u16, ecn: Ecn, payload: &[u8]) {
    let id = device.allocate().unwrap();
    let envelope = Envelope {
        src_mac: [0; 6],
        dst_mac: [0; 6],
        src: device.address(),
        dst,
        src_port: Ev::new(ev).port(device.info().evs.into()),
        dst_port,
        dscp: 10,
        ecn,
        ttl: INITIAL_TTL,
    };
    let data = Data { payload_bytes: payload.len() as u16, message_bytes: payload.len() as u64, ..Data::default() };
    let space = device.frame_mut(&id);
    let len = emit(space, &envelope, &Common::default(), &Body::Data(data), payload).unwrap();
    device.transmit(id, len as u32).unwrap();
}

/// Receives all frames; returns the entropy value, ECN bits and payload of each.
fn drain(device: &mut UdpDevice, ports: Ports) -> Vec<(u16, Ecn, Vec<u8>)> {
    let (mut out, mut all) = (Vec::with_capacity(7), Vec::new());
    while device.receive(&mut out, 64).unwrap() > 0 {
        for Received { frame, len, .. } in out.drain(..) {
            let parsed = spray_wire::parse(device.frame(&frame, len), ports).unwrap().unwrap();
            let ev = parsed.envelope.src_port.ev(32).unwrap().index();
            all.push((ev, parsed.envelope.ecn, parsed.payload.to_vec()));
            device.release(frame);
        }
    }
    device.audit().unwrap();
    assert_eq!(device.frame_counts().free, device.frame_counts().total);
    all
}

#[test]
fn frames_arrive_once_with_their_port_and_mark() {
    for segments in [64, 1] {
        let (mut a, mut b) = (open(UdpConfig::new(unused_address())), open(UdpConfig::new(unused_address())));
        assert_eq!((a.info().evs, a.info().resolves_next_hop), (32, true));
        a.lanes.set_segments(segments);
        let mut sent = Vec::new();
        for number in 0..200_u16 {
            let ecn = [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::NotEct][usize::from(number / 50)];
            let payload = content(number.into(), if number % 5 == 4 { 300 } else { 1000 });
            queue(&mut a, &b, number / 10 % 32, ecn, &payload);
            sent.push((number / 10 % 32, ecn, payload.to_vec()));
        }
        assert_eq!(a.frame_counts().tx, 200);
        a.flush().unwrap();
        let mut received = drain(&mut b, Ports::DEFAULT);
        let key = |(ev, ecn, payload): &(u16, Ecn, Vec<u8>)| (*ev, *ecn as u8, payload.clone());
        sent.sort_by_key(key);
        received.sort_by_key(key);
        assert!(sent == received, "{} of {}", received.len(), sent.len());
        let stats = a.stats();
        assert_eq!((stats.tx_completed, stats.tx_dropped, b.stats().rx), (200, 0, 200));
        // Five consecutive frames, the last one shorter, are sent in one call.
        assert_eq!(stats.kicks, if segments == 1 { 200 } else { 40 });
        a.audit().unwrap();
    }
}

#[test]
fn ipv6_and_other_ports() {
    let ports = Ports::new(1024 + 64 * (std::process::id() % 900) as u16).unwrap();
    let mut alone = open(UdpConfig { ports, ..UdpConfig::new(Ipv6Addr::LOCALHOST.into()) });
    let (payload, itself) = (content(1, 700), (alone.address, alone.port));
    [3, 3, 31].into_iter().for_each(|ev| queue_to(&mut alone, itself, ev, Ecn::Ce, &payload));
    alone.flush().unwrap();
    let mut received = drain(&mut alone, ports);
    received.sort_by_key(|(ev, ..)| *ev);
    let expected = [3, 3, 31].map(|ev| (ev, Ecn::Ce, payload.to_vec()));
    assert!(received == expected);
}

#[test]
fn nothing_is_sent_to_other_ports() {
    let (mut a, b) = (open(UdpConfig::new(unused_address())), open(UdpConfig::new(unused_address())));
    queue(&mut a, &b, 32, Ecn::NotEct, &[]);
    let id = a.allocate().unwrap();
    a.transmit(id, 3).unwrap();
    assert_eq!((a.stats().tx_dropped, a.frame_counts().free), (2, a.frame_counts().total));
    a.audit().unwrap();
}

#[test]
fn a_full_queue_returns_frames() {
    let (mut a, b) = (open(UdpConfig::new(unused_address())), open(UdpConfig::new(unused_address())));
    (0..256).for_each(|_| queue(&mut a, &b, 5, Ecn::Ect0, &[7; 64]));
    let id = a.allocate().unwrap();
    let template = a.memory[..a.space].to_vec();
    a.frame_mut(&id).copy_from_slice(&template);
    let id = a.transmit(id, 42 + 64 + 64).unwrap_err();
    a.release(id);
    assert_eq!(a.stats().tx_ring_full, 1);
    a.flush().unwrap();
    assert_eq!((a.stats().tx_completed, a.frame_counts().tx), (256, 0));
}

#[test]
fn ports_in_use_are_an_error() {
    let address = unused_address();
    let taken = std::net::UdpSocket::bind((address, Ev::new(10).port(32).number())).unwrap();
    assert_eq!(open(UdpConfig::new(address)).info().evs, 10);
    drop(taken);
    let _first = std::net::UdpSocket::bind((address, Ev::new(0).port(32).number())).unwrap();
    let refused = UdpDevice::open(&UdpConfig::new(address)).unwrap_err().to_string();
    assert!(refused.contains("UDP port 49152") && refused.contains("ss -ulpn"), "{refused}");
    let address = unused_address();
    let _device = open(UdpConfig::new(address));
    let refused = UdpDevice::open(&UdpConfig::new(address)).unwrap_err().to_string();
    assert!(refused.contains("UDP port 61440") && refused.contains("other ports"), "{refused}");
    // With separate host ports, two devices share the ports that encode entropy values.
    assert_eq!(
        open(UdpConfig { ports: Ports::new(4992).unwrap(), evs: 1000, ..UdpConfig::new(address) }).info().evs,
        256
    );
    assert!(UdpDevice::open(&UdpConfig::new([203, 0, 113, 7].into())).is_err());
}

#[test]
fn missing_kernel_features_are_tolerated() {
    let error = io::Error::from_raw_os_error;
    let (mut a, mut b) = (open(UdpConfig::new(unused_address())), open(UdpConfig::new(unused_address())));
    assert!(a.lanes.give_way(&error(libc::EINVAL), 5) && !a.lanes.may_fragment());
    assert!(!a.lanes.give_way(&error(libc::EINVAL), 1) && !a.lanes.give_way(&error(libc::ENETUNREACH), 1));
    assert!(a.lanes.give_way(&error(libc::EMSGSIZE), 1) && a.has_fragmented());
    assert!(!a.lanes.give_way(&error(libc::EMSGSIZE), 1));
    (0..64).for_each(|_| assert!(!a.lanes.give_way(&error(libc::EIO), 1)));
    // It still sends, one frame per call, and still marks.
    (0..3).for_each(|_| queue(&mut a, &b, 1, Ecn::Ect0, &[1; 100]));
    a.flush().unwrap();
    assert_eq!((a.stats().kicks, drain(&mut b, Ports::DEFAULT).len()), (3, 3));
}

#[test]
fn frames_that_cannot_be_sent_do_not_affect_others() {
    let (mut a, mut b) = (open(UdpConfig::new(unused_address())), open(UdpConfig::new(unused_address())));
    // A packet from a loopback address cannot leave the machine.
    b.address = [203, 0, 113, 7].into();
    queue(&mut a, &b, 1, Ecn::Ect0, &[1; 100]);
    b.address = b.arrivals.address();
    queue(&mut a, &b, 1, Ecn::Ect0, &[2; 100]);
    a.flush().unwrap();
    assert_eq!((a.stats().tx_dropped, a.stats().tx_completed), (1, 1));
    assert_eq!(drain(&mut b, Ports::DEFAULT).len(), 1);
    // The port is closed: the kernel gets an ICMP error and reports it on our sockets.
    drop(b);
    let b = UdpDevice::open(&UdpConfig::new(unused_address())).unwrap();
    let closed_address = b.address();
    drop(b);
    let mut unreachable = open(UdpConfig::new(unused_address()));
    unreachable.address = closed_address;
    for _ in 0..3 {
        queue(&mut a, &unreachable, 1, Ecn::Ect0, &[1; 100]);
        a.flush().unwrap();
    }
    assert_eq!(a.stats().tx_completed, 4);
    assert!(!a.is_gone() && a.receive(&mut Vec::with_capacity(4), 4).is_ok());
}

/// Runs two hosts until `done` returns true for the second host's events, for at most 20 s.
fn run_both(
    a: &mut Host<UdpDevice>,
    b: &mut Host<UdpDevice>,
    mut done: impl FnMut(&mut Host<UdpDevice>, EndpointEvent) -> bool,
) {
    let mut rounds = 0;
    let ran = a.run(Idle::Spin, &[], |_, _| {
        b.poll();
        rounds += 1;
        assert!(rounds < 20_000_000, "timed out");
        while let Some(event) = b.endpoint.poll_event() {
            if done(b, event) {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    ran.unwrap();
}

#[test]
fn megabytes_arrive_over_all_sockets() {
    let host = || {
        let config = UdpConfig { mtu: 1500, ..UdpConfig::new(unused_address()) };
        let endpoint =
            config.endpoint().unwrap().with_balancer(BalancerKind::Reps).with_give_up(Duration::from_secs(20));
        Host::open_udp_with(config, endpoint).unwrap()
    };
    let (mut a, mut b) = (host(), host());
    assert_eq!(a.endpoint.config().flow.path.evs, 32);
    let (sent, to) = (content(3, 8 << 20), Peer::at(b.endpoint.config().address));
    let (now, _) = a.poll();
    let connection = a.endpoint.connect(now, to, None).unwrap();
    a.endpoint.send(connection, sent.clone()).unwrap();
    run_both(&mut a, &mut b, |_, event| match event {
        EndpointEvent::Received { data, .. } => {
            assert!(data == sent);
            true
        }
        EndpointEvent::Failed { error, .. } => panic!("{error}"),
        _ => false,
    });
    let stats = a.endpoint.device().stats();
    assert!(stats.kicks < stats.tx, "{stats:?}: frames are batched");
    for host in [a, b] {
        let stats = host.endpoint.stats();
        assert_eq!((stats.malformed, stats.checksum, stats.device_errors), (0, 0, 0));
        host.endpoint.into_device().audit().unwrap();
    }
}

#[test]
fn datagrams_of_unknown_peers_change_nothing() {
    let (mut a, mut b) = (Host::open_udp(unused_address()).unwrap(), Host::open_udp(unused_address()).unwrap());
    let to = b.endpoint.config().address;
    let other_socket = std::net::UdpSocket::bind((unused_address(), 0)).unwrap();
    let spray = |payload: &[u8]| drop(other_socket.send_to(payload, (to, Ports::DEFAULT.first())));
    (0..300).for_each(|bytes| spray(&content(bytes, bytes)));
    [9_000, 9_175, 30_000, 65_507].into_iter().for_each(|bytes| spray(&content(bytes, bytes)));
    // A valid frame of an unknown peer, for an unknown connection.
    let envelope = Envelope {
        src_mac: [0; 6],
        dst_mac: [0; 6],
        src: other_socket.local_addr().unwrap().ip(),
        dst: to,
        src_port: EvPort::new(other_socket.local_addr().unwrap().port()),
        dst_port: Ports::DEFAULT.first(),
        dscp: 0,
        ecn: Ecn::NotEct,
        ttl: INITIAL_TTL,
    };
    let mut frame = [0; 200];
    let data = Body::Data(Data::default());
    let len =
        emit(&mut frame, &envelope, &Common { connection: 77, cookie: 5, ..Common::default() }, &data, &[]).unwrap();
    spray(&frame[udp_payload_offset(false)..len]);
    let mut reset = [0; 200];
    let len = emit(
        &mut reset,
        &envelope,
        &Common { connection: 77, cookie: 5, ..Common::default() },
        &Body::Reset(Reset::default()),
        &[],
    );
    spray(&reset[udp_payload_offset(false)..len.unwrap()]);
    let (now, _) = a.poll();
    let connection = a.endpoint.connect(now, Peer::at(to), None).unwrap();
    a.endpoint.send(connection, content(1, 100_000)).unwrap();
    run_both(&mut a, &mut b, |_, event| matches!(event, EndpointEvent::Received { .. }));
    let stats = b.endpoint.stats();
    assert!(stats.malformed >= 200 && stats.unknown_connection >= 1, "{stats:?}");
    // Two datagrams do not fit a frame. The sender's port is not an entropy value here, so the
    // answer goes to one that is.
    //= docs/specs/endpoint.md#END-49 ports of answers
    let stats = b.endpoint.device().stats();
    assert!(stats.rx_dropped >= 2 && stats.tx_dropped == 0, "{stats:?}");
    b.endpoint.into_device().audit().unwrap();
}

#[cfg(feature = "tokio")]
#[test]
fn handles_need_only_an_address() {
    use crate::aio::Endpoint;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (ours, theirs) = (unused_address(), unused_address());
    runtime.block_on(async {
        let (client, server) = (Endpoint::open_udp(ours).unwrap(), Endpoint::open_udp(theirs).unwrap());
        let connection = client.connect(theirs).await.unwrap();
        let mut accepted = server.accept().await.unwrap();
        let (sent, received) = tokio::join!(connection.send(content(1, 3_000_000)), accepted.recv());
        sent.unwrap();
        assert!(received.unwrap().unwrap().data == content(1, 3_000_000));
        assert_eq!(accepted.peer(), Peer::at(ours));
        drop((connection, accepted));
        client.close().await;
    });
}

#[test]
fn an_address_and_an_mtu_are_found() {
    let towards = UdpConfig::for_peer(Ipv4Addr::LOCALHOST.into()).unwrap();
    assert_eq!((towards.address, towards.mtu), (Ipv4Addr::LOCALHOST.into(), 9000));
    assert_eq!(UdpConfig::new(Ipv4Addr::LOCALHOST.into()).mtu, 1500);
    let config: EndpointConfig = towards.endpoint().unwrap();
    assert_eq!(config.flow.packet_bytes(), 9014);
}
