//! A constant window, to compare path choice (Flowcut §III-B): `docs/specs/fixed-window.md`.

use super::{CongestionControl, Path, Scheme, part_bytes, settings};
use crate::units::ByteSize;

settings! {
    /// The settings of [`FixedWindow`].
    pub struct FixedWindowConfig {
        /// Wire bytes in flight, at least a full packet. By default 1.5 bandwidth-delay products.
        #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
        pub window_bytes: Option<ByteSize> = None,
    }
}

/// A constant window.
//= docs/specs/fixed-window.md#FXW-2 no feedback
#[derive(Clone, Debug)]
pub struct FixedWindow {
    settings: FixedWindowConfig,
}

impl Scheme for FixedWindow {
    type Config = FixedWindowConfig;

    const STATE_BYTES: usize = 0;

    fn share(own: &FixedWindowConfig, count: u64) -> FixedWindowConfig {
        FixedWindowConfig { window_bytes: own.window_bytes.map(|bytes| part_bytes(bytes, count, 1)) }
    }

    fn make(own: &FixedWindowConfig, _path: &Path) -> Self {
        Self { settings: *own }
    }
}

impl CongestionControl for FixedWindow {
    //= docs/specs/fixed-window.md#FXW-1 the window
    fn window_bytes(&self, path: &Path) -> u64 {
        self.settings.window_bytes.map_or(path.max_window_bytes, ByteSize::bytes).max(path.packet_bytes.into())
    }
}
