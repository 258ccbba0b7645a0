//! What schemes read: the frame, the queues behind ports, the switch's words of memory.

#[cfg(not(target_arch = "bpf"))]
use core::cell::RefCell;

#[cfg(not(target_arch = "bpf"))]
use super::conweave::State;
#[cfg(doc)]
use super::list::Scheme;
use super::subprograms::{LoadMeasure, LoadQuery, Subprograms};
use crate::frame::Frame;
use crate::hash::mix;
use crate::packed::packed;
use crate::routes::{Group, Routes, SwitchConfig};
use crate::trail::Trail;
use crate::units::{PS_FRACTION_BITS, UNIT_BITS};
use crate::word::Word;

/// A frame that arrives at a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The arrival time.
    pub t_ps: u64,
    /// Digest of its five-tuple.
    pub flow: u64,
    /// The switch.
    pub switch: u32,
    /// The destination host.
    pub host: u32,
    /// The checksum of its header, which seeds random choices.
    pub checksum: u32,
    /// Whether it is in the control class.
    pub control: bool,
    /// Its detour in a dragonfly: 0 undecided, 1 shortest path, from 2 on toward group 0 and on.
    pub detour: u8,
}

impl Arrival {
    /// Describes a frame for this host at its present switch.
    #[inline(always)]
    pub fn of(frame: &Frame, host: u32) -> Self {
        Self {
            t_ps: frame.time_ps,
            flow: frame.flow,
            switch: frame.switch,
            host,
            checksum: frame.checksum,
            control: frame.control,
            detour: frame.detour,
        }
    }

    //= docs/specs/switching.md#SWC-3 random choices
    #[inline(always)]
    pub(super) fn random(&self, switch: &SwitchConfig) -> u64 {
        let checksum = u64::from(self.checksum).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mix(checksum ^ self.t_ps ^ switch.salt.rotate_left(32))
    }
}

/// What schemes read and write besides routes.
pub trait Forwarding: Routes + Subprograms {
    /// Words shared between CPUs.
    type Word: Word;
    /// Words of the frame's trail.
    type TrailWord: Word;
    /// Returns a word of memory: pointers, ports' and hosts' words, and schemes' tables.
    fn word(&self, index: u32) -> Option<&Self::Word>;
    /// Returns the trail of the present frame; only where a scheme [uses it](Scheme::uses_trail).
    fn trail(&self) -> Option<&Trail<Self::TrailWord>>;
    /// Returns a switch's state; only where it [holds](Scheme::holds) packets.
    #[cfg(not(target_arch = "bpf"))]
    #[inline]
    fn state(&self, _switch: u32) -> Option<&RefCell<State>> {
        None
    }
    /// Returns the queue that a frame arriving at `port` finds.
    fn queue_state(&self, port: u32, t_ps: u64) -> Option<QueueState>;

    /// Returns the first word of a port.
    #[inline(always)]
    fn ends(&self, port: u32) -> Option<PortWord> {
        Some(PortWord::unpack(self.word(port_words(port))?.load()))
    }

    /// Returns the number of a port among those of its switch that lead to switches.
    #[inline(always)]
    fn tag(&self, port: u32) -> Option<u32> {
        Some(self.ends(port)?.tag)
    }

    /// Returns the switch that a port leads to; `None`: a host.
    #[inline(always)]
    fn far_end(&self, port: u32) -> Option<u32> {
        self.ends(port)?.far_end.checked_sub(1)
    }

    /// Returns the number of a port among those of its switch that lead up, from 1 on; 0 of others.
    #[inline(always)]
    fn uplink(&self, port: u32) -> Option<u32> {
        Some(self.ends(port)?.uplink.into())
    }

    /// Returns the word in which a scheme measures a port's rate.
    #[inline(always)]
    fn rate_word(&self, port: u32) -> Option<&Self::Word> {
        self.word(port_words(port).wrapping_add(1))
    }

    /// Returns the port that leads back over a port's cable; `None` for a port to a host.
    #[inline(always)]
    fn back(&self, port: u32) -> Option<u32> {
        match self.word(port_words(port).wrapping_add(2))?.load() {
            0 => None,
            back => Some(back as u32 - 1),
        }
    }
}

/// The queue of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// Queued bytes of both classes.
    pub bytes: u64,
    /// Limit of queued data in bytes.
    pub limit: u32,
    /// Picoseconds per unit, 2^-7 bytes, at the present rate, in units of 2^-19.
    pub ps_per_unit: u64,
}

impl QueueState {
    /// Picoseconds per 1,024 bytes at the present rate.
    #[inline(always)]
    pub(super) fn kib_ps(&self) -> u64 {
        self.ps_per_unit >> (PS_FRACTION_BITS - UNIT_BITS - 10)
    }

    /// Bytes sent in this time at the present rate.
    #[inline(always)]
    pub(super) fn bytes_in(&self, time_ps: u64) -> u64 {
        (time_ps << (PS_FRACTION_BITS - UNIT_BITS)) / self.ps_per_unit.max(1)
    }
}

/// Returns the index of a port's words in fabrics with stateful schemes: its
/// [tag](Forwarding::tag), [rate](Forwarding::rate_word), port [back](Forwarding::back).
#[inline(always)]
pub const fn port_words(port: u32) -> u32 {
    port.wrapping_mul(3).wrapping_add(1)
}

packed! {
    /// The first word of a port.
    pub struct PortWord {
        /// Its number among the ports of its switch to switches.
        tag: u32 in 32,
        /// The next switch plus 1; 0: a host.
        far_end: u32 in 24,
        /// Its number among the ports of its switch that lead up, from 1 on; 0 of others.
        uplink: u8 in 8,
    }
}

/// The number of a host's leaf.
#[inline(always)]
pub(super) fn leaf<F: Forwarding>(tables: &F, switch: &SwitchConfig, host: u32) -> Option<u32> {
    Some(tables.word(switch.hosts.wrapping_add(host))?.load() as u32)
}

/// The place of the least loaded port for this frame.
#[inline(always)]
pub(super) fn least_loaded<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    group: &Group,
    frame: &Arrival,
    measure: LoadMeasure,
) -> u32 {
    let query = LoadQuery { measure, random: (frame.random(switch) >> 32) as u32, row: 0 };
    tables.least(group, frame.t_ps, &query)
}
