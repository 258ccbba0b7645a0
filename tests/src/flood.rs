//! An attacker on the receiver's network, which sends it hostile frames and captures the replies.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::forged::{Forged, Forger, Proof};
use crate::routers::Routers;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv, send, setsockopt, socket, sockopt,
};
use spray_nic::Peer;
use spray_wire::{
    Accept, Ack, Body, Close, CloseReason, Connect, Data, Nack, Probe, PullRequest, Rekey, Reset, Terms, Time,
};

/// The source address of the flood: an unused address of the receiver's subnet.
pub const SPOOFED: [u8; 4] = [10, 2, 0, 99];
const SPOOFED_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x99];
/// The number of frames of the honest sender that are kept for replay.
const REPLAY_FRAMES: usize = 512;
/// Fits the MTU of the routers.
const PAYLOAD_BYTES: u16 = 1_200;
const FRAME_BYTES: usize = 4_096;
/// The size of the socket's receive buffer.
const BUFFER_BYTES: usize = 64 << 20;

/// A program on the link between the receiver and its router.
pub struct Flood {
    /// A socket that receives all frames on the link except its own.
    link: OwnedFd,
    receiver: Peer,
    honest: IpAddr,
    /// Recent frames of the honest sender.
    seen: VecDeque<Vec<u8>>,
    /// The number of the honest connection at the receiver.
    connection: u32,
    number: u64,
    /// Bytes sent from the spoofed address.
    pub spoofed_bytes: u64,
    /// All frames sent.
    pub frames: u64,
    /// Of these, replayed frames of the honest sender.
    pub replayed: u64,
    /// Bytes that the receiver sent to the spoofed address.
    pub answered_bytes: u64,
}

impl Flood {
    /// Attaches to the receiver's link; the receiver is host 1, and the honest sender host 0.
    pub fn new(routers: &Routers) -> Self {
        let receiver = routers.run_in(1, || link_address(Routers::INTERFACE)).unwrap();
        let link = routers.run_at_gateway(1, || attach(&link_address(Routers::GATEWAY))).unwrap().unwrap();
        Self {
            link,
            receiver: Peer { address: Routers::address(1, 0).into(), mac: receiver.addr().unwrap() },
            honest: Routers::address(0, 0).into(),
            seen: VecDeque::new(),
            connection: 0,
            number: 0,
            spoofed_bytes: 0,
            frames: 0,
            replayed: 0,
            answered_bytes: 0,
        }
    }

    /// Sends `frames` frames, each different.
    pub fn send_frames(&mut self, frames: u64) {
        for _ in 0..frames {
            self.number += 1;
            match self.seen.get(self.number as usize / 2 % REPLAY_FRAMES) {
                Some(seen) if self.number.is_multiple_of(2) => {
                    self.replayed += u64::from(send_frame(&self.link, seen));
                    self.frames += 1;
                }
                _ => self.forge(),
            }
        }
    }

    fn forge(&mut self) {
        // A Connect from the honest address would make the receiver answer the honest sender.
        let forged = self.forged();
        let opens = matches!(forged, Forged::Connect(..));
        let claims_honest = !opens && self.number.is_multiple_of(3);
        let address = if claims_honest { self.honest } else { SPOOFED.into() };
        let forger = Forger {
            from: Peer { address, mac: SPOOFED_MAC },
            honest: self.honest,
            to: self.receiver,
            proof: Proof::Nothing,
        };
        let mut space = [0; FRAME_BYTES];
        let mut bytes = forger.write(&mut space, &forged);
        match self.number % 32 {
            // Valid addresses and ports, with arbitrary bytes after them.
            29 => space[42..bytes]
                .iter_mut()
                .enumerate()
                .for_each(|(at, byte)| *byte = (self.number as usize * 31 + at * 7) as u8),
            31 => bytes = bytes.min(14 + self.number as usize / 32 % bytes),
            _ => {}
        }
        if send_frame(&self.link, &space[..bytes]) {
            self.frames += 1;
            let is_spoofed = !claims_honest && !matches!(forged, Forged::Sealed(..));
            self.spoofed_bytes += if is_spoofed { bytes as u64 } else { 0 };
        }
    }

    /// Returns the next frame: all kinds in turn, for the honest connection or one with an adjacent
    /// number.
    fn forged(&self) -> Forged {
        let number = self.number;
        let connection = self.connection ^ (number % 3) as u32;
        let plain = |body| Forged::Plain(connection, number, body);
        let close = |reason, acknowledgement| Body::Close(Close { cumulative: 0, reason, acknowledgement });
        let connect = Connect {
            connection: number as u32,
            cookie: number,
            window_packets: 256,
            max_payload: PAYLOAD_BYTES.into(),
            max_data: 1 << 20,
            ack_every: 1,
            exchange_bytes: 0,
            token: [0; 16],
        };
        let data = Data { psn: number, message_bytes: u64::MAX, payload_bytes: PAYLOAD_BYTES, ..Data::default() };
        match number / 2 % 16 {
            0 => Forged::Connect(connect, 0),
            1 => Forged::Connect(Connect { token: [number as u8; 16], ..connect }, 0),
            2 => Forged::Connect(Connect { token: [number as u8; 16], ..connect }, 96),
            3 => plain(Body::Accept(Accept { connection: 3, cookie: number, ..Terms::default() })),
            4 => plain(Body::Ack(Ack { cumulative: u64::MAX, max_data: u64::MAX, ..Ack::default() })),
            5 => plain(Body::Nack(Nack { psn: number, ..Nack::default() })),
            6 => plain(close(CloseReason::Done, false)),
            7 => plain(close(CloseReason::Aborted, true)),
            8 => plain(Body::Reset(Reset { reason: 0 })),
            9 => plain(Body::Probe(Probe { token: number, timestamp: Time::ZERO })),
            10 => plain(Body::PullRequest(PullRequest { demand_bytes: u64::MAX, pulled_bytes: 0 })),
            11 => plain(Body::Data(data)),
            12 => Forged::Sealed(connection, number, PAYLOAD_BYTES),
            13 => Forged::Corrupt,
            14 => plain(Body::Rekey(Rekey { generation: number as u16, ..Rekey::default() })),
            _ => Forged::Foreign,
        }
    }

    /// Processes the frames captured since the last call.
    pub fn capture(&mut self) {
        let mut space = [0; FRAME_BYTES];
        loop {
            let bytes = match recv(self.link.as_raw_fd(), &mut space, MsgFlags::MSG_DONTWAIT) {
                Ok(bytes) => bytes,
                Err(Errno::EAGAIN) => return,
                Err(error) => panic!("the receiver's link: {error}"),
            };
            let frame = &space[..bytes];
            // The source and destination addresses of IPv4 after Ethernet.
            let (from, to) = (frame.get(26..30), frame.get(30..34));
            if to == Some(&SPOOFED) {
                self.answered_bytes += bytes as u64;
            } else if from == Some(&Routers::address(0, 0).octets()) {
                self.connection = spray_wire::peek_packet(frame, spray_wire::Ports::DEFAULT)
                    .map_or(self.connection, |(connection, _)| connection);
                if self.seen.len() == REPLAY_FRAMES {
                    self.seen.pop_front();
                }
                self.seen.push_back(frame.to_vec());
            }
        }
    }
}

/// Returns the link address of an interface of this namespace.
pub(crate) fn link_address(interface: &str) -> LinkAddr {
    let found = getifaddrs().unwrap().filter(|it| it.interface_name == interface);
    let mut links = found.filter_map(|it| it.address?.as_link_addr().copied());
    links.next().unwrap_or_else(|| panic!("no interface {interface}"))
}

pub(crate) fn attach(link: &LinkAddr) -> nix::Result<OwnedFd> {
    let fd = socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), SockProtocol::EthAll)?;
    setsockopt(&fd, sockopt::RcvBufForce, &BUFFER_BYTES)?;
    bind(fd.as_raw_fd(), link)?;
    Ok(fd)
}

/// Sends a frame. Returns false if the socket's buffer is full.
pub(crate) fn send_frame(link: &OwnedFd, frame: &[u8]) -> bool {
    match send(link.as_raw_fd(), frame, MsgFlags::empty()) {
        Ok(_) => true,
        Err(Errno::ENOBUFS | Errno::EAGAIN) => false,
        Err(error) => panic!("{}", io::Error::from(error)),
    }
}
