//! State of hosts and connections in addition to [`spray_core::host`].

use spray_core::Time;
use spray_core::flow::{FlowConfig, ReceiverStats, SenderStats};
use spray_core::host::{ReceiveHalf, SendHalf};
use spray_fabric::{HostLink, address, share_out};
use spray_pipeline::config::NEVER;

use super::common::Common;
use super::messages::{Message, MessageList};
use super::spec::FlowOutcome;

/// A host's link to its switch, and which of the host's timers are scheduled.
#[derive(Debug)]
pub(super) struct Uplink {
    pub link: HostLink,
    /// Number among all ports, and index in the part.
    pub number: u32,
    pub port: u32,
    pub switch: u32,
    pub turn_armed: bool,
    pub grant_armed: bool,
}

/// One end of a connection, with a sending or a receiving half.
#[derive(Debug, Default)]
pub(super) struct End {
    /// Index in the part.
    pub host: u32,
    /// Part, index there, and host of the other end.
    pub peer_part: u32,
    pub peer: u32,
    pub peer_host: u32,
    /// Digest of both addresses, for frames sent from here.
    pub addresses: u64,
    pub header_bytes: u32,
    pub evs: u32,
    /// Payload of a full packet.
    pub payload_bytes: u64,
    /// Boxed, since ends are read for every frame and most have one message.
    pub first: Message,
    pub series: Option<Box<MessageList>>,
    /// Index of the first message's outcome in the part; those of the others follow.
    pub outcome: u32,
    /// Numbers of messages started, submitted to the sender, and not yet delivered.
    pub started: u32,
    pub handed: u32,
    pub open: u32,
    pub receives: bool,
    pub over: bool,
    /// The valid timer; other scheduled timers are stale.
    pub timer_ps: u64,
    /// Set from the first flow's start to the connection's end.
    pub sending: Option<Box<SendHalf>>,
    /// Set from the first received frame to the connection's end.
    pub receiving: Option<Box<ReceiveHalf>>,
}

impl End {
    /// `peer` is the index of the other end in its part.
    pub(super) fn new(common: &Common<'_>, flow: usize, receives: bool, peer: u32) -> Self {
        let setting = &common.spec.flows[flow];
        let (own, other) = if receives { (setting.dst, setting.src) } else { (setting.src, setting.dst) };
        let address = |host| address(host, common.spec.v6);
        Self {
            host: common.partition.place_of_host[own],
            peer_part: common.part_of_host(other),
            peer,
            peer_host: other as u32,
            addresses: spray_fabric::addresses(address(own), address(other)),
            evs: 1,
            first: Message::first(flow as u32, setting.bytes),
            open: 1,
            receives,
            timer_ps: NEVER,
            ..Self::default()
        }
    }

    pub(super) fn configure(&mut self, config: &FlowConfig) {
        self.header_bytes = config.header_bytes;
        self.payload_bytes = u64::from(config.clamped().payload_bytes);
        self.evs = config.path.evs.into();
        let mut next_psn = 0;
        for message in self.series.iter_mut().flat_map(|series| &mut series.0) {
            message.first_psn = next_psn;
            //= docs/specs/transport.md#TRN-1 packets of a message
            next_psn += message.bytes.div_ceil(self.payload_bytes).max(1);
        }
    }

    /// Submits messages that have started, as many as the sender accepts. The others follow when it has delivered some.
    #[inline]
    pub(super) fn submit(&mut self) {
        while self.handed < self.started {
            let message = self.message(self.handed);
            let Some(half) = self.sending.as_deref_mut() else { return };
            if half.sender.send_message(message.number, message.bytes).is_err() {
                return;
            }
            self.handed += 1;
        }
    }

    pub(super) fn add(&mut self, flow: u32, bytes: u64) {
        let first = self.first;
        let MessageList(series) = &mut **self.series.get_or_insert_with(|| Box::new(MessageList(vec![first])));
        series.push(Message { number: series.len() as u32, ..Message::first(flow, bytes) });
        self.open += 1;
    }

    /// Returns the message of a packet.
    #[inline]
    pub(super) fn message_of(&self, psn: u64) -> Message {
        match &self.series {
            None => self.first,
            Some(series) => series.0[series.0.partition_point(|message| message.first_psn <= psn).max(1) - 1],
        }
    }

    #[inline]
    pub(super) fn message(&self, number: u32) -> Message {
        self.series.as_ref().map_or(self.first, |series| series.0[number as usize])
    }

    pub(super) fn messages(&self) -> u32 {
        self.series.as_ref().map_or(1, |series| series.0.len() as u32)
    }

    /// If so, outcomes hold the counters as of each message's end until [`End::share_out`].
    pub(super) fn has_several(&self) -> bool {
        self.series.is_some()
    }

    /// Returns the outcomes of this end's messages.
    pub(super) fn own<'a>(&self, outcomes: &'a [FlowOutcome]) -> &'a [FlowOutcome] {
        &outcomes[self.outcome as usize..][..self.messages() as usize]
    }

    /// Returns the message to which counters belong now: the first open one, else the last to end.
    //= docs/specs/triggers.md#TRG-7 the first flow that has not ended
    pub(super) fn counting(&self, outcomes: &[FlowOutcome]) -> u32 {
        let own = self.own(outcomes);
        let ended_ps = |outcome: &FlowOutcome| self.ended_ps(outcome);
        let open = own.iter().position(|outcome| ended_ps(outcome).is_none());
        let last = || (0..own.len()).max_by_key(|number| ended_ps(&own[*number]));
        open.or_else(last).unwrap_or(0) as u32
    }

    pub(super) fn ended_ps(&self, outcome: &FlowOutcome) -> Option<u64> {
        if self.receives { outcome.received_ps } else { outcome.acked_ps }
    }

    /// Returns the flow in progress at `at`.
    pub(super) fn flow_at(&self, at: Time, outcomes: &[FlowOutcome]) -> u32 {
        let goes_on = |outcome: &FlowOutcome| self.ended_ps(outcome).is_none_or(|end_ps| Time::from_ps(end_ps) >= at);
        let number = self.own(outcomes).iter().position(goes_on).map_or(self.messages() - 1, |number| number as u32);
        self.message(number).flow
    }

    /// Converts the cumulative counters to those of each message.
    pub(super) fn share_out(&self, outcomes: &mut [FlowOutcome]) {
        let counting = self.counting(outcomes) as usize;
        let own = &mut outcomes[self.outcome as usize..][..self.messages() as usize];
        if self.receives {
            let ended: Vec<_> = own.iter().map(|outcome| Some((self.ended_ps(outcome)?, outcome.receiver))).collect();
            let shares = share_out(&ended, own[counting].receiver, ReceiverStats::delta_to);
            own.iter_mut().zip(shares).for_each(|(outcome, share)| outcome.receiver = share);
        } else {
            let ended: Vec<_> = own.iter().map(|outcome| Some((self.ended_ps(outcome)?, outcome.sender))).collect();
            let shares = share_out(&ended, own[counting].sender, SenderStats::delta_to);
            own.iter_mut().zip(shares).for_each(|(outcome, share)| outcome.sender = share);
        }
    }
}
