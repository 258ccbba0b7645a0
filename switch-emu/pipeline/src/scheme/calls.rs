//! Parts of schemes that are separate functions in the XDP program, so that the verifier follows each once.

use super::look::Look;
use super::step::Step;
use crate::frame::Frame;
use crate::routes::Group;

/// The calls, plain functions for [`InMemory`](super::InMemory).
pub trait Calls {
    /// Runs [`part`](super::part).
    fn part(&self, part: Step, frame: &mut Frame, host: u32, port: u32) -> u32;
    /// Runs [`least`](super::least()).
    fn least(&self, group: &Group, t_ps: u64, look: &Look) -> u32;
    /// Runs [`score`](super::score).
    fn score(&self, member: u32, t_ps: u64, look: &Look, place: u32) -> u64;
    /// Runs [`look_up`](super::reunion::look_up).
    fn look_up(&self, first: u32, words: u32, head: u64) -> u64;
}
