//! The state that the shards of a taken over interface share.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use spray_wire::Ports;

use super::busy_poll::Deferral;
use super::rules::Rules;
use crate::net::Interface;
use crate::xdp::{AttachMode, SteerProgram};

#[derive(Debug)]
pub(super) struct NicState {
    pub(super) steer: Mutex<SteerProgram>,
    /// The address and the ports of the frames that are steered.
    pub(super) at: (IpAddr, Ports),
    pub(super) _deferral: Option<Deferral>,
    pub(super) _rules: Option<Rules>,
    pub(super) how: TakenOver,
    /// Frames of the transport that arrived before the sockets were registered.
    pub(super) early: u64,
}

/// How an interface was taken over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TakenOver {
    /// The interface at that time.
    pub interface: Interface,
    /// How the program is attached; [`AttachMode::Generic`] is slower and worth a warning.
    pub mode: AttachMode,
    /// Why the driver did not accept the program natively: the kernel's message.
    pub native_error: Option<String>,
    /// Whether the driver accesses the frames directly, on all queues; otherwise the kernel copies.
    pub zero_copy: bool,
    /// Why zero-copy was not tried: it is known to fail with this driver and kernel, and was not
    /// required.
    pub zero_copy_defect: Option<String>,
    /// `Some` if the threads busy-poll: whether interrupts are deferred meanwhile.
    pub busy_polls: Option<bool>,
    /// The number of queues with a socket.
    pub queues: usize,
    /// The number of shards that serve them.
    pub shards: usize,
    /// The number of NIC rules that direct frames to a queue of their shard, or to the only queue.
    pub rules: usize,
    /// Why there are no rules although the driver supports them.
    pub rules_error: Option<String>,
}

impl NicState {
    /// A thread that panicked does not change the program.
    pub(super) fn steer(&self) -> MutexGuard<'_, SteerProgram> {
        self.steer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
