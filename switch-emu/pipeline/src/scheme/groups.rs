//! The groups of a dragonfly.

use crate::hash::{mix, pick};

/// A dragonfly's groups, in which switches and hosts are numbered in order. All 0: none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// Number of groups.
    pub count: u16,
    /// Switches per group.
    pub switches: u16,
    /// Hosts per switch.
    pub hosts: u16,
}

/// Maximum number of groups in a frame's note.
pub const MAX_GROUPS: u16 = 253;

impl Groups {
    /// Returns whether the fabric has groups.
    pub const fn exist(self) -> bool {
        self.count > 0
    }

    /// Returns the group of a switch.
    pub fn of_switch(self, switch: usize) -> u16 {
        (switch / usize::from(self.switches.max(1))) as u16
    }

    #[inline(always)]
    pub(super) fn hosts_of_group(self) -> u32 {
        u32::from(self.switches) * u32::from(self.hosts)
    }

    /// The host of `group` as target: the same at all switches, so that each is nearer.
    #[inline(always)]
    pub(super) fn toward(self, group: u8, checksum: u32) -> u32 {
        let hosts = self.hosts_of_group();
        u32::from(group) * hosts + pick((mix(u64::from(checksum)) >> 32) as u32, hosts)
    }
}
