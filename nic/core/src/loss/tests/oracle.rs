//! The naive model of the scoreboard: a list of packets that is searched linearly.

use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::prelude::*;

use super::super::{Lost, Scoreboard};
use crate::Time;
use crate::feedback::{Ev, LossCause};

#[derive(Clone, Copy, Debug)]
pub enum Op {
    Send(u8),
    SendLost,
    Cumulative(u16),
    Selective(u16, [u64; 4]),
    Timeout,
    Trimmed(u16),
}

pub fn op() -> impl Strategy<Value = Op> {
    let sparse = prop::array::uniform4(prop_oneof![Just(0), any::<u64>(), any::<u64>().prop_map(|b| b & 0x1111)]);
    prop_oneof![
        6 => (1..20u8).prop_map(Op::Send),
        2 => Just(Op::SendLost),
        1 => (0..80u16).prop_map(Op::Cumulative),
        3 => (0..300u16, sparse).prop_map(|(base, bits)| Op::Selective(base, bits)),
        2 => Just(Op::Timeout),
        1 => (0..80u16).prop_map(Op::Trimmed),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Outstanding,
    Lost,
    Acked,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    is: Is,
    order: u64,
}

pub struct Oracle {
    packets: BTreeMap<u64, Packet>,
    /// Orders of transmissions that arrived: acknowledged or trimmed.
    arrived: Vec<u64>,
    lost: Vec<u64>,
    cumulative: u64,
    next: u64,
    transmissions: u64,
    capacity: u64,
}

impl Oracle {
    pub fn new(capacity: u64) -> Self {
        let (packets, arrived, lost) = Default::default();
        Self { packets, arrived, lost, cumulative: 0, next: 0, transmissions: 0, capacity }
    }

    pub fn apply(&mut self, board: &mut Scoreboard, now: Time, op: Op) {
        match op {
            Op::Send(count) => (0..count).for_each(|_| self.send(board, now)),
            Op::SendLost => self.send_lost(board, now),
            Op::Cumulative(ahead) => self.acknowledge(board, self.cumulative + u64::from(ahead), 0, [0; 4]),
            // Up to 100 below the cumulative number, so that old and straddling bitmaps occur.
            Op::Selective(ahead, bits) => {
                self.acknowledge(board, 0, (self.cumulative + u64::from(ahead)).saturating_sub(100), bits);
            }
            Op::Timeout => {
                if let Some(psn) = self.oldest() {
                    self.lose(board, psn, LossCause::Timeout);
                }
            }
            Op::Trimmed(ahead) => self.lose(board, self.cumulative + u64::from(ahead), LossCause::Trimmed),
        }
    }

    fn send(&mut self, board: &mut Scoreboard, now: Time) {
        if self.next - self.cumulative == self.capacity {
            return;
        }
        assert_eq!(board.send_new(now, Ev::new(self.next as u16), 0, 1, 2), self.next);
        self.packets.insert(self.next, Packet { is: Is::Outstanding, order: self.transmissions });
        self.next += 1;
        self.transmissions += 1;
    }

    fn send_lost(&mut self, board: &mut Scoreboard, now: Time) {
        let sent = board.send_lost(now, Ev::new(0), 0).map(|(psn, _)| psn);
        let expected = (!self.lost.is_empty()).then(|| self.lost.remove(0));
        assert_eq!(sent, expected);
        if let Some(psn) = sent {
            self.packets.insert(psn, Packet { is: Is::Outstanding, order: self.transmissions });
            self.transmissions += 1;
        }
    }

    fn lose(&mut self, board: &mut Scoreboard, psn: u64, cause: LossCause) {
        let place = if cause == LossCause::Trimmed { Lost::First } else { Lost::Last };
        let packet = self.packets.get(&psn).copied();
        let outstanding = packet.filter(|packet| packet.is == Is::Outstanding);
        assert_eq!(board.on_lost(psn, cause, place), outstanding.is_some());
        let Some(packet) = outstanding else { return };
        self.packets.insert(psn, Packet { is: Is::Lost, ..packet });
        match place {
            Lost::First => self.lost.insert(0, psn),
            Lost::Last => self.lost.push(psn),
        }
        if cause == LossCause::Trimmed {
            self.arrived.push(packet.order);
        }
    }

    fn acknowledge(&mut self, board: &mut Scoreboard, cumulative: u64, base: u64, bits: [u64; 4]) {
        let mut settled = Vec::new();
        board.settle(cumulative, base, &bits, &mut |packet| settled.push(packet.psn));
        let mut expected = Vec::new();
        for psn in self.cumulative..self.next {
            let selected =
                psn >= base && psn < base + 256 && bits[((psn - base) / 64) as usize] >> ((psn - base) % 64) & 1 == 1;
            let packet = self.packets[&psn];
            if packet.is != Is::Acked && (psn < cumulative || selected) {
                expected.push(psn);
                if packet.is == Is::Outstanding {
                    self.arrived.push(packet.order);
                }
                self.lost.retain(|&lost| lost != psn);
                self.packets.insert(psn, Packet { is: Is::Acked, ..packet });
            }
        }
        settled.sort_unstable();
        assert_eq!(settled, expected);
        while self.packets.get(&self.cumulative).is_some_and(|packet| packet.is == Is::Acked) {
            self.packets.remove(&self.cumulative);
            self.cumulative += 1;
        }
    }

    fn outstanding(&self) -> impl Iterator<Item = (u64, Packet)> {
        self.packets.iter().map(|(&psn, &packet)| (psn, packet)).filter(|(_, packet)| packet.is == Is::Outstanding)
    }

    fn oldest(&self) -> Option<u64> {
        self.outstanding().min_by_key(|(_, packet)| packet.order).map(|(psn, _)| psn)
    }

    pub fn compare(&self, board: &Scoreboard) {
        assert_eq!(board.cumulative(), self.cumulative);
        assert_eq!(board.next_psn(), self.next);
        assert_eq!(board.outstanding() as usize, self.outstanding().count());
        assert_eq!(board.lost() as usize, self.lost.len());
        assert_eq!(board.oldest().map(|(psn, _)| psn), self.oldest());
        assert_eq!(board.first_lost().map(|(psn, _)| psn), self.lost.first().copied());
        let after = self.oldest().map_or(0, |psn| {
            let order = self.packets[&psn].order;
            self.arrived.iter().filter(|&&arrived| arrived > order).count()
        });
        assert_eq!(board.oldest().map_or(0, |(_, record)| board.arrived_after(record)), after as u64);
    }
}
