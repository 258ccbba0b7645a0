//! Takes over an interface: attaches the program that steers frames of the transport to its
//! sockets.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};

use spray_wire::Ports;
use thiserror::Error;

use super::busy_poll::Deferral;
use super::rules::Rules;
use super::{
    BindMode, OpenError, XskConfig, XskDevice,
    queues::XskInterface,
    taken_over::{NicState, TakenOver},
};
use crate::endpoint::ConfigError;
use crate::net::drivers;
use crate::net::ethtool::Ethtool;
use crate::net::{Interface, NetError};
use crate::xdp::{AttachMode, ProgramError, SteerProgram};

/// Why an interface could not be taken over.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TakeOverError {
    /// It does not exist, or is not free.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The sockets could not be opened.
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
        /// The kernel's error.
        source: ProgramError,
    },
    /// Zero-copy is required, and the driver does not accept the steering program.
    #[error(
        "no zero-copy on {interface}: its driver does not take an XDP program, it says: {why}. `spray doctor {interface}` shows what \
         its driver needs, and --fix sets most of it; without --zero-copy the kernel copies"
    )]
    Generic {
        /// The interface.
        interface: String,
        /// The driver's message.
        why: String,
    },
    /// The endpoint's configuration is out of range, or its frames do not fit the interface.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl XskInterface {
    /// Takes over an interface of this thread's network namespace, for frames to `address` at
    /// `ports`: all its receive queues, or `queue` alone, divided among `shards` shards, or among
    /// as many as there are queues.
    pub(crate) fn open(
        interface: Interface,
        address: IpAddr,
        ports: Ports,
        sockets: XskConfig,
        queue: Option<u32>,
        shards: usize,
    ) -> Result<Vec<Self>, TakeOverError> {
        interface.check_available()?;
        interface.check_address(address)?;
        let name = interface.name.clone();
        // Before sockets are opened, since some drivers reset their queues for it.
        let rules = begin_rules(&name, queue, shards);
        // Drivers prepare for sockets by the program. Frames that arrive before a socket go to the
        // kernel.
        let steer = SteerProgram::load_on(interface.index, interface.l3_interface().mac, &[address], ports)
            .map_err(|error| refused(&name, error))?;
        let zero_copy_defect = if sockets.mode == BindMode::Auto { drivers::zero_copy_defect(&name) } else { None };
        let asked = if zero_copy_defect.is_some() { BindMode::Copy } else { sockets.mode };
        let sockets = XskConfig { mode: bind_mode(&interface, asked, &steer)?, interface: name.clone(), ..sockets };
        let open = || match queue {
            Some(queue) => Self::open_some(&sockets, &[queue], shards, ports),
            None => Self::open_all(&sockets, SteerProgram::QUEUES, shards, ports),
        };
        let polls = |shard: &Self| shard.queues().iter().any(XskDevice::busy_polls);
        let (mut shards, deferral) = Deferral::around(&interface, &sockets, open, |shards| shards.iter().any(polls))?;
        let queues = || shards.iter().flat_map(Self::queues);
        queues().try_for_each(|queue| steer.register(queue.queue(), queue.as_fd()))?;
        let early = steer.frames_without_socket().unwrap_or(0);
        let rules =
            rules.and_then(|rules| rules.map(|rules| put_rules(rules, &name, address, ports, &shards)).transpose());
        let (rules, rules_error) = rules.map_or_else(|why| (None, Some(why.to_string())), |rules| (rules, None));
        let how = TakenOver {
            interface,
            mode: steer.mode().unwrap_or(AttachMode::Generic),
            native_error: steer.native_error().map(Into::into),
            zero_copy: queues().all(XskDevice::zero_copy),
            zero_copy_defect,
            busy_polls: shards.iter().any(polls).then_some(deferral.is_some()),
            queues: queues().count(),
            shards: shards.len(),
            rules: rules.as_ref().map_or(0, Rules::count),
            rules_error,
        };
        let at = (address, ports);
        let taken = Arc::new(NicState { steer: Mutex::new(steer), at, _deferral: deferral, _rules: rules, how, early });
        shards.iter_mut().for_each(|shard| shard.taken = Some(Arc::clone(&taken)));
        Ok(shards)
    }

    /// Returns how it was taken over.
    #[must_use]
    pub fn taken_over(&self) -> &TakenOver {
        &self.taken.as_deref().expect(TAKEN).how
    }

    /// Returns the number of frames of the transport that arrived on a queue without a socket and
    /// were lost, since the sockets were registered; 0 where the kernel has no counter.
    #[must_use]
    pub fn frames_without_socket(&self) -> u64 {
        let taken = self.taken.as_deref().expect(TAKEN);
        taken.steer().frames_without_socket().unwrap_or(0).saturating_sub(taken.early)
    }
}

/// [`XskInterface::open`] sets it.
const TAKEN: &str = "the interface is taken over";

/// Prepares rules of the NIC that direct its frames to `queue`, or to a queue of their shard.
/// Without rules, shards forward frames. With one shard and all queues, none are needed.
fn begin_rules(interface: &str, queue: Option<u32>, shards: usize) -> io::Result<Option<Rules>> {
    let nic = Ethtool::open(interface)?;
    let queues = nic.channels().map_or(1, |channels| channels.rx_queues());
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

/// Returns why the program could not be loaded or attached: another one is, or the kernel's error.
fn refused(interface: &str, source: ProgramError) -> TakeOverError {
    if !matches!(source, ProgramError::Attach { .. }) {
        return TakeOverError::Program(source);
    }
    let taken = Interface::find(interface).and_then(|now| now.check_available());
    taken.err().map_or_else(|| TakeOverError::Attach { interface: interface.into(), source }, TakeOverError::Net)
}

/// Returns how to bind: a driver that refused the program does not support zero-copy either.
fn bind_mode(interface: &Interface, asked: BindMode, steer: &SteerProgram) -> Result<BindMode, TakeOverError> {
    let Some(why) = steer.native_error() else { return Ok(asked) };
    match asked {
        BindMode::ZeroCopy => Err(TakeOverError::Generic { interface: interface.name.clone(), why: why.into() }),
        _ => Ok(BindMode::Copy),
    }
}
