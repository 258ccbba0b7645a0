//! A transcription of algorithms 1 and 2 of the REPS paper, line by line, in plain integers.

use std::vec;
use std::vec::Vec;

use crate::rng::Rng;

#[derive(Clone, Debug, Default)]
pub struct Slot {
    pub cached_ev: Option<u16>,
    pub is_valid: bool,
}

#[derive(Clone, Debug)]
pub struct PaperReps {
    pub reps_buffer: Vec<Slot>,
    pub is_freezing_mode: bool,
    pub head: usize,
    pub number_of_valid_evs: usize,
    pub explore_counter: u64,
    pub exit_freezing_mode: u64,
    pub evs_size: u16,
    pub num_pkts_bdp: u64,
    pub freezing_timeout: u64,
}

impl PaperReps {
    pub fn new(buffer: u8, evs_size: u16, num_pkts_bdp: u64, freezing_timeout: u64) -> Self {
        Self {
            reps_buffer: vec![Slot::default(); usize::from(buffer)], // 1:1, every slot empty
            is_freezing_mode: false,                                 // 1:2
            head: 0,                                                 // 1:3
            number_of_valid_evs: 0,
            explore_counter: 0,
            exit_freezing_mode: 0,
            evs_size,
            num_pkts_bdp,
            freezing_timeout,
        }
    }

    pub fn on_ack(&mut self, now: u64, ev: u16, ecn: bool) {
        if ecn {
            return; // 1:6-8
        }
        if !self.reps_buffer[self.head].is_valid {
            self.number_of_valid_evs += 1; // 1:9-11
        }
        self.reps_buffer[self.head].cached_ev = Some(ev); // 1:12
        self.reps_buffer[self.head].is_valid = true; // 1:13
        self.head = (self.head + 1) % self.reps_buffer.len(); // 1:14
        if self.is_freezing_mode && now > self.exit_freezing_mode {
            self.is_freezing_mode = false; // 1:16
            self.explore_counter = self.num_pkts_bdp; // 1:17
        }
    }

    pub fn on_failure_detection(&mut self, now: u64) {
        if !self.is_freezing_mode && self.explore_counter == 0 {
            self.is_freezing_mode = true; // 1:23
            self.exit_freezing_mode = now + self.freezing_timeout; // 1:24
        }
    }

    fn get_next_ev(&mut self) -> u16 {
        let size = self.reps_buffer.len();
        let offset;
        if self.number_of_valid_evs > 0 {
            offset = (self.head + size - self.number_of_valid_evs) % size; // 2:4
            self.reps_buffer[offset].is_valid = false; // 2:5
            self.number_of_valid_evs -= 1; // 2:6
        } else {
            // REPS-9, an addition of this implementation: skip slots never written.
            while self.reps_buffer[self.head].cached_ev.is_none() {
                self.head = (self.head + 1) % size;
            }
            offset = self.head; // 2:8
            self.head = (self.head + 1) % size; // 2:9
        }
        self.reps_buffer[offset].cached_ev.expect("2:11 reads a written slot")
    }

    fn is_empty(&self) -> bool {
        self.reps_buffer.iter().all(|slot| slot.cached_ev.is_none())
    }

    pub fn on_send(&mut self, rng: &mut Rng) -> u16 {
        if self.is_empty() || (self.number_of_valid_evs == 0 && !self.is_freezing_mode) || self.explore_counter > 0 {
            self.explore_counter = self.explore_counter.saturating_sub(1); // 2:17
            // 2:16, with the draw of the code under test so that the sequences can be compared.
            super::super::draw(self.evs_size, rng).index()
        } else {
            self.get_next_ev() // 2:19
        }
    }
}
