//! Plain Linux routers between two hosts, as a network without our switches.
//!
//! ```text
//!                  spine 0
//!   sender --- leaf 0 ... leaf 1 --- receiver
//!                  spine 3
//! ```
//!
//! The kernel forwards, selects a spine by a hash of the five-tuple, and shapes every uplink with a
//! token bucket. A BPF program on the uplinks marks, drops and counts (`RouterProgram`). Requires
//! the commands `ip` and `tc` of iproute2.

mod changes;
mod program;

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

pub use self::changes::Changes;
pub use self::program::Interference;
use self::program::{RouterProgram, Uplink};
use spray_switch::netns::{Namespace, sysctl};
use spray_switch::{RunError, links, prefix};

/// Two hosts, two leaves and [`Routers::SPINES`] spines, each in a namespace. Dropping it removes
/// them.
#[derive(Debug)]
pub struct Routers {
    hosts: [Namespace; 2],
    leaves: [Namespace; 2],
    spines: Vec<Namespace>,
    /// The programs on the uplinks of each leaf, by spine.
    uplinks: [Vec<RouterProgram>; 2],
    queue: RouterQueue,
}

/// Rate and queue of every uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterQueue {
    /// The drain rate, in bits per second.
    pub rate_bps: u64,
    /// The limit of the queue, in bytes.
    pub bytes: u64,
    /// The marking threshold, in bytes; `None` for no marking.
    pub mark_bytes: Option<u64>,
    /// The average queue at which RED starts to drop frames, in bytes; `None` for tail drop only.
    pub red_bytes: Option<u64>,
}

impl RouterQueue {
    /// A queue that marks well below its limit.
    pub const MARKED: Self = Self { mark_bytes: Some(60_000), ..Self::unmarked(250_000) };

    /// A queue with RED, which drops below its limit.
    pub const RED: Self = Self { red_bytes: Some(60_000), ..Self::unmarked(250_000) };

    /// Returns a queue with tail drop and without marking.
    pub const fn unmarked(bytes: u64) -> Self {
        Self { rate_bps: Routers::RATE_BPS, bytes, mark_bytes: None, red_bytes: None }
    }
}

impl Routers {
    /// The number of spines, and so of paths.
    pub const SPINES: usize = 4;
    /// The default rate of a spine's links, in bits per second: low enough for two CPUs to forward
    /// for all spines and run the programs of both hosts.
    pub const RATE_BPS: u64 = 100_000_000;
    /// The name of a host's interface.
    pub const INTERFACE: &str = "eth0";
    /// The name of the router's interface toward a host.
    pub const GATEWAY: &str = "hosts";
    /// The name of the sending host's second interface.
    pub const SECOND: &str = "eth1";
    /// The name of the router's interface toward the second one.
    const SECOND_GATEWAY: &str = "more";
    /// The number of addresses of a host, all on one interface: MPTCP uses each as a path.
    pub const ADDRESSES: u8 = 8;
    /// The burst of a spine's shaper, in bytes.
    const BURST_BYTES: u64 = 16 << 10;

    /// Creates and joins the namespaces; queues are [`RouterQueue::MARKED`]. Needs root.
    ///
    /// # Errors
    /// [`RunError`]; what had been created is removed.
    pub fn new() -> Result<Self, RunError> {
        Self::with_queues(1)
    }

    /// As [`new`](Self::new), with this number of queues at the hosts' interfaces. The last router
    /// selects the queue of a packet by a hash of its five-tuple, as a NIC does.
    pub fn with_queues(queues: u32) -> Result<Self, RunError> {
        let prefix = prefix();
        let make = |name: String| Namespace::create(format!("{prefix}{name}"));
        let hosts = [make("host0".into())?, make("host1".into())?];
        let leaves = [make("leaf0".into())?, make("leaf1".into())?];
        let spines: Vec<_> = (0..Self::SPINES).map(|spine| make(format!("spine{spine}"))).collect::<Result<_, _>>()?;
        for router in leaves.iter().chain(&spines) {
            router.run(forward)?;
        }
        for side in 0..2 {
            wire_host(side, &hosts[side], &leaves[side], queues)?;
            for (number, spine) in spines.iter().enumerate() {
                wire_spine(side, number, &leaves[side], spine)?;
            }
        }
        let uplinks = [attach(&leaves[0])?, attach(&leaves[1])?];
        let routers = Self { hosts, leaves, spines, uplinks, queue: RouterQueue::MARKED };
        routers.heal()?;
        Ok(routers)
    }

    /// Returns one of a host's addresses: `side` is 0 or 1, `number` below [`Routers::ADDRESSES`].
    pub fn address(side: usize, number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 1 + side as u8, 0, 2 + number)
    }

    /// Runs `work` on this thread in a host's namespace; processes that it starts stay there.
    pub fn run_in<T>(&self, side: usize, work: impl FnOnce() -> T) -> Result<T, RunError> {
        self.hosts[side].run(work)
    }

    /// As [`Routers::run_in`], at the host's router.
    pub fn run_at_gateway<T>(&self, side: usize, work: impl FnOnce() -> T) -> Result<T, RunError> {
        self.leaves[side].run(work)
    }

    /// Adds a second interface, [`Routers::SECOND`], to the sending host, with a separate address
    /// and default route.
    pub fn add_interface(&self) -> Result<(), RunError> {
        let (host, leaf) = (&self.hosts[0], &self.leaves[0]);
        join(host, Self::SECOND, leaf, Self::SECOND_GATEWAY, 1)?;
        let rule = format!("ip rule add iif more lookup {}", Self::DELAYS);
        run_in(leaf, &format!("ip address add 10.1.0.129/25 dev more\nip link set more up\n{rule}"))?;
        let address = "ip address add 10.1.0.200/25 dev eth1\nip link set eth1 up gso_max_segs 1";
        run_in(host, &format!("{address}\nip route add default via 10.1.0.129 dev eth1 metric 9"))
    }

    /// Runs commands of iproute2 at a host's router, one per line, in one shell.
    /// [`Routers::GATEWAY`] is the router's interface there.
    pub fn at_gateway(&self, side: usize, commands: &str) -> Result<(), RunError> {
        run_in(&self.leaves[side], commands)
    }

    /// As [`Routers::at_gateway`], at every spine.
    pub fn at_spines(&self, commands: &str) -> Result<(), RunError> {
        self.spines.iter().try_for_each(|spine| run_in(spine, commands))
    }

    /// Returns the bytes on all uplinks of the sender's leaf since the last change of one of them.
    pub fn bytes(&self) -> Result<u64, RunError> {
        self.uplinks[0].iter().try_fold(0, |sum, uplink| Ok(sum + uplink.bytes()?))
    }

    /// Returns the bytes that the sender's leaf has received from the sending host: by its first
    /// interface, and by its second.
    pub fn received_bytes(&self) -> Result<[u64; 2], RunError> {
        let read = || std::fs::read_to_string("/proc/thread-self/net/dev");
        let counters =
            self.leaves[0].run(read)?.map_err(|source| RunError::io("reading an interface's counters", source))?;
        let of = |name: &str| {
            let line = counters.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        Ok([of(Self::GATEWAY), of(Self::SECOND_GATEWAY)])
    }

    /// Restores all uplinks and routes.
    pub fn heal(&self) -> Result<(), RunError> {
        for side in 0..2 {
            for spine in 0..Self::SPINES {
                self.set(side, spine, self.queue.uplink())?;
            }
        }
        self.route(0..Self::SPINES)
    }

    /// Sets the queue of every uplink, and restores all.
    pub fn set_queue(&mut self, queue: RouterQueue) -> Result<(), RunError> {
        self.queue = queue;
        self.heal()
    }

    /// Returns the rate of a healthy spine's links, in bits per second.
    pub fn rate_bps(&self) -> u64 {
        self.queue.rate_bps
    }

    /// Sets rate and loss of both directions through a spine; a loss of 1 drops everything
    /// silently.
    pub fn set_spine(&self, spine: usize, rate_bps: u64, loss: f64) -> Result<(), RunError> {
        let uplink = Uplink { rate_bps, loss, ..self.queue.uplink() };
        (0..2).try_for_each(|side| self.set(side, spine, uplink))
    }

    /// Applies an interference to both directions through a spine, with its normal rate and no
    /// random loss.
    pub fn interfere(&self, spine: usize, interference: Interference) -> Result<(), RunError> {
        let uplink = Uplink { interference, ..self.queue.uplink() };
        (0..2).try_for_each(|side| self.set(side, spine, uplink))
    }

    fn set(&self, side: usize, spine: usize, uplink: Uplink) -> Result<(), RunError> {
        self.uplinks[side][spine].set(&uplink)?;
        let queue = match uplink.interference {
            Interference::Polices(_) => "pfifo limit 1000".into(),
            _ => self.queue.shaper(uplink.rate_bps),
        };
        run_in(&self.leaves[side], &format!("tc qdisc replace dev up{spine} root {queue}"))
    }

    /// Removes a spine from the routes of both leaves, as a routing protocol would.
    pub fn withdraw(&self, spine: usize) -> Result<(), RunError> {
        self.route((0..Self::SPINES).filter(|other| *other != spine))
    }

    /// Routes all packets from the receiving host over one spine.
    pub fn return_over(&self, spine: usize) -> Result<(), RunError> {
        run_in(&self.leaves[1], &format!("ip {}", Self::routes(1, spine..=spine)))
    }

    /// Routes between the hosts over these spines, in both directions.
    fn route(&self, spines: impl Iterator<Item = usize> + Clone) -> Result<(), RunError> {
        (0..2).try_for_each(|side| run_in(&self.leaves[side], &format!("ip {}", Self::routes(side, spines.clone()))))
    }

    /// Returns the arguments of `ip` with which a leaf routes to the other's hosts over these
    /// spines.
    fn routes(side: usize, spines: impl Iterator<Item = usize>) -> String {
        let hops: String = spines.map(|spine| format!(" nexthop via 10.{}.{spine}.2", 10 + side)).collect();
        format!("route replace 10.{}.0.0/24{hops}", 2 - side)
    }

    /// Routes all packets to one of the receiving host's addresses over one spine, permanently.
    pub fn pin(&self, number: u8, spine: usize) -> Result<(), RunError> {
        let route = format!("ip route replace {}/32 via 10.10.{spine}.2", Self::address(1, number));
        run_in(&self.leaves[0], &route)
    }
}

impl RouterQueue {
    /// Returns a healthy uplink with this queue.
    fn uplink(self) -> Uplink {
        let Self { rate_bps, mark_bytes, red_bytes, .. } = self;
        Uplink { rate_bps, mark_bytes, red_bytes, loss: 0.0, interference: Interference::None }
    }

    /// Returns the arguments of `tc` for a token bucket of this rate.
    fn shaper(self, rate_bps: u64) -> String {
        format!("tbf rate {rate_bps}bit burst {} limit {}", Routers::BURST_BYTES, self.bytes)
    }
}

/// Makes the namespace a router that selects among equal routes by a hash of the five-tuple.
fn forward() {
    sysctl("ipv4/ip_forward", "1");
    sysctl("ipv4/fib_multipath_hash_policy", "1");
    sysctl("ipv4/conf/all/rp_filter", "0");
    sysctl("ipv4/conf/default/rp_filter", "0");
}

/// Creates a host's interface with its addresses, and its leaf's with that of the gateway. TCP
/// segmentation offload is disabled: a lost frame then costs TCP one packet, as it does other
/// protocols.
fn wire_host(side: usize, host: &Namespace, leaf: &Namespace, queues: u32) -> Result<(), RunError> {
    join(host, Routers::INTERFACE, leaf, Routers::GATEWAY, queues)?;
    let net = side + 1;
    let mut text = String::new();
    for number in 0..Routers::ADDRESSES {
        let _ = writeln!(text, "ip address add {}/24 dev eth0", Routers::address(side, number));
    }
    let _ =
        writeln!(text, "ip link set eth0 up gso_max_segs 1\nip link set lo up\nip route add default via 10.{net}.0.1");
    for number in 1..Routers::ADDRESSES {
        let _ = writeln!(text, "ip mptcp endpoint add {} dev eth0 subflow", Routers::address(side, number));
    }
    text += "ip mptcp limits set subflow 8 add_addr_accepted 8\n";
    run_in(host, &text)?;
    run_in(leaf, &format!("ip address add 10.{net}.0.1/24 dev hosts\nip link set hosts up"))
}

/// Creates a leaf's link to a spine, shaped at the leaf, and the spine's route back to that leaf's
/// hosts.
fn wire_spine(side: usize, number: usize, leaf: &Namespace, spine: &Namespace) -> Result<(), RunError> {
    let (up, down) = (format!("up{number}"), format!("leaf{side}"));
    join(leaf, &up, spine, &down, 1)?;
    let (net, hosts) = (format!("10.{}.{number}", 10 + side), side + 1);
    run_in(leaf, &format!("ip address add {net}.1/24 dev {up}\nip link set {up} up"))?;
    let back = format!("ip route add 10.{hosts}.0.0/24 via {net}.1\nip rule add iif {down} lookup {}", Routers::DELAYS);
    run_in(spine, &format!("ip address add {net}.2/24 dev {down}\nip link set {down} up\n{back}"))
}

/// Creates a veth pair with this number of queues in each direction, one end in each namespace.
fn join(near: &Namespace, near_name: &str, far: &Namespace, far_name: &str, queues: u32) -> Result<(), RunError> {
    let queues = format!("numtxqueues {queues} numrxqueues {queues}");
    let peer = format!("peer name {far_name} {queues} netns {}", far.name());
    run_in(near, &format!("ip link add {near_name} {queues} type veth {peer}"))
}

/// Attaches the programs to a leaf's uplinks.
fn attach(leaf: &Namespace) -> Result<Vec<RouterProgram>, RunError> {
    let healthy = RouterQueue::MARKED.uplink();
    let attach = |spine: usize| {
        let name = format!("up{spine}");
        let index = links::in_namespace(leaf, async |handle| links::index(&handle, &name).await)?;
        leaf.run(|| RouterProgram::attach(index, &healthy))?.map_err(RunError::from)
    };
    (0..Routers::SPINES).map(attach).collect()
}

/// Runs commands in a namespace, one per line, in one shell.
fn run_in(namespace: &Namespace, commands: &str) -> Result<(), RunError> {
    let shell = || -> std::io::Result<()> {
        let mut shell = Command::new("sh");
        shell.args(["-e", "-s"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = shell.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(commands.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(std::io::Error::other(format!("`{commands}`: {stderr}"))) }
    };
    namespace.run(shell)?.map_err(|source| RunError::io("setting up a router with iproute2", source))
}
