//! Counters of a chassis. Each is one word, so that the kernel and user space share the layout.

use crate::word::Word;

/// Declares a struct of counters, with `read`, and a sum over CPUs (`$adds`).
macro_rules! counter_words {
    ($(#[$about:meta])* $name:ident, $adds:vis $add_words:ident { $($(#[$doc:meta])* $field:ident: $add:ident,)* }) => {
        $(#[$about])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name<W = u64> {
            $($(#[$doc])* pub $field: W,)*
        }

        impl<W: Word> $name<W> {
            /// Reads all counters.
            pub fn read(&self) -> $name {
                $name { $($field: self.$field.load(),)* }
            }
        }

        impl $name {
            /// Adds the counters of another CPU.
            $adds fn $add_words(&mut self, other: &Self) {
                $(self.$field = $crate::counters::$add(self.$field, other.$field);)*
            }
        }
    };
}

counter_words! {
    /// Counters of one egress port.
    PortCounters, add_words {
        /// Frames sent out of the port.
        frames: sum,
        /// Bytes of these frames, after trimming.
        bytes: sum,
        /// Frames of the control class (acknowledgements, trimmed headers) among these.
        control_frames: sum,
        /// Maximum queue in bytes, of both classes, the frame in transmission included.
        queue_max: most,
        /// Low 32 bits of [`PortCounters::queue_area`], in half byte-picoseconds.
        queue_area_low: sum,
        /// The upper bits.
        queue_area_high: sum,
        /// Frames that this port marked.
        marks: sum,
        /// Frames that this port trimmed to their header.
        trims: sum,
        /// Frames dropped because the queue was full.
        drops_queue: sum,
        /// Frames dropped because the link was administratively down.
        drops_down: sum,
        /// Frames dropped silently, or in an outage of a flapping link.
        drops_silent: sum,
        /// Frames dropped at random.
        drops_random: sum,
        /// Frames with a TTL that expired at this port.
        drops_ttl: sum,
        /// Frames more than a ring of slots behind the newest; their queueing delay is approximate.
        stale: sum,
        /// Virtual time of the last drop of a data frame by the link; 0 = none.
        last_link_drop_ps: most,
    }
}

counter_words! {
    /// Counters of the chassis as a whole.
    ChassisCounters, pub add {
        /// Frames received.
        frames: sum,
        /// Frames of other protocols, passed to the kernel.
        passed: sum,
        /// Frames redirected out of a port.
        forwarded: sum,
        /// Frames of ours with inconsistent lengths.
        malformed: sum,
        /// Frames without a route.
        no_route: sum,
        /// Frames that exceeded the number of switches of one chassis.
        hop_limit: sum,
        /// Frames to an egress port without an interface; counted by the caller.
        no_interface: sum,
    }
}

pub(crate) use counter_words;

pub(crate) fn sum(a: u64, b: u64) -> u64 {
    a.wrapping_add(b)
}

pub(crate) fn most(a: u64, b: u64) -> u64 {
    a.max(b)
}

impl<W: Word> PortCounters<W> {
    /// Counts a loss on the link; `data`: the frame carried data.
    #[inline(always)]
    pub fn link_drop(&self, counter: &W, t_ps: u64, data: bool) {
        counter.add(1);
        if data && self.last_link_drop_ps.load() < t_ps {
            self.last_link_drop_ps.store(t_ps);
        }
    }

    /// Counts a frame of `len` bytes behind `ahead` bytes, which leaves after `delay_ps`, `own_ps`
    /// of it its own transmission. Its integral is its length while it waits, then half of that.
    //= docs/specs/switch.md#SW-18 length of the queue over time
    #[inline(always)]
    pub fn queued(&self, ahead: u64, len: u32, delay_ps: u64, own_ps: u64) {
        let (len, dwell) = (u64::from(len), 2 * delay_ps - own_ps);
        if self.queue_max.load() < ahead + len {
            self.queue_max.store(ahead + len);
        }
        let low = self.queue_area_low.load() + len * (dwell & LOW);
        self.queue_area_low.store(low & LOW);
        self.queue_area_high.add(len * (dwell >> 32) + (low >> 32));
    }

    /// Returns the integral of the queue over time, in half byte-picoseconds.
    pub fn queue_area(&self) -> u128 {
        (u128::from(self.queue_area_high.load()) << 32) + u128::from(self.queue_area_low.load())
    }

    /// Sets the integral of the queue over time.
    pub fn set_queue_area(&self, area: u128) {
        self.queue_area_low.store(area as u64 & LOW);
        self.queue_area_high.store((area >> 32) as u64);
    }
}

const LOW: u64 = 0xffff_ffff;

impl PortCounters {
    /// Adds the counters of another CPU.
    pub fn add(&mut self, other: &Self) {
        self.add_words(other);
        self.queue_area_high += self.queue_area_low >> 32;
        self.queue_area_low &= LOW;
    }

    /// Returns the counters with `less` subtracted from the integral of the queue.
    pub fn less_queue_area(mut self, less: u128) -> Self {
        let area = ((u128::from(self.queue_area_high) << 32) + u128::from(self.queue_area_low)).saturating_sub(less);
        (self.queue_area_low, self.queue_area_high) = (area as u64 & LOW, (area >> 32) as u64);
        self
    }

    /// Returns the mean queue in bytes over `span_ps`.
    pub fn queue_mean_bytes(&self, span_ps: u64) -> f64 {
        let area = (u128::from(self.queue_area_high) << 32) + u128::from(self.queue_area_low);
        area as f64 / 2.0 / span_ps.max(1) as f64
    }

    /// Returns the frames dropped, for any cause.
    pub fn drops(&self) -> u64 {
        self.drops_queue + self.drops_link() + self.drops_random + self.drops_ttl
    }

    /// Returns the frames dropped by a link that was down, silently dropping or in an outage.
    pub fn drops_link(&self) -> u64 {
        self.drops_down + self.drops_silent
    }
}
