//! Queue of packets that wait for room in a connection, shared fairly between flows.
//!
//! Deficit round robin with priority for new flows and dropping from the longest: RFC 8290 §4.1 and
//! §4.2, without CoDel. Buffers are swapped in and reused, so nothing is copied or allocated.

use std::collections::VecDeque;

use super::packet::{LANES, PACKET};

/// Limit of packets: the bottleneck queue that TCP sees.
const MOST: usize = 128;
/// Bytes of a turn.
const QUANTUM: i64 = 3000;

#[derive(Debug)]
pub struct FairQueue {
    flows: Box<[Flow]>,
    /// Lanes by turn: those that were empty before, and the others.
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    places: Vec<(Box<[u8]>, usize)>,
    free: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    waiting: VecDeque<u8>,
    bytes: usize,
    deficit: i64,
    has_turn: bool,
}

impl FairQueue {
    pub fn new() -> Self {
        let flows = vec![Flow::default(); usize::from(LANES)].into();
        Self { flows, new: VecDeque::new(), old: VecDeque::new(), places: Vec::new(), free: Vec::new() }
    }

    /// Leaves another buffer. Returns whether a packet was dropped.
    pub fn push(&mut self, lane: u16, buffer: &mut Box<[u8]>, bytes: usize) -> bool {
        let is_full = self.free.is_empty() && self.places.len() == MOST;
        if is_full {
            self.drop_longest();
        } else if self.free.is_empty() {
            self.free.push(self.places.len() as u8);
            self.places.push((vec![0; PACKET].into(), 0));
        }
        let Some(place) = self.free.pop() else { return true };
        let (kept, length) = &mut self.places[usize::from(place)];
        std::mem::swap(kept, buffer);
        *length = bytes;
        let flow = &mut self.flows[usize::from(lane)];
        flow.waiting.push_back(place);
        flow.bytes += bytes;
        if !std::mem::replace(&mut flow.has_turn, true) {
            flow.deficit = QUANTUM;
            self.new.push_back(lane);
        }
        is_full
    }

    pub fn pop(&mut self) -> Option<(u16, &[u8])> {
        loop {
            let is_new = !self.new.is_empty();
            let turns = if is_new { &mut self.new } else { &mut self.old };
            let lane = *turns.front()?;
            let flow = &mut self.flows[usize::from(lane)];
            if flow.deficit > 0
                && let Some(place) = flow.waiting.pop_front()
            {
                let (buffer, bytes) = &self.places[usize::from(place)];
                flow.deficit -= *bytes as i64;
                flow.bytes -= bytes;
                self.free.push(place);
                return Some((lane, &buffer[..*bytes]));
            }
            turns.pop_front();
            // It must not always be new (RFC 8290 §4.2).
            if flow.deficit > 0 && !is_new {
                flow.has_turn = false;
                continue;
            }
            flow.deficit = if flow.deficit > 0 { flow.deficit } else { flow.deficit + QUANTUM };
            self.old.push_back(lane);
        }
    }

    fn drop_longest(&mut self) {
        let longest = self.new.iter().chain(&self.old).max_by_key(|lane| self.flows[usize::from(**lane)].bytes);
        let Some(flow) = longest.map(|lane| &mut self.flows[usize::from(*lane)]) else { return };
        let Some(place) = flow.waiting.pop_front() else { return };
        flow.bytes -= self.places[usize::from(place)].1;
        self.free.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut FairQueue, lane: u16, number: u8, bytes: usize) -> bool {
        let mut buffer: Box<[u8]> = vec![number; PACKET].into();
        queue.push(lane, &mut buffer, bytes)
    }

    fn pop(queue: &mut FairQueue) -> Option<(u16, u8, usize)> {
        queue.pop().map(|(lane, packet)| (lane, packet[0], packet.len()))
    }

    #[test]
    fn a_small_packet_does_not_wait_behind_a_stream() {
        let mut queue = FairQueue::new();
        (0..10).for_each(|number| assert!(!push(&mut queue, 1, number, 60_000)));
        assert_eq!(pop(&mut queue), Some((1, 0, 60_000)));
        push(&mut queue, 2, 0, 100);
        push(&mut queue, 3, 0, 100);
        assert_eq!([pop(&mut queue), pop(&mut queue)], [Some((2, 0, 100)), Some((3, 0, 100))]);
        // The packets of one flow keep their order.
        let rest: Vec<_> = std::iter::from_fn(|| pop(&mut queue)).map(|(_, number, _)| number).collect();
        assert_eq!(rest, (1..10).collect::<Vec<_>>());
        assert!(queue.new.is_empty() && queue.old.is_empty() && queue.free.len() == queue.places.len());
    }

    #[test]
    fn flows_get_the_same_bytes() {
        let (mut queue, mut sent) = (FairQueue::new(), [0_usize; 3]);
        let bytes = [60_000, 1500, 200];
        assert!((0..30).all(|turn| !push(&mut queue, turn % 3, 0, bytes[usize::from(turn % 3)])));
        for _ in 0..30_000 {
            let (lane, _, bytes) = pop(&mut queue).unwrap();
            sent[usize::from(lane)] += bytes;
            push(&mut queue, lane, 0, bytes);
        }
        let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
        assert!(*least > 1_000_000 && most - least < 70_000, "{sent:?}");
    }

    #[test]
    fn a_full_queue_drops_from_the_longest_flow() {
        let mut queue = FairQueue::new();
        assert!((0..20).all(|lane| !push(&mut queue, 10 + lane, 0, 100)));
        let dropped = (0..200).filter(|number| push(&mut queue, 1, *number, 1500)).count();
        assert_eq!((dropped, queue.places.len()), (200 + 20 - MOST, MOST));
        let all: Vec<_> = std::iter::from_fn(|| pop(&mut queue)).collect();
        assert_eq!(all.iter().filter(|(lane, ..)| *lane >= 10).count(), 20);
        // The oldest packets of that flow were dropped.
        assert!(
            all.iter().any(|packet| packet.1 == 199) && !all.iter().any(|(lane, number, _)| (*lane, *number) == (1, 0))
        );
        push(&mut queue, 1, 7, 100);
        while queue.pop().is_some() {}
        assert_eq!(pop(&mut queue), None);
    }
}
