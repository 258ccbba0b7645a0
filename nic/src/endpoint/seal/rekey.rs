//! Fresh keys within a connection: the client requests them, and the server answers.

use spray_core::Time;
use spray_wire::{Body, CloseReason, EvPort, Rekey};

use crate::endpoint::{
    ConnectionError,
    connection::{Connection, Stage},
    machine::Machine,
    seal::generations::Unusable,
    service::keep_alive,
};

/// Maximum age of a generation of keys beyond the idle timeout, in picoseconds. Older ones indicate
/// that exchanges are suppressed.
const OLDEST_PS: u64 = 180_000_000_000_000;

impl Machine {
    /// Requests fresh keys when due, and gives up a connection with keys that are too old.
    //= docs/specs/endpoint.md#END-46 fresh keys
    pub(crate) fn check_keys(&mut self, now: Time, index: u32) {
        let oldest_ps = OLDEST_PS.saturating_add(self.config.idle_timeout_ps);
        let connection = self.table.slot(index).filter(|connection| connection.stage == Stage::Open);
        let Some(Connection { seals: Some(seals), .. }) = connection else { return };
        if now.since(seals.since) >= oldest_ps {
            return self.give_up(now, index, ConnectionError::StaleKeys, CloseReason::Timeout);
        }
        if seals.rekey_at() <= now {
            self.request(now, index);
        }
    }

    /// Handles a message of an exchange. Counts one that is ignored.
    //= docs/specs/endpoint.md#END-46 fresh keys
    pub(crate) fn on_rekey(&mut self, now: Time, index: u32, rekey: &Rekey, port: EvPort) {
        let Self { table, shared, config, rekeys, .. } = self;
        let Some(connection) = table.slot(index) else { return };
        let said = match (connection.seals.as_deref_mut(), &config.keys) {
            (Some(seals), Some(_)) if rekey.answer => seals.take_answer(now, rekey).map(|()| keep_alive(now)),
            (Some(seals), Some(keys)) => seals.take_request(now, keys, rekey, rekeys).map(Body::Rekey),
            _ => Err(Unusable::Unexpected),
        };
        match said {
            Ok(body) => shared.control_queue.push_to(connection, port, body),
            Err(Unusable::Unexpected) => shared.stats.unexpected += 1,
            Err(Unusable::Forged) => shared.stats.forged += 1,
            Err(Unusable::TooMany) => shared.stats.exchanges_limited += 1,
        }
    }

    /// Sends the client's request, from another port each time.
    fn request(&mut self, now: Time, index: u32) {
        let port = self.any_port();
        let (Some(keys), Some(connection)) = (&self.config.keys, self.table.slot(index)) else { return };
        let rekey = connection.seals.as_deref_mut().and_then(|seals| seals.request(now, keys, &self.config.handshake));
        if let Some(rekey) = rekey {
            self.shared.control_queue.push_to(connection, port, Body::Rekey(rekey));
        }
    }
}
