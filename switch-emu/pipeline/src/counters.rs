//! What a chassis counts. Every counter is one word, so that kernel and memory share the layout.

use crate::word::Word;

/// Counters of one egress port.
#[repr(C)]
#[derive(Debug, Default)]
pub struct PortCounters<W> {
    /// Frames sent out of the port.
    pub frames: W,
    /// Bytes of these frames, after trimming.
    pub bytes: W,
    /// Those of the frames that went in the control class (acknowledgements, trimmed headers).
    pub control_frames: W,
    /// Frames on which this port set congestion experienced.
    pub marks: W,
    /// Frames that this port cut to their header.
    pub trims: W,
    /// Frames for which the queue had no room.
    pub drops_queue: W,
    /// Frames lost because the link was administratively down.
    pub drops_down: W,
    /// Frames lost to silent dropping and to the outages of a flapping link.
    pub drops_silent: W,
    /// Frames lost at random.
    pub drops_random: W,
    /// Frames whose hop limit ran out at this port.
    pub drops_ttl: W,
    /// Frames that came more than a ring of slots behind the newest; their queueing delay is approximate.
    pub stale: W,
    /// Virtual time of the last drop by a down, silent, flapping or lossy link.
    pub last_link_drop_ps: W,
}

/// Words in [`PortCounters`].
pub const PORT_WORDS: usize = 12;

/// Counters of the chassis as a whole.
#[repr(C)]
#[derive(Debug, Default)]
pub struct ChassisCounters<W> {
    /// Frames seen.
    pub frames: W,
    /// Frames that are not ours, left to the kernel.
    pub passed: W,
    /// Frames redirected out of a port.
    pub forwarded: W,
    /// Frames of ours whose lengths do not fit.
    pub malformed: W,
    /// Frames to an address that no port leads to.
    pub no_route: W,
    /// Frames that crossed more switches than one chassis may have on a path.
    pub hop_limit: W,
    /// Frames whose egress port has no interface; counted by the host of the pipeline.
    pub no_interface: W,
}

/// Words in [`ChassisCounters`].
pub const CHASSIS_WORDS: usize = 7;

impl<W: Word> PortCounters<W> {
    /// Counts a loss on the link itself.
    #[inline(always)]
    pub fn link_drop(&self, counter: &W, t_ps: u64) {
        counter.add(1);
        if self.last_link_drop_ps.load() < t_ps {
            self.last_link_drop_ps.store(t_ps);
        }
    }
}
