//! Helpers shared by the tests of several modules.

use core::ops::{Deref, DerefMut};

use crate::Time;
use crate::now::{Now, Path};
use crate::path::BalancerConfig;

pub mod agenda;

/// Returns a time from picoseconds.
pub(crate) const fn at(ps: u64) -> Time {
    Time::from_ps(ps)
}

/// Returns the time `steps` minimum steps after the origin; any number is a valid time.
pub(crate) const fn at_step(steps: u64) -> Time {
    Time::from_ns(steps / 8).after(steps % 8 * Time::STEP_PS)
}

/// Returns a path with 400 Gb/s and full packets of 4,150 bytes.
pub(crate) fn path_of(base_rtt_ps: u64, bdp_packets: u32) -> Path {
    Path { bdp_packets, ..Path::new(base_rtt_ps, 400_000_000_000, 4_150) }.clamped()
}

impl Path {
    /// Returns a time on this path, from picoseconds.
    pub(crate) fn at_ps(&self, ps: u64) -> Now<'_> {
        self.at(at(ps))
    }
}

/// A balancer's settings and its path, as configured by a test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) balancer: BalancerConfig,
    pub(crate) evs: u16,
    pub(crate) bdp_packets: u32,
    pub(crate) base_rtt_ps: u64,
    pub(crate) trimming: bool,
    pub(crate) seed: Option<u64>,
}

impl Setup {
    pub(crate) fn new(balancer: impl Into<BalancerConfig>, base_rtt_ps: u64, bdp_packets: u32) -> Self {
        Self { balancer: balancer.into(), evs: 65_535, bdp_packets, base_rtt_ps, trimming: false, seed: None }
    }

    pub(crate) fn path(&self) -> Path {
        let Self { evs, bdp_packets, base_rtt_ps, trimming, seed, .. } = *self;
        Path { evs, trimming, seed, ..path_of(base_rtt_ps, bdp_packets) }.clamped()
    }
}

/// A scheme on a path.
#[derive(Clone, Debug)]
pub(crate) struct On<S> {
    pub(crate) scheme: S,
    pub(crate) path: Path,
}

impl<S> Deref for On<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.scheme
    }
}

impl<S> DerefMut for On<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.scheme
    }
}
