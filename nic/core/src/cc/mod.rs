//! Congestion control: how much may be in flight, and when the next packet may go. One file per algorithm.

mod dcqcn;
mod dctcp;
mod eqds;
mod fixed_point;
mod fixed_rate;
mod fixed_window;
mod median;
mod mswift;
mod nscc;
mod registry;

#[cfg(test)]
mod tests;

use spray_wire::PullRequest;

pub use self::dcqcn::{Dcqcn, DcqcnConfig};
pub use self::dctcp::{Dctcp, DctcpConfig};
pub use self::eqds::{CreditBound, Eqds, EqdsConfig, PullPacer};
pub use self::fixed_rate::{FixedRate, FixedRateConfig};
pub use self::fixed_window::{FixedWindow, FixedWindowConfig};
pub use self::mswift::{MSwift, MSwiftConfig};
pub use self::nscc::{Nscc, NsccConfig};
pub use self::registry::{AnyCc, CcConfig, CcKind, CcSchemes, ControlConfig};
use crate::feedback::{AckInfo, LossCause};
pub use crate::kinds::UnknownName;
use crate::units::{ByteSize, Gbps};

/// Limits what one connection has in flight.
///
/// # Order of the calls
///
/// 1. Before a packet: [`CongestionControl::has_credit`] where credit is used, [`CongestionControl::window_bytes`], then
///    [`CongestionControl::poll_send`]. If all let it go, [`CongestionControl::on_send`] follows at once.
/// 2. For every ACK: [`CongestionControl::on_ack`], then [`CongestionControl::window_bytes`]. The balancer takes the ACK
///    afterwards.
/// 3. For every lost packet: [`CongestionControl::on_loss`], before the balancer.
/// 4. Where credit is used: [`CongestionControl::on_queued`] for every message, [`CongestionControl::on_pull`] for every
///    pull, and [`CongestionControl::poll_request`] whenever the sender looks for something to send.
pub trait CongestionControl {
    /// Takes an ACK. Called once for every ACK that a data packet triggered or that settles one.
    fn on_ack(&mut self, _now_ps: u64, _ack: &AckInfo) {}

    /// Takes the loss of one packet of `bytes` on the wire. Called once for each transmission that is declared lost, but for those of
    /// [`CongestionControl::on_gone_back`].
    fn on_loss(&mut self, _now_ps: u64, _bytes: u32, _cause: LossCause) {}

    /// A packet of `bytes` on the wire goes again because the sender goes back to an earlier one. It is no longer in flight, which is no
    /// sign of congestion.
    //= docs/specs/go-back-n.md#GBN-5 no sign of congestion
    fn on_gone_back(&mut self, _bytes: u32) {}

    /// Counts a packet of `bytes` on the wire that is sent now. Called once for every transmission.
    fn on_send(&mut self, _now_ps: u64, _bytes: u32) {}

    /// Returns the wire bytes that may be in flight; never less than one full packet.
    fn window_bytes(&self) -> u64;

    /// Returns the earliest time at which the next packet may go, `now_ps` where nothing paces.
    #[inline]
    fn poll_send(&self, now_ps: u64) -> u64 {
        now_ps
    }

    /// Whether the receiver's credit decides what goes. If not, none of the methods below is called.
    fn uses_credit(&self) -> bool {
        false
    }

    /// Whether credit lets the next packet go.
    fn has_credit(&self) -> bool {
        true
    }

    /// Counts a new message of `bytes` on the wire. `idle` says that nothing else waits or is unacknowledged.
    fn on_queued(&mut self, _bytes: u64, _idle: bool) {}

    /// Takes the total of credit that a pull brings, in wire bytes. Returns whether that is more than before.
    fn on_pull(&mut self, _credit_bytes: u64) -> bool {
        false
    }

    /// Returns a request for credit if one is due. With `again` it repeats a request that went before.
    fn poll_request(&mut self, _again: bool) -> Option<PullRequest> {
        None
    }
}

/// A congestion control that can be made from a connection's settings.
pub trait Scheme: CongestionControl + Sized {
    /// Its settings. The default is what its paper says.
    type Config: Copy;

    /// Bytes that a NIC would hold for each connection, settings left out.
    const STATE_BYTES: usize;

    /// The settings of one of `count` equal parts of a connection: its share of all bytes and rates.
    fn share(own: &Self::Config, _count: u64) -> Self::Config {
        *own
    }

    /// Makes one for a new connection from its own settings and those of the path.
    fn make(own: &Self::Config, config: &CcConfigOf<impl Copy>) -> Self;

    /// Takes from `fresh` what the settings make of the path, which is known better now. What the control has learned
    /// stays; but while the connection is `starting`, a larger first window of `fresh` is its window.
    fn adopt(&mut self, fresh: Self, starting: bool);
}

/// How one connection controls congestion, by an `Algorithm` and its settings.
///
/// The algorithms do not look at that field, so that none depends on their list; with the list this is [`CcConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CcConfigOf<Algorithm> {
    /// The algorithm and its settings.
    pub control: Algorithm,
    /// Wire bytes of a full packet, headers included: the step of growth and the least window. 1 to 65,535, clamped.
    pub packet_bytes: u32,
    /// Round-trip time of an empty network, in picoseconds.
    pub base_rtt_ps: u64,
    /// Rate of the sender's link, in bits per second.
    pub link_bps: u64,
    /// Window before the first feedback. It may exceed `max_window_bytes`; the first acknowledgement cuts it.
    pub initial_window_bytes: u64,
    /// Largest window that growth reaches, at most 2^40 bytes. It is the window of `fixed-rate`; there `u64::MAX`
    /// means no limit.
    pub max_window_bytes: u64,
    /// Most packets by which a paced sender that comes late makes up for it. A general-purpose kernel runs a thread late, or the thread
    /// has other things to do. 0: it is never late.
    pub catch_up_packets: u32,
}

/// One of `count` equal parts of `bytes`, `least` at least.
fn part_bytes(bytes: ByteSize, count: u64, least: u64) -> ByteSize {
    ByteSize::new((bytes.bytes() / count).max(least))
}

/// One of `count` equal parts of `rate`.
fn part_rate(rate: Gbps, count: u64) -> Gbps {
    Gbps::from_bps((rate.bps() / count).max(1))
}

/// Bytes that a link carries in one base round-trip time (the BDP), rounded down.
pub const fn bdp_bytes(base_rtt_ps: u64, link_bps: u64) -> u64 {
    let bytes = base_rtt_ps as u128 * link_bps as u128 / (8 * PS_PER_SECOND as u128);
    if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 }
}

/// The rate that carries so many bytes in so much time, in bits per second, rounded down; 1 at least.
pub const fn rate_bps(bytes: u64, time_ps: u64) -> u64 {
    let time_ps = if time_ps == 0 { 1 } else { time_ps };
    let bps = bytes as u128 * 8 * PS_PER_SECOND as u128 / time_ps as u128;
    match bps {
        0 => 1,
        bps if bps > u64::MAX as u128 => u64::MAX,
        bps => bps as u64,
    }
}

/// Picoseconds in a second.
const PS_PER_SECOND: u64 = 1_000_000_000_000;
