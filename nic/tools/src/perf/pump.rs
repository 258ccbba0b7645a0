//! A connection that always has something to send.

use bytes::Bytes;
use spray_nic::device::Device;
use spray_nic::{ConnectionId, Endpoint, Time};

/// Messages that wait in a connection, at least this many bytes and one message more: what is in flight, several times over.
const QUEUED_BYTES: usize = 16 << 20;
/// Most messages that wait; a connection takes 1,024.
const QUEUED: usize = 512;

/// Sends the same message again and again.
#[derive(Debug)]
pub struct Pump {
    message: Bytes,
    queued: usize,
    /// Until when.
    until: Time,
}

impl Pump {
    pub fn new(message: Bytes, until: Time) -> Self {
        Self { message, queued: 0, until }
    }

    /// Gives the connection messages, if there is room and time.
    pub fn fill<D: Device>(&mut self, endpoint: &mut Endpoint<D>, connection: ConnectionId, now: Time) {
        let enough = (QUEUED_BYTES / self.message.len() + 2).min(QUEUED);
        while now < self.until && self.queued < enough {
            if endpoint.send(connection, self.message.clone()).is_err() {
                return;
            }
            self.queued += 1;
        }
    }

    /// The peer has one.
    pub fn on_delivered(&mut self) {
        self.queued = self.queued.saturating_sub(1);
    }
}
