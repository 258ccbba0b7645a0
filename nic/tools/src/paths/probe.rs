//! Probes from ordinary UDP sockets, one for each entropy value, and their answers.
//!
//! A probe is a Connect without a token: an endpoint answers with a shorter Retry over the same
//! port and keeps no state (END-2). ICMP answers come from the socket's error queue. This needs no
//! privileges.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
};
use socket2::{Domain, Protocol, Socket, Type};
use spray_nic::device::UdpConfig;
use spray_nic::endpoint::ConnectTag;
use spray_nic::keys::PublicKey;
use spray_nic::net::Unreachable;
use spray_wire::offsets::udp_payload_offset;
use spray_wire::{Body, Common, Ecn, Envelope, EvPort, INITIAL_TTL, Ports, Terms, emit_in_place, frame, parse};

use super::ask::{Answer, Network, Reply};
use crate::failure::{Failure, Outcome};
use crate::progress::now;
use crate::stop::Stop;

#[derive(Clone, Debug)]
pub struct Route {
    pub from: IpAddr,
    pub to: IpAddr,
    pub ports: Ports,
    pub key: Option<PublicKey>,
}

pub struct Prober {
    route: Route,
    begun: Instant,
    lanes: Vec<Lane>,
    answers: UdpSocket,
    shard: u8,
    /// Value, TTL and send time by probe number; no time once answered.
    sent: Vec<(usize, u8, Option<Duration>)>,
    /// Proves that the sender of an answer has received the probe.
    cookie: u64,
    stop: Stop,
}

struct Lane {
    socket: UdpSocket,
    port: u16,
    last: usize,
}

const SPACE: usize = 256;
/// Offset of the connection number in a Connect.
const NUMBER: usize = 20;

impl Route {
    pub fn find(to: IpAddr, from: Option<IpAddr>, ports: Ports, key: Option<PublicKey>) -> Outcome<Self> {
        let from = match from {
            Some(from) if from.is_ipv4() != to.is_ipv4() => {
                return Err(Failure::refused(format!("--from {from} and {to} are not of the same IP version")));
            }
            Some(from) => from,
            None => UdpConfig::for_peer(to).map_err(Failure::refused)?.address,
        };
        if from == to {
            return Err(Failure::refused(format!("{to} is this machine's own address: name that of the other side")));
        }
        Ok(Self { from, to, ports, key })
    }

    fn probe(&self, port: u16, shard: u8, number: u32, cookie: u64) -> Option<Vec<u8>> {
        let terms = Terms {
            connection: number,
            cookie,
            max_data: 1 << 20,
            window_packets: 1024,
            max_payload: 1024,
            ack_every: 1,
            ..Terms::default()
        };
        let envelope = self.envelope(self.from, self.to, port, self.ports.first());
        let start = udp_payload_offset(envelope.is_v6());
        let tag = self.key.as_ref().map(|key| ConnectTag::new(key).of(self.from, self.to, &terms, &[]));
        let tag = tag.as_ref().map_or(&[][..], |tag| tag);
        let body = Body::Connect(Terms { exchange_bytes: tag.len() as u16, ..terms });
        let mut space = [0; SPACE];
        let behind = body.header_bytes(envelope.is_v6());
        space.get_mut(behind..behind + tag.len())?.copy_from_slice(tag);
        let common = Common { connection: 0, cookie: 0, shard };
        let bytes = emit_in_place(&mut space, &envelope, &common, &body, tag.len()).ok()?;
        Some(space.get(start..bytes)?.to_vec())
    }

    /// The number of the probe that a datagram from this port of the far end answers.
    fn number_of(&self, datagram: &[u8], port: u16, shard: u8, cookie: u64) -> Option<usize> {
        let mut space = [0; 2 * SPACE];
        let envelope = self.envelope(self.to, self.from, port, self.ports.at(shard));
        let start = udp_payload_offset(envelope.is_v6());
        space.get_mut(start..start + datagram.len())?.copy_from_slice(datagram);
        let bytes = frame::envelop(&mut space, &envelope, datagram.len()).ok()?;
        let answer = parse(space.get(..bytes)?, self.ports).ok()??;
        (answer.common.cookie == cookie).then_some(answer.common.connection as usize)
    }

    fn envelope(&self, src: IpAddr, dst: IpAddr, src_port: u16, dst_port: u16) -> Envelope {
        let src_port = EvPort::new(src_port);
        let (dscp, ecn, ttl) = (0, Ecn::NotEct, INITIAL_TTL);
        Envelope { src_mac: [0; 6], dst_mac: [0; 6], src, dst, src_port, dst_port, dscp, ecn, ttl }
    }
}

impl Prober {
    /// Also returns the ports that are in use.
    pub fn open(route: Route, ports: &[u16], cookie: u64, stop: Stop) -> Outcome<(Self, Vec<u16>)> {
        let at = |port| SocketAddr::new(route.from, port);
        let (mut lanes, mut taken, mut why) = (Vec::with_capacity(ports.len()), Vec::new(), None);
        for port in ports.iter().copied() {
            match lane(at(port)) {
                Ok(socket) => lanes.push(Lane { socket, port, last: 0 }),
                Err(error) => (taken, why) = ([taken, vec![port]].concat(), Some(error)),
            }
        }
        if let (true, Some(error)) = (lanes.is_empty(), why) {
            let ([first, .., last] | [first @ last]) = ports else { return Err(Failure::refused(error)) };
            let why = format!("cannot send from UDP ports {first} to {last} of {}: {error}", route.from);
            return Err(Failure::refused(format!("{why}; if they are in use (`ss -uapn`), give others with --ports")));
        }
        let receiving = (0..Ports::COUNT as u8).map(|shard| Ok((UdpSocket::bind(at(route.ports.at(shard)))?, shard)));
        let receiving = receiving
            .reduce(|before: io::Result<_>, next| before.or(next))
            .unwrap_or_else(|| Err(io::ErrorKind::AddrInUse.into()));
        let (answers, shard) = receiving.map_err(|error| {
            let first = route.ports.first();
            Failure::refused(format!("cannot receive at UDP ports {first} and following of {}: {error}", route.from))
        })?;
        answers.set_nonblocking(true).map_err(Failure::failed)?;
        Ok((Self { route, begun: now(), lanes, answers, shard, sent: Vec::new(), cookie, stop }, taken))
    }

    pub fn ports(&self) -> Vec<u16> {
        self.lanes.iter().map(|lane| lane.port).collect()
    }

    /// `None` if it was answered before.
    fn answered(&mut self, number: usize, reply: Reply) -> Option<Answer> {
        let now = self.now();
        let (value, ttl, at) = self.sent.get_mut(number)?;
        let at = at.take()?;
        Some(Answer { value: *value, ttl: *ttl, rtt: now.saturating_sub(at), reply })
    }

    fn take_answers(&mut self, out: &mut Vec<Answer>) {
        let mut datagram = [0; SPACE];
        while let Ok((bytes, from)) = self.answers.recv_from(&mut datagram) {
            let said = datagram.get(..bytes).filter(|_| from.ip() == self.route.to);
            let number = said.and_then(|said| self.route.number_of(said, from.port(), self.shard, self.cookie));
            out.extend(number.and_then(|number| self.answered(number, Reply::Endpoint)));
        }
    }

    fn take_errors(&mut self, value: usize, out: &mut Vec<Answer>) {
        while let Some(icmp_error) = self.lanes.get(value).and_then(|lane| icmp_error(&lane.socket)) {
            let number = icmp_error.number(self.cookie).or_else(|| Some(self.lanes.get(value)?.last));
            let own = number.filter(|number| self.sent.get(*number).is_some_and(|sent| sent.0 == value));
            let reply = icmp_error.reply(self.route.to);
            out.extend(own.zip(reply).and_then(|(number, reply)| self.answered(number, reply)));
        }
        // An error without a message would be reported forever.
        let _ = self.lanes.get(value).map(|lane| lane.socket.take_error());
    }
}

impl Network for Prober {
    fn now(&self) -> Duration {
        now().duration_since(self.begun)
    }

    fn send(&mut self, value: usize, ttl: u8) {
        let (number, at) = (self.sent.len(), self.now());
        self.sent.push((value, ttl, Some(at)));
        let Some(lane) = self.lanes.get_mut(value) else { return };
        lane.last = number;
        // Unrelated datagrams would use up the buffer of the error queue.
        while lane.socket.recv(&mut [0; 1]).is_ok() {}
        let Some(probe) = self.route.probe(lane.port, self.shard, number as u32, self.cookie) else { return };
        let to = SockaddrStorage::from(SocketAddr::new(self.route.to, self.route.ports.first()));
        let hops = i32::from(ttl);
        let ttl =
            if self.route.to.is_ipv4() { ControlMessage::Ipv4Ttl(&hops) } else { ControlMessage::Ipv6HopLimit(&hops) };
        // The first attempt may only report an earlier error. With `MSG_MORE` the kernel computes
        // the checksum instead of the NIC: veth computes none, and AF_XDP endpoints would drop the
        // probe.
        for _ in 0..2 {
            let fd = lane.socket.as_raw_fd();
            let flags = MsgFlags::from_bits_retain(libc::MSG_DONTWAIT | libc::MSG_MORE);
            if sendmsg(fd, &[IoSlice::new(&probe)], &[ttl], flags, Some(&to)).is_ok() {
                let _ = lane.socket.send_to(&[], (self.route.to, self.route.ports.first()));
                return;
            }
        }
    }

    fn answers(&mut self, until: Duration, out: &mut Vec<Answer>) {
        let left = until.saturating_sub(self.now());
        // Rounded up, to avoid busy waiting.
        let timeout = PollTimeout::try_from(left.as_micros().div_ceil(1000) as u32).unwrap_or(PollTimeout::MAX);
        let mut fds = vec![PollFd::new(self.answers.as_fd(), PollFlags::POLLIN)];
        fds.extend(self.lanes.iter().map(|lane| PollFd::new(lane.socket.as_fd(), PollFlags::empty())));
        if poll(&mut fds, timeout).is_err() {
            return;
        }
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(true)).collect();
        self.take_answers(out);
        for (value, _) in ready.iter().skip(1).enumerate().filter(|(_, ready)| **ready) {
            self.take_errors(value, out);
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }
}

/// Opens a socket that receives ICMP errors. It is not connected: Linux routers in namespaces of
/// the same machine would hash the connected socket's random number instead of the ports.
fn lane(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
    match at {
        SocketAddr::V4(_) => setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?,
        SocketAddr::V6(_) => setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?,
    }
    socket.bind(&at.into())?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// An ICMP error for a datagram.
pub struct IcmpError {
    /// Type and code, and whether it is ICMPv6.
    pub kind: (u8, u8, bool),
    pub by: IpAddr,
    pub to: Option<IpAddr>,
    /// The quoted UDP payload, often empty.
    quoted: Vec<u8>,
}

pub fn icmp_error(socket: &UdpSocket) -> Option<IcmpError> {
    loop {
        let mut quoted = [0; SPACE];
        // The last two are for sockets with options for addresses and marks.
        let mut control = nix::cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6, libc::in6_pktinfo, libc::c_int);
        let mut space = [IoSliceMut::new(&mut quoted)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut space, Some(&mut control), flags).ok()?;
        let bytes = message.bytes;
        let v4 = message.address.and_then(|to| Some(IpAddr::from(to.as_sockaddr_in()?.ip())));
        let to = v4.or_else(|| Some(message.address?.as_sockaddr_in6()?.ip().into()));
        let by = message.cmsgs().ok()?.find_map(|control| match control {
            ControlMessageOwned::Ipv4RecvErr(error, Some(by)) => {
                let by = IpAddr::from(u32::from_be(by.sin_addr.s_addr).to_be_bytes());
                (error.ee_origin == libc::SO_EE_ORIGIN_ICMP).then_some(((error.ee_type, error.ee_code, false), by))
            }
            ControlMessageOwned::Ipv6RecvErr(error, Some(by)) => {
                let by = IpAddr::from(by.sin6_addr.s6_addr);
                (error.ee_origin == libc::SO_EE_ORIGIN_ICMP6).then_some(((error.ee_type, error.ee_code, true), by))
            }
            _ => None,
        });
        if let Some((kind, by)) = by {
            return Some(IcmpError { kind, by, to, quoted: quoted.get(..bytes).unwrap_or_default().to_vec() });
        }
    }
}

impl IcmpError {
    fn number(&self, cookie: u64) -> Option<usize> {
        let number = self.quoted.get(NUMBER..)?.first_chunk()?;
        let quoted = self.quoted.get(NUMBER + 4..)?.first_chunk()?;
        (u64::from_be_bytes(*quoted) == cookie).then_some(u32::from_be_bytes(*number) as usize)
    }

    fn reply(&self, to: IpAddr) -> Option<Reply> {
        match self.kind {
            (11, 0, false) | (3, 0, true) => Some(Reply::Router(self.by)),
            (3, 3, false) | (1, 4, true) if self.by == to => Some(Reply::Kernel),
            // A packet is too long.
            (3, 4, false) => None,
            (kind, code, _) => {
                Unreachable::new(self.by, to, kind, code).map(|Unreachable { by, why, .. }| Reply::Refused(by, why))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use spray_nic::keys::PrivateKey;
    use spray_wire::Retry;

    use super::*;

    fn route() -> Route {
        let (from, to) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        Route { from, to, ports: Ports::DEFAULT, key: None }
    }

    /// Returns the answer of an endpoint to a probe.
    fn retry(route: &Route, port: u16, connection: u32, cookie: u64) -> Vec<u8> {
        let envelope = route.envelope(route.to, route.from, port, route.ports.at(3));
        let mut space = [0; SPACE];
        let body = Body::Retry(Retry { token: [7; 16] });
        let common = Common { connection, cookie, shard: 0 };
        let bytes = emit_in_place(&mut space, &envelope, &common, &body, 0).unwrap();
        space[udp_payload_offset(false)..bytes].to_vec()
    }

    #[test]
    fn an_answer_identifies_and_authenticates_its_probe() {
        let answer = retry(&route(), 49_152, 7, 99);
        let number = |answer: &[u8], port, cookie| route().number_of(answer, port, 3, cookie);
        assert_eq!(number(&answer, 49_152, 99), Some(7));
        assert_eq!(
            (number(&answer, 49_152, 98), number(&answer, 49_153, 99), number(&answer[1..], 49_152, 99)),
            (None, None, None)
        );
        let probe = route().probe(49_152, 3, 7, 99).unwrap();
        let icmp_error =
            |quoted: &[u8]| IcmpError { kind: (11, 0, false), by: route().from, to: None, quoted: quoted.to_vec() };
        assert_eq!(icmp_error(&probe).number(99), Some(7));
        assert_eq!(
            (icmp_error(&probe).number(98), icmp_error(&probe[..31]).number(99), icmp_error(&[]).number(99)),
            (None, None, None)
        );
        let key = PrivateKey::generate().unwrap().public();
        let keyed = Route { key: Some(key), ..route() }.probe(49_152, 3, 7, 99).unwrap();
        assert_eq!(keyed.len(), probe.len() + ConnectTag::BYTES);
        // No amplification: the answer is shorter than the probe.
        assert!(answer.len() < probe.len());
    }

    #[test]
    fn messages_of_routers_and_hosts_are_told_apart() {
        for (v6, to, other) in [(false, "10.0.0.2", "10.0.0.1"), (true, "fd00::2", "fd00::1")] {
            let [to, other] = [to, other].map(|address| address.parse::<IpAddr>().unwrap());
            let reply = |kind, by| IcmpError { kind, by, to: None, quoted: Vec::new() }.reply(to);
            let (expired, port, filter) =
                if v6 { ((3, 0, v6), (1, 4, v6), (1, 1, v6)) } else { ((11, 0, v6), (3, 3, v6), (3, 13, v6)) };
            assert_eq!(reply(expired, other), Some(Reply::Router(other)));
            assert_eq!(reply(port, to), Some(Reply::Kernel));
            assert!(matches!(reply(port, other), Some(Reply::Refused(..))));
            assert_eq!(reply(filter, other), Some(Reply::Refused(other, "a firewall or a route prohibits it")));
        }
        // Fragments that were not put together, a long packet, an echo.
        for kind in [(11, 1, false), (3, 4, false), (0, 0, false)] {
            let icmp_error = IcmpError { kind, by: route().from, to: None, quoted: Vec::new() };
            assert_eq!(icmp_error.reply(route().to), None, "{kind:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_messages_do_not_panic(
            kind in any::<(u8, u8, bool)>(),
            quoted in proptest::collection::vec(any::<u8>(), 0..SPACE),
            answer in proptest::collection::vec(any::<u8>(), 0..SPACE),
            (port, shard, cookie, cut) in any::<(u16, u8, u64, usize)>(),
        ) {
            let icmp_error = IcmpError { kind, by: route().from, to: None, quoted };
            let _ = (icmp_error.number(cookie), icmp_error.reply(route().to));
            prop_assert_eq!(route().number_of(&answer, port, shard, cookie), None);
            let mut genuine = retry(&route(), 49_152, u32::MAX, 99);
            genuine.truncate(cut % 64);
            let _ = route().number_of(&genuine, 49_152, 3, 99);
        }

        /// Unsolicited datagrams match no probe that was sent.
        #[test]
        fn unsolicited_datagrams_are_not_answers(datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..128), 0..8)) {
            let to = IpAddr::from([127, 9, 9, 9]);
            let route = Route { from: IpAddr::from([127, 9, 9, 8]), to, ..route() };
            let (mut prober, _) = Prober::open(route, &[0], 99, Stop::on_signals().unwrap()).unwrap();
            let at = prober.answers.local_addr().unwrap();
            let other_socket = UdpSocket::bind((to, 0)).unwrap();
            datagrams.iter().for_each(|datagram| drop(other_socket.send_to(datagram, at)));
            let mut out = Vec::new();
            let until = prober.now() + Duration::from_millis(1);
            Network::answers(&mut prober, until, &mut out);
            prop_assert_eq!(out, []);
        }
    }
}
