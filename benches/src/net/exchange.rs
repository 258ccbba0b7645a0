//! Round trips of small messages over the kernel's sockets, one at a time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use spray_nic::driver::DriverOptions;

use super::measure::{Latency, PATIENCE, both, is_busy, latency, now, record};

/// Bytes of a request, and of its answer.
pub(crate) const MESSAGE_BYTES: usize = 64;

/// One end of a conversation.
pub(crate) trait Talk: Send {
    fn say(&mut self, message: &[u8; MESSAGE_BYTES]) -> io::Result<()>;
    /// Waits for a message; false when none has come for [`PATIENCE`].
    fn hear(&mut self, message: &mut [u8; MESSAGE_BYTES]) -> io::Result<bool>;
}

/// Asks for `duration`, answers at once, and tells how long each round trip took. A request that is lost counts with the time after which the
/// next one went.
///
/// # Errors
/// Whatever the sockets say.
pub(crate) fn run(
    mut asking: impl Talk,
    mut answering: impl Talk,
    duration: Duration,
    threads: [DriverOptions; 2],
) -> io::Result<Latency> {
    let (asked, answered) = both(
        |stop| threads[0].apply().and_then(|()| ask(&mut asking, duration, stop)),
        |stop| threads[1].apply().and_then(|()| answer(&mut answering, stop)),
    )?;
    answered.and(asked)
}

fn ask(talk: &mut impl Talk, duration: Duration, stop: &AtomicBool) -> io::Result<Latency> {
    let mut took = latency();
    let mut message = [0; MESSAGE_BYTES];
    let start = now();
    for number in 0u64.. {
        let asked = now();
        if asked - start >= duration || stop.load(Ordering::Acquire) {
            break;
        }
        message[..8].copy_from_slice(&number.to_le_bytes());
        talk.say(&message)?;
        // A late answer is that of an earlier request.
        while talk.hear(&mut message)? && message[..8] != number.to_le_bytes() {}
        record(&mut took, asked.elapsed());
    }
    Ok(took)
}

fn answer(talk: &mut impl Talk, stop: &AtomicBool) -> io::Result<()> {
    let mut message = [0; MESSAGE_BYTES];
    while !stop.load(Ordering::Acquire) {
        if talk.hear(&mut message)? {
            talk.say(&message)?;
        }
    }
    Ok(())
}

impl Talk for UdpSocket {
    fn say(&mut self, message: &[u8; MESSAGE_BYTES]) -> io::Result<()> {
        match self.send(message) {
            Err(error) if !is_busy(&error) => Err(error),
            // As good as lost.
            _ => Ok(()),
        }
    }

    fn hear(&mut self, message: &mut [u8; MESSAGE_BYTES]) -> io::Result<bool> {
        match self.recv(message) {
            Ok(bytes) => Ok(bytes == MESSAGE_BYTES),
            Err(error) if is_busy(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Talk for TcpStream {
    fn say(&mut self, message: &[u8; MESSAGE_BYTES]) -> io::Result<()> {
        self.write_all(message)
    }

    fn hear(&mut self, message: &mut [u8; MESSAGE_BYTES]) -> io::Result<bool> {
        let mut bytes = 0;
        while bytes < MESSAGE_BYTES {
            match self.read(&mut message[bytes..]) {
                // The other end has gone, or nothing has come so far.
                Ok(0) => return Ok(false),
                Err(error) if is_busy(&error) && bytes == 0 => return Ok(false),
                Err(error) if is_busy(&error) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(false),
                Err(error) => return Err(error),
                Ok(more) => bytes += more,
            }
        }
        Ok(true)
    }
}

/// Has both sockets wait for as long as [`run`] expects.
pub(crate) fn patient_udp(sockets: [UdpSocket; 2]) -> io::Result<[UdpSocket; 2]> {
    for (own, other) in [(0, 1), (1, 0)] {
        sockets[own].connect(sockets[other].local_addr()?)?;
        sockets[own].set_read_timeout(Some(PATIENCE))?;
    }
    Ok(sockets)
}

/// As [`patient_udp`]; and small messages go at once.
pub(crate) fn patient_tcp(streams: [TcpStream; 2]) -> io::Result<[TcpStream; 2]> {
    for stream in &streams {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
    }
    Ok(streams)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const BRIEF: Duration = Duration::from_millis(50);

    #[test]
    fn every_request_is_answered_on_loopback() {
        let socket = || UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let [asking, answering] = patient_udp([socket(), socket()]).expect("loopback");
        let udp = run(asking, answering, BRIEF, [DriverOptions::default(); 2]).expect("loopback works");
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("loopback");
        let [asking, answering] = patient_tcp([near, listener.accept().expect("connected").0]).expect("loopback");
        let tcp = run(asking, answering, BRIEF, [DriverOptions::default(); 2]).expect("loopback works");
        for took in [udp, tcp] {
            assert!(!took.is_empty() && took.min() > 0);
        }
    }

    /// Answers every second request.
    struct Forgetful(UdpSocket, bool);

    impl Talk for Forgetful {
        fn say(&mut self, message: &[u8; MESSAGE_BYTES]) -> io::Result<()> {
            self.1 = !self.1;
            if self.1 { self.0.say(message) } else { Ok(()) }
        }
        fn hear(&mut self, message: &mut [u8; MESSAGE_BYTES]) -> io::Result<bool> {
            self.0.hear(message)
        }
    }

    #[test]
    fn a_lost_request_counts_with_the_time_that_it_cost() {
        let socket = || UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let [asking, answering] = patient_udp([socket(), socket()]).expect("loopback");
        let took = run(asking, Forgetful(answering, false), 3 * PATIENCE, [DriverOptions::default(); 2]);
        let took = took.expect("loopback works");
        let lost = took.len() - took.count_between(0, PATIENCE.as_nanos() as u64 / 2);
        assert!(lost >= 2 && took.len() >= 2 * lost - 1, "{lost} of {}", took.len());
    }
}
