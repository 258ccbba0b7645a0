//! The settings of ConWeave.

/// The settings of ConWeave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The time beyond the base RTT after which a missing reply reroutes the flow.
    pub reply_extra_ps: u64,
    /// The time for which a path is avoided after a marked packet.
    pub path_busy_ps: u64,
    /// The pause after which a flow may take another path at once.
    pub inactive_ps: u64,
    /// The time to wait for a TAIL beyond its due time.
    pub resume_extra_ps: u64,
    /// The time to wait for a TAIL if no packet of the old path was seen.
    pub resume_default_ps: u64,
    /// Reordering queues per host port, 1 to 256.
    pub queues: u32,
    /// Maximum number of bytes held by a switch.
    pub held_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self::of(false, false)
    }
}

impl Settings {
    /// Returns the paper's published settings by tiers and flow control; the last two are ours.
    //= docs/specs/conweave.md#CWV-18 settings
    pub const fn of(many_tiers: bool, lossless: bool) -> Self {
        const US: u64 = 1_000_000;
        let (inactive, resume_extra, resume_default) = match (many_tiers, lossless) {
            (false, _) => (300, 16, 200),
            (true, false) => (1_000, 16, 300),
            (true, true) => (1_000, 64, 600),
        };
        Self {
            reply_extra_ps: 4 * US,
            path_busy_ps: 16 * US,
            inactive_ps: inactive * US,
            resume_extra_ps: resume_extra * US,
            resume_default_ps: resume_default * US,
            queues: 32,
            held_bytes: 4 << 20,
        }
    }
}
