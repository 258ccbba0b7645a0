//! Path choice: the entropy value (EV) of the next packet, by one of the [`Balancer`]s below.

mod balancer;
mod bitmap;
mod ecmp;
mod flowcell;
mod flowcut;
mod flowlet;
mod history;
mod host_dr;
mod known_paths;
mod labels;
mod mixed;
mod mprdma;
mod mptcp;
mod ops;
mod ordered_chaos;
mod plb;
mod registry;
mod reps;
mod reps_plus;
mod round_robin;
mod subflow;
mod suspicion;

#[cfg(test)]
mod tests;

use rand_core::RngCore;
pub use spray_wire::Section;

pub use self::balancer::{Admission, Balancer, Features, Flight, SendInfo, Trailer, Transmission};
pub use self::bitmap::{Bitmap, BitmapConfig, BitmapPardon};
pub use self::ecmp::Ecmp;
pub use self::flowcell::{Flowcell, FlowcellConfig, FlowcellOrder};
pub use self::flowcut::{Flowcut, FlowcutConfig, FlowcutRule};
pub use self::flowlet::{Flowlet, FlowletClock, FlowletConfig};
pub(crate) use self::history::PathHistories;
pub use self::history::{MAX_GOOD, PathHistory, Suspect};
pub use self::host_dr::{AckTurns, HostDr, HostDrConfig, HostDrOrder};
pub use self::mixed::Mixed;
pub use self::mprdma::{Mprdma, MprdmaConfig, MprdmaRule};
pub use self::mptcp::{Mptcp, MptcpConfig, MptcpSplit};
pub use self::ops::Ops;
pub use self::ordered_chaos::{OrderedChaos, OrderedChaosConfig};
pub use self::plb::{Plb, PlbConfig, PlbRule};
pub use self::registry::{AnyBalancer, BalancerConfig, BalancerKind, CustomBalancer, MakeBalancer, Schemes};
pub use self::reps::{FailureSignal, FrozenWalk, MAX_BUFFER, PROBE_RTTS, Reps, RepsConfig, RepsRule, ThawCheck};
pub use self::reps_plus::{RepsPlus, RepsPlusConfig};
pub(crate) use self::round_robin::RoundRobin;
pub use self::subflow::{Subflow, SubflowConfig};
use crate::Time;
use crate::event::Publisher;
pub use crate::feedback::{AckInfo, Ev, LossCause, LossInfo, PacketInfo, PathEvs, ProbeInfo};
pub use crate::kinds::{Custom, UnknownName};
use crate::now::OnPath;
pub use crate::now::{MAX_RTT_PS, Now, Path};
use crate::rng::Rng;
use crate::settings::settings;

/// A balancer that can be created from a connection's settings.
pub trait Scheme: Balancer + Sized {
    /// Its settings. The default is the paper's.
    type Config;

    /// Bytes of state that a NIC would hold per connection, settings excluded.
    const STATE_BYTES: usize;

    /// Whether it uses EVs of distinct paths, from an engine that provides them.
    const WANTS_PATHS: bool = false;

    /// The number of entropy values in its paper; the settings may differ.
    const EVS: u16 = 65_535;

    /// Whether its receiver's ACKs return over the paths in turn and echo no EV; see [`AckTurns`].
    const ACKS_IN_TURN: bool = false;

    /// Creates one for a new connection. Lasting choices derive from [`Path::seed`], if set.
    fn make(own: &Self::Config, path: &Path, rng: &mut Rng) -> Self;
}

settings! {
    /// The settings of a balancer without settings.
    pub struct NoSettings {}
}

/// Draws an entropy value uniformly from `0..evs`. All random values are drawn here.
pub fn draw(evs: u16, rng: &mut Rng) -> Ev {
    Ev::new(draw_below(evs, rng))
}

/// Draws from `0..count` by multiplication, where the paper takes a remainder: no value is more
/// likely than another by over 2^-16 of itself.
fn draw_below(count: u16, rng: &mut Rng) -> u16 {
    crate::rng::below(count.into(), rng) as u16
}

/// Draws an entropy value uniformly from `0..evs` without `old`. `evs` is at least 2.
fn draw_other(old: Ev, evs: u16, rng: &mut Rng) -> Ev {
    let other = draw(evs - 1, rng);
    if other < old { other } else { Ev::new(other.index() + 1) }
}

/// Returns the entropy value `ahead` (at most `evs`) after `ev` in the cycle of `0..evs`.
fn ahead(ev: Ev, ahead: u16, evs: u16) -> Ev {
    let index = u32::from(ev.index()) + u32::from(ahead);
    Ev::new((if index < u32::from(evs) { index } else { index - u32::from(evs) }) as u16)
}

/// Draws 16 bits for a connection, from the same source as [`draw_lasting`].
pub(crate) fn draw_seed(path: &Path, rng: &mut Rng) -> u16 {
    let bits = path.seed.map_or_else(|| rng.next_u32(), |seed| crate::rng::stream(seed, 0).next_u32());
    (bits >> 16) as u16
}

/// Draws a lasting entropy value, from `stream` of the connection's seed if there is one.
pub(crate) fn draw_lasting(path: &Path, stream: u64, rng: &mut Rng) -> Ev {
    path.seed.map_or_else(|| draw(path.evs, rng), |seed| draw(path.evs, &mut crate::rng::stream(seed, stream)))
}
