//! IP packets of other protocols, as a switch parses and modifies them. etherparse builds and
//! checks them.

use std::vec::Vec;

use etherparse::{NetHeaders, PacketBuilder, PacketHeaders};

use crate::Ports;
use crate::checksum::{add, fold};
use crate::offsets::v4;
use crate::switch_view::{Changes, Headers, Parsed, address_words, addresses_v4, parse, parse_foreign, write_foreign};

const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
const V6: [[u8; 16]; 2] = [[0xfd; 16], [0xfe; 16]];
const MAPPED: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2];
const CHANGES: Changes = Changes { ttl: 17, ecn: 3, pause: true };

fn tcp(v6: bool) -> Vec<u8> {
    let ethernet = PacketBuilder::ethernet2(MACS[0], MACS[1]);
    let ip = if v6 { ethernet.ipv6(V6[0], V6[1], 64) } else { ethernet.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64) };
    let mut frame = Vec::new();
    ip.tcp(40_000, 443, 7, 1000).write(&mut frame, &[9; 100]).unwrap();
    frame
}

fn read(frame: &[u8]) -> Headers {
    assert_eq!(parse(frame, Ports::DEFAULT), Parsed::Foreign);
    parse_foreign(frame).unwrap()
}

#[test]
fn packets_of_tcp_have_addresses_and_ports() {
    let headers = read(&tcp(false));
    assert_eq!(headers.destination, address_words(MAPPED));
    assert_eq!((headers.addresses, headers.ports), (addresses_v4([10, 0, 0, 1], [10, 0, 0, 2]), 40_000 << 16 | 443));
    assert_eq!((headers.v6, headers.ttl, headers.bytes), (false, 64, 154));
    // Only packets of this protocol are trimmed.
    assert_eq!(headers.trimmed_len, 0);
    let headers = read(&tcp(true));
    assert_eq!((headers.v6, headers.destination, headers.ports), (true, address_words(V6[1]), 40_000 << 16 | 443));
}

/// All fragments of a packet must take one path; without a transport header no bytes are read as
/// ports.
#[test]
fn fragments_options_and_other_protocols_have_no_ports() {
    for (at, value) in [(v4::FRAGMENT, 0x20), (v4::FRAGMENT + 1, 1), (v4::VERSION_IHL, 0x46), (v4::PROTOCOL, 1)] {
        let mut frame = tcp(false);
        frame[at] = value;
        assert_eq!(read(&frame).ports, 0, "{at}");
    }
    let mut frame = tcp(true);
    frame[crate::offsets::v6::NEXT_HEADER] = 44;
    assert_eq!(read(&frame).ports, 0);
}

#[test]
fn incomplete_ip_packets_are_rejected() {
    for v6 in [false, true] {
        let frame = tcp(v6);
        for len in 0..frame.len() {
            assert_eq!(parse_foreign(&frame[..len]), None, "{len}");
        }
        let mut other = frame;
        other[12..14].copy_from_slice(&[8, 6]);
        assert_eq!(parse_foreign(other.as_slice()), None, "ARP");
    }
}

#[test]
fn only_marks_and_ttl_are_changed() {
    for v6 in [false, true] {
        let before = tcp(v6);
        let mut frame = before.clone();
        write_foreign(frame.as_mut_slice(), v6, &CHANGES).unwrap();
        let headers = read(&frame);
        assert_eq!((headers.ttl, headers.ecn, headers.dscp), (17, 3, 0));
        assert!(v6 || fold(add(0, &frame[v4::VERSION_IHL..v4::UDP])) == 0xffff, "the header's checksum");
        let [old, new] = [&before, &frame].map(|frame| PacketHeaders::from_ethernet_slice(frame).unwrap());
        assert_eq!((old.link, old.transport, old.payload.slice()), (new.link, new.transport, new.payload.slice()));
        let addresses = |net: Option<NetHeaders>| match net.unwrap() {
            NetHeaders::Ipv4(ip, _) => (ip.source.to_vec(), ip.destination.to_vec()),
            NetHeaders::Ipv6(ip, _) => (ip.source.to_vec(), ip.destination.to_vec()),
            NetHeaders::Arp(_) => panic!("arp"),
        };
        assert_eq!(addresses(old.net), addresses(new.net));
    }
}
