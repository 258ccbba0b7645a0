//! The outcome of a frame, and causes of drops.

/// The outcome of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Passed to the kernel.
    Pass,
    /// Dropped and counted.
    Drop(Cause),
    /// Forwarded.
    Redirect {
        /// Egress port of the fabric.
        port: u32,
        /// Length to which the caller must trim the frame, 0 = untrimmed.
        trimmed_len: u32,
    },
    /// Returned to its host, which sends it at its virtual time to its next switch.
    Return {
        /// As [`Redirect::trimmed_len`](Self::Redirect::trimmed_len).
        trimmed_len: u32,
    },
    /// Dropped and counted: its TTL expired in a deployed fabric, which sends an ICMP error.
    Expired {
        /// The egress port where it expired.
        port: u32,
    },
}

/// The cause of a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Cause {
    /// Inconsistent lengths.
    Malformed = 1,
    /// No route to its destination.
    NoRoute,
    /// It crossed [`MAX_HOPS`](crate::config::MAX_HOPS) switches of the chassis without leaving.
    HopLimit,
    /// Its TTL expired.
    Ttl,
    /// The link is administratively down.
    Down,
    /// The link drops silently.
    Silent,
    /// The link dropped it at random.
    Random,
    /// The queue was full.
    Queue,
}

impl Cause {
    /// Returns its name, for captures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::NoRoute => "no route",
            Self::HopLimit => "too many switches",
            Self::Ttl => "TTL expired",
            Self::Down => "link down",
            Self::Silent => "link fails silently",
            Self::Random => "random loss",
            Self::Queue => "queue full",
        }
    }

    /// Returns the cause with this number, for callers that can only return numbers.
    #[inline(always)]
    pub fn from_code(code: u32) -> Option<Self> {
        const ALL: [Cause; 8] = [
            Cause::Malformed,
            Cause::NoRoute,
            Cause::HopLimit,
            Cause::Ttl,
            Cause::Down,
            Cause::Silent,
            Cause::Random,
            Cause::Queue,
        ];
        let mut found = None;
        // Without an early exit, which would multiply the verifier's paths.
        for cause in ALL {
            if cause as u32 == code {
                found = Some(cause);
            }
        }
        found
    }
}
