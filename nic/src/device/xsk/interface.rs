//! An interface taken over: its queues, and the program that steers frames of the transport into them.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spray_wire::Ports;
use thiserror::Error;

use super::busy::Deferral;
use super::rules::Rules;
use super::{BindMode, OpenError, XskConfig, XskDevice, queues::XskInterface};
use crate::endpoint::ConfigError;
use crate::net::drivers;
use crate::net::ethtool::Ethtool;
use crate::net::{Interface, NetError};
use crate::xdp::{AttachMode, ProgramError, SteerProgram};

/// What the shards of an interface have in common.
#[derive(Debug)]
pub(super) struct Taken {
    steer: Mutex<SteerProgram>,
    /// The address and the ports that frames are taken for.
    pub(super) at: (IpAddr, Ports),
    _deferral: Option<Deferral>,
    _rules: Option<Rules>,
    pub(super) how: TakenOver,
    /// Frames of the transport that came before the sockets were registered.
    early: u64,
}

/// How an interface was taken over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TakenOver {
    /// The interface, as it was then.
    pub interface: Interface,
    /// How the program sits on the interface; [`AttachMode::Generic`] is slower and worth a warning.
    pub mode: AttachMode,
    /// Why the driver did not take the program natively, in the kernel's words; `None` where it did.
    pub refusal: Option<String>,
    /// Whether the driver reads and writes our frames itself, on all queues; otherwise the kernel copies.
    pub zero_copy: bool,
    /// Why zero-copy was not tried, where it is known to break with this driver on this kernel and nobody insisted on it.
    pub distrust: Option<String>,
    /// Whether the threads that use it run the driver's routines themselves, and whether interrupts are off meanwhile.
    pub busy_polls: Option<bool>,
    /// How many of the interface's queues have a socket.
    pub queues: usize,
    /// To how many shards they are dealt out.
    pub shards: usize,
    /// Rules in the NIC that bring each frame to a queue of its shard, or to the only queue; 0 where it takes none.
    pub rules: usize,
    /// Why there are no rules although the driver has some, in the kernel's or our words.
    pub rules_refused: Option<String>,
}

/// Why an interface could not be taken over.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TakeOverError {
    /// It is not there, or not free.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Its sockets could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The steering program could not be loaded.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The steering program could not be attached.
    #[error("cannot attach to {interface}: {source}")]
    Attach {
        /// The interface.
        interface: String,
        /// What the kernel said.
        source: ProgramError,
    },
    /// Zero-copy was insisted on, and the driver does not take the steering program.
    #[error(
        "no zero-copy on {interface}: its driver does not take an XDP program, it says: {why}. `spray doctor {interface}` tells what \
         drivers mind, and --fix mends most of it; without --zero-copy the kernel copies"
    )]
    Generic {
        /// The interface.
        interface: String,
        /// What the driver says.
        why: String,
    },
    /// The endpoint's configuration is out of range, or its frames do not fit the interface.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl XskInterface {
    /// Takes an interface of this thread's network namespace over, for frames to `address` at these ports: all its receive queues, or
    /// `queue` alone, dealt out to so many shards, or one for each queue where there are fewer queues.
    pub(crate) fn open(
        interface: Interface,
        address: IpAddr,
        ports: Ports,
        sockets: XskConfig,
        queue: Option<u32>,
        shards: usize,
    ) -> Result<Vec<Self>, TakeOverError> {
        interface.check_free()?;
        interface.check_address(address)?;
        let name = interface.name.clone();
        // Before there are sockets, which drivers may reset for it.
        let rules = begin_rules(&name, queue, shards);
        let mut steer = SteerProgram::load(interface.station().mac, &[address], ports)?;
        // Drivers prepare for sockets by the program. Frames that come before a socket does go to the kernel.
        let mode = steer.attach(interface.index).map_err(|source| refused(&name, source))?;
        let distrust = if sockets.mode == BindMode::Auto { drivers::distrust(&name) } else { None };
        let asked = if distrust.is_some() { BindMode::Copy } else { sockets.mode };
        let sockets = XskConfig { mode: bind_mode(&interface, asked, &steer)?, interface: name.clone(), ..sockets };
        let open = || match queue {
            Some(queue) => Self::open_some(&sockets, &[queue], shards, ports),
            None => Self::open_all(&sockets, SteerProgram::QUEUES, shards, ports),
        };
        let polls = |shard: &Self| shard.queues().iter().any(XskDevice::busy_polls);
        let (mut shards, deferral) = Deferral::around(&interface, &sockets, open, |shards| shards.iter().any(polls))?;
        let queues = || shards.iter().flat_map(Self::queues);
        queues().try_for_each(|queue| steer.register(queue.queue(), queue.as_fd()))?;
        let early = steer.strays().unwrap_or(0);
        let rules =
            rules.and_then(|rules| rules.map(|rules| put_rules(rules, &name, address, ports, &shards)).transpose());
        let (rules, rules_refused) = rules.map_or_else(|why| (None, Some(why.to_string())), |rules| (rules, None));
        let how = TakenOver {
            interface,
            mode,
            refusal: steer.refusal().map(Into::into),
            zero_copy: queues().all(XskDevice::zero_copy),
            distrust,
            busy_polls: shards.iter().any(polls).then_some(deferral.is_some()),
            queues: queues().count(),
            shards: shards.len(),
            rules: rules.as_ref().map_or(0, Rules::count),
            rules_refused,
        };
        let at = (address, ports);
        let taken = Arc::new(Taken { steer: Mutex::new(steer), at, _deferral: deferral, _rules: rules, how, early });
        shards.iter_mut().for_each(|shard| shard.taken = Some(Arc::clone(&taken)));
        Ok(shards)
    }

    /// How it was taken over.
    #[must_use]
    pub fn taken_over(&self) -> &TakenOver {
        &self.taken.as_deref().expect(TAKEN).how
    }

    /// Frames of the transport that came by a queue without a socket and are lost, since the sockets have been there; 0 when the kernel does
    /// not tell.
    #[must_use]
    pub fn strays(&self) -> u64 {
        let taken = self.taken.as_deref().expect(TAKEN);
        taken.steer().strays().unwrap_or(0).saturating_sub(taken.early)
    }
}

impl Taken {
    /// A thread that panicked has left the program as it was.
    pub(super) fn steer(&self) -> MutexGuard<'_, SteerProgram> {
        self.steer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// [`XskInterface::open`] returns no other.
const TAKEN: &str = "the interface is taken over";

/// Has the NIC heed rules, where it has any, for its frames to come by `queue` alone, or by the queue of the shard, of so many, that they are for.
/// Without, shards hand each other what is theirs. With one shard and all queues, every queue is the right one.
fn begin_rules(interface: &str, queue: Option<u32>, shards: usize) -> io::Result<Option<Rules>> {
    let nic = Ethtool::open(interface)?;
    let queues = nic.channels().map_or(1, |channels| channels.receiving());
    if queues > 1 && (queue.is_some() || shards > 1) { Rules::begin(&nic, interface) } else { Ok(None) }
}

fn put_rules(
    rules: Rules,
    interface: &str,
    address: IpAddr,
    ports: Ports,
    shards: &[XskInterface],
) -> io::Result<Rules> {
    let mut places: Vec<u32> = shards.iter().flat_map(XskInterface::queues).map(XskDevice::queue).collect();
    places.sort_unstable();
    rules.put(&Ethtool::open(interface)?, address, ports, &places, shards.len())
}

/// Why the program could not be attached: somebody was faster, or as the kernel says.
fn refused(interface: &str, source: ProgramError) -> TakeOverError {
    let taken = Interface::find(interface).and_then(|now| now.check_free());
    taken.err().map_or_else(|| TakeOverError::Attach { interface: interface.into(), source }, TakeOverError::Net)
}

/// How to bind behind a program that is attached: a driver that has refused it does not take part in zero-copy either.
fn bind_mode(interface: &Interface, asked: BindMode, steer: &SteerProgram) -> Result<BindMode, TakeOverError> {
    let Some(why) = steer.refusal() else { return Ok(asked) };
    match asked {
        BindMode::ZeroCopy => Err(TakeOverError::Generic { interface: interface.name.clone(), why: why.into() }),
        _ => Ok(BindMode::Copy),
    }
}
