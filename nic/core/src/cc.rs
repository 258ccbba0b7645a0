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
mod nscc_eqds;
mod registry;

#[cfg(test)]
mod tests;

use spray_wire::PullRequest;

pub use self::dcqcn::{Dcqcn, DcqcnConfig};
pub use self::dctcp::{Dctcp, DctcpConfig};
pub use self::eqds::{CreditBound, Eqds, EqdsConfig, PullPacer};
pub use self::fixed_rate::{FixedRate, FixedRateConfig};
pub use self::fixed_window::{FixedWindow, FixedWindowConfig};
pub(crate) use self::mswift::MSwift;
pub use self::mswift::MSwiftConfig;
pub use self::nscc::{Nscc, NsccConfig};
pub use self::nscc_eqds::NsccEqds;
pub use self::registry::{AnyCc, CcKind, CcSchemes, ControlConfig, MakeCc, OwnCc};
use crate::Time;
use crate::feedback::{AckInfo, LossCause};
pub use crate::kinds::{Own, UnknownName};
pub use crate::now::{Now, Path};
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
pub trait CongestionControl: core::fmt::Debug + Send + Sync {
    /// Takes an ACK. Called once for every ACK that a data packet triggered or that settles one.
    fn on_ack(&mut self, _now: Now<'_>, _ack: &AckInfo) {}

    /// Takes the loss of one packet of `bytes` on the wire. Called once for each transmission that is declared lost, but for those of
    /// [`CongestionControl::on_gone_back`].
    fn on_loss(&mut self, _now: Now<'_>, _bytes: u32, _cause: LossCause) {}

    /// A packet of `bytes` on the wire goes again because the sender goes back to an earlier one. It is no longer in flight, which is no
    /// sign of congestion.
    //= docs/specs/go-back-n.md#GBN-5 reported losses
    fn on_gone_back(&mut self, _bytes: u32) {}

    /// Counts a packet of `bytes` on the wire that is sent now. Called once for every transmission.
    fn on_send(&mut self, _now: Now<'_>, _bytes: u32) {}

    /// Returns the wire bytes that may be in flight; never less than one full packet.
    fn window_bytes(&self, path: &Path) -> u64;

    /// The connection learns its path and has not found its end: the window is [`Path::initial_window_bytes`] at least now. Called before
    /// the acknowledgement that tells is taken.
    fn on_start(&mut self, _path: &Path) {}

    /// Returns the earliest time at which the next packet may go, `now.time` where nothing paces.
    fn poll_send(&self, now: Now<'_>) -> Time {
        now.time
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
    fn on_queued(&mut self, _path: &Path, _bytes: u64, _idle: bool) {}

    /// Takes the total of credit that a pull brings, in wire bytes. Returns whether that is more than before.
    fn on_pull(&mut self, _path: &Path, _credit_bytes: u64) -> bool {
        false
    }

    /// Returns a request for credit if one is due. With `again` it repeats a request that went before.
    fn poll_request(&mut self, _path: &Path, _again: bool) -> Option<PullRequest> {
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

    /// Makes one for a new connection.
    fn make(own: &Self::Config, path: &Path) -> Self;
}

/// One of `count` equal parts of `bytes`, `least` at least.
fn part_bytes(bytes: ByteSize, count: u64, least: u64) -> ByteSize {
    ByteSize::new((bytes.bytes() / count).max(least))
}

/// One of `count` equal parts of `rate`.
fn part_rate(rate: Gbps, count: u64) -> Gbps {
    Gbps::from_bps((rate.bps() / count).max(1))
}
