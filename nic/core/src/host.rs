//! One host: all of its connections over one link, without input or output.
//!
//! A [`Host`] decides what follows from every event of a connection: which frames answer it, when credit is granted,
//! when the connection gets its turn to send, when its timers run out, and when it ends. The endpoint of `spray-nic`
//! is built on it, and so may be others. The trait [`Owner`] holds what differs between them: how a frame
//! leaves, what a payload is, and how timers are kept.
//!
//! | file | content |
//! |---|---|
//! | `halves` | a connection's two halves, and when each wants to be woken |
//! | `events` | what follows from a frame, a timer, or a call of the user |
//! | `turns` | whose packet goes next |
//! | `credit` | the credit that the host grants to those that send to it |
//! | `log` | the algorithms' events, each under its connection |

mod credit;
mod events;
mod halves;
mod log;
mod turns;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use spray_wire::{Body, Data, EvPort};

pub use self::events::{Fate, Passage};
pub use self::halves::{ReceiveHalf, SendHalf};
pub use self::log::{Log, LogEntry};
use crate::Time;
use crate::cc::PullPacer;
use crate::flow::PayloadSlot;
use crate::path::Memories;
use crate::rng::Rng;

/// What the connections of one host share.
///
/// | call | when |
/// |---|---|
/// | [`Host::on_data`], [`Host::on_control`] | a frame arrives |
/// | [`Host::on_sender_deadline`], [`Host::on_receiver_deadline`] | the deadline of [`SendHalf`] or [`ReceiveHalf`] has come |
/// | [`Host::serve_sender`], [`Host::serve_receiver`] | the user did something |
/// | [`Host::transmit`] | the link is free and [`Host::has_turns`] |
/// | [`Host::grant`] | [`Host::grant_at`] has come |
/// | [`Host::recall`] | a sending half begins |
/// | [`Host::remember`], [`Host::close`] | a connection ends |
///
/// Time must not go back. The owner numbers the connections. A number must not be used again while the old connection
/// may have a turn in the queue. Nothing allocates per packet, and no input panics.
#[derive(Debug)]
pub struct Host {
    /// Connections that may have something to send, in the order of their turns.
    turns: VecDeque<u32>,
    /// Grants credit. Made when the first sender asks for some.
    pacer: Option<Box<PullPacer>>,
    link_bps: u64,
    /// What its connections have learned of the paths to other hosts.
    memories: Memories,
    /// Where the host's random choices come from.
    pub rng: Rng,
}

impl Host {
    /// A host without connections, on a link of `link_bps` bits per second. Its queue of turns holds `turns`
    /// connections without allocation.
    pub fn new(link_bps: u64, turns: usize, rng: Rng) -> Self {
        Self { turns: VecDeque::with_capacity(turns), pacer: None, link_bps, memories: Memories::default(), rng }
    }

    /// Hands a new sending half what earlier connections have learned of the paths to `peer`, a number that tells hosts apart.
    //= docs/specs/reps-plus.md#RPP-18 memory across connections
    pub fn recall(&self, now: Time, peer: u128, half: &mut SendHalf) {
        if let Some(learned) = self.memories.of(peer) {
            half.sender.recall(now, learned);
        }
    }

    /// Keeps what a sending half that ends has learned of the paths to `peer`.
    //= docs/specs/reps-plus.md#RPP-18 memory across connections
    pub fn remember(&mut self, peer: u128, half: &SendHalf) {
        if let Some(learned) = half.sender.remember() {
            self.memories.keep(peer, learned);
        }
    }
}

/// What surrounds a host: the network that takes its frames, the user whose messages they carry, and the timers.
pub trait Owner {
    /// An entry of the owner's table of connections.
    type Connection: Entry;
    /// A packet's payload as the network hands it over: its bytes, or nothing where payload is only counted.
    type Payload<'a>;

    /// The log of what the algorithms report.
    fn log(&mut self) -> &mut Log;

    /// Sends a frame without payload from UDP port `port`, at once and ahead of data.
    fn send(&mut self, now: Time, number: u32, connection: &mut Self::Connection, port: EvPort, body: Body);

    /// Sends a data frame from UDP port `port`. The link is free for it.
    fn send_data(&mut self, now: Time, number: u32, connection: &mut Self::Connection, port: EvPort, data: &Data);

    /// Puts the payload of a packet in its place. Returns `false` if it does not fit its message.
    fn place(
        &mut self,
        connection: &mut Self::Connection,
        data: &Data,
        place: PayloadSlot,
        payload: Self::Payload<'_>,
    ) -> bool;

    /// Takes complete messages from the connection's receiver, as many as there is room for.
    fn take_messages(&mut self, now: Time, number: u32, connection: &mut Self::Connection);

    /// Reports that the peer acknowledged a whole message at `at`.
    fn on_delivered(&mut self, number: u32, connection: &mut Self::Connection, message: u32, at: Time);

    /// Hands the messages that wait to the connection's sender. Returns `false` if nothing is left to do and the
    /// connection is to end.
    fn submit(&mut self, connection: &mut Self::Connection) -> bool;

    /// Sets the timer to [`SendHalf::deadline`]. With `sent`, a packet was just sent: a deadline that was set
    /// before is then no later than the new one, so an owner whose timers cannot be moved may leave its timer.
    fn arm_sender(&mut self, now: Time, number: u32, connection: &mut Self::Connection, sent: bool);

    /// Sets the timer to [`ReceiveHalf::deadline`].
    fn arm_receiver(&mut self, now: Time, number: u32, connection: &mut Self::Connection);

    /// Sets the host's timer for [`Host::grant`] to `at`. An owner that reads [`Host::grant_at`] itself does
    /// nothing.
    fn arm_grant(&mut self, _now: Time, _connection: &mut Self::Connection, _at: Time) {}
}

/// An entry of the owner's table of connections.
pub trait Entry {
    /// The half that sends from here; `None` before the connection is open, after its end, and where nothing is sent from here.
    fn sending(&mut self) -> Option<&mut SendHalf>;

    /// The half that receives here; `None` before the connection is open, after its end, and where nothing is received here.
    fn receiving(&mut self) -> Option<&mut ReceiveHalf>;
}

/// The owner's table of connections.
pub trait Table<C> {
    /// The entry of a connection, if it is still there.
    fn entry(&mut self, number: u32) -> Option<&mut C>;
}

/// A table whose connections are numbered by their places.
impl<C> Table<C> for Vec<C> {
    #[inline]
    fn entry(&mut self, number: u32) -> Option<&mut C> {
        self.get_mut(number as usize)
    }
}
