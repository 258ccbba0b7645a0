//! The paper's rules for one flow, step by step, with a record at each end, as a reference for the
//! switch's tables.

use std::vec;
use std::vec::Vec;

use super::{Kind, Settings};

/// The header of a packet, with epochs starting at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) rerouted: bool,
    pub(super) epoch: u64,
    pub(super) sent_ps: u64,
    pub(super) tail_ps: u64,
}

/// The record at the source switch.
#[derive(Debug)]
pub(super) struct Source {
    settings: Settings,
    base_rtt_ps: u64,
    last_ps: Option<u64>,
    epoch: u64,
    rerouted: bool,
    may_begin: bool,
    deadline_ps: Option<u64>,
    tail_ps: u64,
}

impl Source {
    pub(super) fn new(settings: Settings, base_rtt_ps: u64) -> Self {
        let (last_ps, deadline_ps) = (None, None);
        Self { settings, base_rtt_ps, last_ps, epoch: 0, rerouted: false, may_begin: false, deadline_ps, tail_ps: 0 }
    }

    pub(super) fn send(&mut self, now_ps: u64) -> Header {
        let inactive = self.last_ps.is_none_or(|last_ps| now_ps > last_ps + self.settings.inactive_ps);
        self.last_ps = Some(now_ps);
        let mut kind = Kind::Data;
        let mut rerouted = self.rerouted;
        if inactive || self.may_begin {
            (self.epoch, self.rerouted, self.may_begin, self.tail_ps) = (self.epoch + 1, false, false, 0);
            self.deadline_ps = Some(now_ps + self.base_rtt_ps + self.settings.reply_extra_ps);
            (kind, rerouted) = (Kind::Request, false);
        } else if self.deadline_ps.is_some_and(|deadline_ps| now_ps > deadline_ps) {
            (self.deadline_ps, self.rerouted, self.tail_ps) = (None, true, now_ps);
            kind = Kind::Tail;
        }
        Header { kind, rerouted, epoch: self.epoch, sent_ps: now_ps, tail_ps: self.tail_ps }
    }

    pub(super) fn on_notice(&mut self, now_ps: u64, kind: Kind, epoch: u64) {
        let fits = match kind {
            Kind::Reply => !self.rerouted && self.deadline_ps.is_some_and(|deadline_ps| now_ps < deadline_ps),
            Kind::Clear => self.rerouted,
            _ => false,
        };
        if fits && epoch == self.epoch {
            (self.may_begin, self.deadline_ps) = (true, None);
        }
    }
}

/// The record at the destination switch; packets are identified by numbers.
#[derive(Debug)]
pub(super) struct Destination {
    settings: Settings,
    last_ps: Option<u64>,
    epoch: u64,
    tail_passed: bool,
    /// When the last packet of the old path was sent and when it arrived, in this epoch.
    old_ps: Option<(u64, u64)>,
    tail_ps: u64,
    held: Vec<u32>,
    pub(super) resume_ps: Option<u64>,
}

impl Destination {
    pub(super) fn new(settings: Settings) -> Self {
        let held = Vec::new();
        Self { settings, last_ps: None, epoch: 0, tail_passed: false, old_ps: None, tail_ps: 0, held, resume_ps: None }
    }

    /// Handles an arriving packet; returns the packets passed to the host, in order.
    pub(super) fn arrive(&mut self, now_ps: u64, number: u32, header: &Header) -> Vec<u32> {
        let inactive = self.last_ps.is_none_or(|last_ps| now_ps > last_ps + self.settings.inactive_ps);
        let begins = inactive && self.held.is_empty();
        self.last_ps = Some(now_ps);
        if header.epoch < self.epoch && !begins {
            return vec![number];
        }
        let mut out = Vec::new();
        if header.epoch > self.epoch || begins {
            (self.epoch, self.tail_passed, self.old_ps) = (header.epoch, false, None);
            if header.rerouted && !self.held.is_empty() {
                self.resume_ps = Some(now_ps + self.settings.resume_default_ps + self.settings.resume_extra_ps);
            } else {
                out.append(&mut self.held);
            }
        }
        if header.rerouted {
            self.tail_ps = header.tail_ps;
            if self.tail_passed {
                out.push(number);
                return out;
            }
            if self.held.is_empty() {
                self.resume_ps = Some(match self.old_ps {
                    Some((sent_ps, arrived_ps)) => {
                        arrived_ps + self.tail_ps.saturating_sub(sent_ps) + self.settings.resume_extra_ps
                    }
                    None => now_ps + self.settings.resume_default_ps + self.settings.resume_extra_ps,
                });
            }
            self.held.push(number);
            return out;
        }
        self.old_ps = Some((header.sent_ps, now_ps));
        out.push(number);
        if header.kind == Kind::Tail {
            self.tail_ps = header.tail_ps;
            self.tail_passed = true;
            out.append(&mut self.held);
        } else if !self.held.is_empty() {
            let gap_ps = self.tail_ps.saturating_sub(header.sent_ps);
            self.resume_ps = Some(now_ps + gap_ps + self.settings.resume_extra_ps);
        }
        if self.held.is_empty() {
            self.resume_ps = None;
        }
        out
    }

    /// Handles the expiry of the queue; returns the packets passed to the host.
    pub(super) fn resume(&mut self) -> Vec<u32> {
        (self.tail_passed, self.resume_ps) = (true, None);
        std::mem::take(&mut self.held)
    }
}
