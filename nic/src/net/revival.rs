//! Interfaces that stay deaf after their link was down.
//!
//! Some drivers forget XDP when they are set down and up: the program is listed, and nothing reaches it (vmxnet3). Others reset their own
//! link when a program is attached (igb). So it is attached anew after the link has come up, but only if nothing arrives then, and
//! not because of what attaching itself did to the link.

use spray_core::Time;

use crate::device::Device;

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
    /// The link has come up, after somebody had set it down (which no driver does by itself) or not.
    pub(super) fn on_link_up<D: Device>(&mut self, now: Time, was_set_down: bool, device: &D) {
        if was_set_down || self.attached_at.is_some_and(|at| now.since(at) >= RESET_PS) {
            self.silent = Some((now, device.stats().rx));
        }
    }

    /// Attaches anew, if it is time. Cheap where it is not.
    pub(super) fn update<D: Device>(&mut self, now: Time, device: &mut D) {
        self.attached_at.get_or_insert(now);
        let Some((since, rx)) = self.silent else { return };
        if now.since(since) < SILENCE_PS {
            return;
        }
        self.silent = None;
        if device.stats().rx == rx {
            self.attached_at = Some(now);
            // What could not be attached is noticed by its silence, like a peer that is gone.
            let _ = device.revive();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{DeviceStats, FrameCensus, FrameId, Received};

    /// A device that counts.
    #[derive(Default)]
    struct Counting {
        rx: u64,
        revived: u32,
    }

    impl Device for Counting {
        fn stats(&self) -> DeviceStats {
            DeviceStats { rx: self.rx, ..DeviceStats::default() }
        }

        fn revive(&mut self) -> std::io::Result<()> {
            self.revived += 1;
            Ok(())
        }

        fn receive(&mut self, _: &mut Vec<Received>, _: usize) -> std::io::Result<usize> {
            Ok(0)
        }

        fn frame(&self, _: &FrameId, _: u32) -> &[u8] {
            &[]
        }

        fn frame_mut(&mut self, _: &FrameId) -> &mut [u8] {
            &mut []
        }

        fn release(&mut self, _: FrameId) {}

        fn allocate(&mut self) -> Option<FrameId> {
            None
        }

        fn transmit(&mut self, id: FrameId, _: u32) -> Result<(), FrameId> {
            Err(id)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }

        fn max_frame(&self) -> usize {
            0
        }

        fn census(&self) -> FrameCensus {
            FrameCensus::default()
        }

        fn audit(&self) -> Result<(), String> {
            Ok(())
        }
    }

    fn ms(ms: u64) -> Time {
        Time::ZERO.after(ms * 1_000_000_000)
    }

    #[test]
    fn a_deaf_device_is_revived_once_and_one_that_hears_is_not() {
        let (mut device, mut revival) = (Counting::default(), Revival::default());
        revival.update(ms(0), &mut device);
        revival.on_link_up(ms(2_000), false, &device);
        revival.update(ms(9_000), &mut device);
        assert_eq!(device.revived, 0, "attaching has reset the link");
        revival.on_link_up(ms(20_000), false, &device);
        revival.update(ms(20_400), &mut device);
        assert_eq!(device.revived, 0, "not yet");
        revival.update(ms(20_500), &mut device);
        revival.update(ms(25_000), &mut device);
        assert_eq!(device.revived, 1);
        revival.on_link_up(ms(22_000), false, &device);
        revival.update(ms(29_000), &mut device);
        assert_eq!(device.revived, 1, "attaching anew has reset the link");
        revival.on_link_up(ms(31_000), true, &device);
        revival.update(ms(32_000), &mut device);
        assert_eq!(device.revived, 2, "somebody has set it down");
        revival.on_link_up(ms(60_000), false, &device);
        device.rx += 1;
        revival.update(ms(61_000), &mut device);
        assert_eq!(device.revived, 2, "something has arrived");
    }
}
