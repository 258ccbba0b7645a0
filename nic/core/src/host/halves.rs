//! A connection's sender and receiver, and when each wants to be woken.

use rand_core::RngCore;

use super::NEVER;
use crate::flow::{FlowConfig, Receiver, Sender};
use crate::units::Ratio;

/// The two halves of a connection, with what the host around them keeps of each.
///
/// Both belong to one host, and face those of the peer. The simulator, whose flows go one way, keeps the sender of one host and the
/// receiver of the other in one place.
#[derive(Debug)]
pub struct Halves {
    /// The sending half.
    pub sender: Sender,
    /// The receiving half.
    pub receiver: Receiver,
    /// Size of the set of entropy values.
    pub(super) evs: u32,
    /// In the queue of turns.
    pub(super) ready: bool,
    pub(super) credit: Credit,
}

/// How a host grants credit to a connection that sends to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    /// The entry in the host's pacer; `None` until the peer asks for credit.
    pub(super) entry: Option<u32>,
    /// Wire bytes of one grant.
    pub(super) pull_bytes: u64,
    /// Share of the link's rate that the host grants in all.
    pub(super) rate: Ratio,
}

impl Halves {
    /// Makes both halves; `peer_window_packets` and `peer_max_data` are the limits that the peer told.
    pub fn new(config: &FlowConfig, peer_window_packets: u32, peer_max_data: u64, rng: &mut impl RngCore) -> Self {
        let eqds = config.cc.control.eqds();
        let packet_bytes = config.sanitised().packet_bytes();
        Self {
            sender: Sender::new(config, peer_window_packets, peer_max_data, rng),
            receiver: Receiver::new(config),
            evs: config.path.evs,
            ready: false,
            credit: Credit { entry: None, pull_bytes: eqds.pull_bytes(packet_bytes), rate: eqds.pull_rate },
        }
    }

    /// When the sender is to be served without any other event, in picoseconds; [`NEVER`] when nothing is to come.
    ///
    /// A sender that is due waits for its turn, if it has one. If it has none, nothing can be done for it yet, and it is served
    /// again 1 us later: at once would be for ever.
    #[inline]
    pub fn sender_deadline_ps(&self, now_ps: u64) -> u64 {
        match self.sender.poll_timeout() {
            None => NEVER,
            Some(at_ps) if at_ps > now_ps => at_ps,
            Some(_) if self.ready => NEVER,
            Some(_) => now_ps + STUCK_PS,
        }
    }

    /// When the receiver is to be served without any other event, in picoseconds; [`NEVER`] when no acknowledgement waits.
    #[inline]
    pub fn receiver_deadline_ps(&self) -> u64 {
        self.receiver.poll_timeout().unwrap_or(NEVER)
    }

    /// Whether the sender's time has come.
    #[inline]
    pub fn is_sender_due(&self, now_ps: u64) -> bool {
        self.sender.poll_timeout().is_some_and(|at_ps| at_ps <= now_ps)
    }
}

/// How long a sender rests that is due and can neither do nor send anything.
const STUCK_PS: u64 = 1_000_000;
