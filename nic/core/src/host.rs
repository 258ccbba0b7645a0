//! One host: all of its connections over one link, without input or output.
//!
//! A [`Scheduler`] orders the packets of its connections, grants credit, and keeps what ended
//! connections measured of the paths. It has no callbacks: each method takes the half of the
//! connection that it concerns, and returns what is to be sent. Its callers, such as the endpoint
//! of `spray-nic`, keep the connections, the timers and the payload.
//!
//! | file | content |
//! |---|---|
//! | `halves` | a connection's sending and receiving half, and their deadlines |
//! | `events` | arriving frames |
//! | `turns` | the order of connections that have something to send |
//! | `credit` | credit for the hosts that send to this one |
//! | `log` | events of the algorithms, by connection |

mod credit;
mod events;
mod halves;
mod log;
mod turns;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

pub use self::events::FramePath;
pub use self::halves::{ReceiveHalf, SendHalf};
pub use self::log::{EventLog, LogEntry};
use crate::Time;
use crate::cc::PullPacer;
use crate::path::PathHistories;
use crate::rng::Rng;

/// What the connections of one host share.
///
/// After each event, the caller polls what follows from it:
///
/// | event | call | then |
/// |---|---|---|
/// | a data frame arrives | [`Scheduler::on_data`] | receiver |
/// | a probe or a request for credit arrives | [`Scheduler::on_request`] | send the reply |
/// | another control frame arrives | [`SendHalf::on_feedback`] | sender, if it returns true |
/// | [`SendHalf::deadline`] | [`SendHalf::on_deadline`] | sender |
/// | [`ReceiveHalf::deadline`] | [`Receiver::on_timeout`](crate::flow::Receiver::on_timeout) | receiver |
/// | the link is free | [`Scheduler::next_turn`], [`Scheduler::transmit`] | set timer, send frame |
/// | [`Scheduler::grant_at`] | [`Scheduler::grant`], [`Scheduler::pull_port`] | send the pull |
/// | a sending half begins | [`Scheduler::restore_history`] | |
/// | a connection ends | [`Scheduler::save_history`], [`Scheduler::close`] | |
///
/// - *receiver*: take messages ([`Receiver::message_completed`](crate::flow::Receiver::message_completed)), send the
///   frames of [`ReceiveHalf::poll_control`], set its timer.
/// - *sender*: take events ([`Sender::poll_event`](crate::flow::Sender::poll_event)), submit messages, call
///   [`Scheduler::request_turn`], set its timer.
///
/// Time must not go back. The caller numbers the connections. A number must not be used again while the old connection
/// may have a turn in the queue. Nothing allocates per packet, and no input panics.
#[derive(Debug)]
pub struct Scheduler {
    /// Connections that may have something to send.
    turns: VecDeque<u32>,
    /// Created by the first request for credit.
    pacer: Option<Box<PullPacer>>,
    link_bps: u64,
    memories: PathHistories,
    /// The source of the host's random choices.
    pub rng: Rng,
}

impl Scheduler {
    /// Creates a host without connections, on a link of `link_bps` bits per second. Its queue of turns holds `turns`
    /// connections without allocation.
    pub fn new(link_bps: u64, turns: usize, rng: Rng) -> Self {
        Self { turns: VecDeque::with_capacity(turns), pacer: None, link_bps, memories: PathHistories::default(), rng }
    }

    /// Gives a new sending half what earlier connections measured of the paths to host `peer`.
    //= docs/specs/reps-plus.md#RPP-18 memory across connections
    pub fn restore_history(&self, now: Time, peer: u128, half: &mut SendHalf) {
        if let Some(learned) = self.memories.of(peer) {
            half.sender.restore_history(now, learned);
        }
    }

    /// Keeps what a sending half that ends has measured of the paths to host `peer`.
    //= docs/specs/reps-plus.md#RPP-18 memory across connections
    pub fn save_history(&mut self, peer: u128, half: &SendHalf) {
        if let Some(learned) = half.sender.path_history() {
            self.memories.keep(peer, learned);
        }
    }
}
