//! The effect of a transfer on other packets: the latency of small datagrams through the same
//! routers.
#![expect(clippy::disallowed_methods, reason = "how long datagrams take is what is measured")]

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::routers::Routers;
use spray_switch::RunError;

use super::{Condition, Contender, Ended, Transfer, transfer};

const PORT: u16 = 5002;
/// The interval between two datagrams.
const SPACING: Duration = Duration::from_millis(2);
/// The maximum delay in the routers' queues.
const LONGEST: Duration = Duration::from_millis(500);

/// One-way delays of datagrams during the middle half of a transfer.
#[derive(Clone, Debug)]
pub struct Latency {
    /// The delays of those that arrived, in ascending order.
    pub took: Vec<Duration>,
    /// The number of datagrams sent.
    pub sent: usize,
    /// The result of the transfer.
    pub transfer: Transfer,
}

impl Latency {
    /// Returns a quantile of the delays in ms; `None` if none arrived.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let place = (self.took.len().checked_sub(1)? as f64 * share).round() as usize;
        self.took.get(place).map(|took| took.as_secs_f64() * 1e3)
    }
}

/// Transfers the file at `path`. From a quarter of it to three quarters a datagram of 64 bytes is
/// sent every 2 ms, each from another source port, so that they are spread over all spines.
///
/// # Errors
/// If the routers cannot be changed, a program does not start, or a datagram cannot be sent.
pub fn latency(routers: &Routers, spray: &Path, path: &Path, contender: &Contender) -> Result<Latency, RunError> {
    let failed = |error| RunError::io("datagrams beside a transfer", error);
    routers.heal()?;
    let bytes = std::fs::metadata(path).map_err(failed)?.len();
    let to = SocketAddrV4::new(Routers::address(1, 0), PORT);
    let receiver = routers.run_in(1, || UdpSocket::bind(to))?.map_err(failed)?;
    receiver.set_read_timeout(Some(LONGEST)).map_err(failed)?;
    let (begun, ended, all_sent) = (Instant::now(), AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let sends = scope.spawn(|| {
            let _all = Ended(&all_sent);
            let is_over = |part: u64| Ok::<_, RunError>(ended.load(Relaxed) || routers.bytes()? >= bytes / 4 * part);
            while !is_over(1)? {
                std::thread::sleep(SPACING);
            }
            let mut sent = 0;
            while !is_over(3)? {
                let socket = routers.run_in(0, || UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?.map_err(failed)?;
                let mut datagram = [0u8; 64];
                datagram[..8].copy_from_slice(&(begun.elapsed().as_nanos() as u64).to_be_bytes());
                socket.send_to(&datagram, to).map_err(failed)?;
                sent += 1;
                std::thread::sleep(SPACING);
            }
            Ok::<_, RunError>(sent)
        });
        let arrives = scope.spawn(|| {
            let (mut took, mut datagram) = (Vec::new(), [0u8; 64]);
            loop {
                match (receiver.recv(&mut datagram), datagram.first_chunk()) {
                    (Ok(64), Some(at)) => {
                        let sent = Duration::from_nanos(u64::from_be_bytes(*at));
                        took.push(begun.elapsed().saturating_sub(sent));
                    }
                    (Ok(_), _) => {}
                    (Err(_), _) if all_sent.load(Relaxed) => return took,
                    (Err(_), _) => {}
                }
            }
        });
        let end = Ended(&ended);
        let transfer = transfer(routers, spray, path, contender, Condition::Healthy);
        drop(end);
        let sent: Result<usize, RunError> = sends.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mut took = arrives.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        took.sort_unstable();
        Ok(Latency { took, sent: sent?, transfer: transfer? })
    })
}
