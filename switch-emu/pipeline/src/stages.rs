//! The stages of a frame's way through a chassis: in the kernel each is a function of its own.

use crate::flow_hash::{FlowHash, Key};
use crate::frame::Frame;
use crate::hop::{cross, enter, is_last};
use crate::scheme::recall;
use crate::tables::Tables;
use crate::verdict::Cause;
use crate::view::View;

/// What a chassis does with a frame. Tables in memory keep the bodies given here.
pub trait Stages: Tables {
    /// The digest by the [`FlowHash`] of this number; a function of its own in the kernel, with its own stack.
    #[inline(always)]
    fn digest(&self, hash: u32, key: &Key) -> u64 {
        FlowHash::from_number(hash).digest(key)
    }

    /// Runs [`cross`]; the kernel's host makes it a function of its own, so that the verifier follows it once.
    #[inline(always)]
    fn cross(&self, frame: &mut Frame, host: u32) -> Result<(), Cause>
    where
        Self: Sized,
    {
        cross(self, frame, host)
    }

    /// Runs [`enter`]; a function of its own in the kernel for the same reason.
    #[inline(always)]
    fn enter(&self, frame: &mut Frame) -> Result<(), Cause>
    where
        Self: Sized,
    {
        enter(self, frame)
    }

    /// Runs [`recall`]; a function of its own in the kernel for the same reason.
    #[inline(always)]
    fn recall(&self, frame: &mut Frame, host: u32) -> Result<u32, Cause>
    where
        Self: Sized,
    {
        recall(&View::of(self).ok_or(Cause::NoRoute)?, frame, host)
    }

    /// Runs [`is_last`]; a function of its own in the kernel for the same reason.
    #[inline(always)]
    fn is_last(&self, switch: u32, t_ps: u64, host: u32) -> bool
    where
        Self: Sized,
    {
        is_last(self, switch, t_ps, host)
    }
}
