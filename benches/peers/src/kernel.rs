
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, recvmmsg, sendmmsg, setsockopt, sockopt};

use crate::net::run_both;
use crate::{Outcome, REQUEST_BYTES, Terms};

/// Datagrams per system call; larger batches gain nothing.
const BATCH: usize = 64;
const SOCKET_BUFFER: usize = 8 << 20;
/// Bytes per system call on a stream.
pub const CHUNK: usize = 256 << 10;
/// Timeout of blocking calls, and the time that a receiver waits for late datagrams.
const PATIENCE: Duration = Duration::from_millis(50);

/// Measures UDP; with `segments` with GSO and GRO.
pub fn udp([near, far]: [UdpSocket; 2], terms: Terms, segments: bool) -> io::Result<Outcome> {
    near.connect(far.local_addr()?)?;
    far.connect(near.local_addr()?)?;
    for socket in [&near, &far] {
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
    }
    setsockopt(&near, sockopt::SndBufForce, &SOCKET_BUFFER)?;
    setsockopt(&far, sockopt::RcvBufForce, &SOCKET_BUFFER)?;
    if terms.latency {
        return exchange(
            terms.duration,
            [&near, &far],
            |socket, message| socket.send(message).map(drop),
            |socket, message| socket.recv(message).map(drop),
        );
    }
    let mut bytes = terms.payload_bytes;
    if segments {
        setsockopt(&near, sockopt::UdpGsoSegment, &(bytes as i32))?;
        setsockopt(&far, sockopt::UdpGroSegment, &true)?;
        bytes *= (65_000 / bytes).min(64);
    }
    let ((), arrivals) = run_both(
        |stop| send_datagrams(&near, bytes, terms.duration, stop),
        |stop| receive(stop, |arrivals| receive_datagrams(&far, bytes, arrivals)),
    )?;
    Ok(arrivals.outcome())
}

fn send_datagrams(socket: &UdpSocket, bytes: usize, duration: Duration, stop: &AtomicBool) -> io::Result<()> {
    let (payload, start) = (vec![0x5a; bytes], Instant::now());
    let slices = vec![[IoSlice::new(&payload)]; BATCH];
    let mut headers = MultiHeaders::<SockaddrIn>::preallocate(BATCH, None);
    while start.elapsed() < duration && !stop.load(Ordering::Acquire) {
        let sent = sendmmsg(socket.as_raw_fd(), &mut headers, &slices, [None; BATCH], [], MsgFlags::empty());
        if let Err(error) = sent.map(drop).map_err(io::Error::from)
            && !is_busy(&error)
        {
            return Err(error);
        }
    }
    Ok(())
}

/// Receives datagrams of this length, waiting for at least one.
fn receive_datagrams(socket: &UdpSocket, bytes: usize, arrivals: &mut Arrivals) -> io::Result<()> {
    // Reused between calls, because it is large.
    let buffers = &mut arrivals.buffers;
    buffers.resize(BATCH * (bytes + 1), 0);
    let mut slices: Vec<[IoSliceMut<'_>; 1]> =
        buffers.chunks_exact_mut(bytes + 1).map(|buffer| [IoSliceMut::new(buffer)]).collect();
    let mut headers = MultiHeaders::<SockaddrIn>::preallocate(BATCH, None);
    let received = recvmmsg(socket.as_raw_fd(), &mut headers, &mut slices, MsgFlags::MSG_WAITFORONE, None)?;
    let sum = received.map(|message| message.bytes as u64).filter(|length| *length == bytes as u64).sum();
    arrivals.add(sum);
    Ok(())
}

pub fn tcp([mut near, mut far]: [TcpStream; 2], terms: Terms) -> io::Result<Outcome> {
    for stream in [&near, &far] {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
    }
    if terms.latency {
        return exchange(
            terms.duration,
            [&near, &far],
            |mut stream, message| stream.write_all(message),
            |mut stream, message| stream.read_exact(message),
        );
    }
    let send = |stop: &AtomicBool| {
        let (chunk, start) = (vec![0x5a; CHUNK], Instant::now());
        while start.elapsed() < terms.duration && !stop.load(Ordering::Acquire) {
            match near.write(&chunk) {
                Err(error) if !is_busy(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    };
    let mut chunk = vec![0; CHUNK];
    let ((), arrivals) =
        run_both(send, |stop| receive(stop, |arrivals| far.read(&mut chunk).map(|bytes| arrivals.add(bytes as u64))))?;
    Ok(arrivals.outcome())
}

/// Sends requests for `duration`. A lost message counts with the time it cost.
fn exchange<T: Sync>(
    duration: Duration,
    [asking, answering]: [&T; 2],
    send_message: impl Fn(&T, &[u8]) -> io::Result<()> + Sync,
    receive_message: impl Fn(&T, &mut [u8]) -> io::Result<()> + Sync,
) -> io::Result<Outcome> {
    let try_receive = |end: &T, message: &mut [u8]| match receive_message(end, message) {
        Ok(()) => Ok(true),
        Err(error) if is_busy(&error) => Ok(false),
        Err(error) => Err(error),
    };
    let ask = |stop: &AtomicBool| {
        let (mut message, mut took, start) = ([0x5a; REQUEST_BYTES], Vec::new(), Instant::now());
        while start.elapsed() < duration && !stop.load(Ordering::Acquire) {
            let sent_at = Instant::now();
            send_message(asking, &message)?;
            try_receive(asking, &mut message)?;
            took.push(sent_at.elapsed());
        }
        Ok(took)
    };
    let answer = |stop: &AtomicBool| {
        let mut message = [0; REQUEST_BYTES];
        while !stop.load(Ordering::Acquire) {
            if try_receive(answering, &mut message)? {
                send_message(answering, &message)?;
            }
        }
        Ok(())
    };
    let (round_trips, ()) = run_both(ask, answer)?;
    Ok(Outcome { round_trips, ..Outcome::default() })
}

#[derive(Default)]
pub struct Arrivals {
    bytes: u64,
    span: Option<[Instant; 2]>,
    buffers: Vec<u8>,
}

impl Arrivals {
    pub fn add(&mut self, bytes: u64) {
        let now = Instant::now();
        self.bytes += bytes;
        self.span = Some([self.span.map_or(now, |[first, _]| first), now]);
    }

    pub fn outcome(&self) -> Outcome {
        let took = self.span.map_or(Duration::ZERO, |[first, last]| last - first);
        Outcome { bytes: self.bytes, took, round_trips: Vec::new() }
    }
}

/// Receives until the sender has ended and nothing more arrives.
fn receive(stop: &AtomicBool, mut take: impl FnMut(&mut Arrivals) -> io::Result<()>) -> io::Result<Arrivals> {
    let mut arrivals = Arrivals::default();
    loop {
        // Read before the wait: frames sent before the flag was set arrive during it.
        let last = stop.load(Ordering::Acquire);
        match take(&mut arrivals) {
            Ok(()) => {}
            Err(error) if is_busy(&error) && last => return Ok(arrivals),
            Err(error) if is_busy(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether the error is temporary: full buffers, timeouts, signals.
fn is_busy(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
        || error.raw_os_error() == Some(nix::errno::Errno::ENOBUFS as i32)
}
