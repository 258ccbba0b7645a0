//! The stages of a frame's processing: in the kernel separate functions.

use crate::flow_hash::{FlowHash, Key};
use crate::frame::Frame;
use crate::hop::{cross, enter, is_last};
use crate::scheme::route_by_trail;
use crate::tables::Tables;
use crate::verdict::Cause;
use crate::view::View;

/// The stages of a frame's processing. Tables in memory use the default bodies.
pub trait Stages: Tables {
    /// Returns the digest by the [`FlowHash`] of this number.
    #[inline(always)]
    fn digest(&self, hash: u32, key: &Key) -> u64 {
        FlowHash::from_number(hash).digest(key)
    }

    /// Runs [`cross`].
    #[inline(always)]
    fn cross(&self, frame: &mut Frame, host: u32) -> Result<(), Cause> {
        cross(self, frame, host)
    }

    /// Runs [`enter`].
    #[inline(always)]
    fn enter(&self, frame: &mut Frame) -> Result<(), Cause> {
        enter(self, frame)
    }

    /// Runs [`route_by_trail`].
    #[inline(always)]
    fn route_by_trail(&self, frame: &mut Frame, host: u32) -> Result<u32, Cause> {
        route_by_trail(&View::of(self).ok_or(Cause::NoRoute)?, frame, host)
    }

    /// Runs [`is_last`].
    #[inline(always)]
    fn is_last(&self, switch: u32, t_ps: u64, host: u32) -> bool {
        is_last(self, switch, t_ps, host)
    }
}
