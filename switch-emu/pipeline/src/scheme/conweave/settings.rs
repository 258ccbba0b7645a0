//! The settings of ConWeave.

/// What a switch's memory holds when a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// By how much a reply may take longer than the base RTT before the flow is rerouted.
    pub reply_extra_ps: u64,
    /// How long a path is not chosen after a marked packet has come over it.
    pub path_busy_ps: u64,
    /// A pause of a flow after which it may take another path at once.
    pub inactive_ps: u64,
    /// How long a TAIL is waited for beyond the time at which it is expected.
    pub resume_extra_ps: u64,
    /// How long it is waited for where nothing is known of the old path.
    pub resume_default_ps: u64,
    /// Reordering queues of each host's port, 1 to 256.
    pub queues: u32,
    /// Bytes that a switch holds at most.
    pub held_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self::of(false, false)
    }
}

impl Settings {
    /// Those of the paper's published simulation, where there are more than two tiers or not, and priority flow control or not; the last two
    /// are ours.
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
