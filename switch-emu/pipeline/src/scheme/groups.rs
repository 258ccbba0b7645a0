//! The groups of a dragonfly.

use crate::hash::{mix, pick};

/// A dragonfly's groups. Switches and hosts are numbered group by group, hosts switch by switch. All 0: there are none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// How many.
    pub count: u16,
    /// Switches of each.
    pub switches: u16,
    /// Hosts of each switch.
    pub hosts: u16,
}

/// Most groups that a frame's note can tell apart.
pub const MOST_GROUPS: u16 = 253;

impl Groups {
    /// Whether the fabric has any.
    pub const fn exist(self) -> bool {
        self.count > 0
    }

    /// The group of a switch.
    pub fn of_switch(self, switch: usize) -> u16 {
        (switch / usize::from(self.switches.max(1))) as u16
    }

    #[inline(always)]
    pub(super) fn hosts_of_group(self) -> u32 {
        u32::from(self.switches) * u32::from(self.hosts)
    }

    /// The host of `group` that a frame goes toward: the same one at all switches, so that each leads nearer.
    #[inline(always)]
    pub(super) fn toward(self, group: u8, checksum: u32) -> u32 {
        let hosts = self.hosts_of_group();
        u32::from(group) * hosts + pick((mix(u64::from(checksum)) >> 32) as u32, hosts)
    }
}
