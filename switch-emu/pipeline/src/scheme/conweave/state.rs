//! What a switch knows: its tables of flows, which paths are busy, and what waits.

use alloc::vec::Vec;

use super::settings::Settings;
use crate::hash::mix;
use crate::scheme::notice::Notice;

/// What a switch with ConWeave knows. Its tables take memory once they are used.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(super) settings: Settings,
    pub(super) ways: Ways,
    /// The base RTT to each leaf.
    pub(super) rtts_ps: Vec<u64>,
    pub(super) busy: Busy,
    /// Flows of the switch's own hosts.
    pub(super) sent: Flows<Sent>,
    /// Flows to the switch's own hosts.
    pub(super) came: Flows<Came>,
    pub(super) queues: Queues,
    /// Frames of its own to send.
    pub(super) outbox: Vec<Notice>,
    pub(super) counts: Counts,
}

impl State {
    /// That of a switch with the ports of its ways up, and with the base RTTs to the switches with hosts by their numbers.
    pub fn new(settings: Settings, ways: Vec<u32>, rtts_ps: Vec<u64>) -> Self {
        Self { settings, ways: Ways(ways), rtts_ps, ..Self::default() }
    }

    /// For tests: that of a switch that has held so many packets, in so many queues at once.
    #[cfg(test)]
    pub(in crate::scheme) fn that_held(held: u64, queues: u64) -> Self {
        Self { counts: Counts { held, queues, ..Counts::default() }, ..Self::default() }
    }

    /// The base RTT to each switch with hosts.
    pub fn rtts_ps(&self) -> &[u64] {
        &self.rtts_ps
    }

    /// Takes what is to be done with the packet that has just come; `None`: it goes on.
    pub fn order(&mut self) -> Option<Order> {
        self.queues.order.take()
    }

    /// The next frame of its own that the switch has to send.
    //= docs/specs/conweave.md#CWV-12 control frames between switches
    pub(in crate::scheme) fn poll(&mut self) -> Option<Notice> {
        self.outbox.pop()
    }
}

/// What a source switch knows of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) epoch: u16,
    /// A TAIL has left in this epoch.
    pub(super) rerouted: bool,
    /// A reply or a CLEAR has come, so that the next packet begins another epoch.
    pub(super) settled: bool,
    pub(super) path: u32,
    /// When its last packet came.
    pub(super) active_ps: u64,
    /// Until when a reply is in time.
    pub(super) reply_by_ps: u64,
    /// When its TAIL left; 0: none has in this epoch.
    pub(super) tail_ps: u64,
}

/// What a destination switch knows of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Came {
    pub(super) epoch: u16,
    /// The TAIL of this epoch has passed, or is not waited for any more.
    pub(super) open: bool,
    /// Where its packets wait.
    pub(super) queue: Option<u32>,
    /// When its last packet came.
    pub(super) active_ps: u64,
    /// When the last packet of the old path left its source switch, and when it came here, in this epoch.
    pub(super) old_ps: Option<(u64, u64)>,
    /// When the TAIL left its source switch.
    pub(super) tail_ps: u64,
}

/// Sets of a table of flows, and entries of a set.
const SETS: usize = 512;
const PLACES: usize = 4;

/// A table of flows: sets of a few entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Flows<T>(Vec<Option<(u64, T)>>);

impl<T: Clone + Default> Flows<T> {
    pub(super) fn find(&mut self, flow: u64) -> Option<&mut T> {
        self.set(flow).iter_mut().flatten().find(|(known, _)| *known == flow).map(|(_, entry)| entry)
    }

    /// A flow, and whether it is new: then it takes the place of none, or of one that may go. `None`: there is no such.
    //= docs/specs/conweave.md#CWV-17 tables of flows
    pub(super) fn enter(&mut self, flow: u64, may_go: impl Fn(&T) -> bool) -> Option<(&mut T, bool)> {
        self.0.resize(SETS * PLACES, None);
        let set = self.set(flow);
        let known = set.iter().position(|place| place.as_ref().is_some_and(|(known, _)| *known == flow));
        let free = || set.iter().position(|place| place.as_ref().is_none_or(|(_, entry)| may_go(entry)));
        let place = &mut set[known.or_else(free)?];
        if known.is_none() {
            *place = None;
        }
        Some((&mut place.get_or_insert_with(|| (flow, T::default())).1, known.is_none()))
    }

    fn set(&mut self, flow: u64) -> &mut [Option<(u64, T)>] {
        let first = (flow >> 32) as usize % SETS * PLACES;
        self.0.get_mut(first..first + PLACES).unwrap_or_default()
    }
}

/// The port of each way up, from way 1 on.
#[derive(Clone, Debug, Default)]
pub(super) struct Ways(Vec<u32>);

impl Ways {
    /// The port of a way; way 0 does not exist.
    pub(super) fn port(&self, way: u32) -> Option<u32> {
        self.0.get((way as usize).checked_sub(1)?).copied()
    }
}

/// Places for busy paths.
const MOST_BUSY: usize = 4_096;

/// Until when paths are busy, in ns, each with a hash of leaf and path; more than one path may have a place.
#[derive(Clone, Debug, Default)]
pub(super) struct Busy(Vec<(u16, u64)>);

impl Busy {
    /// A path to a leaf is busy until this time.
    pub(super) fn mark(&mut self, leaf: u32, path: u32, until_ps: u64) {
        self.0.resize(MOST_BUSY, (0, 0));
        let (place, hash) = Self::place(leaf, path);
        self.0[place] = (hash, until_ps / 1_000);
    }

    pub(super) fn has(&self, leaf: u32, path: u32, now_ps: u64) -> bool {
        let (place, hash) = Self::place(leaf, path);
        self.0.get(place).is_some_and(|(known, until_ns)| *known == hash && until_ns * 1_000 > now_ps)
    }

    fn place(leaf: u32, path: u32) -> (usize, u16) {
        let hash = mix(u64::from(leaf) << 32 | u64::from(path));
        (hash as usize % MOST_BUSY, (hash >> 48) as u16)
    }
}

/// Reordering queues of a switch.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    /// By number; `None`: it is free.
    pub(super) all: Vec<Option<Queue>>,
    /// Bytes that all of them hold.
    pub(super) bytes: u64,
    /// What is to be done with the packet at hand.
    pub(super) order: Option<Order>,
}

/// A reordering queue: which flow waits in it, and until when. Who calls the switch holds the frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub(super) flow: u64,
    /// The host that the flow goes to.
    pub(super) host: u32,
    /// What waits.
    pub(super) bytes: u64,
    /// When it is given up.
    pub(super) due_ps: u64,
}

/// What is to be done after a packet has come to the switch of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The queue that it is about.
    pub queue: u32,
    /// The packet joins the queue instead of going on.
    pub holds: bool,
    /// The queue ends: what waits there goes on, right behind the packet.
    pub releases: bool,
    /// When the queue is [looked at](State::expire), if it has not ended.
    pub due_ps: u64,
}

/// What a switch has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) rerouted: u64,
    pub(super) held: u64,
    /// At most at once.
    pub(super) held_bytes: u64,
    /// At most at once.
    pub(super) queues: u64,
    pub(super) timeouts: u64,
    pub(super) no_queue: u64,
    pub(super) no_memory: u64,
    pub(super) no_entry: u64,
    /// Frames of its own.
    pub(super) control: u64,
}
