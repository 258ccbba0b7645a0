//! Packets in flight: acknowledged numbers as bitmaps, outstanding transmissions in their order.
//!
//! Every packet sequence number (PSN) from the cumulative acknowledgement to the next one to send
//! has a slot: *outstanding* (in flight), *lost* (waits for retransmission) or acknowledged. Lists
//! in order of transmission and of loss run through the records, so everything is O(1) per packet.
//! Packet path: T3 and R5 of `docs/architecture.md`.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::Backoff;
use super::bits::{Bits, ones};
use super::record::{List, PacketState, Record};
use crate::Time;
use crate::feedback::{Ev, LossCause};

#[derive(Clone, Copy, Debug)]
pub struct Settled {
    pub psn: u64,
    pub record: Record,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    First,
    Last,
}

const FIRST_RECORDS: usize = 64;

#[derive(Clone, Debug)]
pub struct Scoreboard {
    /// A power of two of them, which doubles up to `capacity`.
    records: Box<[Record]>,
    capacity: u32,
    /// Acknowledged numbers above `cumulative`, and their count.
    acked: Bits,
    acked_ahead: u32,
    cumulative: u64,
    next_psn: u64,
    transmissions: u64,
    /// One more than the order of the latest acknowledged transmission of packets sent once.
    acked_end: u64,
    outstanding: List,
    lost: List,
}

impl Scoreboard {
    /// Creates a scoreboard for `packets`, rounded up to a power of two of at least 64.
    pub fn new(packets: u32) -> Self {
        Self {
            records: vec![Record::default(); FIRST_RECORDS].into_boxed_slice(),
            capacity: packets.clamp(FIRST_RECORDS as u32, 1 << 20).next_power_of_two(),
            acked: Bits::new(packets),
            acked_ahead: 0,
            cumulative: 0,
            next_psn: 0,
            transmissions: 0,
            acked_end: 0,
            outstanding: List::EMPTY,
            lost: List::EMPTY,
        }
    }

    /// Records the transmission of a new packet and returns its number. Needs `span < capacity`.
    #[inline]
    pub fn send_new(&mut self, now: Time, ev: Ev, backoff: Backoff, message: u16, payload_bytes: u16) -> u64 {
        debug_assert!(self.span() < self.capacity());
        if self.span() == self.records.len() as u64 {
            self.grow();
        }
        let psn = self.next_psn;
        let slot = self.slot(psn);
        self.next_psn += 1;
        let record = &mut self.records[slot as usize];
        (record.message, record.payload_bytes) = (message, payload_bytes);
        self.transmit(slot, now, ev, backoff, PacketState::OUTSTANDING);
        psn
    }

    #[cfg(test)]
    pub(crate) fn start_at(&mut self, psn: u64) {
        (self.cumulative, self.next_psn) = (psn, psn);
    }

    #[cfg(any(test, feature = "lab"))]
    /// Skips the next number, which is never sent. All packets sent must be acknowledged.
    pub fn skip(&mut self) -> u64 {
        debug_assert!(self.span() == 0);
        let psn = self.next_psn;
        self.next_psn += 1;
        self.cumulative = self.next_psn;
        psn
    }

    /// Records the retransmission of the first lost packet. Returns its number and loss cause.
    #[inline]
    pub fn send_lost(&mut self, now: Time, ev: Ev, backoff: Backoff) -> Option<(u64, LossCause)> {
        let (psn, record) = self.first_lost()?;
        let cause = record.lost()?;
        let slot = self.slot(psn);
        self.lost.remove(&mut self.records, slot);
        self.transmit(slot, now, ev, backoff, PacketState::resent_for(cause));
        Some((psn, cause))
    }

    /// Settles the packets below `cumulative`, then those with set bits: bit `i` of word `w`
    /// stands for `base + 64 w + i`. Calls `settled` for each new one, lowest first in either part.
    /// Ignores numbers that are not in flight.
    #[inline]
    pub fn settle(&mut self, cumulative: u64, base: u64, bitmap: &[u64; 4], settled: &mut impl FnMut(Settled)) {
        let end = cumulative.min(self.next_psn);
        while self.cumulative < end {
            let psn = self.cumulative;
            self.cumulative += 1;
            if self.acked_ahead == 0 || !self.forget_acked(psn) {
                settled(self.take(psn));
            }
        }
        if bitmap[0] | bitmap[1] | bitmap[2] | bitmap[3] != 0 {
            self.settle_selective(base, bitmap, settled);
        }
        if self.acked_ahead > 0 {
            self.skip_acked();
        }
    }

    #[inline]
    pub fn covers(&self, base: u64, bitmap: &[u64; 4]) -> bool {
        if base.checked_add(255).is_some_and(|last| last < self.next_psn) {
            return true;
        }
        let Some(word) = bitmap.iter().rposition(|&bits| bits != 0) else { return true };
        let highest = 64 * word as u64 + 63 - u64::from(bitmap[word].leading_zeros());
        base.checked_add(highest).is_some_and(|psn| psn < self.next_psn)
    }

    /// Moves the lowest unacknowledged packet, if it is lost, to the front of the lost ones.
    #[inline]
    pub fn lowest_lost_first(&mut self) {
        let slot = self.slot(self.cumulative);
        let is_lost = self.span() > 0 && self.records[slot as usize].lost().is_some();
        if is_lost && self.lost.head != slot {
            self.lost.remove(&mut self.records, slot);
            self.lost.push_front(&mut self.records, slot);
        }
    }

    /// Declares an outstanding packet lost; returns `false` if it is not outstanding.
    pub fn on_lost(&mut self, psn: u64, cause: LossCause, place: Lost) -> bool {
        if !self.is_outstanding(psn) {
            return false;
        }
        let slot = self.slot(psn);
        self.outstanding.remove(&mut self.records, slot);
        self.records[slot as usize].state = PacketState::lost_for(cause);
        match place {
            Lost::First => self.lost.push_front(&mut self.records, slot),
            Lost::Last => self.lost.push_back(&mut self.records, slot),
        }
        true
    }

    /// The outstanding packet with the oldest last transmission.
    #[inline]
    pub fn oldest(&self) -> Option<(u64, &Record)> {
        self.at(self.outstanding.head)
    }

    /// The lost packet that is retransmitted next.
    #[inline]
    pub fn first_lost(&self) -> Option<(u64, &Record)> {
        self.at(self.lost.head)
    }

    /// Counts the arrivals of transmissions after that of [`Scoreboard::oldest`]. A later one that
    /// is not outstanding was acknowledged, or reported trimmed or missing: timeouts and the gap
    /// rule always take the oldest one, so they declare no later one lost.
    #[inline]
    pub fn arrived_after(&self, oldest: &Record) -> u64 {
        self.transmissions - oldest.order - u64::from(self.outstanding.len)
    }

    /// Returns the oldest outstanding packet if the latest acknowledged transmission is at least
    /// `ahead` later. Those of retransmitted packets do not count, since their ACKs are ambiguous.
    #[inline]
    pub fn oldest_behind(&self, ahead: u64) -> Option<u64> {
        let (psn, oldest) = self.oldest()?;
        (oldest.order.saturating_add(ahead) < self.acked_end).then_some(psn)
    }

    /// The record of a packet in flight, unless it is acknowledged.
    #[inline]
    pub fn record(&self, psn: u64) -> Option<&Record> {
        let known = psn >= self.cumulative && psn < self.next_psn && !self.acked.contains(psn);
        known.then(|| &self.records[self.slot(psn) as usize])
    }

    #[inline]
    pub fn is_outstanding(&self, psn: u64) -> bool {
        self.record(psn).is_some_and(Record::is_outstanding)
    }

    /// Whether `psn` is in flight again, by a transmission after the first `transmissions`.
    #[inline]
    pub fn is_resent_since(&self, psn: u64, transmissions: u64) -> bool {
        self.record(psn).is_some_and(|record| record.resent().is_some() && record.order >= transmissions)
    }

    pub fn transmissions(&self) -> u64 {
        self.transmissions
    }

    pub fn cumulative(&self) -> u64 {
        self.cumulative
    }

    pub fn next_psn(&self) -> u64 {
        self.next_psn
    }

    pub fn outstanding(&self) -> u32 {
        self.outstanding.len
    }

    #[cfg(test)]
    pub fn lost(&self) -> u32 {
        self.lost.len
    }

    /// Numbers from the lowest unacknowledged one to the next new one.
    #[inline]
    pub fn span(&self) -> u64 {
        self.next_psn - self.cumulative
    }

    #[inline]
    pub fn capacity(&self) -> u64 {
        u64::from(self.capacity)
    }

    #[cold]
    fn grow(&mut self) {
        let mut records = vec![Record::default(); 2 * self.records.len()].into_boxed_slice();
        let mask = records.len() as u64 - 1;
        let new_slot = |psn: u64| (psn & mask) as u32;
        let outstanding: Vec<u32> = self.psns(&self.outstanding).map(new_slot).collect();
        let lost: Vec<u32> = self.psns(&self.lost).map(new_slot).collect();
        for psn in self.cumulative..self.next_psn {
            records[new_slot(psn) as usize] = self.records[self.slot(psn) as usize];
        }
        (self.outstanding, self.lost) = (List::EMPTY, List::EMPTY);
        outstanding.into_iter().for_each(|slot| self.outstanding.push_back(&mut records, slot));
        lost.into_iter().for_each(|slot| self.lost.push_back(&mut records, slot));
        self.records = records;
    }

    fn psns(&self, list: &List) -> impl Iterator<Item = u64> {
        core::iter::successors(self.at(list.head), |(_, record)| self.at(record.next)).map(|(psn, _)| psn)
    }

    #[inline]
    fn transmit(&mut self, slot: u32, now: Time, ev: Ev, backoff: Backoff, state: PacketState) {
        let record = &mut self.records[slot as usize];
        record.sent_at = now;
        record.order = self.transmissions;
        record.ev = ev;
        record.backoff = backoff;
        record.state = state;
        self.transmissions += 1;
        self.outstanding.push_back(&mut self.records, slot);
    }

    /// Clears the bit of a number that the cumulative number passes. Returns whether it was set.
    #[inline]
    fn forget_acked(&mut self, psn: u64) -> bool {
        let was_acked = self.acked.remove_word(psn & !63, 1 << (psn & 63)) == 0;
        self.acked_ahead -= u32::from(was_acked);
        was_acked
    }

    #[inline]
    fn skip_acked(&mut self) {
        let from = self.cumulative;
        self.cumulative = self.acked.remove_run(from, self.next_psn);
        self.acked_ahead -= (self.cumulative - from) as u32;
    }

    #[inline(never)]
    fn settle_selective(&mut self, base: u64, bitmap: &[u64; 4], settled: &mut impl FnMut(Settled)) {
        let mut first = base;
        for bits in bitmap.iter().copied() {
            // Most acknowledgements repeat earlier ones: few packets are new.
            let mut fresh = match bits {
                0 => 0,
                bits => self.in_flight_bits(first, bits) & !self.acked.load(first, self.next_psn),
            };
            while fresh != 0 {
                let psn = first + u64::from(fresh.trailing_zeros());
                fresh &= fresh - 1;
                self.acked.insert(psn);
                self.acked_ahead += 1;
                settled(self.take(psn));
            }
            first = first.saturating_add(64);
        }
    }

    #[inline]
    fn take(&mut self, psn: u64) -> Settled {
        let slot = self.slot(psn);
        let record = self.records[slot as usize];
        if !record.was_lost() {
            self.acked_end = self.acked_end.max(record.order + 1);
        }
        if record.is_outstanding() {
            self.outstanding.remove(&mut self.records, slot);
        } else if record.lost().is_some() {
            self.lost.remove(&mut self.records, slot);
        }
        self.records[slot as usize].state = PacketState::FREE;
        Settled { psn, record }
    }

    /// Masks `bits`, from number `first` on, to the numbers in flight.
    #[inline]
    fn in_flight_bits(&self, first: u64, bits: u64) -> u64 {
        if first >= self.next_psn {
            return 0;
        }
        let below = self.cumulative.saturating_sub(first).min(64);
        let known = (self.next_psn - first).min(64);
        bits & ones(known) & !ones(below)
    }

    #[inline]
    fn at(&self, slot: u32) -> Option<(u64, &Record)> {
        let record = self.records.get(slot as usize)?;
        let ahead = u64::from(slot).wrapping_sub(self.cumulative) & (self.records.len() as u64 - 1);
        Some((self.cumulative + ahead, record))
    }

    #[inline]
    fn slot(&self, psn: u64) -> u32 {
        (psn & (self.records.len() as u64 - 1)) as u32
    }
}
