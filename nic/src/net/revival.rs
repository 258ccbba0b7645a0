//! Interfaces that stay deaf after their link was down, or cease to send.
//!
//! Some drivers forget XDP when they are set down and up: the program is listed, and nothing reaches it (vmxnet3). Others reset their own
//! link when a program is attached (igb). So it is attached anew after the link has come up, but only if nothing arrives then, and
//! not because of what attaching itself did to the link.
//!
//! A queue that hangs takes frames and never gives one back; the kernel's watchdog looks at its own queues alone. Attaching anew makes drivers
//! set their rings up again. A queue that ceases to *receive* looks like a peer or a network that is gone, and is left to the peer.

use spray_core::Time;

use super::link::Change;
use crate::device::{Device, DeviceStats};

/// How long nothing may arrive over a link that has come up.
const SILENCE_PS: u64 = 500_000_000_000;
/// How often a device is looked at, and in how many looks in a row, at each of which it was given more to send, it may have sent nothing.
const LOOK_PS: u64 = 200_000_000_000;
const LOOKS: u32 = 4;
/// How long a driver may take to bring its link up again after a program was attached.
const RESET_PS: u64 = 10_000_000_000_000;

/// When to attach anew.
#[derive(Debug)]
pub(super) struct Revival {
    /// Of several shards, one attaches anew when nothing arrives. Each looks after its own sending.
    listens: bool,
    /// When the program was attached last, or its host was polled first.
    attached_at: Option<Time>,
    /// When the link came up, and how many frames had arrived by then, until one more has.
    silent: Option<(Time, u64)>,
    link_is_up: bool,
    /// When the device was looked at last, and how it was when it had last sent a frame or had none to send.
    looked_at: Time,
    before: Counts,
    stuck: u32,
}

/// How far a device has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Frames that have arrived at the whole interface.
    pub(super) heard: u64,
    /// Frames that were to be sent, whether there was room for them or not.
    pub(super) offered: u64,
    /// Those that have been sent, and those that have not yet.
    pub(super) sent: u64,
    pub(super) waiting: usize,
}

impl Counts {
    /// May cost a system call.
    pub(super) fn of(device: &impl Device) -> Self {
        let DeviceStats { tx, tx_ring_full, tx_completed, .. } = device.stats();
        Self {
            heard: device.interface_rx_frames(),
            offered: tx + tx_ring_full,
            sent: tx_completed,
            waiting: device.census().tx,
        }
    }
}

impl Revival {
    /// The state of a shard.
    pub(super) fn new(shard: usize) -> Self {
        Self {
            listens: shard == 0,
            attached_at: None,
            silent: None,
            link_is_up: true,
            looked_at: Time::ZERO,
            before: Counts::default(),
            stuck: 0,
        }
    }

    /// The link has changed; `heard` frames have arrived so far.
    pub(super) fn on_link(&mut self, now: Time, change: Change, heard: u64) {
        (self.link_is_up, self.stuck) = (change != Change::Down, 0);
        let Change::Up { was_set_down } = change else { return };
        if self.listens && (was_set_down || self.is_settled(now)) {
            self.silent = Some((now, heard));
        }
    }

    /// Whether it is time to attach anew; `counts` are seldom asked for.
    pub(super) fn is_due(&mut self, now: Time, counts: impl FnOnce() -> Counts) -> bool {
        self.attached_at.get_or_insert(now);
        let listened = self.silent.is_some_and(|(since, _)| now.since(since) >= SILENCE_PS);
        if !listened && now.since(self.looked_at) < LOOK_PS {
            return false;
        }
        self.looked_at = now;
        let counts = counts();
        let is_deaf = self.silent.take_if(|_| listened).is_some_and(|(_, before)| counts.heard == before);
        let is_due = is_deaf || self.is_stuck(now, counts);
        if is_due {
            (self.attached_at, self.stuck) = (Some(now), 0);
        }
        is_due
    }

    /// Whether the device was given frames again and again, and has sent none.
    fn is_stuck(&mut self, now: Time, counts: Counts) -> bool {
        if !self.link_is_up || counts.waiting == 0 || counts.sent > self.before.sent {
            (self.before, self.stuck) = (counts, 0);
        } else if counts.offered > self.before.offered {
            (self.before, self.stuck) = (counts, self.stuck + 1);
        }
        self.stuck >= LOOKS && self.is_settled(now)
    }

    /// Whether what attaching does to the link is long over.
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

    fn heard(heard: u64) -> Counts {
        Counts { heard, ..Counts::default() }
    }

    const UP: Change = Change::Up { was_set_down: false };

    #[test]
    fn a_deaf_device_is_revived_once_and_one_that_hears_is_not() {
        let mut revival = Revival::new(0);
        assert!(!revival.is_due(ms(0), || heard(7)));
        revival.on_link(ms(2_000), UP, 7);
        assert!(!revival.is_due(ms(9_000), || heard(7)), "attaching has reset the link");
        revival.on_link(ms(20_000), UP, 7);
        assert!(!revival.is_due(ms(20_400), || heard(7)), "not yet");
        assert!(revival.is_due(ms(20_500), || heard(7)));
        assert!(!revival.is_due(ms(25_000), || heard(7)), "once");
        revival.on_link(ms(22_000), UP, 7);
        assert!(!revival.is_due(ms(29_000), || heard(7)), "attaching anew has reset the link");
        revival.on_link(ms(31_000), Change::Up { was_set_down: true }, 7);
        assert!(revival.is_due(ms(32_000), || heard(7)), "somebody has set it down");
        revival.on_link(ms(60_000), UP, 7);
        assert!(!revival.is_due(ms(61_000), || heard(8)), "something has arrived");
        let mut other = Revival::new(1);
        assert!(!other.is_due(ms(0), || heard(7)));
        other.on_link(ms(20_000), UP, 7);
        assert!(!other.is_due(ms(21_000), || heard(7)), "the first shard does it");
    }

    /// What a device tells every 200 ms from `from` on, until it is revived: then when.
    fn revived(revival: &mut Revival, from: u64, mut each: impl FnMut(u64) -> Counts) -> Option<u64> {
        (0..30).map(|look| from + 200 * look).find(|&at| revival.is_due(ms(at), || each(at)))
    }

    #[test]
    fn a_device_that_ceases_to_send_is_revived_within_a_second() {
        let sending = |at: u64| Counts { offered: at, sent: at - 5, waiting: 5, ..Counts::default() };
        let stuck = |at: u64| Counts { offered: at, sent: 19_000, waiting: 900, ..Counts::default() };
        let idle = |_| Counts { offered: 20_000, sent: 19_000, waiting: 3, ..Counts::default() };
        let mut revival = Revival::new(1);
        assert_eq!(revived(&mut revival, 0, |_| Counts::default()), None, "nothing to send");
        assert_eq!(revived(&mut revival, 10_000, sending), None);
        assert_eq!(revived(&mut revival, 19_200, sending), None);
        assert_eq!(revived(&mut revival, 25_200, stuck), Some(25_800));
        assert_eq!(revived(&mut revival, 26_200, stuck), None, "attaching may have reset the link");
        assert_eq!(revived(&mut revival, 36_000, stuck), Some(36_000), "it did not help");
        assert_eq!(revived(&mut revival, 50_000, idle), None, "the last frames of a burst may come back late");
        revival.on_link(ms(60_000), Change::Down, 0);
        assert_eq!(revived(&mut revival, 60_000, stuck), None, "without a link nothing can be sent");
        revival.on_link(ms(70_000), UP, 0);
        assert_eq!(revived(&mut revival, 70_000, stuck), Some(70_600));
    }
}
