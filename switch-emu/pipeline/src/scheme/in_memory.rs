//! Implements [`Calls`] with plain functions, for switches in user space.

use super::calls::{Calls, Look, Step};
use super::forwarding::Forwarding;
use super::least::{least, score};
use super::recall::part;
use super::reunion;
use crate::frame::Frame;
use crate::routes::Group;

/// Tables of a switch in user space.
pub trait InMemory: Forwarding {}

impl<F: InMemory> Calls for F {
    #[inline(always)]
    fn part(&self, step: Step, frame: &mut Frame, host: u32, port: u32) -> u32 {
        part(self, step, frame, host, port)
    }
    #[inline(always)]
    fn least(&self, group: &Group, t_ps: u64, look: &Look) -> u32 {
        least(self, group, t_ps, look, u32::MAX)
    }
    #[inline(always)]
    fn score(&self, member: u32, t_ps: u64, look: &Look, place: u32) -> u64 {
        score(self, member, t_ps, look, place)
    }
    #[inline(always)]
    fn look_up(&self, first: u32, words: u32, head: u64) -> u64 {
        reunion::look_up(self, first, words, head)
    }
}
