//! Kernel TCP: one stream, as much as it carries.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use spray_nic::driver::DriverOptions;

use super::measure::{Arrivals, PATIENCE, Throughput, is_busy, measure, now};

/// Bytes per system call.
const CHUNK: usize = 256 << 10;

/// Sends from one end of a connection to the other for `duration`, as fast as it goes, and counts bytes: `bytes` of the outcome is 1.
///
/// # Errors
/// Whatever the sockets say.
pub fn run(
    mut sender: TcpStream,
    mut receiver: TcpStream,
    duration: Duration,
    threads: [DriverOptions; 2],
) -> io::Result<Throughput> {
    sender.set_write_timeout(Some(PATIENCE))?;
    receiver.set_read_timeout(Some(PATIENCE))?;
    let send = |stop: &AtomicBool| send(&mut sender, duration, stop);
    measure(threads, 1, send, |stop| receive(&mut receiver, stop))
}

fn send(stream: &mut TcpStream, duration: Duration, stop: &AtomicBool) -> io::Result<(u64, Duration)> {
    let chunk = vec![0x5a; CHUNK];
    let start = now();
    let mut sent = 0;
    while start.elapsed() < duration && !stop.load(Ordering::Acquire) {
        match stream.write(&chunk) {
            Ok(bytes) => sent += bytes as u64,
            Err(error) if is_busy(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((sent, start.elapsed()))
}

fn receive(stream: &mut TcpStream, stop: &AtomicBool) -> io::Result<Arrivals> {
    let mut chunk = vec![0; CHUNK];
    let mut arrivals = Arrivals::default();
    loop {
        // Asked before waiting: whatever was sent until then arrives within the wait.
        let last = stop.load(Ordering::Acquire);
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(arrivals),
            Ok(bytes) => arrivals.add(bytes as u64),
            Err(error) if is_busy(&error) && last => return Ok(arrivals),
            Err(error) if is_busy(&error) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(arrivals),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn loopback_carries_every_byte() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let sender = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
        let receiver = listener.accept().expect("connected").0;
        let result = run(sender, receiver, Duration::from_millis(50), [DriverOptions::default(); 2]);
        let result = result.expect("loopback works");
        assert!(result.sent > 0, "{result:?}");
        assert_eq!((result.received, result.bytes), (result.sent, 1));
    }
}
