//! Congestion control: what may be in flight, and when packets may go. One file per algorithm.

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
pub use self::registry::{AnyCc, CcKind, CcSchemes, ControlConfig, CustomCc, MakeCc};
use crate::Time;
use crate::feedback::{AckInfo, LossCause};
pub use crate::kinds::{Custom, UnknownName};
use crate::now::OnPath;
pub use crate::now::{Now, Path};
use crate::settings::settings;
use crate::units::{ByteSize, Gbps};

/// Limits what a connection has in flight.
///
/// # Order of calls
///
/// 1. Before a packet: [`Self::has_credit`] where credit is used, [`Self::window_bytes`], then
///    [`Self::poll_send`]. If all permit it, [`Self::on_send`] follows at once.
/// 2. For every ACK: [`Self::on_ack`], then [`Self::window_bytes`], then the balancer.
/// 3. For every lost packet: [`Self::on_loss`], before the balancer.
/// 4. Where credit is used: [`Self::on_queued`] for every message, [`Self::on_pull`] for every pull, and
///    [`Self::poll_request`] whenever the sender looks for something to send.
pub trait CongestionControl: core::fmt::Debug + Send + Sync {
    /// Takes an ACK that a data packet triggered or that settles one.
    fn on_ack(&mut self, _now: Now<'_>, _ack: &AckInfo) {}

    /// Takes a lost transmission of `bytes` on the wire, except those of `on_go_back`.
    fn on_loss(&mut self, _now: Now<'_>, _bytes: u32, _cause: LossCause) {}

    /// Takes a packet of `bytes` that left flight because the sender goes back to an earlier one.
    //= docs/specs/go-back-n.md#GBN-5 reported losses
    fn on_go_back(&mut self, _bytes: u32) {}

    /// Counts a transmission of `bytes` on the wire.
    fn on_send(&mut self, _now: Now<'_>, _bytes: u32) {}

    /// Returns the wire bytes that may be in flight; at least one full packet.
    fn window_bytes(&self, path: &Path) -> u64;

    /// Raises the window to at least [`Path::initial_window_bytes`] while the path is learned.
    /// Called before the ACK that raises it is taken.
    fn on_start(&mut self, _path: &Path) {}

    /// Returns the earliest time at which the next packet may go, `now.time` without pacing.
    fn poll_send(&self, now: Now<'_>) -> Time {
        now.time
    }

    /// Whether the receiver's credit decides what is sent. If not, the methods below are unused.
    fn uses_credit(&self) -> bool {
        false
    }

    /// Whether credit permits the next packet.
    fn has_credit(&self) -> bool {
        true
    }

    /// Counts a new message of `bytes` on the wire. `idle`: nothing else is unsent or unacked.
    fn on_queued(&mut self, _path: &Path, _bytes: u64, _idle: bool) {}

    /// Takes the total of credit, in wire bytes, that a pull grants. Returns whether it increased.
    fn on_pull(&mut self, _path: &Path, _credit_bytes: u64) -> bool {
        false
    }

    /// Returns a request for credit if one is due. `again` repeats an earlier request.
    fn poll_request(&mut self, _path: &Path, _again: bool) -> Option<PullRequest> {
        None
    }
}

/// A congestion control that can be created from a connection's settings.
pub trait Scheme: CongestionControl + Sized {
    /// Its settings. The default is the paper's.
    type Config: Copy;

    /// Bytes of state that a NIC would hold per connection, settings excluded.
    const STATE_BYTES: usize;

    /// Returns the settings of one of `count` equal parts: its share of all bytes and rates.
    fn share(own: &Self::Config, _count: u64) -> Self::Config {
        *own
    }

    /// Creates one for a new connection.
    fn make(own: &Self::Config, path: &Path) -> Self;
}

fn part_bytes(bytes: ByteSize, count: u64, least: u64) -> ByteSize {
    ByteSize::new((bytes.bytes() / count).max(least))
}

fn part_rate(rate: Gbps, count: u64) -> Gbps {
    Gbps::from_bps((rate.bps() / count).max(1))
}
