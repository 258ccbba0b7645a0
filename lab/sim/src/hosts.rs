//! What the simulator keeps of hosts and connections beside [`spray_core::host`].

use spray_core::flow::FlowConfig;
use spray_core::host::{Entry, ReceiveHalf, SendHalf};
use spray_fabric::HostLink;
use spray_fabric::address;
use spray_pipeline::config::NEVER;

use super::common::Common;
use super::messages::{Message, Series};

/// A host's link to its switch, and which of the host's timers are among the events.
#[derive(Debug)]
pub(super) struct Uplink {
    pub link: HostLink,
    /// The link's number among all ports, and its place among those of its part.
    pub number: u32,
    pub port: u32,
    /// The switch at the link's other end.
    pub switch: u32,
    /// A turn to send is among the events.
    pub turn_armed: bool,
    /// The next grant of credit is among the events.
    pub grant_armed: bool,
}

/// One end of a connection, at its host: it has a sending or a receiving half.
#[derive(Debug)]
pub(super) struct End {
    /// The host, by its place in the part.
    pub host: u32,
    /// The other end's part, its place there, and its host.
    pub peer_part: u32,
    pub peer: u32,
    pub peer_host: u32,
    /// Both addresses, as switches hash them in frames from here.
    pub addresses: u64,
    pub header_bytes: u32,
    pub evs: u32,
    /// Payload of a full packet.
    pub payload_bytes: u64,
    /// Its first message, and all of them if there are several. Boxed, since ends are looked at for every frame and most have one.
    pub first: Message,
    pub series: Option<Box<Series>>,
    /// The place of the first message's outcome among those of the part; those of the others follow.
    pub outcome: u32,
    /// Messages that have started, those of them that the sender has, and those that are not delivered.
    pub started: u32,
    pub handed: u32,
    pub open: u32,
    /// It is the receiver's end.
    pub receives: bool,
    /// The connection is over.
    pub over: bool,
    /// The timer among the events that counts; others are out of date.
    pub timer_ps: u64,
    /// From the first flow's start to the connection's end.
    pub sending: Option<Box<SendHalf>>,
    /// From the first frame that comes to the connection's end.
    pub receiving: Option<Box<ReceiveHalf>>,
}

impl End {
    /// The sender's end of the connection that begins with `flow`, or the receiver's. `peer` is the other end's place in its part.
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
            header_bytes: 0,
            evs: 1,
            payload_bytes: 0,
            first: Message::first(flow as u32, setting.bytes),
            series: None,
            outcome: 0,
            started: 0,
            handed: 0,
            open: 1,
            receives,
            over: false,
            timer_ps: NEVER,
            sending: None,
            receiving: None,
        }
    }

    /// Takes what frames need of the connection's settings.
    pub(super) fn configure(&mut self, config: &FlowConfig) {
        self.header_bytes = config.header_bytes;
        self.payload_bytes = u64::from(config.sanitised().payload_bytes);
        self.evs = config.path.evs.into();
        self.number_packets(self.payload_bytes);
    }
}

impl Entry for End {
    #[inline]
    fn sending(&mut self) -> Option<&mut SendHalf> {
        self.sending.as_deref_mut()
    }

    #[inline]
    fn receiving(&mut self) -> Option<&mut ReceiveHalf> {
        self.receiving.as_deref_mut()
    }
}
