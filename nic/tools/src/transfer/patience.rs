//! How long a receiver waits for a sender. Times are the session's.

use spray_core::link::PS_PER_S;
use spray_nic::Time;

use super::refusal::Refusal;
use crate::places::Pace;

/// The limits of all transfers of a receiver, in picoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub first_ps: u64,
    pub bytes_ps: u64,
}

impl Limits {
    /// The limits of a command with this `--timeout`.
    //= docs/specs/endpoint.md#END-25 10 s after its connection opened
    pub fn new(timeout_s: u64) -> Self {
        Self { first_ps: 10 * PS_PER_S, bytes_ps: timeout_s * PS_PER_S }
    }
}

/// A piece over the slowest link that is of use, 3.5 KB/s.
const MESSAGE_PS: u64 = 300 * PS_PER_S;
/// Its writer may have nothing to write.
const STREAM_PS: u64 = 3600 * PS_PER_S;

/// What a receiver that has nothing to do waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// Bytes that the sender has.
    Bytes,
    /// More of a stream, which its writer may not have written yet.
    Stream,
}

#[derive(Clone, Copy, Debug)]
pub struct Patience {
    limits: Limits,
    pub has_spoken: bool,
    /// Payload bytes that had arrived at the last look, and when the last of them came, or there was no need to wait.
    bytes: u64,
    bytes_at: Time,
    /// When the last whole message came, or there was no need to wait.
    message_at: Time,
    pub pace: Pace,
}

impl Patience {
    pub fn new(limits: Limits, now: Time) -> Self {
        Self { limits, has_spoken: false, bytes: 0, bytes_at: now, message_at: now, pace: Pace::new(now) }
    }

    pub fn on_message(&mut self, now: Time) {
        (self.has_spoken, self.message_at) = (true, now);
    }

    /// Looks at the payload bytes that have arrived in all, and at what is awaited, if the sender is waited for.
    pub fn check(&mut self, bytes: u64, awaited: Option<Awaited>, now: Time) -> Result<(), Refusal> {
        if bytes > self.bytes {
            (self.bytes, self.bytes_at) = (bytes, now);
        }
        let Some(awaited) = awaited else {
            (self.bytes_at, self.message_at) = (now, now);
            self.pace.restart(bytes, now);
            return Ok(());
        };
        self.pace.on_bytes(bytes, now);
        let (quiet_ps, unsaid_ps) = (self.quiet_ps(now), now.since(self.message_at));
        if !self.has_spoken {
            //= docs/specs/endpoint.md#END-25 has sent no message
            return within(unsaid_ps, self.limits.first_ps, "no message came");
        }
        //= docs/specs/endpoint.md#END-26 bytes within the timeout
        let more_ps = if awaited == Awaited::Stream { STREAM_PS } else { 0 };
        within(quiet_ps, self.limits.bytes_ps.saturating_add(more_ps), "nothing of use arrived")?;
        within(unsaid_ps, MESSAGE_PS.saturating_add(more_ps), "no whole message arrived")
    }

    /// For how long the sender may give way to another: it has said nothing yet, or nothing of use for too long for one whose writer
    /// does not pause.
    //= docs/specs/endpoint.md#END-27 overdue longest
    pub fn overdue_ps(&self, now: Time) -> Option<u64> {
        let quiet_ps = self.quiet_ps(now);
        (!self.has_spoken || quiet_ps > self.limits.bytes_ps).then_some(quiet_ps)
    }

    fn quiet_ps(&self, now: Time) -> u64 {
        now.since(self.bytes_at)
    }
}

fn within(waited_ps: u64, limit_ps: u64, what: &str) -> Result<(), Refusal> {
    if waited_ps <= limit_ps {
        return Ok(());
    }
    Err(Refusal(format!("{what} for {} s", limit_ps / PS_PER_S)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = PS_PER_S;

    fn at(seconds: u64) -> Time {
        Time::from_ns(seconds * 1_000_000_000)
    }

    fn waiting(awaited: Awaited, seconds: u64) -> bool {
        let mut patience = Patience::new(Limits::new(5), Time::ZERO);
        patience.on_message(Time::ZERO);
        patience.check(7, Some(awaited), Time::ZERO).unwrap();
        patience.check(7, Some(awaited), at(seconds)).is_ok()
    }

    #[test]
    //= docs/specs/endpoint.md#END-25 10 s after its connection opened
    fn who_says_nothing_is_waited_for_ten_seconds() {
        let mut patience = Patience::new(Limits::new(60), at(1));
        assert!(patience.check(5, Some(Awaited::Bytes), at(11)).is_ok());
        assert!(patience.check(9, Some(Awaited::Bytes), at(11).next()).is_err(), "half a message is none");
        patience.on_message(at(11));
        assert!(patience.check(9, Some(Awaited::Bytes), at(12)).is_ok());
    }

    #[test]
    //= docs/specs/endpoint.md#END-26 bytes within the timeout
    fn bytes_must_come_within_the_timeout_and_messages_within_minutes() {
        assert!(waiting(Awaited::Bytes, 5) && !waiting(Awaited::Bytes, 6));
        assert!(waiting(Awaited::Stream, 3605) && !waiting(Awaited::Stream, 3606));
        // A byte a second is a sign of life for so long.
        let mut patience = Patience::new(Limits::new(5), Time::ZERO);
        patience.on_message(Time::ZERO);
        let ended = (1..1000).find(|&s| patience.check(s, Some(Awaited::Bytes), at(s)).is_err());
        assert_eq!(ended, Some(301));
    }

    #[test]
    fn what_the_receiver_takes_for_itself_does_not_count() {
        let mut patience = Patience::new(Limits::new(5), Time::ZERO);
        patience.on_message(Time::ZERO);
        patience.check(7, None, at(1000)).unwrap();
        assert!(patience.check(7, Some(Awaited::Bytes), at(1005)).is_ok());
        assert!(patience.check(7, Some(Awaited::Bytes), at(1006)).is_err());
    }

    #[test]
    //= docs/specs/endpoint.md#END-27 overdue longest
    fn who_is_silent_gives_way_at_once_and_others_after_the_timeout() {
        let mut patience = Patience::new(Limits::new(5), Time::ZERO);
        assert_eq!(patience.overdue_ps(at(1)), Some(S));
        patience.on_message(Time::ZERO);
        assert_eq!((patience.overdue_ps(at(5)), patience.overdue_ps(at(6))), (None, Some(6 * S)));
    }
}
