//! Path choice: which entropy value (EV) the next packet carries. One file per algorithm.
//!
//! A [`Balancer`] learns only from what comes back to the sender: acknowledgements that echo an EV, and losses. The
//! call order is free; every method takes the present time, which must never go back.

mod ecmp;
mod ops;
mod reps;

#[cfg(test)]
mod tests;

use core::fmt;
use core::str::FromStr;

use rand_core::RngCore;

pub use self::ecmp::Ecmp;
pub use self::ops::Ops;
pub use self::reps::{FailureSignal, FrozenWalk, MAX_BUFFER, Probing, Reps, RepsConfig, ThawCheck};
use crate::event::Publisher;

/// An entropy value: an index in `0..evs`, which the wire format turns into a UDP source port.
pub type Ev = u16;

/// What a balancer may know of the packet about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendInfo {
    /// Packet sequence number.
    pub psn: u64,
    /// Bytes of the whole frame on the wire.
    pub bytes: u32,
    /// The packet was sent before.
    pub retransmit: bool,
}

/// One acknowledgement, as path choice and congestion control see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckInfo {
    /// Entropy value of the packet that triggered the acknowledgement.
    pub ev: Ev,
    /// That packet arrived with an ECN mark.
    pub marked: bool,
    /// Data packets that this acknowledgement stands for (more than one where ACKs are coalesced).
    pub packets: u16,
    /// How many of these carried an ECN mark.
    pub marked_packets: u16,
    /// Wire bytes, headers included, that it newly acknowledges.
    pub bytes: u64,
    /// Round-trip time of the packet that triggered it, in picoseconds.
    pub rtt_ps: u64,
    /// Switches that packet passed.
    pub hops: u8,
}

/// What declared a packet lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossCause {
    /// Its retransmission timer ran out.
    Timeout,
    /// Packets sent well after it were acknowledged.
    SackGap,
    /// A switch trimmed it for want of queue space, and the receiver said so.
    Trimmed,
}

/// One lost packet, as path choice sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossInfo {
    /// Entropy value that the lost packet carried.
    pub ev: Ev,
    /// Its bytes on the wire.
    pub bytes: u32,
    /// What declared it lost.
    pub cause: LossCause,
    /// Largest round-trip time seen in about two RTTs before the loss, in picoseconds; 0 when none was.
    pub max_rtt_ps: u64,
    /// A trimmed packet that the network knows to have been unmarked and trimmed on its last hop, so that only the
    /// receiver's own link is congested. `false` wherever the network cannot tell.
    pub path_clear: bool,
}

/// Chooses the entropy value of every packet of one connection.
pub trait Balancer {
    /// Returns the entropy value for the packet that is sent now; always within the configured set.
    fn next_ev(&mut self, now_ps: u64, packet: &SendInfo, rng: &mut impl RngCore) -> Ev;

    /// Takes an acknowledgement.
    fn on_ack(&mut self, now_ps: u64, ack: &AckInfo, publisher: &mut impl Publisher);

    /// Takes a loss. The balancer decides whether it means congestion or a failed path.
    fn on_loss(&mut self, now_ps: u64, loss: &LossInfo, publisher: &mut impl Publisher);

    /// Returns an entropy value to probe now, if one is due. Call until it returns `None`.
    fn poll_probe(&mut self, _now_ps: u64) -> Option<Ev> {
        None
    }

    /// Takes the answer to a probe.
    fn on_probe_ack(&mut self, _now_ps: u64, _ev: Ev, _marked: bool, _publisher: &mut impl Publisher) {}

    /// Returns when [`Balancer::poll_probe`] next has something to send.
    fn poll_timeout(&self) -> Option<u64> {
        None
    }
}

/// Names the balancers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BalancerKind {
    /// One entropy value for the whole connection.
    Ecmp,
    /// A new random entropy value for every packet.
    Ops,
    /// Recycled entropies with freezing (REPS §3); its earlier name is ARCANE.
    Reps,
}

impl BalancerKind {
    /// Every balancer, in the order in which tables show them.
    pub const ALL: [Self; 3] = [Self::Ecmp, Self::Ops, Self::Reps];

    /// The names that [`FromStr`] takes, aliases left out.
    pub const fn names() -> &'static [&'static str] {
        &["ecmp", "ops", "reps"]
    }

    /// The balancer's name.
    pub const fn name(self) -> &'static str {
        Self::names()[self as usize]
    }
}

impl fmt::Display for BalancerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for BalancerKind {
    type Err = UnknownBalancer;

    fn from_str(name: &str) -> Result<Self, UnknownBalancer> {
        let name = if name == "arcane" { "reps" } else { name };
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or(UnknownBalancer)
    }
}

/// A name that is no balancer's; its message lists those that are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownBalancer;

impl fmt::Display for UnknownBalancer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown balancer; allowed: ")?;
        for name in BalancerKind::names() {
            write!(f, "{name}, ")?;
        }
        f.write_str("arcane (same as reps)")
    }
}

impl core::error::Error for UnknownBalancer {}

/// How one connection chooses paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathConfig {
    /// The algorithm.
    pub balancer: BalancerKind,
    /// Size of the set of entropy values, 1 to 65,535; values outside are clamped. The paper's is 65,535: few values
    /// collide on few links and cost OPS much, REPS little (REPS §4.5.2).
    pub evs: u32,
    /// Packets in one bandwidth-delay product: how many explore after freezing (NUM_PKTS_BDP); at most 65,535 count.
    pub bdp_packets: u32,
    /// Round-trip time of an empty network, in picoseconds.
    pub base_rtt_ps: u64,
    /// The network trims: a loss that was not trimmed is a failure (REPS appendix A).
    pub trimming: bool,
    /// Where a connection's lasting choice comes from (`ecmp`'s path), so that it is the same on every engine; `None`
    /// draws it from the generator at hand.
    pub seed: Option<u64>,
    /// What only REPS uses.
    pub reps: RepsConfig,
}

impl PathConfig {
    /// The paper's settings for `balancer` on a path: 65,535 entropy values, no trimming.
    pub const fn new(balancer: BalancerKind, base_rtt_ps: u64, bdp_packets: u32) -> Self {
        Self { balancer, evs: 65_535, bdp_packets, base_rtt_ps, trimming: false, seed: None, reps: RepsConfig::paper() }
    }

    /// Size of the set of entropy values, brought into its range.
    pub(crate) fn ev_count(&self) -> u16 {
        self.evs.clamp(1, 65_535) as u16
    }
}

/// Any of the balancers, dispatched without allocation or vtable.
#[derive(Clone, Debug)]
pub enum AnyBalancer {
    /// See [`Ecmp`].
    Ecmp(Ecmp),
    /// See [`Ops`].
    Ops(Ops),
    /// See [`Reps`].
    Reps(Reps),
}

impl AnyBalancer {
    /// Makes the configured balancer; only `ecmp` draws from `rng`, and only without a seed of its own.
    pub fn new(config: &PathConfig, rng: &mut impl RngCore) -> Self {
        match config.balancer {
            BalancerKind::Ecmp => Self::Ecmp(Ecmp::new(config, rng)),
            BalancerKind::Ops => Self::Ops(Ops::new(config)),
            BalancerKind::Reps => Self::Reps(Reps::new(config)),
        }
    }
}

/// Calls a method of whichever balancer it is.
macro_rules! dispatch {
    ($any:expr, $balancer:ident => $call:expr) => {
        match $any {
            AnyBalancer::Ecmp($balancer) => $call,
            AnyBalancer::Ops($balancer) => $call,
            AnyBalancer::Reps($balancer) => $call,
        }
    };
}

impl Balancer for AnyBalancer {
    #[inline]
    fn next_ev(&mut self, now_ps: u64, packet: &SendInfo, rng: &mut impl RngCore) -> Ev {
        dispatch!(self, balancer => balancer.next_ev(now_ps, packet, rng))
    }

    #[inline]
    fn on_ack(&mut self, now_ps: u64, ack: &AckInfo, publisher: &mut impl Publisher) {
        dispatch!(self, balancer => balancer.on_ack(now_ps, ack, publisher))
    }

    #[inline]
    fn on_loss(&mut self, now_ps: u64, loss: &LossInfo, publisher: &mut impl Publisher) {
        dispatch!(self, balancer => balancer.on_loss(now_ps, loss, publisher))
    }

    #[inline]
    fn poll_probe(&mut self, now_ps: u64) -> Option<Ev> {
        dispatch!(self, balancer => balancer.poll_probe(now_ps))
    }

    #[inline]
    fn on_probe_ack(&mut self, now_ps: u64, ev: Ev, marked: bool, publisher: &mut impl Publisher) {
        dispatch!(self, balancer => balancer.on_probe_ack(now_ps, ev, marked, publisher))
    }

    #[inline]
    fn poll_timeout(&self) -> Option<u64> {
        dispatch!(self, balancer => balancer.poll_timeout())
    }
}

/// Draws an entropy value uniformly from `0..evs`.
///
/// A multiplication in place of the paper's `%`: no value is more likely than another by over 2^-16 of itself.
#[inline]
fn draw(evs: u16, rng: &mut impl RngCore) -> Ev {
    ((u64::from(rng.next_u32()) * u64::from(evs)) >> 32) as Ev
}
