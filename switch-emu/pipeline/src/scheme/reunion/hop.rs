//! A frame at a switch, and the role of that switch on its path.

use super::memory::Memory;
use crate::frame::Frame;
use crate::routes::SwitchConfig;
use crate::scheme::forwarding::{Forwarding, leaf};
use crate::scheme::note::ReunionNote;
use crate::scheme::path::PathEnds;
use crate::trail::Trail;
use crate::word::Word;

pub(in crate::scheme) struct Hop<'a, F: Forwarding> {
    pub(super) tables: &'a F,
    pub(super) trail: &'a Trail<F::TrailWord>,
    pub(super) switch: &'a SwitchConfig,
    pub(super) source: &'a SwitchConfig,
    pub(super) memory: Memory<'a, F>,
    pub(super) ends: PathEnds,
}

impl<'a, F: Forwarding> Hop<'a, F> {
    #[inline(always)]
    pub(in crate::scheme) fn new(tables: &'a F, switch: &'a SwitchConfig, frame: &Frame, host: u32) -> Option<Self> {
        let trail = tables.trail()?;
        let (from, target) = (trail.source(), leaf(tables, switch, host)?);
        let source = tables.switch(from)?;
        let memory = Memory::of(tables, switch)?;
        let ends = PathEnds { t_ps: frame.time_ps, from, host, target };
        Some(Self { tables, trail, switch, source, memory, ends })
    }

    #[inline(always)]
    pub(super) fn place(&self) -> SwitchRole {
        let Self { switch, source, ends, .. } = self;
        if source.leaf == ends.target {
            SwitchRole::Local
        } else if switch.leaf == source.leaf {
            SwitchRole::Source
        } else if switch.leaf == ends.target {
            SwitchRole::Target
        } else {
            SwitchRole::Between
        }
    }

    #[inline(always)]
    pub(super) fn note(&self) -> ReunionNote {
        ReunionNote::unpack(self.trail.note.load())
    }
}

/// The role of a switch on a frame's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SwitchRole {
    /// The only switch of both hosts.
    Local,
    Source,
    Between,
    Target,
}
