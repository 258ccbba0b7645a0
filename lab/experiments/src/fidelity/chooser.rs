//! What chooses paths in a row.

use spray_core::path::BalancerKind;
use spray_fabric::Scheme;

/// A balancer or the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chooser {
    /// A balancer at the hosts, over switches that hash.
    Host(BalancerKind),
    /// The shortest queue at the switches, which is the reference's adaptive RoCE.
    AdaptiveRoce,
}

impl Chooser {
    /// Its name in the reference's file.
    pub const fn reference_name(self) -> &'static str {
        match self {
            Self::Host(balancer) => balancer.name(),
            Self::AdaptiveRoce => "switch-ar",
        }
    }

    /// What hosts run.
    pub(super) const fn balancer(self) -> BalancerKind {
        match self {
            Self::Host(balancer) => balancer,
            Self::AdaptiveRoce => BalancerKind::Ecmp,
        }
    }

    /// What switches run.
    pub(super) const fn scheme(self) -> Scheme {
        match self {
            Self::Host(_) => Scheme::Ecmp,
            Self::AdaptiveRoce => Scheme::Jsq,
        }
    }

    /// Whether a flow keeps to one path. Single runs then differ widely, because flows draw their paths.
    pub(super) fn keeps_paths(self) -> bool {
        matches!(self, Self::Host(BalancerKind::Ecmp | BalancerKind::Plb | BalancerKind::Flowlet))
    }

    /// How many seeds we run: enough for our own means to vary by less than 3 %, more if single runs differ widely.
    pub(super) fn seeds(self) -> u64 {
        if self.keeps_paths() { 20 } else { 12 }
    }
}

impl std::fmt::Display for Chooser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Host(balancer) => balancer.name(),
            Self::AdaptiveRoce => "adaptive-roce",
        })
    }
}
