//! The list of balancers: their names, and one type that is any of them.

use core::fmt;
use core::str::FromStr;

use rand_core::RngCore;

use super::{AckInfo, Admission, Balancer, Ecmp, Ev, LossInfo, Ops, PacketInfo, PathConfig, Reps, Scheme, SendInfo};
use super::{Section, Trail, Transmission};
use crate::cc::CcConfig;
use crate::event::Publisher;
use crate::kinds::kinds;

kinds! {
    /// Names the balancers.
    BalancerKind;
    /// Any of the balancers, dispatched without allocation or vtable.
    AnyBalancer;
    /// One entropy value for the whole connection.
    Ecmp "ecmp" Ecmp;
    /// A new random entropy value for every packet: oblivious packet spraying (REPS §2.2).
    Ops "ops" Ops;
    /// Recycled entropies with freezing (REPS §3); its earlier name is ARCANE.
    Reps "reps" Reps;
    /// Flowcut, NIC-only: another path when nothing is in flight, so that nothing is reordered (Flowcut §II).
    Flowcut "flowcut" super::Flowcut;
    /// PLB: one path until it stays congested (REPS §4.1).
    Plb "plb" super::Plb;
    /// Flowlet switching: a new path after a gap (REPS §4.1).
    Flowlet "flowlet" super::Flowlet;
    /// Presto's flowcells: a new path every 64 KiB.
    Flowcell "flowcell" super::Flowcell;
    /// MP-RDMA's path rule: the path of the last acknowledgement (REPS §4.1).
    Mprdma "mprdma" super::Mprdma;
    /// Entropy values in turn, those with a penalty passed over, as STrack (REPS §4.1).
    Bitmap "bitmap" super::Bitmap;
    /// REPS's core logic alone, which never freezes (REPS §3.1).
    RepsNoFreezing "reps-no-freezing" Reps;
    /// REPS that recycles all that an ACK stands for, explores evenly, and gives useless freezing up: this project's own.
    RepsPlus "reps-plus" super::RepsPlus;
    /// REPS that leaves freezing mode when a probe of the failed path is answered (REPS §3.2).
    RepsProbing "reps-probing" Reps;
    /// Host DR: the paths that the engine tells, in turn (OFAN §6).
    HostDr "host-dr" super::HostDr;
    /// A few subflows with a window each, like MPTCP (REPS §4.2).
    Mptcp "mptcp" super::Mptcp;
    /// A few labels in turn, each hashed to a path for good (OFAN §3.2).
    Subflow "subflow" super::Subflow;
    /// Subflows in order, the worst of which moves; the receiver tells losses from reordering (*Ordered Chaos*).
    OrderedChaos "ordered-chaos" super::OrderedChaos;
    /// Per packet the better of two random labels.
    PowerOfTwo "power-of-two" super::PowerOfTwo;
    /// The labels that met no mark lately, in turn.
    LeastRecentlyMarked "least-recently-marked" super::LeastRecentlyMarked;
}

impl BalancerKind {
    /// Whether an engine should tell its connections which paths there are; see [`Balancer::on_reachable`].
    pub const fn wants_reachability(self) -> bool {
        of_scheme!(self, Of => <Of as Scheme>::WANTS_REACHABILITY)
    }
}

impl AnyBalancer {
    /// Makes the configured balancer; where [`PathConfig::seed`] is set, lasting choices do not draw from `rng`.
    pub fn new(config: &PathConfig, rng: &mut impl RngCore) -> Self {
        make!(config.balancer, (config, rng))
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
    fn on_echo(&mut self, now_ps: u64, ev: Ev, marked: bool) {
        dispatch!(self, balancer => balancer.on_echo(now_ps, ev, marked))
    }

    #[inline]
    fn on_loss(&mut self, now_ps: u64, loss: &LossInfo, publisher: &mut impl Publisher) {
        dispatch!(self, balancer => balancer.on_loss(now_ps, loss, publisher))
    }

    #[inline]
    fn admit(&mut self, now_ps: u64, packet: &SendInfo, publisher: &mut impl Publisher) -> Admission {
        dispatch!(self, balancer => balancer.admit(now_ps, packet, publisher))
    }

    #[inline]
    fn tracks_packets(&self) -> bool {
        dispatch!(self, balancer => balancer.tracks_packets())
    }

    #[inline]
    fn on_packet_acked(&mut self, now_ps: u64, packet: &PacketInfo) {
        dispatch!(self, balancer => balancer.on_packet_acked(now_ps, packet))
    }

    fn on_control(&mut self, config: &CcConfig) {
        dispatch!(self, balancer => balancer.on_control(config))
    }

    fn on_reachable(&mut self, now_ps: u64, paths: &[Ev]) {
        dispatch!(self, balancer => balancer.on_reachable(now_ps, paths))
    }

    #[inline]
    fn has_sections(&self) -> bool {
        dispatch!(self, balancer => balancer.has_sections())
    }

    #[inline]
    fn section(&self) -> Section {
        dispatch!(self, balancer => balancer.section())
    }

    #[inline]
    fn poll_trail(&mut self, now_ps: u64, oldest: Option<&Transmission>) -> Option<Trail> {
        dispatch!(self, balancer => balancer.poll_trail(now_ps, oldest))
    }

    #[inline]
    fn lowest_first(&self) -> bool {
        dispatch!(self, balancer => balancer.lowest_first())
    }

    #[inline]
    fn holds_back(&self) -> bool {
        dispatch!(self, balancer => balancer.holds_back())
    }

    #[inline]
    fn has_timers(&self) -> bool {
        dispatch!(self, balancer => balancer.has_timers())
    }

    #[inline]
    fn is_draining(&self) -> bool {
        dispatch!(self, balancer => balancer.is_draining())
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
