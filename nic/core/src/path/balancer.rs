//! The [`Balancer`] trait, which every scheme implements. Packet path: T3 and R5.

use spray_wire::Section;

use super::history::PathHistory;
use crate::Time;
use crate::cc::ControlConfig;
use crate::event::{Choice, Publisher};
use crate::feedback::{AckInfo, Ev, LossInfo, PacketInfo, PathEvs, ProbeInfo};
use crate::now::{Now, Path};
use crate::rng::Rng;

/// Chooses the entropy value (EV) of every packet of one connection.
///
/// A balancer learns only from feedback to the sender and reads no clock: methods take the present
/// time and path. Only [`Self::next_ev`] is required. [`Self::features`] declares what else a
/// scheme does; the sender calls no other methods.
///
/// # Order of calls
///
/// 1. Before any packet: [`Self::on_control`], then [`Self::on_reachable`], also after routing changes.
/// 2. When the sender looks for something to send: [`Self::poll_probe`] and [`Self::poll_trailer`]
///    until they return `None`, then, if a packet waits, [`Self::admit`]. If it goes,
///    [`Self::next_ev`] and [`Self::section`] follow.
/// 3. For every ACK: [`Self::on_packet_acked`] for each packet that it acknowledges, lowest number
///    first; [`Self::on_echo`] for each echo, oldest first; [`Self::on_ack`] last, after the
///    congestion control.
/// 4. For every lost packet, at any time: [`Self::on_loss`], after the congestion control.
/// 5. For every answer to a probe: [`Self::on_probe_ack`].
/// 6. [`Self::is_draining`] after 3, 4 and every [`Self::admit`]; [`Self::poll_timeout`] after all.
pub trait Balancer: core::fmt::Debug + Send + Sync {
    /// Returns the constant set of what it does besides choosing.
    fn features(&self) -> Features {
        Features::default()
    }

    /// Returns the EV, within `0..now.path.evs`, of the packet sent now: any packet, retransmission
    /// or grant request, except in a silence if it [reuses](Features::reuses) paths (TRN-41).
    fn next_ev(&mut self, now: Now<'_>, packet: &SendInfo, rng: &mut Rng) -> Ev;

    /// Returns how [`Balancer::next_ev`] will choose. Called for observed connections only.
    fn next_choice(&self) -> Choice {
        Choice::Chosen
    }

    /// Whether the connection is in freezing mode.
    fn is_frozen(&self) -> bool {
        false
    }

    /// Takes an ACK that a data packet triggered, with an EV within `0..now.path.evs`.
    fn on_ack(&mut self, _now: Now<'_>, _ack: &AckInfo, _publisher: &mut dyn Publisher) {}

    /// Takes each transmission that is declared lost; the balancer decides whether it means
    /// congestion or a failed path. [`LossCause::GoBackN`](crate::path::LossCause::GoBackN) means
    /// neither, and occurs only with [`Features::packet_feedback`].
    fn on_loss(&mut self, _now: Now<'_>, _loss: &LossInfo, _publisher: &mut dyn Publisher) {}

    /// Returns when [`Balancer::poll_probe`] or [`Balancer::poll_trailer`] is next due, or the
    /// result of [`Balancer::admit`] may change.
    fn poll_timeout(&self, _path: &Path) -> Option<Time> {
        None
    }

    /// With [`Features::delays_packets`]: returns whether the next packet may go. After
    /// [`Admission::Window`] the congestion control may still delay it.
    fn admit(&mut self, _now: Now<'_>, _packet: &SendInfo) -> Admission {
        Admission::Window
    }

    /// With [`Features::delays_packets`]: whether it drains before it changes paths.
    fn is_draining(&self) -> bool {
        false
    }

    /// Takes the congestion control's settings, for its own windows. Called first. May allocate.
    fn on_control(&mut self, _control: &ControlConfig, _path: &Path) {}

    /// For its own windows: see [`on_start`](crate::cc::CongestionControl::on_start).
    fn on_start(&mut self, _path: &Path) {}

    /// With [`Features::sections`]: returns the packets of its section before the last one chosen.
    fn section(&self) -> Section {
        Section::NONE
    }

    /// With [`Features::sections`]: returns a due trailer, which follows packets on their path.
    fn poll_trailer(&mut self, _now: Now<'_>, _flight: &Flight) -> Option<Trailer> {
        None
    }

    /// With [`Features::probing`]: returns an EV to probe now, if one is due.
    fn poll_probe(&mut self, _now: Now<'_>) -> Option<Ev> {
        None
    }

    /// With [`Features::probing`]: whether its present suspect was probed, and answers concern it.
    fn has_probed(&self) -> bool {
        false
    }

    /// Takes the answer to a probe sent since [`Balancer::has_probed`] was last false.
    fn on_probe_ack(&mut self, _now: Now<'_>, _answer: &ProbeInfo, _publisher: &mut dyn Publisher) {}

    /// Takes EVs for each path, at the start and after changes of routing, if the scheme [uses
    /// them](super::BalancerConfig::wants_reachability). May allocate.
    fn on_reachable(&mut self, _now: Now<'_>, _paths: &[PathEvs]) {}

    /// With [`Features::packet_feedback`]: takes each packet acknowledged by the next `on_ack`.
    fn on_packet_acked(&mut self, _now: Now<'_>, _packet: &PacketInfo) {}

    /// Takes EV and mark of another packet covered by the coalesced ACK of the next `on_ack`.
    fn on_echo(&mut self, _now: Now<'_>, _ev: Ev, _marked: bool) {}

    /// Returns its knowledge of the paths for the next connection to the host. Called at the end.
    fn path_history(&self) -> Option<PathHistory> {
        None
    }

    /// Takes the knowledge of an earlier connection to the same host, before any packet.
    fn restore_history(&mut self, _now: Now<'_>, _learned: &PathHistory) {}
}

/// What a balancer does besides choosing, by its scheme and its settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Most packets reuse paths that others came back from; mostly packets that grow the window
    /// explore. Without feedback a balancer may never leave a failed path.
    pub reuses: bool,
    /// It may delay packets: it drains paths, or has its own windows.
    pub delays_packets: bool,
    /// The lowest unacknowledged packet, if lost, is retransmitted before all other lost packets.
    pub lowest_first: bool,
    /// Packets, or trailers after them, show the receiver losses by their order on one path.
    pub sections: bool,
    /// The gap rule applies regardless of settings, and quickly: spurious losses are tolerated.
    pub gap_rule: bool,
    /// It probes a path that carries no packets.
    pub probing: bool,
    /// Its probes explore paths without packets during a silence.
    pub scouts: bool,
    /// It takes every packet that an ACK acknowledges, triggering or not.
    pub packet_feedback: bool,
    /// Any packet may go by another value than the chosen one.
    pub sprays: bool,
}

impl Features {
    /// Whether [`Balancer::poll_timeout`] may return a time.
    pub const fn timer(&self) -> bool {
        self.delays_packets || self.sections || self.probing
    }
}

/// The properties of the packet that is sent next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendInfo {
    /// Packet sequence number.
    pub psn: u64,
    /// Bytes of the whole frame on the wire.
    pub bytes: u32,
    /// Whether the packet was sent before.
    pub retransmit: bool,
    /// Wire bytes in flight without this packet: sent, neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// Packets sent and not acknowledged, lost ones included; without this one if it is new.
    pub unacked_packets: u64,
    /// Payload bytes of queued messages that were never sent, this packet's included if it is new.
    pub unsent_bytes: u64,
}

/// Whether the next packet may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Yes, if the congestion control permits.
    Window,
    /// Yes: the packet fits one of the balancer's own windows.
    Go,
    /// No, until feedback or the time of [`Balancer::poll_timeout`].
    Wait,
}

/// A transmission in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// Packet sequence number.
    pub psn: u64,
    /// Its entropy value.
    pub ev: Ev,
    /// When it was made.
    pub sent_at: Time,
}

/// The packets in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flight {
    /// The earliest transmission that is neither acknowledged nor lost.
    pub oldest: Option<Transmission>,
    /// The largest packet number sent; 0 before the first.
    pub newest_psn: u64,
    /// The smoothed round-trip time, in picoseconds; 0 before the first.
    pub rtt_ps: u64,
    /// The congestion window, in wire bytes.
    pub window_bytes: u64,
}

/// A frame without payload that follows the packets of a section on their path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// The number of the last of these packets.
    pub psn: u64,
    /// Their entropy value.
    pub ev: Ev,
    /// The number of packets of the section before it.
    pub section: Section,
    /// Whether the receiver sends an ACK at once, since an earlier one may have been lost.
    pub ack_now: bool,
}
