//! The destination switch: replies, notifies of marks, and holds packets of the new path behind
//! those of the old one (ConWeave §3.3).

use super::queues::Arrival;
use super::settings::Settings;
use super::state::{Incoming, State};
use super::tag::{Kind, Tag};
use crate::frame::Frame;
use crate::scheme::forwarding::Forwarding;
use crate::scheme::note::ReunionNote;
use crate::scheme::notice::Notice;
use crate::word::Word;

const MARKED: u8 = 3;

pub(super) fn arrive<F: Forwarding>(tables: &F, state: &mut State, frame: &Frame, host: u32, tag: Tag) {
    let Some(trail) = tables.trail() else { return };
    //= docs/specs/conweave.md#CWV-3 trimmed packets
    if frame.control {
        return;
    }
    let (now_ps, flow, inactive_ps) = (frame.time_ps, trail.flow(), state.settings.inactive_ps);
    let pauses = |entry: &Incoming| entry.queue.is_none() && entry.active_ps + inactive_ps < now_ps;
    let Some((entry, is_new)) = state.incoming.enter(flow, pauses) else {
        state.counts.no_entry += 1;
        return;
    };
    let begins = is_new || pauses(entry);
    entry.active_ps = now_ps.max(entry.active_ps);
    let age = tag.epoch.wrapping_sub(entry.epoch) as i16;
    //= docs/specs/conweave.md#CWV-11 epochs at the destination
    if age < 0 && !begins {
        return;
    }
    let State { settings, queues, counts, .. } = state;
    let (sent_ps, len) = (trail.more()[0], frame.len);
    let mut arrival = Arrival { settings, entry, queues, counts, now_ps, sent_ps, len, host, flow };
    arrival.order(tag, begins || age > 0);
    let mut notify = |answer: Tag, path: u32| {
        state.counts.control += 1;
        state.outbox.push(Notice {
            to: trail.source(),
            flow,
            more: [u64::from(path), answer.word()],
            ..Notice::default()
        });
    };
    //= docs/specs/conweave.md#CWV-10 busy paths
    if frame.ecn == MARKED {
        notify(Tag { kind: Kind::Notify, ..Tag::default() }, ReunionNote::unpack(trail.note.load()).path);
    }
    //= docs/specs/conweave.md#CWV-12 control frames between switches
    let kind = match tag.kind {
        Kind::Request => Kind::Reply,
        Kind::Tail => Kind::Clear,
        _ => return,
    };
    notify(Tag { kind, epoch: tag.epoch, ..Tag::default() }, 0);
}

impl Arrival<'_> {
    /// Passes or holds a packet of the present or a `new` epoch, and releases others.
    fn order(&mut self, tag: Tag, new: bool) {
        let is_tail = tag.kind == Kind::Tail;
        self.entry.epoch = tag.epoch;
        if new {
            (self.entry.open, self.entry.old_ps) = (false, None);
        }
        if tag.rerouted || is_tail {
            self.entry.tail_ps = tag.tail_ps;
        }
        if tag.rerouted {
            //= docs/specs/conweave.md#CWV-13 reordering queues
            if !self.entry.open {
                let due_ps = self.due_ps();
                if let (Some(queue), true) = (self.entry.queue, new) {
                    self.postpone(queue, due_ps);
                }
                self.hold(due_ps);
            }
            return;
        }
        self.entry.old_ps = Some((self.sent_ps, self.now_ps));
        match self.entry.queue {
            //= docs/specs/conweave.md#CWV-15 a new epoch while packets wait
            Some(queue) if new => {
                self.release_with(queue);
                self.entry.open = is_tail;
            }
            //= docs/specs/conweave.md#CWV-14 release by the TAIL
            Some(queue) if is_tail => self.release(queue),
            Some(queue) => self.postpone(queue, self.due_ps()),
            None => self.entry.open |= is_tail,
        }
    }

    /// When the TAIL is due, by the last packet of the old path and both sending times.
    //= docs/specs/conweave.md#CWV-16 a lost TAIL
    fn due_ps(&self) -> u64 {
        let Settings { resume_extra_ps, resume_default_ps, .. } = *self.settings;
        match self.entry.old_ps {
            Some((sent_ps, arrived_ps)) => arrived_ps + self.entry.tail_ps.saturating_sub(sent_ps) + resume_extra_ps,
            None => self.now_ps + resume_default_ps + resume_extra_ps,
        }
    }
}
