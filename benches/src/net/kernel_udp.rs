//! Kernel UDP with `sendmmsg` and `recvmmsg`: what an application gets without AF_XDP.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use socket2::SockRef;
use spray_nic::driver::DriverOptions;

use super::measure::{Arrivals, PATIENCE, Throughput, is_busy, measure, now};
use super::mmsg::Batch;

/// Datagrams per system call; beyond 64 nothing is gained.
const BATCH: usize = 64;
/// Of both sides. Where the limits of `net.core` are lower, it takes root.
const SOCKET_BUFFER: usize = 8 << 20;
/// Datagrams that the kernel cuts one send into, and the longest send: a UDP datagram's limit.
const MAX_SEGMENTS: usize = 64;
const MAX_SEND: usize = 65_000;

/// Sends datagrams of `payload_bytes` (1..=65,507) from `sender` to `receiver` for `duration`, as fast as it goes, and counts.
///
/// Each socket may be bound in a network namespace of its own. The sender goes where it is connected to; otherwise it is
/// connected to the address that the receiver is bound to, which then must not be a wildcard. Other traffic to the receiver
/// is counted if it has the same length. `threads` says how the sending and the receiving thread run.
///
/// # Errors
///
/// Whatever the sockets say; [`io::ErrorKind::InvalidInput`] for a payload of 0 bytes. A peer that refuses is none: `sendmmsg`
/// does not tell, and nothing is received.
pub fn run(
    sender: &UdpSocket,
    receiver: &UdpSocket,
    duration: Duration,
    payload_bytes: usize,
    threads: [DriverOptions; 2],
) -> io::Result<Throughput> {
    if payload_bytes == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a datagram needs at least one byte of payload"));
    }
    prepare(sender, receiver)?;
    let send = |stop: &AtomicBool| send(sender, payload_bytes, duration, stop);
    measure(threads, payload_bytes, send, |stop| receive(receiver, payload_bytes, stop))
}

/// As [`run`], with many datagrams in one send and in one receive (`UDP_SEGMENT`, `UDP_GRO`): the outcome counts such sends, of as many bytes.
///
/// # Errors
/// As [`run`], and where the kernel has neither option.
pub fn run_segmented(
    sender: &UdpSocket,
    receiver: &UdpSocket,
    duration: Duration,
    payload_bytes: u16,
    threads: [DriverOptions; 2],
) -> io::Result<Throughput> {
    setsockopt(sender, sockopt::UdpGsoSegment, &payload_bytes.into())?;
    setsockopt(receiver, sockopt::UdpGroSegment, &true)?;
    let payload_bytes = usize::from(payload_bytes);
    let segments = (MAX_SEND / payload_bytes.max(1)).min(MAX_SEGMENTS);
    run(sender, receiver, duration, segments * payload_bytes, threads)
}

fn prepare(sender: &UdpSocket, receiver: &UdpSocket) -> io::Result<()> {
    if sender.peer_addr().is_err() {
        sender.connect(receiver.local_addr()?)?;
    }
    for socket in [sender, receiver] {
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
    }
    SockRef::from(sender).set_send_buffer_size(SOCKET_BUFFER)?;
    SockRef::from(receiver).set_recv_buffer_size(SOCKET_BUFFER)?;
    // Without the right to it, what was granted above stays.
    let _ = setsockopt(sender, sockopt::SndBufForce, &SOCKET_BUFFER);
    let _ = setsockopt(receiver, sockopt::RcvBufForce, &SOCKET_BUFFER);
    Ok(())
}

fn send(socket: &UdpSocket, bytes: usize, duration: Duration, stop: &AtomicBool) -> io::Result<(u64, Duration)> {
    let mut batch = Batch::new(BATCH, bytes);
    let start = now();
    let mut sent = 0;
    while start.elapsed() < duration && !stop.load(Ordering::Acquire) {
        match batch.send(socket) {
            Ok(count) => sent += count as u64,
            Err(error) if is_busy(&error) => thread::yield_now(),
            Err(error) => return Err(error),
        }
    }
    Ok((sent, start.elapsed()))
}

fn receive(socket: &UdpSocket, bytes: usize, stop: &AtomicBool) -> io::Result<Arrivals> {
    // One byte more than expected, so that a longer datagram shows.
    let mut batch = Batch::new(BATCH, bytes + 1);
    let mut arrivals = Arrivals::default();
    loop {
        // Asked before waiting: whatever was sent until then arrives within the wait.
        let last = stop.load(Ordering::Acquire);
        match batch.receive(socket, bytes) {
            Ok(count) => arrivals.add(count as u64),
            Err(error) if is_busy(&error) && last => return Ok(arrivals),
            Err(error) if is_busy(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(address: &str) -> (UdpSocket, UdpSocket) {
        (UdpSocket::bind(address).expect("loopback"), UdpSocket::bind(address).expect("loopback"))
    }

    #[test]
    fn loopback_carries_and_counts() {
        let (sender, receiver) = pair("127.0.0.1:0");
        let result = run(&sender, &receiver, Duration::from_millis(100), 1000, [DriverOptions::default(); 2])
            .expect("loopback works");
        assert!(result.received > 0 && result.received <= result.sent, "{result:?}");
        assert!(result.sending >= Duration::from_millis(100) && result.sending < Duration::from_secs(5));
        assert!(result.received_pps() > 0.0 && result.received_gbps() > 0.0);
    }

    #[test]
    fn loopback_over_ipv6_carries_small_datagrams() {
        let Ok(sender) = UdpSocket::bind("[::1]:0") else { return spray_test_support::skip("no IPv6 on loopback") };
        let receiver = UdpSocket::bind("[::1]:0").expect("loopback");
        let result = run(&sender, &receiver, Duration::from_millis(20), 1, [DriverOptions::default(); 2])
            .expect("loopback works");
        assert!(result.received > 0 && result.received <= result.sent, "{result:?}");
    }

    #[test]
    fn datagrams_of_another_length_do_not_count() {
        let (sender, receiver) = pair("127.0.0.1:0");
        let (stranger, _) = pair("127.0.0.1:0");
        for bytes in [99, 101] {
            stranger.send_to(&vec![0; bytes], receiver.local_addr().expect("bound")).expect("sent");
        }
        let result =
            run(&sender, &receiver, Duration::ZERO, 100, [DriverOptions::default(); 2]).expect("loopback works");
        assert_eq!((result.sent, result.received, result.received_pps()), (0, 0, 0.0));
    }

    #[test]
    fn an_empty_payload_is_refused() {
        let (sender, receiver) = pair("127.0.0.1:0");
        let error = run(&sender, &receiver, Duration::ZERO, 0, [DriverOptions::default(); 2]).expect_err("no payload");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
