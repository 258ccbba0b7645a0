//! What a source switch does: it measures whether its flows' packets are late, and gives late flows other paths (ConWeave §3.2).

use super::memory::{BUSY, Entry, Memory, SENT, rtt, sent, single};
use super::tag::{Kind, Tag};
use crate::config::NEVER;
use crate::frame::Frame;
use crate::hash::{mix, pick};
use crate::routes::SwitchConfig;
use crate::scheme::Forwarding;
use crate::scheme::reunion::path::{self, Course};

/// What a packet of a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sends {
    pub(super) tag: Tag,
    pub(super) path: u32,
}

/// [`sent::STATE`]: a TAIL has left in this epoch; a reply has come, so that the next packet begins another one; the path.
const REROUTED: u64 = 1 << 16;
const SETTLED: u64 = 1 << 17;
const PATH_SHIFT: u32 = 32;

/// Random paths that a reroute looks at.
const LOOKS: u64 = 2;

/// Epochs of a flow that is new to a switch begin with the time, in units of 2^20 ps: an epoch that its destination remembers is older.
const EPOCH_UNIT: u32 = 20;

/// Takes a packet of a flow; what it carries, `None` if the table has no entry for its flow.
pub(super) fn send<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Frame,
    course: &Course,
    given: u32,
) -> Option<Sends> {
    let (memory, now_ps, flow) = (Memory::of(tables, switch), course.t_ps, tables.trail()?.flow());
    let inactive_ps = memory.load(single::INACTIVE_PS);
    let pauses = |entry: &Entry<'_, '_, F>| entry.load(sent::ACTIVE_PS) + inactive_ps < now_ps;
    let Some((entry, is_new)) = memory.enter(SENT, sent::WORDS, flow, pauses) else {
        memory.add(single::NO_ENTRY, 1);
        return None;
    };
    let state = entry.load(sent::STATE);
    let (path, epoch, rerouted) = ((state >> PATH_SHIFT) as u32, state as u16, state & REROUTED != 0);
    let choose = || match given {
        0 => choose(tables, &memory, switch, course, flow ^ u64::from(frame.crc) << 32),
        given => Some(given),
    };
    //= docs/specs/conweave.md#CWV-4 epochs
    let has_none = is_new || path != 0 && !leads(tables, &memory, frame, course, path);
    let is_free = has_none || pauses(&entry);
    //= docs/specs/conweave.md#CWV-6 a late reply
    let is_late = entry.load(sent::REPLY_BY_PS) < now_ps || given != 0 && given != path && !rerouted;
    entry.store(sent::ACTIVE_PS, now_ps);
    if is_free {
        let any = || if has_none { one(tables, course, mix(flow ^ course.t_ps)) } else { None };
        let next = choose().or_else(any).unwrap_or(path);
        memory.add(single::REROUTED, u64::from(!is_new && next != path));
        let epoch = if is_new { (now_ps >> EPOCH_UNIT) as u16 } else { epoch.wrapping_add(1) };
        return Some(begin(&memory, &entry, course, epoch, next));
    }
    if state & SETTLED != 0 {
        return Some(begin(&memory, &entry, course, epoch.wrapping_add(1), path));
    }
    if is_late {
        let next = choose().unwrap_or(path);
        memory.add(single::REROUTED, u64::from(next != path));
        return Some(leave(&entry, now_ps, epoch, (path, next)));
    }
    let tag = Tag { kind: Kind::Data, rerouted, epoch, tail_ps: entry.load(sent::TAIL_PS) };
    Some(Sends { tag, path })
}

/// A packet begins an epoch on a path.
//= docs/specs/conweave.md#CWV-5 a request
fn begin<F: Forwarding>(
    memory: &Memory<'_, F>,
    entry: &Entry<'_, '_, F>,
    course: &Course,
    epoch: u16,
    path: u32,
) -> Sends {
    let reply_by_ps = course.t_ps + memory.load(rtt(course.target)) + memory.load(single::REPLY_EXTRA_PS);
    entry.store(sent::REPLY_BY_PS, reply_by_ps);
    entry.store(sent::TAIL_PS, 0);
    entry.store(sent::STATE, u64::from(epoch) | u64::from(path) << PATH_SHIFT);
    Sends { tag: Tag { kind: Kind::Request, rerouted: false, epoch, tail_ps: 0 }, path }
}

/// A packet is the last one on its path.
//= docs/specs/conweave.md#CWV-7 the TAIL
fn leave<F: Forwarding>(entry: &Entry<'_, '_, F>, now_ps: u64, epoch: u16, (path, next): (u32, u32)) -> Sends {
    entry.store(sent::REPLY_BY_PS, NEVER);
    entry.store(sent::TAIL_PS, now_ps);
    entry.store(sent::STATE, u64::from(epoch) | REROUTED | u64::from(next) << PATH_SHIFT);
    Sends { tag: Tag { kind: Kind::Tail, rerouted: false, epoch, tail_ps: now_ps }, path }
}

/// A frame of ConWeave's has come from the switch at the other end.
pub(super) fn hear<F: Forwarding>(tables: &F, switch: &SwitchConfig, now_ps: u64, tag: Tag) {
    let Some(trail) = tables.trail() else { return };
    let memory = Memory::of(tables, switch);
    if tag.kind == Kind::Notify {
        let leaf = tables.switch(trail.source()).map_or(0, |from| from.leaf);
        return mark(&memory, leaf, trail.more()[0] as u32, now_ps);
    }
    let Some(entry) = memory.find(SENT, sent::WORDS, trail.flow()) else { return };
    let state = entry.load(sent::STATE);
    let rerouted = state & REROUTED != 0;
    let in_time = match tag.kind {
        //= docs/specs/conweave.md#CWV-5 a request
        Kind::Reply => !rerouted && now_ps < entry.load(sent::REPLY_BY_PS),
        //= docs/specs/conweave.md#CWV-8 one reroute at a time
        _ => rerouted,
    };
    if tag.epoch == state as u16 && in_time {
        entry.store(sent::STATE, state | SETTLED);
        entry.store(sent::REPLY_BY_PS, NEVER);
    }
}

/// A path over which no marked packet has come of late: the first such of two random ones.
//= docs/specs/conweave.md#CWV-9 the choice of a path
fn choose<F: Forwarding>(
    tables: &F,
    memory: &Memory<'_, F>,
    switch: &SwitchConfig,
    course: &Course,
    lot: u64,
) -> Option<u32> {
    let random = u64::from(path::lot(switch, lot, course.t_ps)) << 32;
    let mut paths = (0..LOOKS).filter_map(|look| one(tables, course, mix(random | look)));
    paths.find(|path| !is_busy(memory, course, *path))
}

/// The path that this lot falls on.
fn one<F: Forwarding>(tables: &F, course: &Course, lot: u64) -> Option<u32> {
    let paths = path::Paths::of(tables, course)?;
    paths.path(tables, course, pick((lot >> 32) as u32, paths.count))
}

/// Whether routes still lead over the first link of a path.
fn leads<F: Forwarding>(tables: &F, memory: &Memory<'_, F>, frame: &Frame, course: &Course, path: u32) -> bool {
    let Some(group) = tables.group(course.t_ps, frame.switch, course.host) else { return false };
    memory.way(path::way(path, 0)).is_some_and(|port| path::has(tables, &group, port))
}

/// A word of [`BUSY`]: the time in ns, and a hash above.
const KEY_SHIFT: u32 = 48;

/// The place and the hash of a path to a leaf.
fn busy(leaf: u32, path: u32) -> (u32, u64) {
    let hash = mix(u64::from(leaf) << 32 | u64::from(path));
    (BUSY.place(hash as u32), hash >> KEY_SHIFT)
}

/// A marked packet has come over a path.
//= docs/specs/conweave.md#CWV-10 busy paths
fn mark<F: Forwarding>(memory: &Memory<'_, F>, leaf: u32, path: u32, now_ps: u64) {
    let (place, key) = busy(leaf, path);
    let until_ps = now_ps + memory.load(single::PATH_BUSY_PS);
    memory.store(place, key << KEY_SHIFT | (until_ps / 1_000) & ((1 << KEY_SHIFT) - 1));
}

fn is_busy<F: Forwarding>(memory: &Memory<'_, F>, course: &Course, path: u32) -> bool {
    let (place, key) = busy(course.target, path);
    let known = memory.load(place);
    known >> KEY_SHIFT == key && (known & ((1 << KEY_SHIFT) - 1)) * 1_000 > course.t_ps
}
