//! What a chassis counts. Every counter is one word, so that kernel and memory share the layout.

use crate::word::Word;

/// Declares counters once: a struct of words, what they say (`read`), and how two CPUs' figures add up (`add`).
macro_rules! counters {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $add:ident,)* }) => {
        $(#[$about])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name<W = u64> {
            $($(#[$doc])* pub $field: W,)*
        }

        impl<W: Word> $name<W> {
            /// The present figures.
            pub fn read(&self) -> $name {
                $name { $($field: self.$field.load(),)* }
            }
        }

        impl $name {
            /// Adds the figures of another CPU.
            pub fn add(&mut self, other: &Self) {
                $(self.$field = $add(self.$field, other.$field);)*
            }
        }
    };
}

counters! {
    /// Counters of one egress port.
    PortCounters {
        /// Frames sent out of the port.
        frames: sum,
        /// Bytes of these frames, after trimming.
        bytes: sum,
        /// Those of the frames that went in the control class (acknowledgements, trimmed headers).
        control_frames: sum,
        /// Frames on which this port set congestion experienced.
        marks: sum,
        /// Frames that this port cut to their header.
        trims: sum,
        /// Frames for which the queue had no room.
        drops_queue: sum,
        /// Frames lost because the link was administratively down.
        drops_down: sum,
        /// Frames lost to silent dropping and to the outages of a flapping link.
        drops_silent: sum,
        /// Frames lost at random.
        drops_random: sum,
        /// Frames whose hop limit ran out at this port.
        drops_ttl: sum,
        /// Frames that came more than a ring of slots behind the newest; their queueing delay is approximate.
        stale: sum,
        /// Virtual time of the last drop by a down, silent, flapping or lossy link; 0 = none.
        last_link_drop_ps: latest,
    }
}

counters! {
    /// Counters of the chassis as a whole.
    ChassisCounters {
        /// Frames seen.
        frames: sum,
        /// Frames that are not ours, left to the kernel.
        passed: sum,
        /// Frames redirected out of a port.
        forwarded: sum,
        /// Frames of ours whose lengths do not fit.
        malformed: sum,
        /// Frames to an address that no port leads to.
        no_route: sum,
        /// Frames that crossed more switches than one chassis may have on a path.
        hop_limit: sum,
        /// Frames whose egress port has no interface; counted by the host of the pipeline.
        no_interface: sum,
    }
}

fn sum(a: u64, b: u64) -> u64 {
    a.wrapping_add(b)
}

fn latest(a: u64, b: u64) -> u64 {
    a.max(b)
}

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

impl PortCounters {
    /// Frames lost at the port, whatever the cause.
    pub fn drops(&self) -> u64 {
        self.drops_queue + self.drops_link() + self.drops_random + self.drops_ttl
    }

    /// Frames lost to a link that was down, silently dropping or in an outage.
    pub fn drops_link(&self) -> u64 {
        self.drops_down + self.drops_silent
    }
}
