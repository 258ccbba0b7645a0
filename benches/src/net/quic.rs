//! QUIC by two libraries, each end on a thread with a runtime of its own: a bulk stream, and round trips of small messages.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use spray_nic::driver::DriverOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::exchange::MESSAGE_BYTES;
use super::measure::{Arrivals, Latency, Throughput, latency, measure, now, record};

mod quinn;
mod s2n;
mod terms;

pub use self::terms::Quic;
use self::terms::{Guard, SERVER, Stream, Terms};

/// What QUIC needs besides payload in a packet, at most.
const OVERHEAD_BYTES: u16 = 60;
/// Bytes that the application writes and reads at a time.
const CHUNK: usize = 256 << 10;
/// The first byte of a stream: what is to be done with the others.
const TAKE: u8 = 0;
const ANSWER: u8 = 1;
/// How often the receiving end looks whether the sending one has ended.
const LOOK: Duration = Duration::from_millis(10);

/// Sends from the first socket to the second for `duration`, in packets with some `payload_bytes`, as fast as it goes, and counts bytes.
///
/// # Errors
/// What the library says.
pub fn run(
    library: Quic,
    sockets: [UdpSocket; 2],
    duration: Duration,
    payload_bytes: u16,
    threads: [DriverOptions; 2],
) -> io::Result<Throughput> {
    let (terms, [near, far], to) = agree(library, sockets, payload_bytes)?;
    let send = |stop: &AtomicBool| {
        block_on(async {
            let (mut streams, _guard) = terms.open(near, to, &[TAKE]).await?;
            let start = now();
            let sent = fill(&mut streams[0], start + duration, stop).await?;
            Ok((sent, start.elapsed()))
        })
    };
    measure(threads, 1, send, |stop| block_on(serve(&terms, far, stop)))
}

/// Round trips of small messages on one stream for `duration`; `loaded` beside one that carries as much as it can.
///
/// # Errors
/// What the library says.
pub fn exchange(
    library: Quic,
    sockets: [UdpSocket; 2],
    loaded: bool,
    duration: Duration,
    payload_bytes: u16,
    threads: [DriverOptions; 2],
) -> io::Result<Latency> {
    let (terms, [near, far], to) = agree(library, sockets, payload_bytes)?;
    let mut took = latency();
    let send = |stop: &AtomicBool| {
        block_on(async {
            let kinds: &[u8] = if loaded { &[ANSWER, TAKE] } else { &[ANSWER] };
            let (mut streams, _guard) = terms.open(near, to, kinds).await?;
            let until = now() + duration;
            let (asking, load) = streams.split_at_mut(1);
            let load = async {
                match load.first_mut() {
                    Some(stream) => fill(stream, until, stop).await,
                    None => Ok(0),
                }
            };
            tokio::try_join!(ask(&mut asking[0], until, &mut took), load)?;
            Ok((0, duration))
        })
    };
    measure(threads, 1, send, |stop| block_on(serve(&terms, far, stop)))?;
    Ok(took)
}

fn agree(
    library: Quic,
    sockets: [UdpSocket; 2],
    payload_bytes: u16,
) -> io::Result<(Terms, [UdpSocket; 2], SocketAddr)> {
    let certificate = rcgen::generate_simple_self_signed(vec![SERVER.to_string()]).map_err(io::Error::other)?;
    sockets.iter().try_for_each(|socket| socket.set_nonblocking(true))?;
    let to = sockets[1].local_addr()?;
    let packet_bytes = payload_bytes + OVERHEAD_BYTES;
    Ok((Terms { library, certificate: Arc::new(certificate), packet_bytes }, sockets, to))
}

impl Terms {
    /// Connects, and opens a stream of each kind.
    async fn open(&self, socket: UdpSocket, to: SocketAddr, kinds: &[u8]) -> io::Result<(Vec<Stream>, Guard)> {
        let (mut streams, guard) = match self.library {
            Quic::Quinn => quinn::open(self, socket, to, kinds.len()).await,
            Quic::S2n => s2n::open(self, socket, to, kinds.len()).await,
        }?;
        for (stream, kind) in streams.iter_mut().zip(kinds) {
            stream.write_all(&[*kind]).await?;
        }
        Ok((streams, guard))
    }

    /// Hands on every stream of the one connection, until that ends.
    async fn accept(self, socket: UdpSocket, streams: UnboundedSender<Stream>) -> io::Result<()> {
        match self.library {
            Quic::Quinn => quinn::accept(&self, socket, streams).await,
            Quic::S2n => s2n::accept(&self, socket, streams).await,
        }
    }
}

/// Runs on this thread; the kernel is asked for no more threads.
fn block_on<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// Writes until the time has come.
async fn fill(stream: &mut Stream, until: Instant, stop: &AtomicBool) -> io::Result<u64> {
    let chunk = vec![0x5a; CHUNK];
    let mut sent = 0;
    while now() < until && !stop.load(Ordering::Acquire) {
        stream.write_all(&chunk).await?;
        sent += chunk.len() as u64;
    }
    Ok(sent)
}

async fn ask(stream: &mut Stream, until: Instant, took: &mut Latency) -> io::Result<()> {
    let mut message = [0x5a; MESSAGE_BYTES];
    while now() < until {
        let asked = now();
        stream.write_all(&message).await?;
        stream.flush().await?;
        stream.read_exact(&mut message).await?;
        record(took, asked.elapsed());
    }
    Ok(())
}

/// Does what each stream says, until the sending end has ended. Returns what came on those whose bytes are only taken.
async fn serve(terms: &Terms, socket: UdpSocket, stop: &AtomicBool) -> io::Result<Arrivals> {
    let arrivals = Arc::new(Mutex::new(Arrivals::default()));
    let (sender, streams) = unbounded_channel();
    let accepting = tokio::spawn(terms.clone().accept(socket, sender));
    let serving = tokio::spawn(serve_each(streams, Arc::clone(&arrivals)));
    while !stop.load(Ordering::Acquire) {
        tokio::time::sleep(LOOK).await;
        if accepting.is_finished() {
            accepting.await.map_err(io::Error::other)??;
            break;
        }
    }
    serving.abort();
    let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *arrivals))
}

async fn serve_each(mut streams: UnboundedReceiver<Stream>, arrivals: Arc<Mutex<Arrivals>>) {
    while let Some(mut stream) = streams.recv().await {
        let arrivals = Arc::clone(&arrivals);
        tokio::spawn(async move {
            // A stream ends by an error when the sending end leaves.
            let _ = match stream.read_u8().await {
                Ok(ANSWER) => answer(&mut stream).await,
                Ok(_) => take(&mut stream, &arrivals).await,
                Err(error) => Err(error),
            };
        });
    }
}

async fn answer(stream: &mut Stream) -> io::Result<()> {
    let mut message = [0; MESSAGE_BYTES];
    loop {
        stream.read_exact(&mut message).await?;
        stream.write_all(&message).await?;
        stream.flush().await?;
    }
}

async fn take(stream: &mut Stream, arrivals: &Mutex<Arrivals>) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let bytes = stream.read(&mut chunk).await?;
        if bytes == 0 {
            return Ok(());
        }
        arrivals.lock().unwrap_or_else(PoisonError::into_inner).add(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_libraries_carry_and_answer_on_loopback() {
        let threads = [DriverOptions::default(); 2];
        let sockets = || [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").expect("loopback"));
        for library in [Quic::Quinn, Quic::S2n] {
            let carried = run(library, sockets(), Duration::from_millis(200), 3000, threads).expect("loopback works");
            assert!(carried.received > 0 && carried.received <= carried.sent, "{library:?}: {carried:?}");
            for loaded in [false, true] {
                let took = exchange(library, sockets(), loaded, Duration::from_millis(200), 3000, threads);
                assert!(!took.expect("loopback works").is_empty(), "{library:?}, loaded: {loaded}");
            }
        }
    }
}
