//! `--bare`: frames beside the transport, what the NICs and the path carry without it.

use spray_core::link::PS_PER_S;
use spray_nic::device::{Bare, Device};
use spray_nic::{ConnectionId, Endpoint, Time};

use super::format::Request;
use crate::failure::{Failure, Outcome};

/// Frames of a flush: those of an endpoint's.
const BATCH: u64 = 64;
/// How long the last frames may take, until the server is asked for its figures.
pub(super) const GRACE_PS: u64 = PS_PER_S / 20;

/// Frames of one size, by both counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frames {
    pub count: u64,
    /// From the Ethernet header on.
    pub bytes: u64,
    /// Behind the UDP header.
    pub payload: u64,
}

impl Frames {
    pub(super) fn plus(self, other: Self) -> Self {
        let Self { count, bytes, payload } = other;
        Self { count: self.count + count, bytes: self.bytes + bytes, payload: self.payload + payload }
    }

    /// Those since an earlier time.
    pub(super) fn since(self, earlier: Self) -> Self {
        let Self { count, bytes, payload } = earlier;
        Self { count: self.count - count, bytes: self.bytes - bytes, payload: self.payload - payload }
    }

    /// Of these frames those that have so much payload together.
    pub(super) fn with_payload(self, payload: u64) -> Self {
        let [each, bytes] = [self.payload, self.bytes].map(|bytes| bytes / self.count.max(1));
        let count = payload / each.max(1);
        Self { count, bytes: count * bytes, payload }
    }
}

/// The payload of a frame of so many bytes.
pub(super) fn payload(bytes: u32, v6: bool) -> u64 {
    u64::from(bytes).saturating_sub(Bare::header_bytes(v6) as u64)
}

/// What sends a connection's frames, at a rate where one is asked for.
#[derive(Debug)]
pub(super) struct Source {
    frames: Bare,
    bytes: u64,
    payload: u64,
    rate_bps: u64,
    since: Time,
    until: Time,
    sent: u64,
}

impl Source {
    /// For the peer of an open connection.
    ///
    /// # Errors
    /// 1 when the connection has ended.
    pub(super) fn new<D: Device>(
        endpoint: &mut Endpoint<D>,
        connection: ConnectionId,
        request: &Request,
        [since, until]: [Time; 2],
    ) -> Outcome<Self> {
        let Request { bytes, rate_bps, .. } = *request;
        let payload = payload(bytes, endpoint.config().address.is_ipv6());
        let frames = endpoint.bare(connection, bytes as usize);
        let frames = frames.ok_or_else(|| Failure::failed("the connection has ended before frames were sent"))?;
        Ok(Self { frames, bytes: bytes.into(), payload, rate_bps, since, until, sent: 0 })
    }

    /// Sends a batch, if there is time, and no more than the rate allows up to now.
    pub(super) fn fill<D: Device>(&mut self, endpoint: &mut Endpoint<D>, now: Time) {
        let bits = u128::from(self.rate_bps) * u128::from(now.since(self.since)) / u128::from(PS_PER_S);
        let due = match self.rate_bps {
            0 => BATCH,
            _ => ((bits / u128::from(8 * self.payload)) as u64 + 1).saturating_sub(self.sent).min(BATCH),
        };
        if now < self.until && due > 0 {
            self.sent += endpoint.send_bare(&mut self.frames, due);
        }
    }

    /// What has gone.
    pub(super) fn sent(&self) -> Frames {
        Frames { count: self.sent, bytes: self.sent * self.bytes, payload: self.sent * self.payload }
    }
}
