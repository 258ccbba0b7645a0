//! What a balancer is: [`Balancer`], which every scheme implements, and the traits that a scheme may offer besides.

use rand_core::RngCore;
use spray_wire::Section;

use super::memory::Remembered;
use crate::cc::CcConfig;
use crate::event::{Choice, Publisher};
use crate::feedback::{AckInfo, Ev, LossInfo, PacketInfo};

/// Chooses the entropy value (EV) of every packet of one connection.
///
/// A balancer learns only from what comes back to the sender. It reads no clock: every method takes the present time in
/// picoseconds, which never goes back.
///
/// A scheme that does more implements one of these too, in its own file; the sender calls no other:
///
/// | trait | what the scheme does |
/// |---|---|
/// | [`HoldBack`] | refuses to send for a while: drains a path, or keeps windows of its own |
/// | [`OwnWindows`] | keeps a congestion window for each path |
/// | [`Sections`] | tells the receiver which packets went over one path in order, in these or in trailers behind them, so that it finds losses |
/// | [`Probing`] | probes a path that carries no packets |
/// | [`Reachability`] | needs to know which EVs lead to distinct paths |
/// | [`PacketFeedback`] | learns from every packet that an ACK acknowledges |
/// | [`Memory`] | hands what it has learned to the next connection to the same host |
/// | [`EchoFeedback`] | learns from the EVs of coalesced packets that an ACK echoes |
/// | [`Timer`] | is to be asked again at a time: part of the first four that wait or probe |
///
/// # Order of the calls
///
/// 1. Before any packet: [`OwnWindows::on_control`]. [`Reachability::on_reachable`] follows, and comes again
///    whenever routing changes.
/// 2. Whenever the sender looks for something to send: [`Probing::poll_probe`] until it returns `None`,
///    [`Sections::poll_trailer`] until it returns `None`, then, if a packet waits, [`HoldBack::admit`]. If the packet
///    goes, [`Balancer::next_ev`] follows at once, and [`Sections::section`] after it.
/// 3. For every ACK: [`PacketFeedback::on_packet_acked`] for each packet that it acknowledges, lowest number first;
///    [`EchoFeedback::on_echo`] for each packet that it echoes, oldest first; [`Balancer::on_ack`] last. By then the
///    congestion control has taken the ACK.
/// 4. For every lost packet, at any time between these: [`Balancer::on_loss`], after the congestion control.
/// 5. For every answer to a probe: [`Probing::on_probe_ack`].
/// 6. [`HoldBack::is_draining`] after 3, 4 and every [`HoldBack::admit`]; [`Timer::poll_timeout`] after all of them.
pub trait Balancer {
    /// Returns the EV of the packet that is sent now, within `0..evs`. Called once for every packet sent, repeats and
    /// requests for the peer's grant included, but for those of a silence where the balancer [reuses](Self::reuses) paths (TRN-41).
    fn next_ev(&mut self, now_ps: u64, packet: &SendInfo, rng: &mut impl RngCore) -> Ev;

    /// How [`Balancer::next_ev`] will choose, if it is called now. Called for connections that are watched only.
    fn next_choice(&self) -> Choice {
        Choice::Chosen
    }

    /// Whether packets go where others came back from, so that it is mostly the packets by which a window grows that explore, and
    /// a balancer that hears nothing may never leave a path that has died. Asked once, when the connection begins.
    fn reuses(&self) -> bool {
        false
    }

    /// Takes an ACK. Called once for every ACK that a data packet triggered and whose EV is within `0..evs`.
    #[inline]
    fn on_ack(&mut self, _now_ps: u64, _ack: &AckInfo, _publisher: &mut impl Publisher) {}

    /// Takes the loss of a packet. Called once for each transmission that is declared lost; the balancer decides whether
    /// it means congestion or a failed path. [`LossCause::GoneBack`](crate::path::LossCause::GoneBack) means neither, and comes only
    /// where [`PacketFeedback`] keeps an account of packets.
    #[inline]
    fn on_loss(&mut self, _now_ps: u64, _loss: &LossInfo, _publisher: &mut impl Publisher) {}
}

/// The scheme acts at times of its own choice.
pub trait Timer {
    /// Returns the next time at which [`Probing::poll_probe`] or [`Sections::poll_trailer`] has something to send, or
    /// at which [`HoldBack::admit`] may change its answer. Called whenever the owner asks the sender for its next
    /// timeout.
    fn poll_timeout(&self) -> Option<u64>;
}

/// The scheme holds packets back.
pub trait HoldBack: Timer {
    /// Whether the settings turn this on. Asked once, when the connection begins.
    fn holds_back(&self) -> bool {
        true
    }

    /// Returns whether the next packet may go. Called whenever the sender looks for something to send. The packet may
    /// still stay after [`Admission::Window`], if the congestion control holds it back.
    fn admit(&mut self, now_ps: u64, packet: &SendInfo) -> Admission;

    /// Whether the connection drains: it waits until nothing is in flight, and changes its path then.
    fn is_draining(&self) -> bool {
        false
    }

    /// Whether the lowest unacknowledged packet, if it is lost, is sent again before all other lost packets. Asked
    /// once, when the connection begins.
    fn lowest_first(&self) -> bool {
        false
    }
}

/// The scheme keeps a congestion window for each of its paths.
pub trait OwnWindows: HoldBack {
    /// Takes the settings of the connection's congestion control. The scheme makes its own windows from them. Called
    /// before any packet, and again when the sender has learned more of the path: the windows then adopt the settings,
    /// as [`Scheme::adopt`](crate::cc::Scheme::adopt) says of `starting`. May allocate.
    fn on_control(&mut self, config: &CcConfig, starting: bool);
}

/// The scheme sends packets in sections, or trailers behind packets: each keeps its order on one path, so that the receiver
/// can tell a loss from reordering.
pub trait Sections: Timer {
    /// Whether the settings turn sections on. Asked once, when the connection begins.
    fn has_sections(&self) -> bool {
        true
    }

    /// Whether the sender is to declare losses by the gap rule whatever the connection's settings say, and with little
    /// patience: the scheme stands its mistakes. Asked once, when the connection begins.
    fn wants_gap_rule(&self) -> bool {
        false
    }

    /// Returns how many packets of its section went before the packet of the last [`Balancer::next_ev`]. Called after
    /// each packet.
    fn section(&self) -> Section;

    /// Returns a trailer that goes now behind packets on their path, if one is due. `oldest` is the earliest transmission
    /// that is neither acknowledged nor lost.
    fn poll_trailer(&mut self, now_ps: u64, oldest: Option<&Transmission>) -> Option<Trailer>;
}

/// The scheme probes paths with frames that carry no data.
pub trait Probing: Timer {
    /// Whether the settings turn probes on. Asked once, when the connection begins.
    fn has_probes(&self) -> bool {
        true
    }

    /// Returns an EV to probe now, if one is due.
    fn poll_probe(&mut self, now_ps: u64) -> Option<Ev>;

    /// Whether it has probed what it suspects now. While it has not, answers are to probes of something else.
    fn has_probed(&self) -> bool;

    /// Takes the answer to a probe. Called for answers to probes that went since [`Probing::has_probed`] was last false.
    fn on_probe_ack(&mut self, now_ps: u64, ev: Ev, marked: bool, publisher: &mut impl Publisher);
}

/// The scheme needs to know which EVs lead to distinct paths that reach the destination.
pub trait Reachability {
    /// Takes one EV for each path. Called by an engine that knows the paths, when the connection begins and whenever
    /// routing changes. May allocate.
    fn on_reachable(&mut self, now_ps: u64, paths: &[Ev]);
}

/// The scheme learns from every packet that an ACK acknowledges, whichever packet triggered the ACK.
pub trait PacketFeedback {
    /// Whether the settings turn this on. Asked once, when the connection begins.
    fn tracks_packets(&self) -> bool {
        true
    }

    /// Takes a packet that the next [`Balancer::on_ack`]'s ACK acknowledges. Called once for each packet.
    fn on_packet_acked(&mut self, now_ps: u64, packet: &PacketInfo);
}

/// The scheme learns from the packets that an ACK echoes beside the one that triggered it, where ACKs are coalesced.
pub trait EchoFeedback {
    /// Takes the EV and the mark of another packet that the next [`Balancer::on_ack`]'s ACK stands for.
    fn on_echo(&mut self, now_ps: u64, ev: Ev, marked: bool);
}

/// The scheme hands what it has learned of the paths to a host to the next connection that goes there.
pub trait Memory {
    /// What it has learned; `None` where the settings turn this off. Called when the connection ends.
    fn remember(&self, now_ps: u64) -> Option<Remembered>;

    /// Takes what an earlier connection to the same host had learned. Called before any packet, if at all.
    fn recall(&mut self, now_ps: u64, learned: &Remembered);
}

/// Which traits a connection's balancer offers, by its scheme and its settings. It never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offers {
    /// [`Balancer::reuses`].
    pub reuses: bool,
    /// [`HoldBack`].
    pub hold_back: bool,
    /// [`HoldBack::lowest_first`].
    pub lowest_first: bool,
    /// [`Sections`].
    pub sections: bool,
    /// [`Probing`].
    pub probing: bool,
    /// [`PacketFeedback`].
    pub packet_feedback: bool,
    /// [`Sections::wants_gap_rule`].
    pub gap_rule: bool,
}

impl Offers {
    /// Whether [`Timer::poll_timeout`] may ever answer.
    pub const fn timer(&self) -> bool {
        self.hold_back || self.sections || self.probing
    }
}

/// What a balancer may know of the packet that is sent next.
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
    /// Packets sent and not acknowledged, lost ones included; without this one if it is new.
    pub open_packets: u64,
    /// Payload bytes that the user handed over and that were never sent, this packet's included if it is new.
    pub unsent_bytes: u64,
}

/// Whether the next packet may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Yes, if the connection's congestion control lets it go.
    Window,
    /// Yes: the packet fits a window of the balancer's own.
    Go,
    /// No. Feedback or the time of [`Timer::poll_timeout`] may change that.
    Wait,
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

/// A frame without payload that follows the packets of a section down their path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// The number of the last of these packets.
    pub psn: u64,
    /// Their entropy value.
    pub ev: Ev,
    /// How many went before it.
    pub section: Section,
    /// The receiver sends an ACK at once: an earlier one may have been lost.
    pub ack_now: bool,
}
