//! The DCTCP variant of REPS (§4.1) and MPRDMA, moved by every ACK: `docs/specs/dctcp.md`.

use super::fixed_point::{FRACTION_BITS, MAX_ACKED_BYTES, per_window, window};
use super::{AckInfo, CongestionControl, LossCause, Now, Path, Scheme, settings};

settings! {
    /// The settings of [`Dctcp`].
    pub struct DctcpConfig {
        /// Whether all bytes of an acknowledgement count as marked if the packet that triggered it
        /// is marked, as in the published artifact. Otherwise the share of marked packets counts.
        pub marked_by_trigger: bool = false,
    }
}

/// A window: up by `acked * packet / window` on unmarked bytes, down by a quarter of marked ones.
#[derive(Clone, Debug)]
pub struct Dctcp {
    /// In units of 2^-16 bytes, so that growth of less than a byte adds up.
    //= docs/specs/dctcp.md#DCTCP-7 integers
    pub(super) window: u64,
    marked_by_trigger: bool,
}

impl Dctcp {
    //= docs/specs/dctcp.md#DCTCP-1 growth
    fn grow(&mut self, path: &Path, bytes: u64) {
        let growth = per_window(bytes, path.packet_bytes.into(), self.window);
        self.window = self.window.saturating_add(growth);
    }

    fn shrink(&mut self, scaled: u64) {
        self.window = self.window.saturating_sub(scaled);
    }

    //= docs/specs/dctcp.md#DCTCP-4 bounds of the window
    fn clamp(&mut self, path: &Path) {
        let packet_bytes = u64::from(path.packet_bytes);
        self.window = self.window.clamp(packet_bytes << FRACTION_BITS, window(path.max_window_bytes, packet_bytes));
    }
}

impl Scheme for Dctcp {
    type Config = DctcpConfig;

    const STATE_BYTES: usize = size_of::<u64>();

    fn make(own: &DctcpConfig, path: &Path) -> Self {
        Self {
            window: window(path.initial_window_bytes, path.packet_bytes.into()),
            marked_by_trigger: own.marked_by_trigger,
        }
    }
}

impl CongestionControl for Dctcp {
    //= docs/specs/dctcp.md#DCTCP-2 cut for marks
    fn on_ack(&mut self, now: Now<'_>, ack: &AckInfo) {
        let bytes = ack.bytes.min(MAX_ACKED_BYTES);
        let marked = match self.marked_by_trigger {
            //= docs/specs/dctcp.md#DCTCP-8 mark of the triggering packet
            true if ack.marked => bytes,
            true => 0,
            false => marked_bytes(ack, bytes),
        };
        if marked < bytes {
            self.grow(now.path, bytes - marked);
        }
        self.shrink((marked << FRACTION_BITS) / 4);
        self.clamp(now.path);
    }

    //= docs/specs/dctcp.md#DCTCP-3 cut for losses
    fn on_loss(&mut self, now: Now<'_>, bytes: u32, _cause: LossCause) {
        self.shrink(u64::from(bytes) << FRACTION_BITS);
        self.clamp(now.path);
    }

    fn window_bytes(&self, _path: &Path) -> u64 {
        self.window >> FRACTION_BITS
    }

    fn on_start(&mut self, path: &Path) {
        self.window = self.window.max(window(path.initial_window_bytes, path.packet_bytes.into()));
    }
}

/// The share of `bytes` that arrived marked, by packets, rounded down.
//= docs/specs/dctcp.md#DCTCP-5 coalesced ACKs
fn marked_bytes(ack: &AckInfo, bytes: u64) -> u64 {
    match ack.packets {
        0 | 1 if ack.marked || ack.marked_packets > 0 => bytes,
        0 | 1 => 0,
        packets => bytes * u64::from(ack.marked_packets.min(packets)) / u64::from(packets),
    }
}
