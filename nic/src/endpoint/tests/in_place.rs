//! Payload that stays in the frames (zero-copy send and receive).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::*;

/// Every byte of a message, and the number of times it was received.
type Counted = Vec<(u8, u32)>;

/// Reassembles messages.
#[derive(Debug, Clone, Default)]
struct Collector(Arc<Mutex<HashMap<(ConnectionId, MessageId), Counted>>>);

impl Sink for Collector {
    fn take(&mut self, piece: &Chunk<'_>) {
        let mut messages = self.0.lock().unwrap();
        let message = messages.entry((piece.connection, piece.message)).or_default();
        message.resize(piece.message_bytes as usize, (0, 0));
        for (place, byte) in message[piece.offset as usize..].iter_mut().zip(piece.payload) {
            *place = (*byte, place.1 + 1);
        }
    }
}

/// A message without memory: byte `at` is computed from `at` and `seed`.
#[derive(Debug)]
struct Generated {
    seed: usize,
    bytes: usize,
}

impl Source for Generated {
    fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    fn fill(&self, offset: u64, to: &mut [u8]) {
        // Overwrites the previous contents of the frame.
        to.copy_from_slice(&content(self.seed, self.bytes)[offset as usize..][..to.len()]);
    }
}

fn rough() -> Impairments {
    Impairments {
        delay_ps: 5 * US,
        jitter_ps: 10 * US,
        loss_ppm: 100_000,
        duplicate_ppm: 50_000,
        corrupt_ppm: 20_000,
        trim_ppm: 50_000,
        ..Impairments::default()
    }
}

//= docs/specs/endpoint.md#END-12a zero-copy receive
//= docs/specs/endpoint.md#END-12b zero-copy send
#[test]
fn every_byte_is_delivered_once() {
    for v6 in [false, true] {
        let collector = Collector::default();
        let mut rig = Rig::new(2, v6, rough());
        let receiver = rig.endpoints.pop().unwrap();
        rig.endpoints.push(receiver.with_sink(Box::new(collector.clone())));
        let connection = rig.connect(0, 1);
        let lengths = [1, 999, 1_000, 1_001, 40_000];
        for (seed, bytes) in lengths.into_iter().enumerate() {
            rig.endpoints[0].send_from(connection, Box::new(Generated { seed, bytes })).unwrap();
        }
        rig.endpoints[0].send_from(connection, Box::new(Generated { seed: 0, bytes: 0 })).unwrap();
        let count = lengths.len() + 1;
        assert!(rig.run(50 * US, 2_000 * MS, |rig| rig.delivered(0) == count && rig.received(1).len() == count));
        assert!(rig.received(1).iter().all(|(.., data)| data.is_empty()));
        let messages = std::mem::take(&mut *collector.0.lock().unwrap());
        assert_eq!(messages.len(), lengths.len(), "a message without bytes has no piece");
        for ((_, MessageId(seed)), bytes) in messages {
            let expected: Counted =
                content(seed as usize, lengths[seed as usize]).iter().map(|byte| (*byte, 1)).collect();
            assert!(bytes == expected, "message {seed}");
        }
        rig.audit();
    }
}

/// Lent bytes count as consumed, so that more than the receiver's grant arrives although the user
/// takes no event.
//= docs/specs/endpoint.md#END-12a zero-copy receive
#[test]
fn lent_bytes_are_granted_again() {
    let mut rig = Rig::with(2, false, Impairments::delay(5 * US), |_, config| {
        (config.flow.max_data_bytes, config.flow.max_message_bytes) = (8_000, 8_000);
    });
    let receiver = rig.endpoints.pop().unwrap();
    rig.endpoints.push(receiver.with_sink(Box::new(Collector::default())));
    let connection = rig.connect(0, 1);
    for message in 0..10 {
        rig.endpoints[0].send(connection, content(message, 8_000)).unwrap();
    }
    assert!(rig.run(50 * US, 100 * MS, |rig| rig.delivered(0) == 10));
    assert_eq!(rig.endpoints[1].connection_stats(rig.accepted(1)[0]).unwrap().receiver.bytes, 80_000);
    rig.audit();
}
