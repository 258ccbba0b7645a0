//! What a destination switch does: it answers, tells of marks, and has packets of the new path wait for those of the old one
//! (ConWeave §3.3).

use super::memory::{CAME, Entry, Memory, came, single};
use super::queues;
use super::route::tell;
use super::tag::{Kind, Tag};
use crate::frame::Frame;
use crate::routes::SwitchConfig;
use crate::scheme::Forwarding;
use crate::scheme::reunion::note::Note;
use crate::word::Word;

/// [`came::STATE`]: the TAIL of this epoch has passed, or is not waited for any more; a packet of the old path has come in this epoch; the
/// queue plus 1.
pub(super) const OPEN: u64 = 1 << 16;
const OLD: u64 = 1 << 17;
pub(super) const QUEUE_SHIFT: u32 = 32;
const EPOCH: u64 = 0xffff;

/// ECN bits of a marked packet.
const MARKED: u8 = 3;

/// Takes a packet of a flow from another leaf.
pub(super) fn arrive<F: Forwarding>(tables: &F, switch: &SwitchConfig, frame: &Frame, host: u32, tag: Tag) {
    let Some(trail) = tables.trail() else { return };
    //= docs/specs/conweave.md#CWV-3 what takes part
    if frame.control {
        return;
    }
    let (memory, now_ps, flow) = (Memory::of(tables, switch), frame.time_ps, trail.flow());
    let inactive_ps = memory.load(single::INACTIVE_PS);
    let pauses = |entry: &Entry<'_, '_, F>| {
        entry.load(came::STATE) >> QUEUE_SHIFT == 0 && entry.load(came::ACTIVE_PS) + inactive_ps < now_ps
    };
    let Some((entry, is_new)) = memory.enter(CAME, came::WORDS, flow, pauses) else {
        memory.add(single::NO_ENTRY, 1);
        return;
    };
    let begins = is_new || pauses(&entry);
    entry.store(came::ACTIVE_PS, now_ps.max(entry.load(came::ACTIVE_PS)));
    let age = tag.epoch.wrapping_sub((entry.load(came::STATE) & EPOCH) as u16) as i16;
    //= docs/specs/conweave.md#CWV-11 epochs at the destination
    if age < 0 && !begins {
        return;
    }
    let arrival = Arrival { now_ps, sent_ps: trail.more()[0], len: frame.len, host, flow };
    order(&memory, &entry, &arrival, tag, begins || age > 0);
    let from = trail.source();
    //= docs/specs/conweave.md#CWV-10 busy paths
    if frame.ecn == MARKED {
        let path = Note::of(trail.note.load()).path();
        tell(&memory, from, Tag { kind: Kind::Notify, ..Tag::default() }, flow, path);
    }
    //= docs/specs/conweave.md#CWV-12 frames of their own
    let answer = match tag.kind {
        Kind::Request => Kind::Reply,
        Kind::Tail => Kind::Clear,
        _ => return,
    };
    tell(&memory, from, Tag { kind: answer, epoch: tag.epoch, ..Tag::default() }, flow, 0);
}

/// A packet that has come.
pub(super) struct Arrival {
    pub(super) now_ps: u64,
    sent_ps: u64,
    pub(super) len: u32,
    pub(super) host: u32,
    pub(super) flow: u64,
}

/// Decides whether a packet of the present epoch or of a `new` one goes on, waits, or lets others go on.
fn order<F: Forwarding>(memory: &Memory<'_, F>, entry: &Entry<'_, '_, F>, arrival: &Arrival, tag: Tag, new: bool) {
    let &Arrival { now_ps, sent_ps, .. } = arrival;
    let before = entry.load(came::STATE);
    let (queue, kept) = (before >> QUEUE_SHIFT, if new { 0 } else { before & (OPEN | OLD) });
    let seen = if tag.rerouted { 0 } else { OLD };
    let state = u64::from(tag.epoch) | kept | seen | queue << QUEUE_SHIFT;
    entry.store(came::STATE, state);
    if !tag.rerouted {
        entry.store(came::OLD_SENT_PS, sent_ps);
        entry.store(came::OLD_CAME_PS, now_ps);
    }
    if tag.rerouted || tag.kind == Kind::Tail {
        entry.store(came::TAIL_PS, tag.tail_ps);
    }
    let held = queue.checked_sub(1).map(|queue| queue as u32);
    if tag.rerouted {
        //= docs/specs/conweave.md#CWV-13 holding
        if state & OPEN == 0 {
            let due_ps = due_ps(memory, entry, now_ps);
            if let (Some(queue), true) = (held, new) {
                queues::put_off(memory, queue, due_ps);
            }
            queues::hold(memory, entry, held, arrival, due_ps);
        }
        return;
    }
    match held {
        //= docs/specs/conweave.md#CWV-15 a new epoch while packets wait
        Some(queue) if new => {
            queues::release_with(memory, entry, queue, arrival);
            let open = if tag.kind == Kind::Tail { OPEN } else { 0 };
            entry.store(came::STATE, state & u64::from(u32::MAX) & !OPEN | open);
        }
        //= docs/specs/conweave.md#CWV-14 the TAIL lets go
        Some(queue) if tag.kind == Kind::Tail => queues::release(memory, entry, queue),
        Some(queue) => queues::put_off(memory, queue, due_ps(memory, entry, now_ps)),
        None if tag.kind == Kind::Tail => entry.store(came::STATE, state | OPEN),
        None => {}
    }
}

/// When the TAIL should have come: as long after the last packet of the old path as it left after that.
//= docs/specs/conweave.md#CWV-16 a lost TAIL
fn due_ps<F: Forwarding>(memory: &Memory<'_, F>, entry: &Entry<'_, '_, F>, now_ps: u64) -> u64 {
    let extra_ps = memory.load(single::RESUME_EXTRA_PS);
    if entry.load(came::STATE) & OLD == 0 {
        return now_ps + memory.load(single::RESUME_DEFAULT_PS) + extra_ps;
    }
    let gap_ps = entry.load(came::TAIL_PS).saturating_sub(entry.load(came::OLD_SENT_PS));
    entry.load(came::OLD_CAME_PS) + gap_ps + extra_ps
}
