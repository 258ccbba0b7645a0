//! The messages of a connection: which of them a packet belongs to, and which flows they are.

use spray_core::Time;
use spray_core::flow::{ReceiverStats, SenderStats};
use spray_fabric::share_out;

use super::hosts::End;
use super::spec::FlowOutcome;

/// A message of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Its number on the connection, from 0.
    pub number: u32,
    /// Its flow.
    pub flow: u32,
    /// The number of its first packet. A sender numbers packets in the order of its messages.
    pub first_psn: u64,
    pub bytes: u64,
}

/// The messages of a connection that has several, in order.
#[derive(Debug)]
pub(super) struct Series(Vec<Message>);

impl Message {
    /// The only message of a connection, or its first one.
    pub(super) fn first(flow: u32, bytes: u64) -> Self {
        Self { number: 0, flow, first_psn: 0, bytes }
    }
}

impl End {
    /// One more message, behind the others.
    pub(super) fn add(&mut self, flow: u32, bytes: u64) {
        let first = self.first;
        let Series(series) = &mut **self.series.get_or_insert_with(|| Box::new(Series(vec![first])));
        series.push(Message { number: series.len() as u32, ..Message::first(flow, bytes) });
        self.open += 1;
    }

    /// Numbers the packets of messages with `payload_bytes` each.
    pub(super) fn number_packets(&mut self, payload_bytes: u64) {
        let mut next_psn = 0;
        for message in self.series.iter_mut().flat_map(|series| &mut series.0) {
            message.first_psn = next_psn;
            //= docs/specs/transport.md#TRN-1 packets of a message
            next_psn += message.bytes.div_ceil(payload_bytes).max(1);
        }
    }

    /// The message that a packet belongs to, if any does.
    #[inline]
    pub(super) fn message_of(&self, psn: u64) -> Message {
        match &self.series {
            None => self.first,
            Some(series) => series.0[series.0.partition_point(|message| message.first_psn <= psn).max(1) - 1],
        }
    }

    /// The message of this number.
    #[inline]
    pub(super) fn message(&self, number: u32) -> Message {
        self.series.as_ref().map_or(self.first, |series| series.0[number as usize])
    }

    /// How many messages the connection has.
    pub(super) fn messages(&self) -> u32 {
        self.series.as_ref().map_or(1, |series| series.0.len() as u32)
    }

    /// Whether there are several messages, so that their outcomes hold what the connection had counted at their ends.
    pub(super) fn has_several(&self) -> bool {
        self.series.is_some()
    }

    /// Those of a part's outcomes that are of this end's messages.
    pub(super) fn own<'a>(&self, outcomes: &'a [FlowOutcome]) -> &'a [FlowOutcome] {
        &outcomes[self.outcome as usize..][..self.messages() as usize]
    }

    /// The number of the message that what is counted now belongs to: the first one that has not ended here, or else the last one that
    /// has.
    //= docs/specs/triggers.md#TRG-7 the first flow that has not ended
    pub(super) fn counting(&self, outcomes: &[FlowOutcome]) -> u32 {
        let own = self.own(outcomes);
        let ended_ps = |outcome: &FlowOutcome| self.ended_ps(outcome);
        let open = own.iter().position(|outcome| ended_ps(outcome).is_none());
        let last = || (0..own.len()).max_by_key(|number| ended_ps(&own[*number]));
        open.or_else(last).unwrap_or(0) as u32
    }

    /// When a message ended here.
    pub(super) fn ended_ps(&self, outcome: &FlowOutcome) -> Option<u64> {
        if self.receives { outcome.received_ps } else { outcome.acked_ps }
    }

    /// The flow that something at `at` concerns.
    pub(super) fn flow_at(&self, at: Time, outcomes: &[FlowOutcome]) -> u32 {
        let goes_on = |outcome: &FlowOutcome| self.ended_ps(outcome).is_none_or(|end_ps| Time::from_ps(end_ps) >= at);
        let number = self.own(outcomes).iter().position(goes_on).map_or(self.messages() - 1, |number| number as u32);
        self.message(number).flow
    }

    /// From what the connection had counted at the ends of its messages to what belongs to each.
    pub(super) fn share_out(&self, outcomes: &mut [FlowOutcome]) {
        let counting = self.counting(outcomes) as usize;
        let own = &mut outcomes[self.outcome as usize..][..self.messages() as usize];
        if self.receives {
            let ended: Vec<_> = own.iter().map(|outcome| Some((self.ended_ps(outcome)?, outcome.receiver))).collect();
            let shares = share_out(&ended, own[counting].receiver, ReceiverStats::until);
            own.iter_mut().zip(shares).for_each(|(outcome, share)| outcome.receiver = share);
        } else {
            let ended: Vec<_> = own.iter().map(|outcome| Some((self.ended_ps(outcome)?, outcome.sender))).collect();
            let shares = share_out(&ended, own[counting].sender, SenderStats::until);
            own.iter_mut().zip(shares).for_each(|(outcome, share)| outcome.sender = share);
        }
    }
}
