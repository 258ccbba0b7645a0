//! The order of packets within a flow: messages come in any order, packets leave a lane in that of their numbers.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::packet::{LANES, MESSAGE, PACKETS, Place};

/// Packets that may wait for earlier ones. A sender of ours has 256 messages at most between the oldest that is not delivered and the newest.
//= docs/specs/endpoint.md#END-41 At most 8,192 packets
const WAITING: usize = 256 * PACKETS as usize;
/// Bytes that may wait: twice what a sender of ours has under way.
//= docs/specs/endpoint.md#END-41 and 16 MiB wait
const WAITING_BYTES: usize = 16 << 20;

/// What one side sends: the next number of each lane.
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

/// A peer broke the rules: a number came twice, or far too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disorder;

impl Lanes {
    pub fn new() -> Self {
        Self { lanes: vec![Lane::default(); usize::from(LANES)].into(), waiting: 0, waiting_bytes: 0 }
    }

    /// Takes a packet, and hands `out` what its lane can go on with.
    //= docs/specs/endpoint.md#END-41 packets leave it in order
    pub fn take(&mut self, place: Place, packet: Bytes, mut out: impl FnMut(Bytes)) -> Result<(), Disorder> {
        let lane = self.lanes.get_mut(usize::from(place.lane)).ok_or(Disorder)?;
        if place.number != lane.next {
            let is_late = (place.number.wrapping_sub(lane.next) as i32) < 0;
            let is_full = self.waiting == WAITING || self.waiting_bytes + packet.len() > WAITING_BYTES;
            if is_late || is_full || lane.early.contains_key(&place.number) {
                return Err(Disorder);
            }
            self.waiting += 1;
            self.waiting_bytes += packet.len();
            // A short one does not keep its whole message in memory.
            let packet = if packet.len() < MESSAGE / 2 { Bytes::copy_from_slice(&packet) } else { packet };
            lane.early.insert(place.number, packet);
            return Ok(());
        }
        out(packet);
        lane.next = lane.next.wrapping_add(1);
        while let Some(packet) = lane.early.remove(&lane.next) {
            self.waiting -= 1;
            self.waiting_bytes -= packet.len();
            lane.next = lane.next.wrapping_add(1);
            out(packet);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(lanes: &mut Lanes, lane: u16, number: u32) -> Result<Vec<u8>, Disorder> {
        let mut out = Vec::new();
        let message = Bytes::from(vec![lane as u8, number as u8]);
        lanes.take(Place { lane, number }, message, |message| out.push(message[1])).map(|()| out)
    }

    #[test]
    fn a_lane_keeps_its_order_and_waits_for_no_other() {
        let mut lanes = Lanes::new();
        assert_eq!(take(&mut lanes, 3, 1), Ok(vec![]));
        assert_eq!(take(&mut lanes, 4, 0), Ok(vec![0]));
        assert_eq!(take(&mut lanes, 3, 3), Ok(vec![]));
        assert_eq!(take(&mut lanes, 3, 0), Ok(vec![0, 1]));
        assert_eq!(take(&mut lanes, 3, 2), Ok(vec![2, 3]));
        assert_eq!((lanes.waiting, lanes.waiting_bytes), (0, 0));
    }

    #[test]
    fn numbers_begin_again() {
        let (mut numbers, mut lanes) = (Numbers::new(), Lanes::new());
        (numbers.0[0], lanes.lanes[0].next) = (u32::MAX, u32::MAX);
        let places = [numbers.next(0), numbers.next(0)];
        assert_eq!(places.map(|place| place.number), [u32::MAX, 0]);
        assert_eq!(take(&mut lanes, 0, 0), Ok(vec![]));
        assert_eq!(take(&mut lanes, 0, u32::MAX), Ok(vec![255, 0]));
    }

    #[test]
    //= docs/specs/endpoint.md#END-41 ends the connection
    fn what_a_peer_can_have_wait_is_bounded() {
        let mut lanes = Lanes::new();
        assert_eq!(take(&mut lanes, 0, 0), Ok(vec![0]));
        assert_eq!(take(&mut lanes, 0, 0), Err(Disorder), "twice");
        assert_eq!(take(&mut lanes, LANES, 0), Err(Disorder), "no lane");
        for number in 0..WAITING as u32 {
            assert_eq!(take(&mut lanes, (number % 5) as u16, 2 + number), Ok(vec![]));
        }
        assert_eq!(take(&mut lanes, 9, 5), Err(Disorder));
        assert_eq!(take(&mut lanes, 0, 2), Err(Disorder), "twice early");
        let mut long = Lanes::new();
        let mut wait = |number, bytes| long.take(Place { lane: 1, number }, vec![0; bytes].into(), |_| ());
        assert_eq!([wait(1, WAITING_BYTES - 1), wait(2, 2), wait(3, 1)], [Ok(()), Err(Disorder), Ok(())]);
        // Who has let others wait may still go on.
        assert_eq!(take(&mut lanes, 0, 1), Ok(vec![1, 2]));
    }
}
