//! What a balancer is: [`Balancer`], which every scheme implements.

use spray_wire::Section;

use super::memory::Remembered;
use crate::Time;
use crate::cc::ControlConfig;
use crate::event::{Choice, Publisher};
use crate::feedback::{AckInfo, Ev, LossInfo, PacketInfo, PathEvs, ProbeInfo};
use crate::now::{Now, Path};
use crate::rng::Rng;

/// Chooses the entropy value (EV) of every packet of one connection.
///
/// A balancer learns only from what comes back to the sender. It reads no clock: methods take the present time, with what is known of
/// the path. Only [`Balancer::next_ev`] must be there. A scheme that does more says so in [`Balancer::offers`]; without that the
/// sender does not call the methods in question.
///
/// # Order of the calls
///
/// 1. Before any packet: [`Balancer::on_control`]. [`Balancer::on_reachable`] follows, and comes again whenever routing changes.
/// 2. Whenever the sender looks for something to send: [`Balancer::poll_probe`] until it returns `None`, [`Balancer::poll_trailer`]
///    until it returns `None`, then, if a packet waits, [`Balancer::admit`]. If the packet goes, [`Balancer::next_ev`] follows at once,
///    and [`Balancer::section`] after it.
/// 3. For every ACK: [`Balancer::on_packet_acked`] for each packet that it acknowledges, lowest number first; [`Balancer::on_echo`] for
///    each packet that it echoes, oldest first; [`Balancer::on_ack`] last. By then the congestion control has taken the ACK.
/// 4. For every lost packet, at any time between these: [`Balancer::on_loss`], after the congestion control.
/// 5. For every answer to a probe: [`Balancer::on_probe_ack`].
/// 6. [`Balancer::is_draining`] after 3, 4 and every [`Balancer::admit`]; [`Balancer::poll_timeout`] after all of them.
pub trait Balancer: core::fmt::Debug + Send + Sync {
    /// What it does besides choosing. It never changes.
    fn offers(&self) -> Offers {
        Offers::NOTHING
    }

    /// Returns the EV of the packet that is sent now, within `0..now.path.evs`. Called once for every packet sent, repeats and
    /// requests for the peer's grant included, but for those of a silence where the balancer [reuses](Offers::reuses) paths (TRN-41).
    fn next_ev(&mut self, now: Now<'_>, packet: &SendInfo, rng: &mut Rng) -> Ev;

    /// How [`Balancer::next_ev`] will choose, if it is called now. Called for connections that are watched only.
    fn next_choice(&self) -> Choice {
        Choice::Chosen
    }

    /// Whether the connection is in freezing mode.
    fn is_frozen(&self) -> bool {
        false
    }

    /// Takes an ACK. Called once for every ACK that a data packet triggered and whose EV is within `0..now.path.evs`.
    fn on_ack(&mut self, _now: Now<'_>, _ack: &AckInfo, _publisher: &mut dyn Publisher) {}

    /// Takes the loss of a packet. Called once for each transmission that is declared lost; the balancer decides whether
    /// it means congestion or a failed path. [`LossCause::GoneBack`](crate::path::LossCause::GoneBack) means neither, and comes only
    /// with [`Offers::packet_feedback`].
    fn on_loss(&mut self, _now: Now<'_>, _loss: &LossInfo, _publisher: &mut dyn Publisher) {}

    /// Returns the next time at which [`Balancer::poll_probe`] or [`Balancer::poll_trailer`] has something to send, or at which
    /// [`Balancer::admit`] may change its answer. Called whenever the owner asks the sender for its next timeout.
    fn poll_timeout(&self, _path: &Path) -> Option<Time> {
        None
    }

    /// With [`Offers::hold_back`]: returns whether the next packet may go. Called whenever the sender looks for something to send. The
    /// packet may still stay after [`Admission::Window`], if the congestion control holds it back.
    fn admit(&mut self, _now: Now<'_>, _packet: &SendInfo) -> Admission {
        Admission::Window
    }

    /// With [`Offers::hold_back`]: whether the connection drains, which is to wait until nothing is in flight and change the path then.
    fn is_draining(&self) -> bool {
        false
    }

    /// Takes the settings of the connection's congestion control, for windows of the scheme's own. Called before any packet. May allocate.
    fn on_control(&mut self, _control: &ControlConfig, _path: &Path) {}

    /// For windows of the scheme's own: [`CongestionControl::on_start`](crate::cc::CongestionControl::on_start).
    fn on_start(&mut self, _path: &Path) {}

    /// With [`Offers::sections`]: returns how many packets of its section went before the packet of the last [`Balancer::next_ev`].
    /// Called after each packet.
    fn section(&self) -> Section {
        Section::NONE
    }

    /// With [`Offers::sections`]: returns a trailer that goes now behind packets on their path, if one is due.
    fn poll_trailer(&mut self, _now: Now<'_>, _flight: &Flight) -> Option<Trailer> {
        None
    }

    /// With [`Offers::probing`]: returns an EV to probe now, if one is due.
    fn poll_probe(&mut self, _now: Now<'_>) -> Option<Ev> {
        None
    }

    /// With [`Offers::probing`]: whether it has probed what it suspects now. While it has not, answers are to probes of something else.
    fn has_probed(&self) -> bool {
        false
    }

    /// Takes the answer to a probe. Called for answers to probes that went since [`Balancer::has_probed`] was last false.
    fn on_probe_ack(&mut self, _now: Now<'_>, _answer: &ProbeInfo, _publisher: &mut dyn Publisher) {}

    /// Takes EVs for each path. Called by an engine that knows the paths, if the scheme
    /// [wants them](super::BalancerConfig::wants_reachability), when the connection begins and whenever routing changes. May allocate.
    fn on_reachable(&mut self, _now: Now<'_>, _paths: &[PathEvs]) {}

    /// With [`Offers::packet_feedback`]: takes a packet that the next [`Balancer::on_ack`]'s ACK acknowledges, whichever packet
    /// triggered that. Called once for each packet.
    fn on_packet_acked(&mut self, _now: Now<'_>, _packet: &PacketInfo) {}

    /// Takes the EV and the mark of another packet that the next [`Balancer::on_ack`]'s ACK stands for, where ACKs are coalesced.
    fn on_echo(&mut self, _now: Now<'_>, _ev: Ev, _marked: bool) {}

    /// What it has learned of the paths to the host, for the next connection there. Called when the connection ends.
    fn remember(&self) -> Option<Remembered> {
        None
    }

    /// Takes what an earlier connection to the same host had learned. Called before any packet, if at all.
    fn recall(&mut self, _now: Now<'_>, _learned: &Remembered) {}
}

/// What a balancer does besides choosing, by its scheme and its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offers {
    /// Packets go where others came back from, so that it is mostly the packets by which a window grows that explore, and a balancer that
    /// hears nothing may never leave a path that has died.
    pub reuses: bool,
    /// It refuses to send for a while: drains a path, or keeps windows of its own.
    pub hold_back: bool,
    /// The lowest unacknowledged packet, if it is lost, is sent again before all other lost packets.
    pub lowest_first: bool,
    /// It tells the receiver which packets went over one path in order, in these or in trailers behind them, so that it finds losses.
    pub sections: bool,
    /// The sender is to declare losses by the gap rule whatever the connection's settings say, and with little patience: the scheme
    /// tolerates spurious losses.
    pub gap_rule: bool,
    /// It probes a path that carries no packets.
    pub probing: bool,
    /// Its probes explore: in a silence it learns of paths without packets.
    pub scouts: bool,
    /// It learns from every packet that an ACK acknowledges, whichever packet triggered the ACK.
    pub packet_feedback: bool,
    /// Whatever it has chosen, a packet may go by another value.
    pub sprays: bool,
}

impl Offers {
    /// A scheme that only chooses.
    pub const NOTHING: Self = Self {
        reuses: false,
        hold_back: false,
        lowest_first: false,
        sections: false,
        gap_rule: false,
        probing: false,
        scouts: false,
        packet_feedback: false,
        sprays: false,
    };

    /// Whether [`Balancer::poll_timeout`] may ever answer.
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
    /// No. Feedback or the time of [`Balancer::poll_timeout`] may change that.
    Wait,
}

/// A transmission that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// Packet sequence number.
    pub psn: u64,
    /// The entropy value that it carries.
    pub ev: Ev,
    /// When it was made.
    pub sent_at: Time,
}

/// What a balancer may know of the packets that are under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flight {
    /// The earliest transmission that is neither acknowledged nor lost.
    pub oldest: Option<Transmission>,
    /// The largest packet number that was sent; 0 before the first.
    pub newest_psn: u64,
    /// The smoothed round-trip time, in picoseconds; 0 before the first.
    pub rtt_ps: u64,
    /// Wire bytes that the congestion control lets be in flight.
    pub window_bytes: u64,
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
