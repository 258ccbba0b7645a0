//! Bare frames: counted where somebody asks for them, and nothing else.

use std::collections::HashSet;

use spray_wire::frame::envelop;

use super::hostile::Stranger;
use super::*;
use crate::device::bare::payload;

/// Bytes of a frame.
const BYTES: u32 = 300;

fn ready(rig: &mut Rig) -> bool {
    rig.accepted(1).len() == 1 && !rig.events[0].is_empty()
}

#[test]
fn bare_frames_go_by_all_paths_and_are_counted_where_that_is_asked_for() {
    for v6 in [false, true] {
        let mut rig = Rig::new(2, v6, Impairments::default());
        let ours = rig.connect(0, 1);
        assert!(rig.endpoints[0].bare(ours, 300).is_none(), "the connection is not open");
        assert!(rig.run(US, MS, ready));
        let theirs = rig.accepted(1)[0];
        let [least, most] = rig.endpoints[0].bare_bytes();
        assert!([least - 1, most + 1].iter().all(|&bytes| rig.endpoints[0].bare(ours, bytes).is_none()));
        assert!([least, most].iter().all(|&bytes| rig.endpoints[0].bare(ours, bytes).is_some()));
        let mut counted = |bytes: u32, counts: u32| {
            rig.endpoints[1].count_bare(theirs, counts);
            let before = rig.endpoints[1].stats().malformed;
            let mut bare = rig.endpoints[0].bare(ours, bytes as usize).unwrap();
            for _ in 0..4 {
                assert_eq!(rig.endpoints[0].send_bare(&mut bare, 16), 16);
                rig.run(US, 20 * US, |_| false);
            }
            let frames = rig.endpoints[1].connection_stats(theirs).unwrap().bare_frames;
            (frames, rig.endpoints[1].stats().malformed - before)
        };
        assert_eq!(counted(BYTES, BYTES), (64, 0));
        assert_eq!(counted(BYTES + 1, BYTES), (0, 0), "of another size");
        assert_eq!(counted(BYTES, BYTES), (64, 0));
        assert_eq!(counted(BYTES, 0), (64, 64), "it is no longer asked for");
        rig.audit();
    }
}

/// Every frame is whole: its addresses, its length and the checksum that IPv6 has, whatever its port.
#[test]
fn a_bare_frame_is_a_whole_datagram_from_each_port() {
    for v6 in [false, true] {
        let mut rig = Rig::new(2, v6, Impairments::default());
        let ours = rig.connect(0, 1);
        assert!(rig.run(US, MS, ready));
        let mut bare = rig.endpoints[0].bare(ours, BYTES as usize).unwrap();
        let mut sender = rig.network.attach(mac(7));
        let mut ports = HashSet::new();
        let mut arrivals = Vec::with_capacity(64);
        for turn in 1..=1024 {
            assert_eq!(bare.send(&mut sender, 1), 1);
            sender.flush().unwrap();
            rig.network.advance(rig.now.after(turn * US));
            let device = rig.endpoints[1].device_mut();
            device.receive(&mut arrivals, 64).unwrap();
            for Received { frame, len, .. } in arrivals.drain(..) {
                // The first byte is no version, which is looked at after all that is around it.
                let bytes = device.frame(&frame, len);
                assert_eq!(wire::parse(bytes, wire::Ports::DEFAULT), Err(wire::Error::Version));
                assert!(bytes.ends_with(&[0xba; 200]) && bytes.len() == BYTES as usize);
                let at = wire::offsets::udp_src_port_offset(v6);
                ports.insert(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
                device.release(frame);
            }
            device.flush().unwrap();
        }
        assert_eq!(ports.len(), 1024);
    }
}

#[test]
fn strangers_are_not_counted() {
    let mut rig = Rig::new(2, false, Impairments::default());
    rig.connect(0, 1);
    assert!(rig.run(US, MS, ready));
    let theirs = rig.accepted(1)[0];
    rig.endpoints[1].count_bare(theirs, BYTES);
    let mut stranger = Stranger::new(&rig);
    let mut count = |from: usize, number: u32| {
        let mut frame = vec![0; BYTES as usize];
        frame[42..58].copy_from_slice(&payload(50_000, number, 0));
        let envelope = wire::Envelope {
            src_mac: mac(9),
            dst_mac: mac(1),
            src: address(from, false),
            dst: address(1, false),
            src_port: wire::EvPort::new(50_000),
            dst_port: wire::Ports::DEFAULT.first(),
            dscp: 0,
            ecn: wire::Ecn::NotEct,
            ttl: 64,
        };
        envelop(&mut frame, &envelope, BYTES as usize - 42).unwrap();
        stranger.send_raw(&frame);
        rig.run(US, 20 * US, |_| false);
        (rig.endpoints[1].connection_stats(theirs).unwrap().bare_frames, rig.endpoints[1].stats().malformed)
    };
    assert_eq!(count(5, theirs.raw()), (0, 1), "from another address");
    assert_eq!(count(0, theirs.raw() + 1), (0, 2), "of another connection");
    assert_eq!(count(0, theirs.raw()), (1, 2));
}
