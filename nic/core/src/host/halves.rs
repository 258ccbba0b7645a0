//! A connection's two halves at one host, and when each wants to be woken.

use alloc::boxed::Box;

use spray_wire::{Ack, EvPort};

use crate::Time;
use crate::cc::CreditBound;
use crate::flow::{FlowConfig, HashKey, Receiver, Sender};
use crate::path::AckTurns;
use crate::rng::Rng;
use crate::units::Ratio;

/// The sending half of a connection, and what the host keeps of it. It talks to the peer's receiving half.
#[derive(Debug)]
pub struct SendHalf {
    /// The sender.
    pub sender: Sender,
    /// The connection is in the queue of turns.
    pub(super) ready: bool,
}

/// The receiving half of a connection, and what the host keeps of it. It talks to the peer's sending half.
#[derive(Debug)]
pub struct ReceiveHalf {
    /// The receiver.
    pub receiver: Receiver,
    /// Size of the set of entropy values.
    pub(super) evs: u16,
    ack_turns: Option<Box<AckTurns>>,
    pub(super) credit: Credit,
}

/// How a host grants credit to a connection that sends to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    /// The entry in the host's pacer; `None` until the peer asks for credit.
    pub(super) entry: Option<u32>,
    /// Where the last request came from, until a pull has gone there.
    pub(super) asked_by: Option<EvPort>,
    /// Wire bytes of one pull.
    pub(super) pull_bytes: u64,
    /// Share of the link's rate that the host grants to all its senders together.
    pub(super) rate: Ratio,
    /// Credit that may not have come back as arrivals.
    pub(super) bound: CreditBound,
}

impl SendHalf {
    /// Makes a sending half. `peer_window_packets` and `peer_max_data` are the peer's limits.
    pub fn new(config: &FlowConfig, peer_window_packets: u32, peer_max_data: u64, rng: &mut Rng) -> Self {
        let sender = Sender::new(config, peer_window_packets, peer_max_data, rng);
        Self { sender, ready: false }
    }

    #[cfg(any(test, feature = "lab"))]
    /// Makes a new half use the ideal erasure code. No payload can travel then.
    //= docs/specs/erasure.md#ERA-6 an ideal code
    pub fn in_ideal_code(self) -> Self {
        Self { sender: self.sender.in_ideal_code(), ..self }
    }

    /// When the sender has to be served without any other event; [`Time::NEVER`] if nothing is to come.
    ///
    /// A sender that is due and in the queue waits for its turn. One that is due and not in the queue has just had
    /// its turn and could do nothing; it is served again 1 us later, since at once would be for ever.
    #[inline]
    pub fn deadline(&self, now: Time) -> Time {
        match self.sender.poll_timeout() {
            None => Time::NEVER,
            Some(at) if at > now => at,
            Some(_) if self.ready => Time::NEVER,
            Some(_) => now.after(STUCK_PS),
        }
    }

    /// Whether the sender's time has come.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.sender.poll_timeout().is_some_and(|at| at <= now)
    }
}

impl ReceiveHalf {
    /// Makes a receiving half.
    pub fn new(config: &FlowConfig) -> Self {
        let eqds = config.cc.eqds();
        let sane = config.sanitised();
        let pull_bytes = eqds.pull_bytes(sane.packet_bytes());
        Self {
            receiver: Receiver::new(config),
            evs: sane.path.evs,
            ack_turns: config.balancer.acks_in_turn().then(|| Box::new(AckTurns::new(&sane.path))),
            credit: Credit {
                entry: None,
                asked_by: None,
                pull_bytes,
                rate: eqds.pull_rate,
                bound: sane.credit_bound(),
            },
        }
    }

    /// Makes a new half hash what the peer numbers with a secret key.
    pub fn with_hash_key(mut self, key: HashKey) -> Self {
        self.receiver.set_hash_key(key);
        self
    }

    /// Whether its ACKs take the paths back in turn, once it is told them.
    pub fn acks_in_turn(&self) -> bool {
        self.ack_turns.is_some()
    }

    #[cfg(any(test, feature = "lab"))]
    /// Tells it entropy values for each path back to the sender, for ACKs that take them in turn.
    pub fn on_reachable(&mut self, paths: &[crate::path::PathEvs]) {
        self.ack_turns.iter_mut().for_each(|turns| turns.on_reachable(paths));
    }

    /// A new half with such values.
    #[cfg(any(test, feature = "lab"))]
    pub fn with_paths(mut self, paths: &[crate::path::PathEvs]) -> Self {
        if !paths.is_empty() {
            self.on_reachable(paths);
        }
        self
    }

    /// An ACK if one is due, and the port that it goes by: the echoed one, or the one whose turn it is.
    #[inline]
    pub(super) fn poll_ack(&mut self) -> Option<(EvPort, Ack)> {
        let ack = self.receiver.poll_ack()?;
        let in_turn = self.ack_turns.as_mut().and_then(|turns| turns.next_port());
        Some((in_turn.unwrap_or(ack.port), ack))
    }

    #[cfg(any(test, feature = "lab"))]
    /// Makes a new half expect the ideal erasure code, as [`SendHalf::in_ideal_code`] sends it.
    //= docs/specs/erasure.md#ERA-6 an ideal code
    pub fn in_ideal_code(self) -> Self {
        Self { receiver: self.receiver.in_ideal_code(), ..self }
    }

    /// When the receiver has to be served without any other event; [`Time::NEVER`] if no acknowledgement
    /// waits.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.receiver.poll_timeout().unwrap_or(Time::NEVER)
    }
}

/// How long a sender rests that is due and can do nothing.
const STUCK_PS: u64 = 1_000_000;
