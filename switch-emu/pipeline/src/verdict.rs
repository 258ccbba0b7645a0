//! What happens to a frame, and why one was dropped.

/// What happens to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Not ours: left to the kernel.
    Pass,
    /// Gone, and counted.
    Drop(Cause),
    /// Sent on.
    Redirect {
        /// Egress port of the fabric.
        port: u32,
        /// Length that the frame must be cut to, 0 = none: the caller owns the buffer and cuts it.
        trimmed_len: u32,
    },
    /// Sent back to the host that it came from, which sends it again at its virtual time, to its next switch.
    Return {
        /// As [`Redirect::trimmed_len`](Self::Redirect::trimmed_len).
        trimmed_len: u32,
    },
    /// Gone, and counted: its TTL ran out in a deployed fabric, whose switches tell its sender.
    Expired {
        /// Egress port at which it did.
        port: u32,
    },
}

/// Why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Cause {
    /// Its lengths do not fit.
    Malformed = 1,
    /// No port leads to its destination.
    NoRoute,
    /// It crossed [`MAX_HOPS`](crate::config::MAX_HOPS) switches and was still inside.
    HopLimit,
    /// Its TTL ran out.
    Ttl,
    /// The link is administratively down.
    Down,
    /// The link drops silently.
    Silent,
    /// The link lost it at random.
    Random,
    /// The queue had no room.
    Queue,
}

impl Cause {
    /// What it is, for captures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::NoRoute => "no route",
            Self::HopLimit => "too many switches",
            Self::Ttl => "TTL ran out",
            Self::Down => "link down",
            Self::Silent => "link fails silently",
            Self::Random => "random loss",
            Self::Queue => "queue full",
        }
    }

    /// The cause with this number, if there is one: for hosts that can return only numbers from functions.
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
        for cause in ALL {
            if cause as u32 == code {
                found = Some(cause);
            }
        }
        found
    }
}
