//! A leaf-spine network for the tests of Reunion.

use spray_wire::switch_view::PacketFields;
use std::vec::Vec;

use crate::flow_hash::Key;
use crate::frame::Frame;
use crate::scheme::choose::choose_by;
use crate::scheme::note::ReunionNote;
use crate::scheme::notice::Notice;
use crate::scheme::path::PathEnds;
use crate::scheme::reunion::links;
use crate::scheme::reunion::memory::Memory;
use crate::scheme::reunion::regions::single;
use crate::scheme::reunion::{Hop, poll};
use crate::scheme::tests::chassis::{Chassis, FRAME, FramePath, SETTINGS};
use crate::scheme::{Arrival, Scheme, SchemeCounters};
use crate::trail::Trail;

/// Fields of frames without a packet.
pub(super) const NONE: PacketFields = PacketFields { number: 0, stamp_ps: 0, hops: 0, is_ack: false };
pub(super) const INTERVAL_PS: u64 = SETTINGS.interval_ps;
const PLAIN: Frame = Frame { checksum: 0, len: 1_000, ..FRAME };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Reply,
}

pub(super) fn fabric() -> Chassis {
    Chassis::leaf_spine([4, 4, 4], Scheme::Reunion, SETTINGS)
}

impl Chassis {
    pub(super) fn memory(&self, switch: u32) -> Memory<'_, Self> {
        let config = &self.switches[switch as usize];
        Memory::of(self, config).unwrap()
    }

    /// Returns the frame of the trail at a switch, with the destination `host`.
    pub(super) fn here(&self, t_ps: u64, switch: u32, host: u32) -> Hop<'_, Self> {
        Hop::new(self, &self.switches[switch as usize], &Frame { time_ps: t_ps, switch, ..PLAIN }, host).unwrap()
    }

    /// Returns the counters of a switch.
    pub(super) fn counts(&self, switch: u32) -> SchemeCounters {
        let switch = &self.switches[switch as usize];
        SchemeCounters::of([(switch, None)].into_iter(), &|word| self.words[word as usize].get())
    }

    /// Returns the path that switch 0 finds in its second interval for this flow to host 12.
    pub(super) fn find(&self, flow: u32) -> Option<u32> {
        self.memory(0).word(single::INTERVAL).unwrap().set(2);
        self.trail.begin(0, false, &Key { addresses: 0, ports: flow, label: 0 }, &NONE);
        let mut frame = Frame { time_ps: 1, ..PLAIN };
        links::find(self, &mut frame, &PathEnds { t_ps: 1, from: 0, host: 12, target: 3 })
    }

    /// Sends a frame of data or a reply; returns its spine and its final note.
    pub(super) fn send(&self, t_ps: u64, flow: u32, src: u32, dst: u32, kind: Kind) -> (Option<u32>, ReunionNote) {
        let key = Key { addresses: u64::from(src) << 32 | u64::from(dst), ports: flow, label: 0 };
        let leaf = self.leaf(src);
        self.trail.begin(leaf, kind == Kind::Reply, &key, &NONE);
        self.take(t_ps, crate::hash::mix(u64::from(flow)), leaf, dst, kind)
    }

    fn take(&self, t_ps: u64, flow: u64, leaf: u32, dst: u32, kind: Kind) -> (Option<u32>, ReunionNote) {
        let frame = Frame { flow, time_ps: t_ps, switch: leaf, control: kind == Kind::Reply, ..PLAIN };
        let FramePath { spine, note, .. } = self.cross(frame, dst).unwrap();
        (spine, ReunionNote::unpack(note))
    }

    /// Returns the identifier of a flow in tables.
    pub(super) fn name(flow: u32, src: u32, dst: u32) -> u64 {
        let trail: Trail = Trail::default();
        trail.begin(0, false, &Key { addresses: u64::from(src) << 32 | u64::from(dst), ports: flow, label: 0 }, &NONE);
        trail.flow()
    }

    /// Returns a flow that the hash of this leaf assigns to this spine.
    pub(super) fn flow_over(&self, spine: u32, src: u32, dst: u32) -> u32 {
        (1..).find(|flow| self.hashed(*flow, src, dst) == spine).unwrap()
    }

    pub(super) fn hashed(&self, flow: u32, src: u32, dst: u32) -> u32 {
        let arrival =
            Arrival::of(&Frame { flow: crate::hash::mix(u64::from(flow)), switch: self.leaf(src), ..PLAIN }, dst);
        choose_by(self, &self.switches[self.leaf(src) as usize], &arrival, Scheme::Ecmp).unwrap().rank
    }

    /// Delivers the notifications of a switch as control frames; returns their destinations.
    pub(super) fn notify(&self, t_ps: u64, switch: u32) -> Vec<u32> {
        let mut sent = Vec::new();
        while let Some(Notice { to, note, .. }) = poll(self, switch) {
            self.trail.begin(switch, true, &Key::default(), &NONE);
            self.trail.note.set(note);
            self.take(t_ps, 7, switch, to * 4, Kind::Reply);
            sent.push(to);
        }
        sent
    }
}
