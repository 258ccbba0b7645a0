//! Path choice: which entropy value (EV) the next packet carries. One file per algorithm.
//!
//! A [`Balancer`] learns only from what comes back to the sender: acknowledgements that echo an EV, and losses. The
//! call order is free; every method takes the present time, which must never go back.

mod bitmap;
mod ecmp;
mod flowcell;
mod flowcut;
mod flowlet;
mod host_dr;
mod labels;
mod least_recently_marked;
mod mprdma;
mod mptcp;
mod ops;
mod ordered_chaos;
mod plb;
mod power_of_two;
mod registry;
mod reps;
mod reps_plus;
mod schemes;
mod subflow;

#[cfg(test)]
mod tests;

use rand_core::RngCore;
pub use spray_wire::Section;

pub use self::bitmap::{Bitmap, BitmapConfig};
pub use self::ecmp::Ecmp;
pub use self::flowcell::{Flowcell, FlowcellConfig};
pub use self::flowcut::{Flowcut, FlowcutConfig};
pub use self::flowlet::{Flowlet, FlowletConfig};
pub use self::host_dr::{HostDr, HostDrConfig};
pub use self::least_recently_marked::{LeastRecentlyMarked, LeastRecentlyMarkedConfig};
pub use self::mprdma::{Mprdma, MprdmaConfig};
pub use self::mptcp::{Mptcp, MptcpConfig};
pub use self::ops::Ops;
pub use self::ordered_chaos::{OrderedChaos, OrderedChaosConfig};
pub use self::plb::{Plb, PlbConfig};
pub use self::power_of_two::{PowerOfTwo, PowerOfTwoConfig};
pub use self::registry::{AnyBalancer, BalancerKind, UnknownBalancer};
pub use self::reps::{FailureSignal, FrozenWalk, MAX_BUFFER, PROBE_RTTS, Reps, RepsConfig, ThawCheck};
pub use self::reps_plus::{RepsPlus, RepsPlusConfig};
pub use self::schemes::Schemes;
pub use self::subflow::{Subflow, SubflowConfig};
use crate::cc::CcConfig;
use crate::event::Publisher;

/// An entropy value: an index in `0..evs`, which the wire format turns into a UDP source port.
pub type Ev = u16;

/// What a balancer may know of the packet about to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendInfo {
    /// Packet sequence number.
    pub psn: u64,
    /// Bytes of the whole frame on the wire.
    pub bytes: u32,
    /// The packet was sent before.
    pub retransmit: bool,
    /// Wire bytes in flight without this packet: sent, neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// Packets sent and not acknowledged, those declared lost included; without this one if it is new.
    pub open_packets: u64,
    /// Payload bytes handed over and never sent, this packet's included if it is new.
    pub unsent_bytes: u64,
}

/// One acknowledgement, as path choice and congestion control see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Wire bytes of that packet; those of a full one where it is not known.
    pub packet_bytes: u32,
    /// Wire bytes that stay in flight: sent, neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// Packets that stay sent and not acknowledged, those declared lost included.
    pub open_packets: u64,
    /// Payload bytes handed over and not sent yet.
    pub unsent_bytes: u64,
    /// Wire bytes that the congestion control then lets be in flight; 0 where it is the one that is told.
    pub window_bytes: u64,
}

/// One packet that an acknowledgement settled, whichever packet triggered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketInfo {
    /// Packet sequence number.
    pub psn: u64,
    /// Entropy value of its last transmission.
    pub ev: Ev,
    /// Bytes of the whole frame on the wire.
    pub bytes: u32,
    /// When it was last sent, in picoseconds.
    pub sent_ps: u64,
    /// It had been declared lost and was not sent again yet.
    pub was_lost: bool,
}

/// Whether the next packet may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// As far as the connection's congestion control lets it.
    Window,
    /// Yes: the balancer has windows of its own, and this packet fits one.
    Go,
    /// Not before feedback, or the time of [`Balancer::poll_timeout`], changes the balancer's mind.
    Wait,
}

/// What declared a packet lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LossCause {
    /// Its retransmission timer ran out.
    #[default]
    Timeout,
    /// Packets sent well after it were acknowledged.
    SackGap,
    /// A switch trimmed it for want of queue space, and the receiver said so.
    Trimmed,
    /// What was sent behind it on the same path arrived without it, and the receiver said so.
    Missing,
}

/// One lost packet, as path choice sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossInfo {
    /// Packet sequence number.
    pub psn: u64,
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
    /// Wire bytes that stay in flight: sent, neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// When the lost transmission was made, in picoseconds.
    pub sent_ps: u64,
}

/// A transmission that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// Packet sequence number.
    pub psn: u64,
    /// The entropy value that it carries.
    pub ev: Ev,
    /// When it was made, in picoseconds.
    pub sent_ps: u64,
}

/// A probe that follows the packets of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trail {
    /// The last of these packets.
    pub psn: u64,
    /// Their entropy value.
    pub ev: Ev,
    /// How many went before it.
    pub section: Section,
    /// The receiver is to acknowledge what it has: an acknowledgement may have been lost.
    pub ack_now: bool,
}

/// Chooses the entropy value of every packet of one connection.
pub trait Balancer {
    /// Returns the entropy value for the packet that is sent now; always within the configured set.
    fn next_ev(&mut self, now_ps: u64, packet: &SendInfo, rng: &mut impl RngCore) -> Ev;

    /// Takes an acknowledgement.
    fn on_ack(&mut self, now_ps: u64, ack: &AckInfo, publisher: &mut impl Publisher);

    /// Takes the path of another packet that the next [`Balancer::on_ack`]'s acknowledgement stands for, and that packet's mark,
    /// where acknowledgements carry several; the oldest first.
    #[inline]
    fn on_echo(&mut self, _now_ps: u64, _ev: Ev, _marked: bool) {}

    /// Takes a loss. The balancer decides whether it means congestion or a failed path.
    fn on_loss(&mut self, now_ps: u64, loss: &LossInfo, publisher: &mut impl Publisher);

    /// Takes the connection's congestion control, once and before any packet: a balancer with windows of its own makes them
    /// of its kind. May allocate.
    fn on_control(&mut self, _config: &CcConfig) {}

    /// Whether the next packet may go, and who decides. Called before every [`Balancer::next_ev`], and in vain as often
    /// as the sender looks for work.
    #[inline]
    fn admit(&mut self, _now_ps: u64, _packet: &SendInfo, _publisher: &mut impl Publisher) -> Admission {
        Admission::Window
    }

    /// Whether [`Balancer::on_packet_acked`] wants to be called: it costs a call per packet.
    #[inline]
    fn tracks_packets(&self) -> bool {
        false
    }

    /// Takes a packet that an acknowledgement settled, before [`Balancer::on_ack`] takes the acknowledgement itself.
    #[inline]
    fn on_packet_acked(&mut self, _now_ps: u64, _packet: &PacketInfo) {}

    /// Takes the news of which entropy values lead to distinct paths that reach the destination, one value a path. An
    /// engine that knows tells it when the connection begins and when routing changes. May allocate.
    fn on_reachable(&mut self, _now_ps: u64, _paths: &[Ev]) {}

    /// Whether packets go in sections, so that [`Balancer::section`] and [`Balancer::poll_trail`] have something to say.
    /// Never changes.
    #[inline]
    fn has_sections(&self) -> bool {
        false
    }

    /// Which packets went before the one that [`Balancer::next_ev`] was last called for, on its path.
    #[inline]
    fn section(&self) -> Section {
        Section::NONE
    }

    /// Returns a probe to send now behind packets, on their path, if one is due. Call until it returns `None`, and before
    /// any packet goes. `oldest` is the transmission under way that was made first.
    #[inline]
    fn poll_trail(&mut self, _now_ps: u64, _oldest: Option<&Transmission>) -> Option<Trail> {
        None
    }

    /// Whether the lowest packet not acknowledged goes before others that are lost. Never changes.
    #[inline]
    fn lowest_first(&self) -> bool {
        false
    }

    /// Whether [`Balancer::admit`] may answer anything but [`Admission::Window`], or the connection may ever drain. Never
    /// changes: a sender asks neither of a balancer that does not hold packets back.
    #[inline]
    fn holds_back(&self) -> bool {
        false
    }

    /// Whether [`Balancer::poll_probe`] or [`Balancer::poll_timeout`] may ever answer. Never changes: a sender asks neither of
    /// a balancer that has no timers.
    #[inline]
    fn has_timers(&self) -> bool {
        false
    }

    /// Whether the connection waits for what is in flight, to change its path then.
    #[inline]
    fn is_draining(&self) -> bool {
        false
    }

    /// Returns an entropy value to probe now, if one is due. Call until it returns `None`.
    fn poll_probe(&mut self, _now_ps: u64) -> Option<Ev> {
        None
    }

    /// Takes the answer to a probe.
    fn on_probe_ack(&mut self, _now_ps: u64, _ev: Ev, _marked: bool, _publisher: &mut impl Publisher) {}

    /// Returns when [`Balancer::poll_probe`] or [`Balancer::poll_trail`] next has something to send, or [`Balancer::admit`] may answer otherwise.
    fn poll_timeout(&self) -> Option<u64> {
        None
    }
}

/// A balancer that can be made from a connection's settings.
pub trait Scheme: Balancer + Sized {
    /// Bytes of state of a connection: what a NIC would hold for each, settings left out.
    const STATE_BYTES: usize;

    /// Whether it has a use for [`Balancer::on_reachable`]; engines compute nothing for the others.
    const WANTS_REACHABILITY: bool = false;

    /// Makes one for a new connection. Lasting choices come from [`PathConfig::seed`] where there is one.
    fn make(config: &PathConfig, rng: &mut impl RngCore) -> Self;
}

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
    /// What each balancer uses.
    pub schemes: Schemes,
}

impl PathConfig {
    /// The paper's settings for `balancer` on a path: 65,535 entropy values, no trimming.
    pub const fn new(balancer: BalancerKind, base_rtt_ps: u64, bdp_packets: u32) -> Self {
        Self { balancer, evs: 65_535, bdp_packets, base_rtt_ps, trimming: false, seed: None, schemes: Schemes::DEFAULT }
    }

    /// Size of the set of entropy values, brought into its range.
    pub(crate) fn ev_count(&self) -> u16 {
        self.evs.clamp(1, 65_535) as u16
    }
}

/// Draws an entropy value uniformly from `0..evs`.
///
/// A multiplication in place of the paper's `%`: no value is more likely than another by over 2^-16 of itself.
#[inline]
fn draw(evs: u16, rng: &mut impl RngCore) -> Ev {
    ((u64::from(rng.next_u32()) * u64::from(evs)) >> 32) as Ev
}

/// Draws 16 bits of a connection's own, as lasting as [`draw_lasting`]'s value.
pub(crate) fn draw_seed(config: &PathConfig, rng: &mut impl RngCore) -> u16 {
    let bits = config.seed.map_or_else(|| rng.next_u32(), |seed| crate::rng::stream(seed, 0).next_u32());
    (bits >> 16) as u16
}

/// Draws a connection's lasting entropy value: from its own seed, if it has one, and `stream` of that.
pub(crate) fn draw_lasting(config: &PathConfig, stream: u64, rng: &mut impl RngCore) -> Ev {
    let evs = config.ev_count();
    config.seed.map_or_else(|| draw(evs, rng), |seed| draw(evs, &mut crate::rng::stream(seed, stream)))
}
