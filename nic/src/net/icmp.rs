//! ICMP errors of peers and routers in response to spray frames.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};
use spray_wire::Ports;

use crate::sys::set_option;

/// A raw socket that receives ICMP errors about frames from an address to one of some ports.
#[derive(Debug)]
pub struct IcmpErrors {
    socket: UdpSocket,
    own: IpAddr,
    ports: Ports,
}

/// An ICMP error: *destination unreachable*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// Its sender: the peer, or a router or firewall on the path.
    pub by: IpAddr,
    /// The destination of the frame.
    pub to: IpAddr,
    /// The reason.
    pub why: &'static str,
}

impl Unreachable {
    /// Decodes type and code of ICMP or ICMPv6; `None` unless *destination unreachable*.
    pub fn new(by: IpAddr, to: IpAddr, kind: u8, code: u8) -> Option<Self> {
        let unreachable = if by.is_ipv4() { UNREACHABLE_V4 } else { UNREACHABLE_V6 };
        (kind == unreachable).then(|| Self { by, to, why: why(by.is_ipv4(), code) })
    }
}

const UNREACHABLE_V4: u8 = 3;
const UNREACHABLE_V6: u8 = 1;
/// Socket options of `linux/icmp.h` and `linux/icmpv6.h`: types to discard.
const ICMP_FILTER: i32 = 1;
const ICMPV6_FILTER: i32 = 1;
const SOL_RAW: i32 = 255;
const ICMP_BYTES: usize = 8;

impl IcmpErrors {
    /// Opens the socket. Needs CAP_NET_RAW.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn open(own: IpAddr, ports: Ports) -> io::Result<Self> {
        let protocol = if own.is_ipv4() { Protocol::ICMPV4 } else { Protocol::ICMPV6 };
        let socket = Socket::new(Domain::for_address((own, 0).into()), Type::RAW, Some(protocol))?;
        if own.is_ipv4() {
            set_option(&socket, SOL_RAW, ICMP_FILTER, !(1u32 << UNREACHABLE_V4))?;
        } else {
            let mut unwanted = [u32::MAX; 8];
            unwanted[0] &= !(1 << UNREACHABLE_V6);
            set_option(&socket, libc::IPPROTO_ICMPV6, ICMPV6_FILTER, unwanted)?;
        }
        socket.set_nonblocking(true)?;
        Ok(Self { socket: socket.into(), own, ports })
    }

    /// Returns the next error that has arrived, if any.
    pub fn poll(&self) -> Option<Unreachable> {
        let mut message = [0; 128];
        while let Ok((bytes, from)) = self.socket.recv_from(&mut message) {
            if let Some((to, why)) = refused(&message[..bytes], self.own, self.ports) {
                return Some(Unreachable { by: from.ip(), to, why });
            }
        }
        None
    }
}

/// Returns the destination of the frame from `own` to one of `ports` that a message quotes, and the
/// reason. IPv4 messages include the IP header.
fn refused(message: &[u8], own: IpAddr, ports: Ports) -> Option<(IpAddr, &'static str)> {
    let icmp = if own.is_ipv4() { message.get(header_bytes(message)?..)? } else { message };
    let (&[kind, code, ..], quoted) = icmp.split_first_chunk::<ICMP_BYTES>()?;
    let (from, to, udp): (IpAddr, IpAddr, _) = if own.is_ipv4() {
        let head = quoted.first_chunk::<20>()?;
        let [.., a, b, c, d, e, f, g, h] = *head;
        let is_udp = kind == UNREACHABLE_V4 && head[9] == 17;
        let udp = quoted.get(header_bytes(quoted)?..).filter(|_| is_udp)?;
        (Ipv4Addr::new(a, b, c, d).into(), Ipv4Addr::new(e, f, g, h).into(), udp)
    } else {
        let (head, udp) = quoted.split_first_chunk::<40>()?;
        let address = |at: usize| Some(Ipv6Addr::from(*head.get(at..)?.first_chunk::<16>()?));
        (address(8)?.into(), address(24)?.into(), Some(udp).filter(|_| kind == UNREACHABLE_V6 && head[6] == 17)?)
    };
    let port = u16::from_be_bytes([*udp.get(2)?, *udp.get(3)?]);
    (from == own && ports.contain(port)).then(|| (to, why(own.is_ipv4(), code)))
}

fn header_bytes(packet: &[u8]) -> Option<usize> {
    Some(usize::from(packet.first()? & 0xf) * 4)
}

fn why(v4: bool, code: u8) -> &'static str {
    match (v4, code) {
        (true, 3) | (false, 4) => "no program receives at its UDP port, or a firewall rejects it",
        (true, 9 | 10 | 13) | (false, 1 | 5) => "a firewall or a route prohibits it",
        (true, 0 | 6) | (false, 0 | 6) => "there is no route",
        (true, 1 | 7) | (false, 3) => "the host does not answer there",
        _ => "it is unreachable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icmp_errors_about_our_frames_are_recognised() {
        let (own, peer) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let message = |kind: u8, code: u8, protocol: u8, from: [u8; 4], port: u16| {
            let mut quoted = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
            quoted.extend([from, peer].as_flattened());
            quoted.extend([50_000u16, port, 100, 0].map(u16::to_be_bytes).as_flattened());
            let outer = [&[0x46][..], &[0; 23]].concat();
            let all = [&outer[..], &[kind, code, 0, 0, 0, 0, 0, 0], &quoted].concat();
            refused(&all, own.into(), Ports::DEFAULT)
        };
        assert_eq!(message(3, 3, 17, own, 61_440), Some((peer.into(), why(true, 3))));
        assert_eq!(message(3, 13, 17, own, 61_503), Some((peer.into(), "a firewall or a route prohibits it")));
        assert_eq!(message(3, 3, 17, own, 53), None);
        assert_eq!(message(3, 3, 6, own, 61_440), None);
        assert_eq!(message(11, 0, 17, own, 61_440), None);
        assert_eq!(message(3, 3, 17, peer, 61_440), None);
        let own: Ipv6Addr = "fd00::1".parse().unwrap();
        let peer: Ipv6Addr = "fd00::2".parse().unwrap();
        let mut quoted = vec![1, 4, 0, 0, 0, 0, 0, 0, 0x60, 0, 0, 0, 0, 8, 17, 64];
        quoted.extend([own.octets(), peer.octets()].as_flattened());
        quoted.extend([0xc3, 0x50, 0xf0, 0, 0, 0, 0, 0]);
        assert_eq!(refused(&quoted, own.into(), Ports::DEFAULT), Some((peer.into(), why(false, 4))));
        for cut in 0..quoted.len() - 4 {
            assert_eq!(refused(&quoted[..cut], own.into(), Ports::DEFAULT), None);
        }
    }
}
