//! Restores the order of packets within flows.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::packet::{LANES, MESSAGE, PACKETS, Place};

/// Our senders have at most 256 messages outstanding.
//= docs/specs/endpoint.md#END-41 At most 8,192 packets
const WAITING: usize = 256 * PACKETS as usize;
/// Twice what our senders have outstanding.
//= docs/specs/endpoint.md#END-41 and 16 MiB wait
const WAITING_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub struct Numbers(Box<[u32]>);

impl Numbers {
    pub fn new() -> Self {
        Self(vec![0; usize::from(LANES)].into())
    }

    pub fn next(&mut self, lane: u16) -> Place {
        let next = &mut self.0[usize::from(lane)];
        let number = *next;
        *next = next.wrapping_add(1);
        Place { lane, number }
    }
}

#[derive(Debug)]
pub struct Lanes {
    lanes: Box<[Lane]>,
    waiting: usize,
    waiting_bytes: usize,
}

#[derive(Clone, Debug, Default)]
struct Lane {
    next: u32,
    early: BTreeMap<u32, Bytes>,
}

impl Lanes {
    pub fn new() -> Self {
        Self { lanes: vec![Lane::default(); usize::from(LANES)].into(), waiting: 0, waiting_bytes: 0 }
    }

    /// `None` if a number came twice, or too early.
    //= docs/specs/endpoint.md#END-41 packets leave it in order
    pub fn take(&mut self, place: Place, packet: Bytes, mut out: impl FnMut(Bytes)) -> Option<()> {
        let lane = self.lanes.get_mut(usize::from(place.lane))?;
        if place.number != lane.next {
            let is_late = (place.number.wrapping_sub(lane.next) as i32) < 0;
            let is_full = self.waiting == WAITING || self.waiting_bytes + packet.len() > WAITING_BYTES;
            if is_late || is_full || lane.early.contains_key(&place.number) {
                return None;
            }
            self.waiting += 1;
            self.waiting_bytes += packet.len();
            // It must not keep its whole message in memory.
            let packet = if packet.len() < MESSAGE / 2 { Bytes::copy_from_slice(&packet) } else { packet };
            lane.early.insert(place.number, packet);
            return Some(());
        }
        out(packet);
        lane.next = lane.next.wrapping_add(1);
        while let Some(packet) = lane.early.remove(&lane.next) {
            self.waiting -= 1;
            self.waiting_bytes -= packet.len();
            lane.next = lane.next.wrapping_add(1);
            out(packet);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(lanes: &mut Lanes, lane: u16, number: u32) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let message = Bytes::from(vec![lane as u8, number as u8]);
        lanes.take(Place { lane, number }, message, |message| out.push(message[1])).map(|()| out)
    }

    #[test]
    fn a_lane_keeps_its_order_and_waits_for_no_other() {
        let mut lanes = Lanes::new();
        assert_eq!(take(&mut lanes, 3, 1), Some(vec![]));
        assert_eq!(take(&mut lanes, 4, 0), Some(vec![0]));
        assert_eq!(take(&mut lanes, 3, 3), Some(vec![]));
        assert_eq!(take(&mut lanes, 3, 0), Some(vec![0, 1]));
        assert_eq!(take(&mut lanes, 3, 2), Some(vec![2, 3]));
        assert_eq!((lanes.waiting, lanes.waiting_bytes), (0, 0));
    }

    #[test]
    fn packet_numbers_wrap() {
        let (mut numbers, mut lanes) = (Numbers::new(), Lanes::new());
        (numbers.0[0], lanes.lanes[0].next) = (u32::MAX, u32::MAX);
        let places = [numbers.next(0), numbers.next(0)];
        assert_eq!(places.map(|place| place.number), [u32::MAX, 0]);
        assert_eq!(take(&mut lanes, 0, 0), Some(vec![]));
        assert_eq!(take(&mut lanes, 0, u32::MAX), Some(vec![255, 0]));
    }

    #[test]
    //= docs/specs/endpoint.md#END-41 ends the connection
    fn packets_out_of_order_are_bounded() {
        let mut lanes = Lanes::new();
        assert_eq!(take(&mut lanes, 0, 0), Some(vec![0]));
        assert_eq!(take(&mut lanes, 0, 0), None, "twice");
        assert_eq!(take(&mut lanes, LANES, 0), None, "invalid lane");
        for number in 0..WAITING as u32 {
            assert_eq!(take(&mut lanes, (number % 5) as u16, 2 + number), Some(vec![]));
        }
        assert_eq!(take(&mut lanes, 9, 5), None);
        assert_eq!(take(&mut lanes, 0, 2), None, "twice, out of order");
        let mut long = Lanes::new();
        let mut wait = |number, bytes| long.take(Place { lane: 1, number }, vec![0; bytes].into(), |_| ());
        assert_eq!([wait(1, WAITING_BYTES - 1), wait(2, 2), wait(3, 1)], [Some(()), None, Some(())]);
        // A lane with packets out of order still accepts the next one.
        assert_eq!(take(&mut lanes, 0, 1), Some(vec![1, 2]));
    }
}
