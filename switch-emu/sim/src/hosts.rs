//! What the simulator keeps of hosts and connections beside [`spray_core::host`].

use spray_core::host::{Entry, Halves, NEVER};
use spray_core::link::HostLink;
use spray_fabric::address;

/// A host's link to its switch, and which of the host's timers are among the events.
#[derive(Debug)]
pub(super) struct Uplink {
    pub link: HostLink,
    /// The link among the ports.
    pub port: u32,
    /// The switch at the link's other end.
    pub switch: u32,
    /// A turn to send is among the events.
    pub turn_armed: bool,
    /// The next grant of credit is among the events.
    pub grant_armed: bool,
}

/// A flow's connection: the sender at one host, the receiver at another.
#[derive(Debug)]
pub(super) struct Connection {
    pub src: u32,
    pub dst: u32,
    /// Both addresses, as switches hash them: of data, and of what answers it.
    pub addresses: [u64; 2],
    pub header_bytes: u32,
    pub evs: u32,
    /// Payload of a full packet.
    pub payload_bytes: u64,
    pub message_bytes: u64,
    /// Both ends while the flow lasts.
    pub halves: Option<Box<Halves>>,
    /// The timers among the events that count; others are out of date.
    pub sender_timer_ps: u64,
    pub receiver_timer_ps: u64,
}

impl Connection {
    /// A connection over IPv6 or IPv4 that has not begun.
    pub(super) fn new(src: usize, dst: usize, v6: bool) -> Self {
        let addresses = |from, to| spray_fabric::addresses(address(from, v6), address(to, v6));
        Self {
            src: src as u32,
            dst: dst as u32,
            addresses: [addresses(src, dst), addresses(dst, src)],
            header_bytes: 0,
            evs: 1,
            payload_bytes: 0,
            message_bytes: 0,
            halves: None,
            sender_timer_ps: NEVER,
            receiver_timer_ps: NEVER,
        }
    }
}

impl Entry for Connection {
    #[inline]
    fn halves(&mut self) -> Option<&mut Halves> {
        self.halves.as_deref_mut()
    }
}
