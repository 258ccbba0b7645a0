//! A transfer of `spray send` in competition with the kernel's TCP over the same routers, and the
//! rates of both.
#![expect(clippy::disallowed_methods, reason = "how long real transfers take is what is measured")]

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use crate::routers::Routers;
use socket2::{Protocol, Socket};
use spray_switch::RunError;

use super::{CUBIC, Ended, Kernel, Transfer, by_kernel, by_spray, connection};

/// The transfer that competes with them.
#[derive(Clone, Copy, Debug)]
pub enum Candidate<'a> {
    /// `spray send`, with the path of the command.
    Spray(&'a Path),
    /// For comparison, one kernel TCP connection over each spine, with the kernel's default
    /// congestion control.
    Tcp,
}

/// The TCP connections with which a transfer competes.
#[derive(Clone, Copy, Debug)]
pub struct CompetingFlows<'a> {
    /// The number of connections over each spine.
    pub each: usize,
    /// Their congestion control, by the kernel's name.
    pub control: &'a str,
    /// Whether they negotiate ECN.
    pub ecn: bool,
}

/// The payload rates of all connections, in Mb/s.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    /// The rate of each competing flow before the transfer, with the others.
    pub alone: Vec<f64>,
    /// The rate of each competing flow during the transfer.
    pub during: Vec<f64>,
    /// The rate of the transfer; `None` if it failed.
    pub ours: Option<f64>,
    /// The number of connections of the transfer: one of `spray send`, or one of TCP over each
    /// spine.
    pub connections: usize,
    /// The output of the transfer.
    pub output: String,
}

impl Shares {
    /// Returns Jain's index of fairness among all connections, from 1 / n to 1.
    pub fn jain(&self) -> f64 {
        jain(&self.all())
    }

    /// Returns the minimum share of a connection relative to a fair share, which is an equal part
    /// of the competing flows' total rate before the transfer.
    pub fn least(&self) -> f64 {
        let all = self.all();
        let fair = self.alone.iter().sum::<f64>() / all.len() as f64;
        all.into_iter().fold(f64::INFINITY, f64::min) / fair
    }

    /// Returns the rate of each connection; those of the transfer are equal.
    fn all(&self) -> Vec<f64> {
        let own = self.ours.unwrap_or(0.0) / self.connections as f64;
        self.during.iter().copied().chain(std::iter::repeat_n(own, self.connections)).collect()
    }
}

/// Returns Jain's index of fairness of these rates, from 1 / n to 1.
pub fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|share| share * share).sum::<f64>());
    sum * sum / (shares.len() as f64 * squares.max(f64::MIN_POSITIVE))
}

/// The time before the competing flows are measured, in which their rates converge.
const SETTLING: Duration = Duration::from_secs(1);
const ALONE: Duration = Duration::from_secs(2);

/// Returns the address of the receiving host for packets over a spine.
fn over(routers: &Routers, spine: usize) -> Result<Ipv4Addr, RunError> {
    let number = 1 + spine as u8;
    routers.pin(number, spine)?;
    Ok(Routers::address(1, number))
}

/// Transfers the file at `path` in competition with TCP connections that send continuously.
///
/// # Errors
/// If the routers cannot be changed, a connection is refused, or a program does not start.
pub fn compete(
    routers: &Routers,
    candidate: Candidate<'_>,
    path: &Path,
    competing: &CompetingFlows<'_>,
) -> Result<Shares, RunError> {
    let failed = |error| RunError::io("a connection of the kernel's", error);
    routers.heal()?;
    // 2 is the kernel's default: ECN is accepted if the other side requests it.
    let ecn = if competing.ecn { "1" } else { "2" };
    for side in [0, 1] {
        routers.run_in(side, || std::fs::write("/proc/sys/net/ipv4/tcp_ecn", ecn))?.map_err(failed)?;
    }
    let to: Vec<_> = (0..Routers::SPINES).map(|spine| over(routers, spine)).collect::<Result<_, _>>()?;
    let streams: Vec<[Socket; 2]> = (0..competing.each * to.len())
        .map(|number| {
            let [stream, accepted, _] = connection(routers, Protocol::TCP, to[number % to.len()])?;
            stream.set_tcp_congestion(competing.control.as_bytes()).map_err(failed)?;
            Ok([stream, accepted])
        })
        .collect::<Result<_, RunError>>()?;
    let (end, taken): (_, Vec<AtomicU64>) =
        (AtomicBool::new(false), streams.iter().map(|_| AtomicU64::new(0)).collect());
    let count = || -> Vec<u64> { taken.iter().map(|bytes| bytes.load(Relaxed)).collect() };
    let rates = |before: &[u64], since: Instant| -> Vec<f64> {
        let seconds = since.elapsed().as_secs_f64();
        count().iter().zip(before).map(|(now, before)| (now - before) as f64 * 8.0 / seconds / 1e6).collect()
    };
    std::thread::scope(|scope| {
        let ended = Ended(&end);
        streams.into_iter().zip(&taken).for_each(|(ends, taken)| carry(scope, ends, taken, &end));
        std::thread::sleep(SETTLING);
        let (before, since) = (count(), Instant::now());
        std::thread::sleep(ALONE);
        let alone = rates(&before, since);
        let (mut before, mut since) = (count(), Instant::now());
        let done = match candidate {
            Candidate::Spray(spray) => {
                by_spray(routers, spray, path, &[], || (before, since) = (count(), Instant::now()))
            }
            Candidate::Tcp => by_connections(routers, path, &to),
        };
        let during = rates(&before, since);
        drop(ended);
        let done = done?;
        let connections = if matches!(candidate, Candidate::Spray(_)) { 1 } else { to.len() };
        Ok(Shares { alone, during, ours: done.mbps, connections, output: done.output })
    })
}

/// Transfers the number of bytes of the file at `path`, in equal parts to each of these addresses.
fn by_connections(routers: &Routers, path: &Path, to: &[Ipv4Addr]) -> Result<Transfer, RunError> {
    let bytes = std::fs::metadata(path).map_err(|error| RunError::io("reading the file", error))?.len();
    let part = bytes / to.len() as u64;
    std::thread::scope(|scope| {
        let one = |to| scope.spawn(move || by_kernel(routers, part, Kernel::Tcp(CUBIC), to));
        let parts: Vec<_> = to.iter().map(|to| one(*to)).collect();
        let join = |part: ScopedJoinHandle<'_, _>| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let done: Vec<Transfer> = parts.into_iter().map(join).collect::<Result<_, _>>()?;
        let mbps = done.iter().map(|part| part.mbps).sum::<Option<f64>>();
        Ok(Transfer { mbps, output: format!("{done:?}") })
    })
}

/// Sends continuously until the end, and counts the received bytes.
fn carry<'scope>(
    scope: &'scope Scope<'scope, '_>,
    [mut from, mut to]: [Socket; 2],
    taken: &'scope AtomicU64,
    end: &'scope AtomicBool,
) {
    const CHUNK: usize = 64 << 10;
    scope.spawn(move || {
        let chunk = [0u8; CHUNK];
        while !end.load(Relaxed) && from.write(&chunk).is_ok() {}
    });
    scope.spawn(move || {
        let mut buffer = [0u8; CHUNK];
        while let Ok(count @ 1..) = to.read(&mut buffer) {
            taken.fetch_add(count as u64, Relaxed);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_count_connections() {
        let four = |ours, during: &[f64]| Shares {
            ours: Some(ours),
            alone: vec![200.0; 4],
            during: during.to_vec(),
            connections: 4,
            ..Shares::default()
        };
        let even = four(400.0, &[100.0; 4]);
        assert_eq!((even.jain(), even.least()), (1.0, 1.0));
        // Four connections have a rate of 100, four of 0.
        assert_eq!((four(400.0, &[0.0; 4]).jain(), four(400.0, &[0.0; 4]).least()), (0.5, 0.0));
        assert_eq!(Shares { ours: None, ..four(0.0, &[100.0; 4]) }.jain(), 0.5);
        let one = Shares { connections: 1, ..four(80.0, &[180.0; 4]) };
        assert_eq!(one.least(), 0.5);
    }
}
