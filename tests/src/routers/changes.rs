//! Changes of the network while a transfer runs.

use std::collections::VecDeque;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use spray_nic::net::Tun;

use super::{Namespace, Routers, RunError};

/// Changes the routers until it is dropped.
#[derive(Debug)]
pub struct Changes {
    child: Option<Child>,
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Changes {
    /// Runs `work` on a thread until it returns, shortly after the flag is set.
    fn start(child: Option<Child>, work: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        Self { child, thread: Some(std::thread::spawn(move || work(&stopped))), stop }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        // The thread owns the standard input of the command, which ends when this is closed.
        let _ = self.thread.take().map(JoinHandle::join);
        let _ = self.child.as_mut().map(Child::wait);
    }
}

impl Routers {
    /// The routing table of a router that leads packets to the device that delays them. Empty, it
    /// has no effect.
    pub(super) const DELAYS: u32 = 7;

    /// Switches the rate of every spine toward the receiver between a half and one and a half of
    /// [`Routers::rate_bps`] until the returned value is dropped. Each spine switches every 12 ms,
    /// one after the other, so that paths differ in delay while the mean rate is constant.
    pub fn jitter(&self) -> Result<Changes, RunError> {
        let (queue, mut fast) = (self.queue, [false; Self::SPINES]);
        self.change("tc", Duration::from_millis(12 / Self::SPINES as u64), move |step| {
            let spine = step % Self::SPINES;
            fast[spine] = !fast[spine];
            let rate_bps = if fast[spine] { queue.rate_bps * 3 / 2 } else { queue.rate_bps / 2 };
            format!("qdisc replace dev up{spine} root {}", queue.shaper(rate_bps))
        })
    }

    /// Five times a second makes the sender's leaf select another spine for every five-tuple, until
    /// the returned value is dropped.
    pub fn reroute(&self) -> Result<Changes, RunError> {
        let turned = |step: usize| (0..Self::SPINES).map(move |spine| (spine + step) % Self::SPINES);
        self.change("ip", Duration::from_millis(200), move |step| Self::routes(0, turned(step)))
    }

    /// Delays packets through a spine, in both directions, until the returned value is dropped. The
    /// delay varies by up to a quarter of a millisecond, and packets keep their order.
    pub fn delay(&self, spine: usize, by: Duration) -> Result<Changes, RunError> {
        delay(&self.spines[spine], by)
    }

    /// As [`Routers::delay`], for packets from the sending host's first interface. At most once for
    /// these routers.
    pub fn delay_first(&self, by: Duration) -> Result<Changes, RunError> {
        super::run_in(&self.leaves[0], &format!("ip rule add iif {} lookup {}", Self::GATEWAY, Self::DELAYS))?;
        delay(&self.leaves[0], by)
    }

    /// As [`Routers::delay`], for packets from the sending host's second interface.
    pub fn delay_second(&self, by: Duration) -> Result<Changes, RunError> {
        delay(&self.leaves[0], by)
    }

    /// Passes lines to `program` of iproute2 at the sender's leaf at regular intervals.
    fn change(
        &self,
        program: &str,
        every: Duration,
        mut line: impl FnMut(usize) -> String + Send + 'static,
    ) -> Result<Changes, RunError> {
        let start = || {
            let mut command = Command::new(program);
            command.args(["-force", "-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()
        };
        let mut child =
            self.leaves[0].run(start)?.map_err(|source| RunError::io("starting a command of iproute2", source))?;
        let mut stdin = child.stdin.take();
        Ok(Changes::start(Some(child), move |stopped| {
            for step in (0..).take_while(|_| !stopped.load(Relaxed)) {
                if let Some(stdin) = &mut stdin {
                    let _ = writeln!(stdin, "{}", line(step));
                }
                std::thread::sleep(every);
            }
        }))
    }
}

/// Delays the packets that a router's rules send to [`Routers::DELAYS`].
fn delay(router: &Namespace, by: Duration) -> Result<Changes, RunError> {
    let open = || -> std::io::Result<Tun> {
        let tun = Tun::open("far", 1)?.remove(0);
        tun.set_up(&[], 1500, 2000).map_err(std::io::Error::other)?;
        Ok(tun)
    };
    let tun = router.run(open)?.map_err(|error| RunError::io("making a TUN device", error))?;
    super::run_in(router, &format!("ip route add default dev far table {}", Routers::DELAYS))?;
    Ok(Changes::start(None, move |stopped| delay_packets(&tun, by, stopped)))
}

/// The interval at which packets are polled.
const TICK: Duration = Duration::from_micros(250);

/// Returns packets that arrive on `tun` after the delay. They are then routed normally.
#[expect(clippy::disallowed_methods, reason = "it delays real packets")]
fn delay_packets(tun: &Tun, by: Duration, stopped: &AtomicBool) {
    let mut buffer = vec![0; Tun::HEADER + (64 << 10)];
    let mut held: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    while !stopped.load(Relaxed) {
        let now = Instant::now();
        while let Ok(Some(bytes)) = tun.read(&mut buffer) {
            held.push_back((now + by, buffer[..bytes].to_vec()));
        }
        let due = held.partition_point(|(due, _)| *due <= now);
        for (_, packet) in held.drain(..due) {
            // Fails if the kernel has no buffer: a loss like any other.
            let _ = tun.write(0, &packet);
        }
        std::thread::sleep(TICK);
    }
}
