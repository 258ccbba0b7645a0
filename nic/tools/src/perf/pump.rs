//! A connection that always has data to send.

use bytes::Bytes;
use spray_core::link::PS_PER_S;
use spray_nic::device::Device;
use spray_nic::{ConnectionId, Endpoint, Time};

use super::format::{Request, data};

/// In addition to two messages.
const QUEUED_BYTES: usize = 16 << 20;
/// At most twice what was delivered in the last two periods is queued, so that little is left at
/// the end. A period is two round trips, within these bounds.
const PERIODS_PS: [u64; 2] = [PS_PER_S / 200, PS_PER_S / 4];
/// A connection takes 1,024.
const QUEUED: usize = 512;

#[derive(Debug, Default)]
pub struct Pump {
    message: Bytes,
    queued: usize,
    /// In this period and the previous one.
    delivered: [usize; 2],
    period_at: Time,
    period_ps: u64,
    rate_bps: u64,
    since: Time,
    until: Time,
    sent: u64,
    is_stopped: bool,
}

impl Pump {
    pub fn new(request: &Request, now: Time, for_ps: u64) -> Self {
        let Request { bytes, rate_bps, .. } = *request;
        let (message, until, period_ps) = (data(bytes), now.after(for_ps), PERIODS_PS[0]);
        Self { message, period_at: now, period_ps, rate_bps, since: now, until, ..Self::default() }
    }

    pub fn fill<D: Device>(&mut self, endpoint: &mut Endpoint<D>, connection: ConnectionId, now: Time) {
        if now >= self.period_at.after(self.period_ps) {
            let rtt_ps = endpoint.connection_stats(connection).map_or(0, |stats| stats.rtt_p99_ps);
            (self.period_at, self.delivered) = (now, [0, self.delivered[0]]);
            self.period_ps = (2 * rtt_ps).clamp(PERIODS_PS[0], PERIODS_PS[1]);
        }
        let recent = 2 * self.delivered[0].max(self.delivered[1]);
        let enough = (recent.min(QUEUED_BYTES / self.message.len()) + 2).min(QUEUED);
        while now < self.until && self.queued < enough && self.is_due(now) {
            if endpoint.send(connection, self.message.clone()).is_err() {
                return;
            }
            self.sent += self.message.len() as u64;
            self.queued += 1;
        }
    }

    pub fn stop(&mut self) {
        self.is_stopped = true;
    }

    pub fn is_drained(&self) -> bool {
        self.queued == 0
    }

    pub fn on_delivered(&mut self) {
        self.queued = self.queued.saturating_sub(1);
        self.delivered[0] += 1;
    }

    fn is_due(&self, now: Time) -> bool {
        let allowed = u128::from(self.rate_bps) * u128::from(now.since(self.since));
        let sent = u128::from(self.sent) * 8 * u128::from(PS_PER_S);
        !self.is_stopped && (self.rate_bps == 0 || sent <= allowed)
    }
}
