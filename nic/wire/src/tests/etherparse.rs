//! Cross-checks with etherparse, an independent codec, in both directions.

use std::vec::Vec;

use etherparse::{
    IpDscp, IpEcn, IpHeaders, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, NetHeaders, PacketBuilder,
    PacketHeaders, TransportHeader, UdpHeader,
};
use proptest::prelude::*;

use super::samples::*;
use crate::offsets::udp_payload_offset;
use crate::switch_view::{Changes, trim, write as write_changes};
use crate::*;

fn octets(address: core::net::IpAddr) -> Vec<u8> {
    match address {
        core::net::IpAddr::V4(address) => address.octets().to_vec(),
        core::net::IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Parses a frame with etherparse and checks every field before the spray header.
fn check_read(frame: &[u8], e: &Envelope) {
    let headers = PacketHeaders::from_ethernet_slice(frame).unwrap();
    let ethernet = headers.link.unwrap().ethernet2().unwrap();
    assert_eq!((ethernet.source, ethernet.destination), (e.src_mac, e.dst_mac));
    let Some(TransportHeader::Udp(udp)) = headers.transport else { panic!("no udp header") };
    let payload = headers.payload.slice();
    assert_eq!(payload, &frame[udp_payload_offset(e.is_v6())..]);
    assert_eq!((udp.source_port, udp.destination_port), (e.src_port.number(), e.dst_port));
    assert_eq!(usize::from(udp.length), 8 + payload.len());
    match headers.net.unwrap() {
        NetHeaders::Ipv4(ip, _) => check_v4(&ip, &udp, e, payload.len()),
        NetHeaders::Ipv6(ip, _) => check_v6(&ip, &udp, e, payload),
        NetHeaders::Arp(_) => panic!("arp"),
    }
}

fn check_v4(ip: &Ipv4Header, udp: &UdpHeader, e: &Envelope, payload_bytes: usize) {
    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
    assert_eq!((ip.dscp.value(), ip.ecn.value(), ip.time_to_live), (e.dscp, e.ecn as u8, e.ttl));
    assert_eq!((&ip.source[..], &ip.destination[..]), (&octets(e.src)[..], &octets(e.dst)[..]));
    assert_eq!(usize::from(ip.total_len), 28 + payload_bytes);
    assert!(ip.dont_fragment && !ip.more_fragments && ip.options.is_empty());
    assert_eq!((ip.protocol, udp.checksum), (IpNumber::UDP, 0));
}

fn check_v6(ip: &Ipv6Header, udp: &UdpHeader, e: &Envelope, payload: &[u8]) {
    assert_eq!((ip.traffic_class, ip.hop_limit), (e.dscp << 2 | e.ecn as u8, e.ttl));
    assert_eq!((&ip.source[..], &ip.destination[..]), (&octets(e.src)[..], &octets(e.dst)[..]));
    //= docs/specs/wire.md#WIRE-13 EVs and ports
    assert_eq!((ip.next_header, ip.flow_label.value()), (IpNumber::UDP, e.src_port.number().into()));
    assert_eq!(udp.checksum, udp.calc_checksum_ipv6(ip, payload).unwrap());
}

/// Writes the headers before `ours` with etherparse, over IPv4 with a UDP checksum.
fn write(e: &Envelope, ours: &[u8]) -> Vec<u8> {
    let ip = match (e.src, e.dst) {
        (core::net::IpAddr::V4(src), core::net::IpAddr::V4(dst)) => {
            let mut ip = Ipv4Header::new(0, e.ttl, IpNumber::UDP, src.octets(), dst.octets()).unwrap();
            ip.dscp = IpDscp::try_new(e.dscp).unwrap();
            ip.ecn = IpEcn::try_new(e.ecn as u8).unwrap();
            ip.identification = 4711;
            IpHeaders::Ipv4(ip, Default::default())
        }
        _ => {
            let ip = Ipv6Header {
                traffic_class: e.dscp << 2 | e.ecn as u8,
                flow_label: Ipv6FlowLabel::try_new(0xabcde).unwrap(),
                payload_length: 0,
                next_header: IpNumber::UDP,
                hop_limit: e.ttl,
                source: octets(e.src).try_into().unwrap(),
                destination: octets(e.dst).try_into().unwrap(),
            };
            IpHeaders::Ipv6(ip, Default::default())
        }
    };
    let builder = PacketBuilder::ethernet2(e.src_mac, e.dst_mac).ip(ip).udp(e.src_port.number(), e.dst_port);
    let mut out = Vec::new();
    builder.write(&mut out, ours).unwrap();
    out
}

proptest! {
    #[test]
    fn etherparse_reads_our_frames(e in any_envelope(), c in any_common(), (body, payload) in any_body()) {
        check_read(&build(&e, &c, &body, &payload), &e);
    }

    #[test]
    fn we_read_frames_of_etherparse(e in any_envelope(), c in any_common(), (body, payload) in any_body()) {
        let frame = build(&e, &c, &body, &payload);
        let theirs = write(&e, &frame[udp_payload_offset(e.is_v6())..]);
        prop_assert_eq!(parse(&theirs, Ports::DEFAULT), parse(&frame, Ports::DEFAULT));
    }

    #[test]
    fn etherparse_reads_frames_rewritten_by_a_switch(e in any_envelope(), c in any_common(), ttl: u8) {
        let (body, payload) = bodies().swap_remove(0);
        let mut frame = build(&e, &c, &body, &payload);
        let changes = Changes { ttl, ecn: e.ecn as u8, pause: false };
        write_changes(frame.as_mut_slice(), e.is_v6(), &changes).unwrap();
        let e = Envelope { ttl, dscp: if e.dscp == DSCP_PAUSE { DSCP_CONTROL } else { e.dscp }, ..e };
        check_read(&frame, &e);
        let len = trim(&mut frame, Ports::DEFAULT).unwrap();
        check_read(&frame[..len], &Envelope { dscp: DSCP_TRIMMED, ..e });
    }
}
