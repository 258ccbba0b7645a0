//! Hosts and connections: what the endpoints of `spray-nic` do around senders and receivers, without frames to parse.

use std::collections::VecDeque;

use spray_core::cc::{EqdsConfig, PullPacer};
use spray_core::event::{Event, Publisher};
use spray_core::flow::{Accept, Arrival, FlowConfig, Receiver, Sender, SenderEvent};
use spray_core::link::HostLink;
use spray_core::rng::Rng;

use spray_fabric::v4;

/// A host and its link.
#[derive(Debug)]
pub(super) struct Host {
    pub link: HostLink,
    /// Its own link among the ports.
    pub port: u32,
    /// The switch at the link's other end.
    pub switch: u32,
    /// Connections that may have data to send, in the order of their turns.
    pub ready: VecDeque<u32>,
    /// A turn to send is among the events.
    pub armed: bool,
    /// The credit that it grants, once somebody asks for some.
    pub pulls: Option<Box<Pulls>>,
    pub rng: Rng,
}

/// What a host grants to those that send to it.
#[derive(Debug)]
pub(super) struct Pulls {
    pub pacer: PullPacer,
    /// The next pull is among the events.
    pub armed: bool,
}

/// For [`Connection::pull_entry`]: nobody asked for credit.
pub(super) const NO_PULLS: u32 = u32::MAX;

/// Digest of the addresses of frames between two hosts.
pub(super) fn addresses(from: usize, to: usize) -> u64 {
    spray_fabric::addresses(v4(from).into(), v4(to).into())
}

/// A flow's connection: the sender at one host, the receiver at another.
#[derive(Debug)]
pub(super) struct Connection {
    pub src: u32,
    pub dst: u32,
    /// Digest of the addresses: of data, and of what answers it.
    pub addresses: [u64; 2],
    pub header_bytes: u32,
    /// Payload of a full packet.
    pub payload_bytes: u64,
    pub message_bytes: u64,
    pub evs: u32,
    /// Both ends while the flow lasts.
    pub ends: Option<Box<Ends>>,
    /// In the queue of connections that may have data to send.
    pub ready: bool,
    /// The timers among the events that count; others are out of date.
    pub sender_timer_ps: u64,
    pub receiver_timer_ps: u64,
    /// The receiver's entry in its host's [`PullPacer`].
    pub pull_entry: u32,
}

impl Connection {
    /// Wire bytes of a full packet.
    pub(super) fn full_packet_bytes(&self) -> u32 {
        self.payload_bytes as u32 + self.header_bytes
    }
}

/// Sender and receiver.
#[derive(Debug)]
pub(super) struct Ends {
    pub sender: Sender,
    pub receiver: Receiver,
    /// How the receiver's host grants credit.
    pub eqds: EqdsConfig,
}

/// What an event of a sender led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing in particular.
    None,
    /// Everything is acknowledged.
    Delivered,
    /// It gave up.
    Failed,
}

impl Ends {
    pub(super) fn new(config: &FlowConfig, bytes: u64, rng: &mut Rng) -> Self {
        let mut sender = Sender::new(config, config.window_packets, config.max_data_bytes, rng);
        // The first message always finds room.
        let _ = sender.send_message(0, bytes);
        Self { sender, receiver: Receiver::new(config), eqds: config.cc.control.eqds() }
    }

    /// What the sender has to tell.
    #[inline]
    pub(super) fn poll_end(&mut self) -> End {
        match self.sender.poll_event() {
            None => End::None,
            Some(SenderEvent::MessageDelivered { .. }) => End::Delivered,
            Some(SenderEvent::Failed) => End::Failed,
        }
    }

    /// Takes a data frame; whether the message is whole now.
    #[inline]
    pub(super) fn on_data(&mut self, now_ps: u64, arrival: &Arrival) -> bool {
        match self.receiver.on_data(now_ps, arrival) {
            Accept::New { .. } => match self.receiver.message_completed() {
                Some((_, bytes)) => {
                    self.receiver.consumed(bytes);
                    true
                }
                None => false,
            },
            _ => false,
        }
    }
}

/// Takes the senders' events.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Whose event comes next.
    pub flow: u32,
    pub events: Vec<(u64, u32, Event)>,
}

impl Publisher for Log {
    fn on_event(&mut self, now_ps: u64, event: Event) {
        if !matches!(event, Event::Retransmit { .. }) {
            self.events.push((now_ps, self.flow, event));
        }
    }
}
