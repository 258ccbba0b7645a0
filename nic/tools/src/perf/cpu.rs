//! CPU usage of this process.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    pub user_us: u64,
    pub system_us: u64,
}

impl Cpu {
    /// Zeros if unavailable.
    pub fn now() -> Self {
        getrusage(UsageWho::RUSAGE_SELF).map_or(Self::default(), |usage| Self {
            user_us: usage.user_time().num_microseconds() as u64,
            system_us: usage.system_time().num_microseconds() as u64,
        })
    }

    pub fn since(self, earlier: Self) -> Self {
        let (user_us, system_us) = (self.user_us - earlier.user_us, self.system_us - earlier.system_us);
        Self { user_us, system_us }
    }

    /// Percent of one core: total, user, system.
    pub fn percent(self, elapsed_us: u64) -> [f64; 3] {
        let percent = |us: u64| 100.0 * us as f64 / elapsed_us.max(1) as f64;
        let (user, system) = (percent(self.user_us), percent(self.system_us));
        [user + system, user, system]
    }
}
