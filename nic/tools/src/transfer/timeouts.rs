//! Timeouts of a receiver for its senders, in the session's time.

use spray_core::link::PS_PER_S;
use spray_nic::Time;

use super::format::Refusal;
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

    /// `bytes` is the total received; `waits` is false if the receiver is busy.
    pub fn check(&mut self, bytes: u64, waits: bool, now: Time) -> Result<(), Refusal> {
        if bytes > self.bytes {
            (self.bytes, self.bytes_at) = (bytes, now);
        }
        if !waits {
            (self.bytes_at, self.message_at) = (now, now);
            self.pace.restart(bytes, now);
            return Ok(());
        }
        self.pace.on_bytes(bytes, now);
        let (quiet_ps, unsaid_ps) = (self.quiet_ps(now), now.since(self.message_at));
        if !self.has_sent {
            //= docs/specs/endpoint.md#END-25 has sent no message
            return within(unsaid_ps, self.limits.first_ps, "no message came");
        }
        //= docs/specs/endpoint.md#END-26 bytes within the timeout
        within(quiet_ps, self.limits.bytes_ps, "nothing of use arrived")?;
        within(unsaid_ps, MESSAGE_PS, "no whole message arrived")
    }

    /// Time since the last bytes, if the sender may be preempted: it has sent nothing yet, or
    /// nothing within the timeout.
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

    fn is_waited_for(seconds: u64) -> bool {
        let mut timeouts = Timeouts::new(Limits::new(5), Time::ZERO);
        timeouts.on_message(Time::ZERO);
        timeouts.check(7, true, Time::ZERO).unwrap();
        timeouts.check(7, true, at(seconds)).is_ok()
    }

    #[test]
    //= docs/specs/endpoint.md#END-25 10 s after its connection opened
    fn a_silent_client_times_out_after_ten_seconds() {
        let mut timeouts = Timeouts::new(Limits::new(60), at(1));
        assert!(timeouts.check(5, true, at(11)).is_ok());
        assert!(timeouts.check(9, true, at(11).next()).is_err(), "half a message is none");
        timeouts.on_message(at(11));
        assert!(timeouts.check(9, true, at(12)).is_ok());
    }

    #[test]
    //= docs/specs/endpoint.md#END-26 bytes within the timeout
    fn bytes_must_come_within_the_timeout_and_messages_within_minutes() {
        assert!(is_waited_for(5) && !is_waited_for(6));
        // A byte a second is a sign of life for so long.
        let mut timeouts = Timeouts::new(Limits::new(5), Time::ZERO);
        timeouts.on_message(Time::ZERO);
        let ended = (1..1000).find(|&s| timeouts.check(s, true, at(s)).is_err());
        assert_eq!(ended, Some(301));
    }

    #[test]
    fn the_receivers_own_time_does_not_count() {
        let mut timeouts = Timeouts::new(Limits::new(5), Time::ZERO);
        timeouts.on_message(Time::ZERO);
        timeouts.check(7, false, at(1000)).unwrap();
        assert!(timeouts.check(7, true, at(1005)).is_ok());
        assert!(timeouts.check(7, true, at(1006)).is_err());
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
