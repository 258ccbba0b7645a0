//! What switches tell each other in frames of their own: Reunion's notifications.

use spray_fabric::{Network, reunion};
use spray_pipeline::flow_hash::Key;
use spray_pipeline::frame::Frame;
use spray_pipeline::scheme;
use spray_pipeline::word::Word;
use spray_wire::switch_view::PacketFields;

use super::arena::Slot;
use super::tables::{Switches, frame};

impl Switches {
    /// The next thing that a switch has to tell another one.
    #[inline]
    pub(super) fn poll_notice(&self, at: u32) -> Option<Notice> {
        if self.first_host.is_empty() {
            return None;
        }
        let reunion::Sent { to, note, links } = reunion::poll(self, at)?;
        Some(Notice { host: *self.first_host.get(to as usize)?, note, links })
    }

    /// A frame between switches sets out at `entry`.
    pub(super) fn begin_notice(&mut self, index: u32, entry: u32, note: u64) {
        self.trail.begin(entry, true, &Key::default(), &PacketFields::default());
        self.trail.note.store(note);
        self.keep_trail(index);
    }

    /// A frame between switches has come to a switch; whether it is the one that it is for, which then heeds it.
    pub(super) fn hear(&mut self, index: u32, slot: &Slot) -> bool {
        let is_there = self.first_host.iter().position(|host| *host == slot.to) == Some(slot.place as usize);
        if is_there {
            self.trail.resume(self.trails[index as usize]);
            let mut frame = Frame { switch: slot.place, ..frame(slot, self.trimmed_len) };
            let _heeded = scheme::recall(self, &mut frame, slot.to);
        }
        is_there
    }

    /// What switches with Reunion did.
    pub(super) fn reunion(&self) -> reunion::Counts {
        let counts = (0..self.first_host.len() as u32).filter_map(|switch| reunion::counts(self, switch));
        counts.fold(reunion::Counts::default(), |sum, one| reunion::Counts {
            rerouted: sum.rerouted + one.rerouted,
            stuck: sum.stuck + one.stuck,
            notified: sum.notified + one.notified,
        })
    }
}

/// What a switch tells another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notice {
    /// A host of that switch.
    pub host: u32,
    /// See [`Trail::note`].
    pub note: u64,
    /// Links that it lists.
    pub links: u32,
}

/// By switch its first host, if any switches have Reunion; else nothing.
pub(super) fn first_hosts(network: &Network) -> Vec<u32> {
    if !network.switching.has_reunion() {
        return Vec::new();
    }
    let mut first = vec![u32::MAX; network.switches.len()];
    (0..network.hosts.len()).rev().for_each(|host| first[network.leaf_of(host)] = host as u32);
    first
}
