//! Implements [`Subprograms`] with plain functions, for switches in user space.

use super::forwarding::Forwarding;
use super::least::{least, score};
use super::subprograms::{LoadQuery, Step, Subprograms};
use super::{by_trail, reunion};
use crate::frame::Frame;
use crate::routes::Group;

/// Tables of a switch in user space.
pub trait InMemory: Forwarding {}

impl<F: InMemory> Subprograms for F {
    #[inline(always)]
    fn step(&self, step: Step, frame: &mut Frame, host: u32, port: u32) -> u32 {
        by_trail::step(self, step, frame, host, port)
    }
    #[inline(always)]
    fn least(&self, group: &Group, t_ps: u64, query: &LoadQuery) -> u32 {
        least(self, group, t_ps, query, u32::MAX)
    }
    #[inline(always)]
    fn score(&self, member: u32, t_ps: u64, query: &LoadQuery, place: u32) -> u64 {
        score(self, member, t_ps, query, place)
    }
    #[inline(always)]
    fn look_up(&self, first: u32, words: u32, head: u64) -> u64 {
        reunion::look_up(self, first, words, head)
    }
}
