//! Completes partial checksums: frames from a veth have not passed a NIC that would do so.

use spray_wire::checksum::{add, fold, udp};
use spray_wire::offsets::{ETHERNET_BYTES, ETHERTYPE, ETHERTYPE_V4, ETHERTYPE_V6, PROTOCOL_UDP, v4, v6};

const PROTOCOL_TCP: u8 = 6;

/// Completes the checksum of an unfragmented TCP segment or UDP datagram that only holds its
/// pseudo-header's sum (`CHECKSUM_PARTIAL`). An equal complete checksum does not change.
pub(super) fn complete(frame: &mut [u8]) {
    let Some((protocol, at, end, sum)) = segment(frame) else { return };
    let place = at + if protocol == PROTOCOL_UDP { 6 } else { 16 };
    let Some(present) = frame.get(place..place + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]])) else {
        return;
    };
    if end > frame.len() || place + 2 > end || present != fold(sum) {
        return;
    }
    frame[place..place + 2].fill(0);
    let whole = !fold(add(sum, &frame[at..end]));
    let whole = if protocol == PROTOCOL_UDP { udp(whole) } else { whole };
    frame[place..place + 2].copy_from_slice(&whole.to_be_bytes());
}

/// The protocol, the start and end of a frame's segment, and the sum of its pseudo-header.
fn segment(frame: &[u8]) -> Option<(u8, usize, usize, u64)> {
    let u16_at = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let (protocol, at, end, addresses) = match u16_at(ETHERTYPE)? {
        ETHERTYPE_V4 if u16_at(v4::FRAGMENT)? & v4::FRAGMENT_MASK == 0 => {
            let header = usize::from(frame.get(v4::VERSION_IHL)? & 15) * 4;
            let end = ETHERNET_BYTES + usize::from(u16_at(v4::TOTAL_LENGTH)?);
            (*frame.get(v4::PROTOCOL)?, ETHERNET_BYTES + header, end, frame.get(v4::SRC..v4::DST + 4)?)
        }
        ETHERTYPE_V6 => {
            let end = v6::UDP + usize::from(u16_at(v6::PAYLOAD_LENGTH)?);
            (*frame.get(v6::NEXT_HEADER)?, v6::UDP, end, frame.get(v6::SRC..v6::DST + 16)?)
        }
        _ => return None,
    };
    if protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP {
        return None;
    }
    let bytes = end.checked_sub(at)?;
    Some((protocol, at, end, add(u64::from(protocol) + bytes as u64, addresses)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a TCP or UDP frame with an odd payload, whose checksum field holds the sum of the
    /// pseudo-header.
    fn begun(is_v6: bool, protocol: u8) -> (Vec<u8>, usize) {
        let header = if protocol == PROTOCOL_UDP { 8 } else { 20 };
        let segment = header + 33;
        let mut frame = vec![0x5a; ETHERNET_BYTES];
        if is_v6 {
            frame[12..14].copy_from_slice(&[0x86, 0xdd]);
            frame.extend([0x60, 0, 0, 0, 0, segment as u8, protocol, 64]);
            frame.extend(0..32);
        } else {
            frame[12..14].copy_from_slice(&[8, 0]);
            frame.extend([0x45, 0, 0, 20 + segment as u8, 0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        }
        let at = frame.len();
        frame.extend((0..segment).map(|n| n as u8));
        // The length field of UDP, which the checksum covers, is irrelevant here.
        let place = at + if protocol == PROTOCOL_UDP { 6 } else { 16 };
        let sum = fold(super::segment(&frame).unwrap().3);
        frame[place..place + 2].copy_from_slice(&sum.to_be_bytes());
        // The padding of a short frame.
        frame.extend([0xff; 3]);
        (frame, place)
    }

    #[test]
    fn partial_checksums_are_completed_and_complete_ones_unchanged() {
        for (is_v6, protocol) in [(false, 6), (false, 17), (true, 6), (true, 17)] {
            let (mut frame, place) = begun(is_v6, protocol);
            complete(&mut frame);
            let (_, at, end, sum) = segment(&frame).unwrap();
            assert_eq!(fold(add(sum, &frame[at..end])), 0xffff, "a receiver's check, {protocol}, IPv6 {is_v6}");
            let whole = frame.clone();
            complete(&mut frame);
            assert_eq!(frame, whole);
            frame[place] ^= 1;
            let wrong = frame.clone();
            complete(&mut frame);
            assert_eq!(frame, wrong, "a corrupted checksum stays invalid");
        }
    }

    #[test]
    fn unsupported_frames_are_unchanged() {
        let (frame, _) = begun(false, 17);
        for len in 0..frame.len() {
            let mut cut = frame[..len].to_vec();
            complete(&mut cut);
            if len < frame.len() - 3 {
                assert_eq!(cut, frame[..len], "{len}");
            }
        }
        let mut fragment = frame.clone();
        fragment[20] = 0x20;
        let before = fragment.clone();
        complete(&mut fragment);
        assert_eq!(fragment, before);
    }
}
