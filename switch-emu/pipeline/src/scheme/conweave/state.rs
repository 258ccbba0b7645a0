//! The state of a switch: its tables of flows, busy paths, and reordering queues.

use alloc::vec::Vec;

use super::settings::Settings;
use crate::hash::mix;
use crate::scheme::notice::Notice;

/// The state of a switch with ConWeave. Its tables are allocated at their first use.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub(super) settings: Settings,
    pub(super) uplinks: Uplinks,
    /// The base RTT to each leaf.
    pub(super) rtts_ps: Vec<u64>,
    pub(super) busy: Busy,
    /// Flows of the switch's own hosts.
    pub(super) outgoing: Flows<Outgoing>,
    /// Flows to the switch's own hosts.
    pub(super) incoming: Flows<Incoming>,
    pub(super) queues: Queues,
    pub(super) outbox: Vec<Notice>,
    pub(super) counts: Counts,
}

impl State {
    /// Creates the state of a switch with these uplinks, and base RTTs by leaf.
    pub fn new(settings: Settings, uplinks: Vec<u32>, rtts_ps: Vec<u64>) -> Self {
        Self { settings, uplinks: Uplinks(uplinks), rtts_ps, ..Self::default() }
    }

    #[cfg(test)]
    pub(in crate::scheme) fn that_held(held: u64, queues: u64) -> Self {
        Self { counts: Counts { held, queues, ..Counts::default() }, ..Self::default() }
    }

    /// Returns the base RTT to each leaf.
    pub fn rtts_ps(&self) -> &[u64] {
        &self.rtts_ps
    }

    /// Takes the order for the present packet; `None`: it passes.
    pub fn order(&mut self) -> Option<QueueAction> {
        self.queues.order.take()
    }

    /// Takes the next control frame.
    //= docs/specs/conweave.md#CWV-12 control frames between switches
    pub(in crate::scheme) fn poll(&mut self) -> Option<Notice> {
        self.outbox.pop()
    }
}

/// A flow at its source switch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outgoing {
    pub(super) epoch: u16,
    /// A TAIL was sent in this epoch.
    pub(super) rerouted: bool,
    /// A reply or a CLEAR has arrived, so that the next packet begins another epoch.
    pub(super) settled: bool,
    pub(super) path: u32,
    pub(super) active_ps: u64,
    pub(super) reply_by_ps: u64,
    /// When the TAIL of this epoch was sent; 0: none.
    pub(super) tail_ps: u64,
}

/// A flow at its destination switch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Incoming {
    pub(super) epoch: u16,
    /// The TAIL of this epoch has passed, or timed out.
    pub(super) open: bool,
    pub(super) queue: Option<u32>,
    pub(super) active_ps: u64,
    /// When the last packet of the old path in this epoch was sent, and when it arrived.
    pub(super) old_ps: Option<(u64, u64)>,
    /// When the TAIL was sent by its source switch.
    pub(super) tail_ps: u64,
}

const SETS: usize = 512;
const PLACES: usize = 4;

/// A set-associative table of flows.
#[derive(Clone, Debug, Default)]
pub(super) struct Flows<T>(Vec<Option<(u64, T)>>);

impl<T: Clone + Default> Flows<T> {
    pub(super) fn find(&mut self, flow: u64) -> Option<&mut T> {
        self.set(flow).iter_mut().flatten().find(|(known, _)| *known == flow).map(|(_, entry)| entry)
    }

    /// A flow's entry, and whether it is new; `None`: no free or replaceable place.
    //= docs/specs/conweave.md#CWV-17 tables of flows
    pub(super) fn enter(&mut self, flow: u64, is_replaceable: impl Fn(&T) -> bool) -> Option<(&mut T, bool)> {
        self.0.resize(SETS * PLACES, None);
        let set = self.set(flow);
        let known = set.iter().position(|place| place.as_ref().is_some_and(|(known, _)| *known == flow));
        let free = || set.iter().position(|place| place.as_ref().is_none_or(|(_, entry)| is_replaceable(entry)));
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

#[derive(Clone, Debug, Default)]
pub(super) struct Uplinks(Vec<u32>);

impl Uplinks {
    /// Way 0 does not exist.
    pub(super) fn port(&self, uplink: u32) -> Option<u32> {
        self.0.get((uplink as usize).checked_sub(1)?).copied()
    }
}

const MOST_BUSY: usize = 4_096;

/// Until when paths are busy, in ns, with a hash of leaf and path; places may be shared.
#[derive(Clone, Debug, Default)]
pub(super) struct Busy(Vec<(u16, u64)>);

impl Busy {
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
    pub(super) all: Vec<Option<Queue>>,
    pub(super) bytes: u64,
    /// For the present packet.
    pub(super) order: Option<QueueAction>,
}

/// A reordering queue. The caller stores the frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub(super) flow: u64,
    pub(super) host: u32,
    pub(super) bytes: u64,
    /// The timeout.
    pub(super) due_ps: u64,
}

/// What to do with a packet at its destination's switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueAction {
    /// The number of the queue.
    pub queue: u32,
    /// The packet joins the queue instead of passing.
    pub holds: bool,
    /// The queue ends and is released, right behind the packet.
    pub releases: bool,
    /// When the queue [times out](State::expire), if it has not ended.
    pub due_ps: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) rerouted: u64,
    pub(super) held: u64,
    /// The maximum at once.
    pub(super) held_bytes: u64,
    /// The maximum at once.
    pub(super) queues: u64,
    pub(super) timeouts: u64,
    pub(super) no_queue: u64,
    pub(super) no_memory: u64,
    pub(super) no_entry: u64,
    pub(super) control: u64,
}
