//! Outstanding probes and the validation of their answers.

use spray_wire::ProbeAck;

use crate::Time;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::flow::sender) struct Probes {
    /// Token and time of the first and of the latest; tokens count up from 1.
    first: u64,
    first_at: Time,
    latest: u64,
    latest_at: Time,
}

impl Probes {
    /// Records a probe and returns its token. `fresh`: it is the first of a new suspect.
    pub fn on_sent(&mut self, now: Time, fresh: bool) -> u64 {
        self.latest += 1;
        self.latest_at = now;
        if fresh {
            (self.first, self.first_at) = (self.latest, now);
        }
        self.latest
    }

    /// Whether a frame echoes one of these probes: its token with a matching time.
    pub fn are_answered_by(&self, ack: &ProbeAck) -> bool {
        let sent = (self.first.max(1)..=self.latest).contains(&ack.token);
        let timely = match ack.token == self.latest {
            true => ack.timestamp == self.latest_at,
            false => (self.first_at..=self.latest_at).contains(&ack.timestamp),
        };
        sent && timely
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A suspect's second probe and exploring probes may be sent in one poll.
    //= docs/specs/transport.md#TRN-63 answers to probes
    #[test]
    fn all_probes_of_one_instant_can_be_answered() {
        let (mut probes, now) = (Probes::default(), Time::ZERO.next());
        let tokens = [true, false, false].map(|fresh| probes.on_sent(now, fresh));
        for token in tokens {
            let answer = |timestamp| ProbeAck { token, timestamp, ..ProbeAck::default() };
            assert!(probes.are_answered_by(&answer(now)), "{token}");
            assert!(
                !probes.are_answered_by(&answer(now.next())) && !probes.are_answered_by(&answer(Time::ZERO)),
                "{token}"
            );
        }
    }
}
