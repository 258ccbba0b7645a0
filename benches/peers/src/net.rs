
use std::fs::File;
use std::io;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, id};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns};
use nix::unistd::Pid;

const MTU: u16 = 3_498;

/// Two namespaces with one end of the pair each. Dropping it removes them.
pub struct Pair([String; 2]);

impl Pair {
    pub fn new() -> io::Result<Self> {
        let names = [0, 1].map(|side| format!("peers-{}-{side}", id()));
        let [near, far] = &names;
        let pair = Self(names.clone());
        shell(&format!("ip netns add {near}; ip netns add {far}"))?;
        shell(&format!("ip link add eth0 netns {near} mtu {MTU} type veth peer name eth0 netns {far} mtu {MTU}"))?;
        for (number, name) in (1..).zip(&names) {
            shell(&format!("ip -n {name} address add 10.0.0.{number}/24 dev eth0; ip -n {name} link set eth0 up"))?;
        }
        Ok(pair)
    }

    /// Sets whether the kernel passes long segments to the interface.
    pub fn set_tso(&self, on: bool) -> io::Result<()> {
        shell(&format!("ip -n {} link set eth0 gso_max_segs {}", self.0[0], if on { 65_535 } else { 1 }))
    }

    /// Runs `work` on a thread in a side's namespace; sockets that it opens stay there.
    fn within<T: Send>(&self, side: usize, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let namespace = File::open(format!("/run/netns/{}", self.0[side]))?;
        thread::scope(|scope| {
            join(
                scope.spawn(|| {
                    setns(namespace, CloneFlags::CLONE_NEWNET).map_err(io::Error::from).and_then(|()| work())
                }),
            )
        })
    }

    pub fn udp(&self) -> io::Result<[UdpSocket; 2]> {
        Ok([self.within(0, || UdpSocket::bind("10.0.0.1:0"))?, self.within(1, || UdpSocket::bind("10.0.0.2:0"))?])
    }

    pub fn tcp(&self) -> io::Result<[TcpStream; 2]> {
        let listener = self.within(1, || TcpListener::bind("10.0.0.2:0"))?;
        let to = listener.local_addr()?;
        Ok([self.within(0, move || TcpStream::connect(to))?, listener.accept()?.0])
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.0 {
            // Fails harmlessly if the namespace was not created.
            let _ = shell(&format!("ip netns delete {name} 2> /dev/null"));
        }
    }
}

fn shell(commands: &str) -> io::Result<()> {
    let status = Command::new("sh").args(["-ec", commands]).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("`{commands}` failed: this takes root and iproute2")))
    }
}

/// Runs both on separate CPUs until both have ended. Either sets the flag at its end.
pub fn run_both<A: Send, B: Send>(
    first: impl FnOnce(&AtomicBool) -> io::Result<A> + Send,
    second: impl FnOnce(&AtomicBool) -> io::Result<B> + Send,
) -> io::Result<(A, B)> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let first = scope.spawn(|| on_cpu(0, &stop, first));
        let second = scope.spawn(|| on_cpu(1, &stop, second));
        Ok((join(first)?, join(second)?))
    })
}

fn on_cpu<T>(cpu: usize, stop: &AtomicBool, work: impl FnOnce(&AtomicBool) -> io::Result<T>) -> io::Result<T> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    // Ignored on a machine with one CPU.
    let _ = sched_setaffinity(Pid::from_raw(0), &set);
    let outcome = work(stop);
    stop.store(true, Ordering::Release);
    outcome
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the busy time of all CPUs since boot in 10 ms steps: user, nice, system, irq, softirq.
pub fn busy() -> io::Result<Duration> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let columns: Vec<u64> = text.lines().next().unwrap_or_default().split_whitespace().flat_map(str::parse).collect();
    let ticks: u64 = [0, 1, 2, 5, 6].iter().filter_map(|column| columns.get(*column)).sum();
    Ok(Duration::from_millis(10 * ticks))
}
