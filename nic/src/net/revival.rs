//! Interfaces that stay deaf after their link was down.
//!
//! Some drivers forget XDP when they are set down and up: the program is listed, and nothing reaches it (vmxnet3). Others reset their own
//! link when a program is attached (igb). So it is attached anew after the link has come up, but only if nothing arrives then, and
//! not because of what attaching itself did to the link.

use spray_core::Time;

/// How long nothing may arrive over a link that has come up.
const SILENCE_PS: u64 = 500_000_000_000;
/// How long a driver may take to bring its link up again after a program was attached.
const RESET_PS: u64 = 10_000_000_000_000;

/// When to attach anew.
#[derive(Debug, Default)]
pub(super) struct Revival {
    /// When the program was attached last, or its host was polled first.
    attached_at: Option<Time>,
    /// When the link came up, and how many frames had arrived by then, until one more has.
    silent: Option<(Time, u64)>,
}

impl Revival {
    /// The link has come up, after somebody had set it down (which no driver does by itself) or not; `rx` frames have arrived so far.
    pub(super) fn on_link_up(&mut self, now: Time, was_set_down: bool, rx: u64) {
        if was_set_down || self.attached_at.is_some_and(|at| now.since(at) >= RESET_PS) {
            self.silent = Some((now, rx));
        }
    }

    /// Whether it is time to attach anew; `rx` counts the frames that have arrived, and is seldom asked.
    pub(super) fn is_due(&mut self, now: Time, rx: impl FnOnce() -> u64) -> bool {
        self.attached_at.get_or_insert(now);
        let Some((since, before)) = self.silent else { return false };
        if now.since(since) < SILENCE_PS {
            return false;
        }
        self.silent = None;
        let is_deaf = rx() == before;
        if is_deaf {
            self.attached_at = Some(now);
        }
        is_deaf
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO.after(ms * 1_000_000_000)
    }

    #[test]
    fn a_deaf_device_is_revived_once_and_one_that_hears_is_not() {
        let mut revival = Revival::default();
        assert!(!revival.is_due(ms(0), || 7));
        revival.on_link_up(ms(2_000), false, 7);
        assert!(!revival.is_due(ms(9_000), || 7), "attaching has reset the link");
        revival.on_link_up(ms(20_000), false, 7);
        assert!(!revival.is_due(ms(20_400), || 7), "not yet");
        assert!(revival.is_due(ms(20_500), || 7));
        assert!(!revival.is_due(ms(25_000), || 7), "once");
        revival.on_link_up(ms(22_000), false, 7);
        assert!(!revival.is_due(ms(29_000), || 7), "attaching anew has reset the link");
        revival.on_link_up(ms(31_000), true, 7);
        assert!(revival.is_due(ms(32_000), || 7), "somebody has set it down");
        revival.on_link_up(ms(60_000), false, 7);
        assert!(!revival.is_due(ms(61_000), || 8), "something has arrived");
    }
}
