//! Detects interfaces that stop receiving after a link change, or stop sending.
//!
//! Some drivers lose XDP when set down and up: the program is listed, but gets no frames (vmxnet3).
//! Others reset their own link when a program is attached (igb). So the program is attached again
//! after the link has come up, but only if nothing arrives and attaching was not the cause.
//!
//! A queue that hangs accepts frames without completing them; the kernel's watchdog covers its own
//! queues only. Attaching again makes drivers reinitialise their rings. A queue that stops
//! *receiving* is indistinguishable from a failure of peer or network, which timeouts cover.

use spray_core::Time;

use super::link::Change;
use crate::device::{Device, DeviceStats};

/// Time without arrivals after the link has come up.
const SILENCE_PS: u64 = 500_000_000_000;
/// Interval of checks, and the number of successive ones without progress in sending.
const CHECK_PS: u64 = 200_000_000_000;
const CHECKS: u32 = 4;
/// Time limit of a driver to bring its link up after a program was attached.
const RESET_PS: u64 = 10_000_000_000_000;

#[derive(Debug)]
pub(super) struct AttachMonitor {
    /// One shard monitors reception; each monitors its own sending.
    monitors_reception: bool,
    /// Time of the last attachment, or of the first poll.
    attached_at: Option<Time>,
    /// Time when the link came up, and received frames until then; `None` after the check.
    silent: Option<(Time, u64)>,
    link_is_up: bool,
    checked_at: Time,
    /// Counts when the device last sent a frame or had none to send.
    before: Counts,
    stuck: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Frames received on the whole interface.
    pub(super) received: u64,
    /// Frames to be sent, with those dropped for lack of room.
    pub(super) offered: u64,
    pub(super) sent: u64,
    /// Frames queued but not completed.
    pub(super) waiting: usize,
}

impl Counts {
    /// May cost a system call.
    pub(super) fn of(device: &impl Device) -> Self {
        let DeviceStats { tx, tx_ring_full, tx_completed, .. } = device.stats();
        Self {
            received: device.interface_rx_frames(),
            offered: tx + tx_ring_full,
            sent: tx_completed,
            waiting: device.frame_counts().tx,
        }
    }
}

impl AttachMonitor {
    pub(super) fn new(shard: usize) -> Self {
        Self {
            monitors_reception: shard == 0,
            attached_at: None,
            silent: None,
            link_is_up: true,
            checked_at: Time::ZERO,
            before: Counts::default(),
            stuck: 0,
        }
    }

    /// Handles a change of the link, when `received` frames have arrived so far.
    pub(super) fn on_link(&mut self, now: Time, change: Change, received: u64) {
        (self.link_is_up, self.stuck) = (change != Change::Down, 0);
        let Change::Up { was_set_down } = change else { return };
        if self.monitors_reception && (was_set_down || self.is_settled(now)) {
            self.silent = Some((now, received));
        }
    }

    /// Returns whether the program must be attached again. `counts` is called rarely.
    pub(super) fn is_due(&mut self, now: Time, counts: impl FnOnce() -> Counts) -> bool {
        self.attached_at.get_or_insert(now);
        let waited = self.silent.is_some_and(|(since, _)| now.since(since) >= SILENCE_PS);
        if !waited && now.since(self.checked_at) < CHECK_PS {
            return false;
        }
        self.checked_at = now;
        let counts = counts();
        let is_silent = self.silent.take_if(|_| waited).is_some_and(|(_, before)| counts.received == before);
        let is_due = is_silent || self.is_stuck(now, counts);
        if is_due {
            (self.attached_at, self.stuck) = (Some(now), 0);
        }
        is_due
    }

    fn is_stuck(&mut self, now: Time, counts: Counts) -> bool {
        if !self.link_is_up || counts.waiting == 0 || counts.sent > self.before.sent {
            (self.before, self.stuck) = (counts, 0);
        } else if counts.offered > self.before.offered {
            (self.before, self.stuck) = (counts, self.stuck + 1);
        }
        self.stuck >= CHECKS && self.is_settled(now)
    }

    /// Returns whether effects of attaching on the link are over.
    fn is_settled(&self, now: Time) -> bool {
        self.attached_at.is_some_and(|at| now.since(at) >= RESET_PS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO.after(ms * 1_000_000_000)
    }

    fn received(received: u64) -> Counts {
        Counts { received, ..Counts::default() }
    }

    const UP: Change = Change::Up { was_set_down: false };

    #[test]
    fn a_silent_device_is_attached_again_once() {
        let mut monitor = AttachMonitor::new(0);
        assert!(!monitor.is_due(ms(0), || received(7)));
        monitor.on_link(ms(2_000), UP, 7);
        assert!(!monitor.is_due(ms(9_000), || received(7)), "attaching has reset the link");
        monitor.on_link(ms(20_000), UP, 7);
        assert!(!monitor.is_due(ms(20_400), || received(7)), "not yet");
        assert!(monitor.is_due(ms(20_500), || received(7)));
        assert!(!monitor.is_due(ms(25_000), || received(7)), "once");
        monitor.on_link(ms(22_000), UP, 7);
        assert!(!monitor.is_due(ms(29_000), || received(7)), "attaching has reset the link");
        monitor.on_link(ms(31_000), Change::Up { was_set_down: true }, 7);
        assert!(monitor.is_due(ms(32_000), || received(7)), "an operator has set it down");
        monitor.on_link(ms(60_000), UP, 7);
        assert!(!monitor.is_due(ms(61_000), || received(8)), "something has arrived");
        let mut other = AttachMonitor::new(1);
        assert!(!other.is_due(ms(0), || received(7)));
        other.on_link(ms(20_000), UP, 7);
        assert!(!other.is_due(ms(21_000), || received(7)), "the first shard does it");
    }

    /// Checks every 200 ms from `from` on, with counts of `each`; returns when the monitor is due.
    fn due_at(monitor: &mut AttachMonitor, from: u64, mut each: impl FnMut(u64) -> Counts) -> Option<u64> {
        (0..30).map(|look| from + 200 * look).find(|&at| monitor.is_due(ms(at), || each(at)))
    }

    #[test]
    fn a_device_that_stops_sending_is_attached_again_in_a_second() {
        let sending = |at: u64| Counts { offered: at, sent: at - 5, waiting: 5, ..Counts::default() };
        let stuck = |at: u64| Counts { offered: at, sent: 19_000, waiting: 900, ..Counts::default() };
        let idle = |_| Counts { offered: 20_000, sent: 19_000, waiting: 3, ..Counts::default() };
        let mut monitor = AttachMonitor::new(1);
        assert_eq!(due_at(&mut monitor, 0, |_| Counts::default()), None, "nothing to send");
        assert_eq!(due_at(&mut monitor, 10_000, sending), None);
        assert_eq!(due_at(&mut monitor, 19_200, sending), None);
        assert_eq!(due_at(&mut monitor, 25_200, stuck), Some(25_800));
        assert_eq!(due_at(&mut monitor, 26_200, stuck), None, "attaching may have reset the link");
        assert_eq!(due_at(&mut monitor, 36_000, stuck), Some(36_000), "it did not help");
        assert_eq!(due_at(&mut monitor, 50_000, idle), None, "the last frames of a burst may come back late");
        monitor.on_link(ms(60_000), Change::Down, 0);
        assert_eq!(due_at(&mut monitor, 60_000, stuck), None, "without a link nothing can be sent");
        monitor.on_link(ms(70_000), UP, 0);
        assert_eq!(due_at(&mut monitor, 70_000, stuck), Some(70_600));
    }
}
