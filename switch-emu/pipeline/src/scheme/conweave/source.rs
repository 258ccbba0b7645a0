//! The source switch: measures whether packets are late, and reroutes late flows (ConWeave §3.2).

use super::state::{Busy, Outgoing, State, Uplinks};
use super::tag::{Kind, Tag};
use crate::config::NEVER;
use crate::frame::Frame;
use crate::hash::{mix, pick};
use crate::routes::SwitchConfig;
use crate::scheme::forwarding::Forwarding;
use crate::scheme::path::{self, PathEnds};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaggedPath {
    pub(super) tag: Tag,
    pub(super) path: u32,
}

/// Random paths tried by a reroute.
const LOOKS: u64 = 2;

/// First epochs follow from the time, in 2^20 ps: those known to the destination are older.
const EPOCH_UNIT: u32 = 20;

/// Processes an outgoing packet; `None` if the table has no entry for its flow.
pub(super) fn send<F: Forwarding>(
    tables: &F,
    state: &mut State,
    switch: &SwitchConfig,
    frame: &Frame,
    ends: &PathEnds,
    given: u32,
) -> Option<TaggedPath> {
    let (now_ps, flow) = (ends.t_ps, tables.trail()?.flow());
    let State { settings, uplinks, rtts_ps, busy, outgoing, counts, .. } = state;
    let pauses = |entry: &Outgoing| entry.active_ps + settings.inactive_ps < now_ps;
    let Some((entry, is_new)) = outgoing.enter(flow, pauses) else {
        counts.no_entry += 1;
        return None;
    };
    let (path, epoch) = (entry.path, entry.epoch);
    let choose = || match given {
        0 => choose(tables, busy, switch, ends, flow ^ u64::from(frame.checksum) << 32),
        given => Some(given),
    };
    let rtt_ps = rtts_ps.get(ends.target as usize).copied().unwrap_or(0);
    let reply_by_ps = now_ps + rtt_ps + settings.reply_extra_ps;
    //= docs/specs/conweave.md#CWV-4 epochs
    let has_none = is_new || path != 0 && !is_routed(tables, uplinks, frame, ends, path);
    let is_free = has_none || pauses(entry);
    //= docs/specs/conweave.md#CWV-6 a late reply
    let is_late = entry.reply_by_ps < now_ps || given != 0 && given != path && !entry.rerouted;
    entry.active_ps = now_ps;
    if is_free {
        let any = || if has_none { random_path(tables, ends, mix(flow ^ ends.t_ps)) } else { None };
        let next = choose().or_else(any).unwrap_or(path);
        counts.rerouted += u64::from(!is_new && next != path);
        let epoch = if is_new { (now_ps >> EPOCH_UNIT) as u16 } else { epoch.wrapping_add(1) };
        return Some(entry.begin(epoch, next, reply_by_ps));
    }
    if entry.settled {
        return Some(entry.begin(epoch.wrapping_add(1), path, reply_by_ps));
    }
    if is_late {
        let next = choose().unwrap_or(path);
        counts.rerouted += u64::from(next != path);
        return Some(entry.leave(next));
    }
    let tag = Tag { kind: Kind::Data, rerouted: entry.rerouted, epoch, tail_ps: entry.tail_ps };
    Some(TaggedPath { tag, path })
}

impl Outgoing {
    //= docs/specs/conweave.md#CWV-5 a request
    fn begin(&mut self, epoch: u16, path: u32, reply_by_ps: u64) -> TaggedPath {
        *self = Self { epoch, path, reply_by_ps, active_ps: self.active_ps, ..Self::default() };
        TaggedPath { tag: Tag { kind: Kind::Request, rerouted: false, epoch, tail_ps: 0 }, path }
    }

    /// Makes the present packet the last one on its path.
    //= docs/specs/conweave.md#CWV-7 the TAIL
    fn leave(&mut self, next: u32) -> TaggedPath {
        let Self { epoch, path, active_ps, .. } = *self;
        *self = Self { path: next, rerouted: true, reply_by_ps: NEVER, tail_ps: active_ps, ..*self };
        TaggedPath { tag: Tag { kind: Kind::Tail, rerouted: false, epoch, tail_ps: active_ps }, path }
    }
}

/// Processes a control frame from the destination's switch.
pub(super) fn on_control<F: Forwarding>(tables: &F, state: &mut State, now_ps: u64, tag: Tag) {
    let Some(trail) = tables.trail() else { return };
    //= docs/specs/conweave.md#CWV-10 busy paths
    if tag.kind == Kind::Notify {
        let leaf = tables.switch(trail.source()).map_or(0, |from| from.leaf);
        return state.busy.mark(leaf, trail.more()[0] as u32, now_ps + state.settings.path_busy_ps);
    }
    let Some(entry) = state.outgoing.find(trail.flow()) else { return };
    let in_time = match tag.kind {
        //= docs/specs/conweave.md#CWV-5 a request
        Kind::Reply => !entry.rerouted && now_ps < entry.reply_by_ps,
        //= docs/specs/conweave.md#CWV-8 one reroute at a time
        _ => entry.rerouted,
    };
    if tag.epoch == entry.epoch && in_time {
        (entry.settled, entry.reply_by_ps) = (true, NEVER);
    }
}

/// The first of two random paths that is not busy.
//= docs/specs/conweave.md#CWV-9 choice of a path
fn choose<F: Forwarding>(tables: &F, busy: &Busy, switch: &SwitchConfig, ends: &PathEnds, bits: u64) -> Option<u32> {
    let random = u64::from(path::random_bits(switch, bits, ends.t_ps)) << 32;
    let mut paths = (0..LOOKS).filter_map(|look| random_path(tables, ends, mix(random | look)));
    paths.find(|path| !busy.has(ends.target, *path, ends.t_ps))
}

fn random_path<F: Forwarding>(tables: &F, ends: &PathEnds, random_bits: u64) -> Option<u32> {
    let paths = path::Paths::of(tables, ends)?;
    paths.path(tables, ends, pick((random_bits >> 32) as u32, paths.count))
}

/// Whether the first link of a path is still on a route.
fn is_routed<F: Forwarding>(tables: &F, uplinks: &Uplinks, frame: &Frame, ends: &PathEnds, path: u32) -> bool {
    let Some(group) = tables.group(ends.t_ps, frame.switch, ends.host) else { return false };
    uplinks.port(path::uplink(path, 0)).is_some_and(|port| path::has(tables, &group, port))
}
