//! Counters of a chassis and its ports, the same for kernel, memory and simulator.

use spray_pipeline::counters;
use spray_pipeline::word::Word;

/// Counters of one egress port; see [`spray_pipeline::counters::PortCounters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames sent out of the port.
    pub frames: u64,
    /// Bytes of these frames, after trimming.
    pub bytes: u64,
    /// Frames of the control class among these.
    pub control_frames: u64,
    /// Congestion marks set.
    pub marks: u64,
    /// Frames cut to their header.
    pub trims: u64,
    /// Frames for which the queue had no room.
    pub drops_queue: u64,
    /// Frames lost to the link itself: `drops_down + drops_silent`.
    pub drops_link: u64,
    /// Frames lost because the link was administratively down.
    pub drops_down: u64,
    /// Frames lost silently, outages of a flapping link included.
    pub drops_silent: u64,
    /// Frames lost at random.
    pub drops_random: u64,
    /// Frames whose hop limit ran out.
    pub drops_ttl: u64,
    /// Frames too far behind the newest for an exact delay.
    pub stale: u64,
    /// Virtual time of the last drop by the link (down, silent, flap, random); 0 = none.
    pub last_link_drop_ps: u64,
}

impl<W: Word> From<&counters::PortCounters<W>> for PortCounters {
    /// What the words of a table in memory say.
    fn from(words: &counters::PortCounters<W>) -> Self {
        let (drops_down, drops_silent) = (words.drops_down.load(), words.drops_silent.load());
        Self {
            frames: words.frames.load(),
            bytes: words.bytes.load(),
            control_frames: words.control_frames.load(),
            marks: words.marks.load(),
            trims: words.trims.load(),
            drops_queue: words.drops_queue.load(),
            drops_link: drops_down + drops_silent,
            drops_down,
            drops_silent,
            drops_random: words.drops_random.load(),
            drops_ttl: words.drops_ttl.load(),
            stale: words.stale.load(),
            last_link_drop_ps: words.last_link_drop_ps.load(),
        }
    }
}

/// Counters of the chassis as a whole; see [`spray_pipeline::counters::ChassisCounters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChassisCounters {
    /// Frames seen.
    pub frames: u64,
    /// Frames left to the kernel.
    pub passed: u64,
    /// Frames redirected out of a port.
    pub forwarded: u64,
    /// Frames of ours whose lengths do not fit.
    pub malformed: u64,
    /// Frames to an address that no port leads to.
    pub no_route: u64,
    /// Frames that crossed too many switches.
    pub hop_limit: u64,
    /// Frames whose egress port has no interface.
    pub no_interface: u64,
}

/// What waits at a port at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueSample {
    /// Data bytes waiting.
    pub data_bytes: u64,
    /// Control bytes waiting.
    pub control_bytes: u64,
}
