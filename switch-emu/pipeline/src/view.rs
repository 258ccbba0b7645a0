//! The tables of a chassis as schemes see them.

#[cfg(not(target_arch = "bpf"))]
use core::cell::RefCell;

use crate::config::Globals;
use crate::frame::Frame;
use crate::routes::{Group, Routes, SwitchConfig};
#[cfg(not(target_arch = "bpf"))]
use crate::scheme::State;
use crate::scheme::{Forwarding, LoadQuery, QueueState, Step, Subprograms};
use crate::tables::Tables;
use crate::trail::Trail;

/// The tables of a chassis as schemes read them, with the group of the frame's epoch.
pub struct View<'a, T> {
    pub(crate) tables: &'a T,
    pub(crate) globals: &'a Globals,
}

impl<'a, T: Tables> View<'a, T> {
    /// Wraps `tables`; `None` while they have no constants.
    #[inline(always)]
    pub fn of(tables: &'a T) -> Option<Self> {
        Some(Self { tables, globals: tables.globals()? })
    }
}

impl<T: Tables> Routes for View<'_, T> {
    #[inline(always)]
    fn switch(&self, switch: u32) -> Option<&SwitchConfig> {
        self.tables.switch(switch)
    }
    #[inline(always)]
    fn group(&self, t_ps: u64, switch: u32, host: u32) -> Option<Group> {
        self.tables.group(self.globals.group_index(self.globals.epoch(t_ps), switch, host)).copied()
    }
    #[inline(always)]
    fn member(&self, index: u32) -> Option<u32> {
        self.tables.member(index)
    }
}

impl<T: Tables> Forwarding for View<'_, T> {
    type Word = T::Word;
    type TrailWord = T::TrailWord;
    #[inline(always)]
    fn word(&self, index: u32) -> Option<&T::Word> {
        self.tables.word(index)
    }
    #[inline(always)]
    fn trail(&self) -> Option<&Trail<T::TrailWord>> {
        self.tables.trail()
    }
    #[cfg(not(target_arch = "bpf"))]
    #[inline]
    fn state(&self, switch: u32) -> Option<&RefCell<State>> {
        self.tables.state(switch)
    }
    #[inline(always)]
    fn queue_state(&self, port: u32, t_ps: u64) -> Option<QueueState> {
        Some(self.tables.port(port)?.queue_state(t_ps, self.tables.queues(port)?))
    }
}

impl<T: Tables> Subprograms for View<'_, T> {
    #[inline(always)]
    fn step(&self, step: Step, frame: &mut Frame, host: u32, port: u32) -> u32 {
        self.tables.step(step, frame, host, port)
    }
    #[inline(always)]
    fn least(&self, group: &Group, t_ps: u64, query: &LoadQuery) -> u32 {
        self.tables.least(group, t_ps, query)
    }
    #[inline(always)]
    fn score(&self, member: u32, t_ps: u64, query: &LoadQuery, place: u32) -> u64 {
        self.tables.score(member, t_ps, query, place)
    }
    #[inline(always)]
    fn look_up(&self, first: u32, words: u32, head: u64) -> u64 {
        self.tables.look_up(first, words, head)
    }
}
