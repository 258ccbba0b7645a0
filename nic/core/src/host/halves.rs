//! A connection's two halves at one host, and their deadlines.

use alloc::boxed::Box;

use spray_wire::{Body, EvPort};

use crate::Time;
use crate::cc::CreditBound;
use crate::event::Publisher;
use crate::feedback::Ev;
use crate::flow::{FlowConfig, HashKey, Receiver, Sender};
use crate::path::AckTurns;
use crate::rng::Rng;
use crate::units::Ratio;

/// The sending half of a connection, to the peer's receiving half.
#[derive(Debug)]
pub struct SendHalf {
    /// The sender.
    pub sender: Sender,
    /// Is in the queue of turns.
    pub(super) ready: bool,
}

/// The receiving half of a connection, from the peer's sending half.
#[derive(Debug)]
pub struct ReceiveHalf {
    /// The receiver.
    pub receiver: Receiver,
    /// Size of the set of entropy values.
    pub(super) evs: u16,
    ack_turns: Option<Box<AckTurns>>,
    pub(super) credit: Credit,
}

/// Credit of a connection that sends to this host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    /// The entry in the host's pacer; `None` until the peer requests credit.
    pub(super) entry: Option<u32>,
    /// The port of the last request, until a pull has used it.
    pub(super) requested_from: Option<EvPort>,
    /// Wire bytes of one pull.
    pub(super) pull_bytes: u64,
    /// Share of the link's rate that the host grants in all.
    pub(super) rate: Ratio,
    /// Credit that may not have come back as arrivals.
    pub(super) bound: CreditBound,
}

impl SendHalf {
    /// Creates a sending half. `peer_window_packets` and `peer_max_data` are the peer's limits.
    pub fn new(config: &FlowConfig, peer_window_packets: u32, peer_max_data: u64, rng: &mut Rng) -> Self {
        let sender = Sender::new(config, peer_window_packets, peer_max_data, rng);
        Self { sender, ready: false }
    }

    #[cfg(any(test, feature = "lab"))]
    /// Makes a new half use the ideal erasure code, which carries no payload.
    //= docs/specs/erasure.md#ERA-6 an ideal code
    pub fn erasure_coded(self) -> Self {
        Self { sender: self.sender.erasure_coded(), ..self }
    }

    /// Returns the UDP source port of an entropy value.
    #[inline]
    pub fn port(&self, ev: Ev) -> EvPort {
        ev.port(self.sender.path().evs.into())
    }

    /// Returns when to call [`on_deadline`](Self::on_deadline); [`Time::NEVER`] without a timer.
    ///
    /// A sender that is due and in the queue waits for its turn. One that is due and not in the queue had its turn and
    /// was blocked; it is due again 1 us later, so that time advances.
    #[inline]
    pub fn deadline(&self, now: Time) -> Time {
        match self.sender.poll_timeout() {
            None => Time::NEVER,
            Some(at) if at > now => at,
            Some(_) if self.ready => Time::NEVER,
            Some(_) => now.after(BLOCKED_PS),
        }
    }

    /// Returns the deadline if a turn may have made it earlier, else [`Time::NEVER`]: with `sent` only the
    /// first outstanding packet does.
    #[inline]
    pub fn deadline_after_turn(&self, now: Time, sent: bool) -> Time {
        if sent && self.sender.outstanding() > 1 { Time::NEVER } else { self.deadline(now) }
    }

    /// Returns whether the sender's deadline has passed.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.sender.poll_timeout().is_some_and(|at| at <= now)
    }

    /// Handles the sender's deadline. Has no effect before it.
    pub fn on_deadline(&mut self, now: Time, publisher: &mut impl Publisher) {
        if self.is_due(now) {
            self.sender.on_timeout(now, publisher);
        }
    }
}

impl ReceiveHalf {
    /// Creates a receiving half.
    pub fn new(config: &FlowConfig) -> Self {
        let eqds = config.cc.eqds();
        let sane = config.clamped();
        let pull_bytes = eqds.pull_bytes(sane.packet_bytes());
        Self {
            receiver: Receiver::new(config),
            evs: sane.path.evs,
            ack_turns: config.balancer.acks_in_turn().then(|| Box::new(AckTurns::new(&sane.path))),
            credit: Credit {
                entry: None,
                requested_from: None,
                pull_bytes,
                rate: eqds.pull_rate,
                bound: sane.credit_bound(),
            },
        }
    }

    /// Sets the secret key of a new half's hash tables, so that a peer cannot choose numbers that collide.
    pub fn with_hash_key(mut self, key: HashKey) -> Self {
        self.receiver.set_hash_key(key);
        self
    }

    /// Returns whether its ACKs take the reverse paths in turn.
    pub fn acks_in_turn(&self) -> bool {
        self.ack_turns.is_some()
    }

    #[cfg(any(test, feature = "lab"))]
    /// Sets entropy values for each path back to the sender, for ACKs that take them in turn.
    pub fn on_reachable(&mut self, paths: &[crate::path::PathEvs]) {
        self.ack_turns.iter_mut().for_each(|turns| turns.on_reachable(paths));
    }

    /// Returns a new half with such values.
    #[cfg(any(test, feature = "lab"))]
    pub fn with_paths(mut self, paths: &[crate::path::PathEvs]) -> Self {
        if !paths.is_empty() {
            self.on_reachable(paths);
        }
        self
    }

    /// Returns the next NACK or ACK and its source port: the one that it echoes, or the next of those taken in turn.
    #[inline]
    pub fn poll_control(&mut self) -> Option<(EvPort, Body)> {
        if let Some(nack) = self.receiver.poll_nack() {
            return Some((nack.port, Body::Nack(nack)));
        }
        let ack = self.receiver.poll_ack()?;
        let in_turn = self.ack_turns.as_mut().and_then(|turns| turns.next_port());
        Some((in_turn.unwrap_or(ack.port), Body::Ack(ack)))
    }

    #[cfg(any(test, feature = "lab"))]
    /// Makes a new half expect the ideal erasure code, as [`SendHalf::erasure_coded`] sends it.
    //= docs/specs/erasure.md#ERA-6 an ideal code
    pub fn erasure_coded(self) -> Self {
        Self { receiver: self.receiver.erasure_coded(), ..self }
    }

    /// Returns when a delayed ACK is due; [`Time::NEVER`] if none is.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.receiver.poll_timeout().unwrap_or(Time::NEVER)
    }
}

/// Back-off of a sender that is due but blocked.
const BLOCKED_PS: u64 = 1_000_000;
