//! A frame at a switch, and the role of that switch on its path.

use super::memory::Memory;
use crate::frame::Frame;
use crate::routes::SwitchConfig;
use crate::scheme::forwarding::{Forwarding, leaf};
use crate::scheme::note::ReunionNote;
use crate::scheme::path::Course;
use crate::trail::Trail;
use crate::word::Word;

pub(in crate::scheme) struct Here<'a, F: Forwarding> {
    pub(super) tables: &'a F,
    pub(super) trail: &'a Trail<F::TrailWord>,
    pub(super) switch: &'a SwitchConfig,
    pub(super) source: &'a SwitchConfig,
    pub(super) memory: Memory<'a, F>,
    pub(super) course: Course,
}

impl<'a, F: Forwarding> Here<'a, F> {
    #[inline(always)]
    pub(in crate::scheme) fn new(tables: &'a F, switch: &'a SwitchConfig, frame: &Frame, host: u32) -> Option<Self> {
        let trail = tables.trail()?;
        let (from, target) = (trail.source(), leaf(tables, switch, host)?);
        let source = tables.switch(from)?;
        let memory = Memory::of(tables, switch)?;
        let course = Course { t_ps: frame.time_ps, from, host, target };
        Some(Self { tables, trail, switch, source, memory, course })
    }

    #[inline(always)]
    pub(super) fn place(&self) -> SwitchRole {
        let Self { switch, source, course, .. } = self;
        if source.leaf == course.target {
            SwitchRole::Local
        } else if switch.leaf == source.leaf {
            SwitchRole::Source
        } else if switch.leaf == course.target {
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
