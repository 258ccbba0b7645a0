//! Timeouts of a receiver for its senders, in the session's time.

use spray_core::link::PS_PER_S;
use spray_nic::Time;

use super::refusal::Refusal;
use crate::places::Pace;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub first_ps: u64,
    pub bytes_ps: u64,
}

impl Limits {
    //= docs/specs/endpoint.md#END-25 10 s after its connection opened
    pub fn new(timeout_s: u64) -> Self {
        Self { first_ps: 10 * PS_PER_S, bytes_ps: timeout_s * PS_PER_S }
    }
}

/// For a piece at 3.5 KB/s, the slowest useful link.
const MESSAGE_PS: u64 = 300 * PS_PER_S;
/// Added for streams, whose writers may pause.
const STREAM_PS: u64 = 3600 * PS_PER_S;

/// What a sender has to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    Bytes,
    /// Possibly not written yet.
    Stream,
}

#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    limits: Limits,
    pub has_sent: bool,
    /// Payload bytes, and when they last grew or the receiver was busy.
    bytes: u64,
    bytes_at: Time,
    message_at: Time,
    pub pace: Pace,
}

impl Timeouts {
    pub fn new(limits: Limits, now: Time) -> Self {
        Self { limits, has_sent: false, bytes: 0, bytes_at: now, message_at: now, pace: Pace::new(now) }
    }

    pub fn on_message(&mut self, now: Time) {
        (self.has_sent, self.message_at) = (true, now);
    }

    /// `bytes` is the total received; `awaited` is `None` if the receiver is busy.
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
        if !self.has_sent {
            //= docs/specs/endpoint.md#END-25 has sent no message
            return within(unsaid_ps, self.limits.first_ps, "no message came");
        }
        //= docs/specs/endpoint.md#END-26 bytes within the timeout
        let more_ps = if awaited == Awaited::Stream { STREAM_PS } else { 0 };
        within(quiet_ps, self.limits.bytes_ps.saturating_add(more_ps), "nothing of use arrived")?;
        within(unsaid_ps, MESSAGE_PS.saturating_add(more_ps), "no whole message arrived")
    }

    /// Time since the last bytes, if the sender may be preempted: it has sent nothing yet, or
    /// nothing within the timeout (streams included).
    //= docs/specs/endpoint.md#END-27 overdue longest
    pub fn overdue_ps(&self, now: Time) -> Option<u64> {
        let quiet_ps = self.quiet_ps(now);
        (!self.has_sent || quiet_ps > self.limits.bytes_ps).then_some(quiet_ps)
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
        let mut timeouts = Timeouts::new(Limits::new(5), Time::ZERO);
        timeouts.on_message(Time::ZERO);
        timeouts.check(7, Some(awaited), Time::ZERO).unwrap();
        timeouts.check(7, Some(awaited), at(seconds)).is_ok()
    }

    #[test]
    //= docs/specs/endpoint.md#END-25 10 s after its connection opened
    fn a_silent_client_times_out_after_ten_seconds() {
        let mut timeouts = Timeouts::new(Limits::new(60), at(1));
        assert!(timeouts.check(5, Some(Awaited::Bytes), at(11)).is_ok());
        assert!(timeouts.check(9, Some(Awaited::Bytes), at(11).next()).is_err(), "half a message does not count");
        timeouts.on_message(at(11));
        assert!(timeouts.check(9, Some(Awaited::Bytes), at(12)).is_ok());
    }

    #[test]
    //= docs/specs/endpoint.md#END-26 bytes within the timeout
    fn bytes_time_out_in_seconds_and_messages_in_minutes() {
        assert!(waiting(Awaited::Bytes, 5) && !waiting(Awaited::Bytes, 6));
        assert!(waiting(Awaited::Stream, 3605) && !waiting(Awaited::Stream, 3606));
        // One byte per second keeps the connection alive for this long.
        let mut timeouts = Timeouts::new(Limits::new(5), Time::ZERO);
        timeouts.on_message(Time::ZERO);
        let ended = (1..1000).find(|&s| timeouts.check(s, Some(Awaited::Bytes), at(s)).is_err());
        assert_eq!(ended, Some(301));
    }

    #[test]
    fn the_receivers_own_time_does_not_count() {
        let mut timeouts = Timeouts::new(Limits::new(5), Time::ZERO);
        timeouts.on_message(Time::ZERO);
        timeouts.check(7, None, at(1000)).unwrap();
        assert!(timeouts.check(7, Some(Awaited::Bytes), at(1005)).is_ok());
        assert!(timeouts.check(7, Some(Awaited::Bytes), at(1006)).is_err());
    }

    #[test]
    //= docs/specs/endpoint.md#END-27 overdue longest
    fn silent_clients_are_evicted_at_once_others_after_the_timeout() {
        let mut timeouts = Timeouts::new(Limits::new(5), Time::ZERO);
        assert_eq!(timeouts.overdue_ps(at(1)), Some(S));
        timeouts.on_message(Time::ZERO);
        assert_eq!((timeouts.overdue_ps(at(5)), timeouts.overdue_ps(at(6))), (None, Some(6 * S)));
    }
}
