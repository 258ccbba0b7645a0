//! Go-back-N as in RoCE NICs (Mittal et al., SIGCOMM 2018, §2; HPCC's artifact): one NACK per gap.

use crate::Time;
use crate::settings::settings;
use crate::units::Micros;

settings! {
    /// The settings of go-back-N.
    pub struct GoBackNConfig {
        /// A gap is reported again when a packet is dropped this long after the last report.
        #[schemars(range(min = 0.001, max = 1_000_000))]
        pub nack_interval_us: Micros = Micros::new(500),
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GoBackN {
    interval_ps: u64,
    /// The expected packet of the last NACK, and when that NACK may be repeated.
    reported: Option<(u64, Time)>,
}

impl GoBackN {
    pub(crate) fn new(config: &GoBackNConfig) -> Self {
        Self { interval_ps: config.nack_interval_us.ps(), reported: None }
    }

    /// Takes a dropped packet above the `expected` one. Returns whether a NACK is due.
    //= docs/specs/go-back-n.md#GBN-2 one NACK for a gap
    pub(crate) fn on_dropped(&mut self, now: Time, expected: u64) -> bool {
        let is_reported = self.reported.is_some_and(|(psn, again)| psn == expected && now < again);
        if !is_reported {
            self.reported = Some((expected, now.after(self.interval_ps)));
        }
        !is_reported
    }
}
