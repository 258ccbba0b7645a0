//! Transfers over plain Linux routers: `spray send` and the kernel's TCP and MPTCP under the same
//! conditions.
#![expect(clippy::disallowed_methods, reason = "how long real transfers take is what is measured")]

mod competition;
mod latency;
mod ours;
mod rounds;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::routers::{Changes, Interference, Routers};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use spray_switch::RunError;

pub use self::competition::{Candidate, CompetingFlows, Shares, compete, jain};
pub use self::latency::{Latency, latency};
pub use self::ours::two_transfers;
pub use self::rounds::Rounds;
use crate::running::Running;

/// A change of the routers during a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// No change.
    Healthy,
    /// One spine has a tenth of its rate.
    Slow,
    /// One spine loses every frame after half of the transfer; routing does not detect it.
    Silent,
    /// One spine loses every second frame after half of the transfer.
    HalfLost,
    /// One spine is removed from the routes after half of the transfer.
    Withdrawn,
    /// Every uplink loses one frame in a hundred.
    Lossy,
    /// The rate of every spine changes continuously.
    Jitter,
    /// One spine silently drops long frames.
    ShortOnly,
    /// A firewall on every spine drops a quarter of the UDP source ports.
    Ports,
    /// Every spine polices instead of queueing.
    Policed,
    /// Every uplink loses everything for 2 ms of 100.
    Pauses,
    /// One frame in fifty is duplicated.
    Twice,
    /// One spine clears DSCP and ECN.
    Cleared,
    /// One spine marks every frame.
    Marked,
    /// All packets of the reverse direction take one spine.
    OneWayBack,
    /// Five times a second every five-tuple is assigned another spine.
    Rerouted,
    /// One spine has a round-trip time 10 ms longer than the others.
    Far,
}

impl Condition {
    /// All conditions, in the order of the table.
    pub const ALL: [Self; 17] = [
        Self::Healthy,
        Self::Slow,
        Self::Silent,
        Self::HalfLost,
        Self::Withdrawn,
        Self::Lossy,
        Self::Jitter,
        Self::ShortOnly,
        Self::Ports,
        Self::Policed,
        Self::Pauses,
        Self::Twice,
        Self::Cleared,
        Self::Marked,
        Self::OneWayBack,
        Self::Rerouted,
        Self::Far,
    ];

    /// Returns the header of its column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Slow => "a spine at a tenth",
            Self::Silent => "silent from half on",
            Self::HalfLost => "50 % lost on a spine from half on",
            Self::Withdrawn => "withdrawn at half",
            Self::Lossy => "1 % loss",
            Self::Jitter => "jitter",
            Self::ShortOnly => "short frames only on a spine",
            Self::Ports => "a firewall on a quarter of the ports",
            Self::Policed => "policers",
            Self::Pauses => "bursts of loss",
            Self::Twice => "2 % twice",
            Self::Cleared => "ECN cleared on a spine",
            Self::Marked => "marks on every frame of a spine",
            Self::OneWayBack => "one way back",
            Self::Rerouted => "rerouted",
            Self::Far => "a far spine",
        }
    }

    /// Returns the payload rate available over all spines of this rate, in Mb/s. If the change
    /// occurs after half of the transfer, all spines are available before.
    pub fn left_mbps(self, rate_bps: u64) -> f64 {
        /// The share of payload in the bits on the wire.
        const PAYLOAD_SHARE: f64 = 0.9625;
        let spines = match self {
            Self::Slow => 3.1,
            Self::Silent | Self::HalfLost | Self::Withdrawn => 2.0 / (1.0 / 4.0 + 1.0 / 3.0),
            Self::Lossy => 4.0 * 0.99,
            Self::ShortOnly => 3.0,
            Self::Pauses | Self::Twice => 4.0 * 0.98,
            _ => 4.0,
        };
        spines * PAYLOAD_SHARE * rate_bps as f64 / 1e6
    }

    /// Returns the minimum share of [`left_mbps`](Self::left_mbps) that the default balancer must
    /// reach.
    pub fn target(self) -> f64 {
        match self {
            Self::Healthy
            | Self::Slow
            | Self::Silent
            | Self::HalfLost
            | Self::Withdrawn
            | Self::Lossy
            | Self::Jitter => 0.85,
            _ => 0.6,
        }
    }
}

/// A sender and its protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contender {
    /// `spray send` with these arguments.
    Spray(Vec<String>),
    /// One kernel TCP connection through `spray tunnel` with these arguments.
    Tunnel(Vec<String>),
    /// One kernel TCP connection with this congestion control.
    Tcp(&'static str),
    /// One kernel MPTCP connection, with a subflow for each of the sender's addresses.
    Mptcp,
}

/// The result of a transfer.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Payload rate in Mb/s; `None` if the transfer failed.
    pub mbps: Option<f64>,
    /// The output of the sender.
    pub output: String,
}

/// The spine that is changed.
const SPINE: usize = 0;
const PORT: u16 = 5001;
/// The maximum duration of a transfer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Transfers the file at `path` under a condition. The routers are healthy before and after.
///
/// # Errors
/// If the routers cannot be changed, or a program does not start.
pub fn transfer(
    routers: &Routers,
    spray: &Path,
    path: &Path,
    contender: &Contender,
    condition: Condition,
) -> Result<Transfer, RunError> {
    routers.heal()?;
    let bytes = std::fs::metadata(path).map_err(|error| RunError::io("reading the file", error))?.len();
    let changes = begin(routers, condition)?;
    let end = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        let ended = Ended(&end);
        let watch = scope.spawn(|| at_half(routers, bytes, condition, &end));
        let result = match contender {
            Contender::Spray(arguments) => by_spray(routers, spray, path, arguments, || ()),
            Contender::Tunnel(arguments) => by_tunnel(routers, spray, bytes, arguments),
            Contender::Tcp(control) => by_kernel(routers, bytes, Kernel::Tcp(control), Routers::address(1, 0)),
            Contender::Mptcp => by_kernel(routers, bytes, Kernel::Mptcp, Routers::address(1, 0)),
        };
        drop(ended);
        watch.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).and(result)
    });
    drop(changes);
    routers.heal()?;
    result
}

/// Applies a condition that lasts for the whole transfer.
fn begin(routers: &Routers, condition: Condition) -> Result<Option<Changes>, RunError> {
    let on_all = |interference| (0..Routers::SPINES).try_for_each(|spine| routers.interfere(spine, interference));
    match condition {
        Condition::Healthy | Condition::Silent | Condition::HalfLost | Condition::Withdrawn => {}
        Condition::Slow => routers.set_spine(SPINE, routers.rate_bps() / 10, 0.0)?,
        Condition::Lossy => {
            (0..Routers::SPINES).try_for_each(|spine| routers.set_spine(spine, routers.rate_bps(), 0.01))?;
        }
        Condition::Jitter => return routers.jitter().map(Some),
        Condition::Rerouted => return routers.reroute().map(Some),
        Condition::Far => return routers.delay(SPINE, Duration::from_millis(5)).map(Some),
        Condition::ShortOnly => routers.interfere(SPINE, Interference::DropsLonger(1000))?,
        Condition::Ports => on_all(Interference::DropsPorts(1))?,
        Condition::Policed => on_all(Interference::Polices(50_000))?,
        Condition::Pauses => on_all(Interference::Pauses { every_ms: 100, for_ms: 2 })?,
        Condition::Twice => on_all(Interference::Repeats(0.02))?,
        Condition::Cleared => routers.interfere(SPINE, Interference::Clears)?,
        Condition::Marked => routers.interfere(SPINE, Interference::Marks)?,
        Condition::OneWayBack => routers.return_over(SPINE)?,
    }
    Ok(None)
}

/// Sets the flag that ends other threads when it is dropped, also after a panic, so that these are
/// not waited for forever.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Waits until half of the bytes have passed the sender's leaf, then applies the condition.
fn at_half(routers: &Routers, bytes: u64, condition: Condition, end: &AtomicBool) -> Result<(), RunError> {
    if !matches!(condition, Condition::Silent | Condition::HalfLost | Condition::Withdrawn) {
        return Ok(());
    }
    while !end.load(Relaxed) {
        if routers.bytes()? >= bytes / 2 {
            return match condition {
                Condition::Silent => routers.set_spine(SPINE, routers.rate_bps(), 1.0),
                Condition::HalfLost => routers.set_spine(SPINE, routers.rate_bps(), 0.5),
                _ => routers.withdraw(SPINE),
            };
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Transfers with `spray`; `begins` is called when the receiver listens and the sender is about to
/// start.
fn by_spray(
    routers: &Routers,
    spray: &Path,
    file: &Path,
    arguments: &[String],
    begins: impl FnOnce(),
) -> Result<Transfer, RunError> {
    let failed = |error| RunError::io("running spray", error);
    let out = Out::new().map_err(failed)?;
    // Settings such as the ACK ratio are those of the receiver; others, such as the balancer, those
    // of the sender only.
    let settings: Vec<_> = arguments.iter().filter(|one| one.starts_with("--set=")).cloned().collect();
    let mut receiver = receiver(routers, spray, &out, &settings)?;
    begins();
    let mut sender = sender(routers, spray, file, Routers::INTERFACE, arguments)?;
    let begun = Instant::now();
    while sender.0.try_wait().map_err(failed)?.is_none() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = sender.0.kill();
    let mut output = String::new();
    let _ = sender.0.stdout.take().map(|mut pipe| pipe.read_to_string(&mut output));
    let _ = sender.0.stderr.take().map(|mut pipe| pipe.read_to_string(&mut output));
    let mbps = goodput(&output);
    if mbps.is_none() {
        receiver.kill();
        output = format!("{output}\nthe receiver: {}", receiver.stderr());
    }
    Ok(Transfer { mbps, output })
}

/// Starts `spray recv` with further arguments at the receiving host, and waits until it listens.
fn receiver(routers: &Routers, spray: &Path, out: &Out, arguments: &[String]) -> Result<Running, RunError> {
    let start = || {
        let mut command = Command::new(spray);
        command.args(["recv", "--insecure", "--interface", Routers::INTERFACE, "--out"]).arg(&out.0).args(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
    };
    let process = routers.run_in(1, start)?.map_err(|error| RunError::io("running spray", error))?;
    Ok(Running(process).listening())
}

/// Starts `spray send` with further arguments at an interface of the sending host.
fn sender(
    routers: &Routers,
    spray: &Path,
    file: &Path,
    interface: &str,
    arguments: &[String],
) -> Result<Running, RunError> {
    let start = || {
        let mut command = Command::new(spray);
        command.arg("send").arg(file).args(["--insecure", "--interface", interface, "--to"]);
        command.arg(Routers::address(1, 0).to_string()).args(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    routers.run_in(0, start)?.map(Running).map_err(|error| RunError::io("running spray", error))
}

/// Parses the goodput in the sender's first line, `sent N bytes of NAME in S s: ...`, in Mb/s.
fn goodput(output: &str) -> Option<f64> {
    let line = output.lines().find(|line| line.starts_with("sent "))?;
    let bytes: f64 = line.split(' ').nth(1)?.parse().ok()?;
    let seconds: f64 = line.split(" in ").nth(1)?.split(' ').next()?.parse().ok()?;
    Some(bytes * 8.0 / seconds / 1e6)
}

/// A folder for received files, removed when dropped. It is in memory if possible, so that no disk
/// limits a transfer.
struct Out(PathBuf);

impl Out {
    fn new() -> io::Result<Self> {
        let shm = Path::new("/dev/shm");
        let base = if shm.is_dir() { shm.to_path_buf() } else { std::env::temp_dir() };
        let path = base.join(format!("spray-real-network-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the address of a side in the tunnel.
fn inner(side: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, 1 + side as u8)
}

/// Starts both ends of a tunnel between the hosts, the receiver's first, and waits until they are
/// connected.
///
/// # Errors
/// If a program does not start.
pub fn tunnels(routers: &Routers, spray: &Path, arguments: &[String]) -> Result<[Running; 2], RunError> {
    let start = |side: usize| {
        let spawn = || {
            let mut command = Command::new(spray);
            command.args(["tunnel", "--insecure", "--interface", Routers::INTERFACE, "--peer"]);
            command.arg(Routers::address(1 - side, 0).to_string());
            command.args(["--address", &format!("{}/24", inner(side))]).args(arguments);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
        };
        let process = routers.run_in(side, spawn)?.map_err(|error| RunError::io("running spray", error))?;
        Ok::<_, RunError>(Running(process))
    };
    let both = [start(1)?, start(0)?];
    Ok(both.map(|process| process.until("connected to ")))
}

fn by_tunnel(routers: &Routers, spray: &Path, bytes: u64, arguments: &[String]) -> Result<Transfer, RunError> {
    let mut ends = tunnels(routers, spray, arguments)?;
    let done = by_kernel(routers, bytes, Kernel::Tcp(CUBIC), inner(1));
    ends.iter_mut().for_each(Running::kill);
    let outputs = ends.iter_mut().map(Running::stderr).collect();
    Ok(Transfer { output: outputs, ..done? })
}

/// Opens a kernel connection between the hosts. Returns the sender's end, the receiver's, and the
/// listening socket, which later subflows of MPTCP require.
fn connection(routers: &Routers, protocol: Protocol, to: Ipv4Addr) -> Result<[Socket; 3], RunError> {
    let failed = |error| RunError::io("a transfer of the kernel's", error);
    let socket = || Socket::new(Domain::IPV4, Type::STREAM, Some(protocol));
    let listen = || -> io::Result<Socket> {
        let listener = socket()?;
        listener.set_reuse_address(true)?;
        listener.bind(&SockAddr::from(SocketAddrV4::new(to, PORT)))?;
        listener.listen(1)?;
        Ok(listener)
    };
    let listener = routers.run_in(1, listen)?.map_err(failed)?;
    let connect = || -> io::Result<Socket> {
        let stream = socket()?;
        let to = SockAddr::from(SocketAddrV4::new(to, PORT));
        stream.connect_timeout(&to, PATIENCE)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    };
    let stream = routers.run_in(0, connect)?.map_err(failed)?;
    let (accepted, _) = listener.accept().map_err(failed)?;
    accepted.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    Ok([stream, accepted, listener])
}

/// A protocol of the kernel.
#[derive(Clone, Copy)]
enum Kernel<'a> {
    /// With this congestion control.
    Tcp(&'a str),
    Mptcp,
}

/// The kernel's default congestion control.
pub const CUBIC: &str = "cubic";

fn by_kernel(routers: &Routers, bytes: u64, kernel: Kernel<'_>, to: Ipv4Addr) -> Result<Transfer, RunError> {
    let protocol = if matches!(kernel, Kernel::Mptcp) { Protocol::MPTCP } else { Protocol::TCP };
    let [mut stream, mut accepted, _listener] = connection(routers, protocol, to)?;
    if let Kernel::Tcp(control) = kernel {
        let failed = |error| RunError::io("setting TCP's congestion control", error);
        stream.set_tcp_congestion(control.as_bytes()).map_err(failed)?;
    }
    let begun = Instant::now();
    let taken = std::thread::scope(|scope| {
        scope.spawn(move || {
            let chunk = vec![0u8; 1 << 20];
            let mut left = bytes as usize;
            while left > 0 && begun.elapsed() < PATIENCE {
                let Ok(sent) = stream.write(&chunk[..chunk.len().min(left)]) else { break };
                left -= sent;
            }
        });
        let mut buffer = vec![0u8; 1 << 20];
        let mut taken = 0;
        while let Ok(count @ 1..) = accepted.read(&mut buffer) {
            taken += count as u64;
        }
        taken
    });
    let mbps = (taken == bytes).then(|| bytes as f64 * 8.0 / begun.elapsed().as_secs_f64() / 1e6);
    Ok(Transfer { mbps, output: String::new() })
}

#[cfg(test)]
mod tests {
    use super::goodput;

    #[test]
    fn the_goodput_is_read_from_the_first_line() {
        let output = "sent 1000000 bytes of x in 0.010 s: 0.80 Gb/s goodput, 1400 byte payloads\n7 packets, 0 of them sent again\n";
        assert_eq!(goodput(output), Some(800.0));
        assert_eq!(goodput("spray: failed"), None);
    }
}
