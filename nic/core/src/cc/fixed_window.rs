//! A constant window, as simulations of path choice alone use it (Flowcut §III-B). Clauses (FXW-n) are in
//! `docs/specs/fixed-window.md`.

use super::{AckInfo, CcConfig, CongestionControl, Scheme};
use crate::feedback::LossCause;
use crate::params::{AUTO, parameters};

parameters! {
    /// The settings of [`FixedWindow`].
    pub struct FixedWindowConfig {
        /// Wire bytes that may be in flight, never less than a packet. By itself 1.5 bandwidth-delay products.
        window_bytes: Bytes, 1, 1 << 40, AUTO;
    }
}

/// A window that never moves.
//= docs/specs/fixed-window.md#FXW-2
#[derive(Clone, Debug)]
pub struct FixedWindow {
    window_bytes: u64,
}

impl Scheme for FixedWindow {
    const STATE_BYTES: usize = 0;

    fn make(config: &CcConfig) -> Self {
        //= docs/specs/fixed-window.md#FXW-1
        let asked = config.schemes.fixed_window.window_bytes;
        let window_bytes = if asked == AUTO { config.max_window_bytes } else { asked };
        Self { window_bytes: window_bytes.max(u64::from(config.packet_bytes.max(1))) }
    }
}

impl CongestionControl for FixedWindow {
    fn on_ack(&mut self, _now_ps: u64, _ack: &AckInfo) {}

    fn on_loss(&mut self, _now_ps: u64, _bytes: u32, _cause: LossCause) {}

    fn on_send(&mut self, _now_ps: u64, _bytes: u32) {}

    #[inline]
    fn window_bytes(&self) -> u64 {
        self.window_bytes
    }

    #[inline]
    fn poll_send(&self, now_ps: u64) -> u64 {
        now_ps
    }
}
