//! For tests: two leaves under four spines, whose switches remember.

use core::cell::Cell;
use std::vec;
use std::vec::Vec;

use spray_wire::switch_view::PacketFields;

use super::{Forwarding, Scheme, Size, Waiting, port_words, recall};
use crate::Cause;
use crate::config::{PS_FRACTION_BITS, UNIT_BITS};
use crate::flow_hash::Key;
use crate::frame::Frame;
use crate::routes::{Group, Routes, SwitchConfig};
use crate::trail::Trail;

pub(super) const SPINES: u32 = 4;
pub(super) const US: u64 = 1_000_000;
pub(super) const SIZE: Size = Size { leaves: 2, uplinks: SPINES };
const GBPS_100_PS_PER_BYTE: u64 = 80;
const PORTS: u32 = 18;

/// Switches 0 and 1 are leaves with a host each (hosts 0 and 1), switches 2 to 5 spines. Ports 0 to 3 lead from leaf 0 to the spines, 4 to
/// 7 from leaf 1, 8 and on from each spine to leaf 0 and to leaf 1, 16 and 17 to the hosts.
pub(super) struct Net {
    pub(super) switches: Vec<SwitchConfig>,
    pub(super) words: Vec<Cell<u64>>,
    pub(super) trail: Trail,
    /// Bytes that wait, by port.
    pub(super) waiting: Vec<Cell<u64>>,
    /// Uplinks of a leaf that routing knows.
    pub(super) uplinks: Cell<u16>,
}

/// How a frame went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// The spine that it went over.
    pub(super) spine: u32,
    /// Its note at the end.
    pub(super) note: u64,
    /// What it says in the place of a detour.
    pub(super) detour: u8,
}

impl Net {
    pub(super) fn new(scheme: Scheme) -> Self {
        let hosts = port_words(PORTS);
        let first = hosts + 2;
        let config = |switch: u32| SwitchConfig {
            gap_ps: 100 * US,
            memory: first + switch * scheme.words(&SIZE),
            remembers: 1,
            hosts,
            leaf: if switch < 2 { switch } else { u32::MAX },
            leaves: 2,
            uplinks: SPINES,
            ..SwitchConfig::new(switch, scheme)
        };
        let net = Self {
            switches: (0..2 + SPINES).map(config).collect(),
            words: vec![Cell::new(0); (first + 6 * scheme.words(&SIZE)) as usize],
            trail: Trail::default(),
            waiting: vec![Cell::new(0); PORTS as usize],
            uplinks: Cell::new(SPINES as u16),
        };
        for port in 0..16 {
            let (tag, back) = match port {
                0..8 => (port % SPINES, 8 + 2 * (port % SPINES) + port / SPINES),
                _ => (port % 2, (port % 2) * SPINES + (port - 8) / 2),
            };
            net.words[port_words(port) as usize].set(u64::from(tag));
            net.words[port_words(port) as usize + 2].set(u64::from(back) + 1);
        }
        net.words[hosts as usize + 1].set(1);
        net
    }

    /// Takes a frame from a leaf's host to the other one.
    pub(super) fn go(
        &self,
        from: u32,
        flow: u64,
        reply: bool,
        fields: &PacketFields,
        frame: &Frame,
    ) -> Result<Way, Cause> {
        let addresses = if reply { flow.rotate_left(32) } else { flow };
        self.trail.begin(from, reply, &Key { addresses, ports: 0, label: 0 }, fields);
        let (mut at, mut spine, host) = (from, 0, 1 - from);
        loop {
            let mut frame = Frame { switch: at, flow, crc: flow as u32, ..*frame };
            let port = recall(self, &mut frame, host)?;
            at = match port {
                0..8 => 2 + port % SPINES,
                8..16 => port % 2,
                _ => return Ok(Way { spine, note: self.trail.note.get(), detour: frame.detour }),
            };
            spine = if at >= 2 { at - 2 } else { spine };
        }
    }
}

/// A frame of data.
pub(super) const FRAME: Frame = Frame {
    flow: 0,
    time_ps: 0,
    switch: 0,
    port: 0,
    crc: 1,
    len: 0,
    trimmed_len: 0,
    ttl: 64,
    ecn: 0,
    control: false,
    trimmed: 0,
    emulated: true,
    detour: 0,
};

impl Routes for Net {
    fn switch(&self, switch: u32) -> Option<&SwitchConfig> {
        self.switches.get(switch as usize)
    }
    fn group(&self, _: u64, switch: u32, host: u32) -> Option<Group> {
        Some(match switch {
            leaf if leaf == host => Group::one(16 + host),
            leaf @ 0..2 => Group { count: self.uplinks.get(), ..Group::one(leaf * SPINES) },
            spine => Group::one(8 + 2 * (spine - 2) + host),
        })
    }
    fn member(&self, index: u32) -> Option<u32> {
        Some(index)
    }
}

impl Forwarding for Net {
    type Word = Cell<u64>;
    type Note = Cell<u64>;
    fn word(&self, index: u32) -> Option<&Cell<u64>> {
        self.words.get(index as usize)
    }
    fn trail(&self) -> Option<&Trail> {
        Some(&self.trail)
    }
    fn waiting(&self, port: u32, _: u64) -> Option<Waiting> {
        let bytes = self.waiting[port as usize].get();
        Some(Waiting { bytes, limit: 1 << 20, ps_per_unit: GBPS_100_PS_PER_BYTE << (PS_FRACTION_BITS - UNIT_BITS) })
    }
}
