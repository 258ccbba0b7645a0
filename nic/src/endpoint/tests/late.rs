//! Users that take messages late, and peers that count on it: what a message is handed out with is what its own packets wrote, and a
//! peer holds no more memory than it has sent.

use spray_wire::{Body, Common, Data};

use super::hostile::{STRANGER, Stranger};
use super::liars::let_in;
use super::*;

/// A peer that sends packets of its choice on a connection of host 1.
struct Attacker {
    stranger: Stranger,
    connection: u32,
    cookie: u64,
}

impl Attacker {
    fn new(rig: &mut Rig) -> Self {
        let mut stranger = Stranger::new(rig);
        let (connection, cookie) = let_in(rig, &mut stranger, 1).unwrap();
        rig.run(US, 10 * US, |_| false);
        Self { stranger, connection, cookie }
    }

    /// Sends a packet whose payload is filled with `byte`, and has host 1 handle it. Its user takes nothing.
    fn send(&mut self, rig: &mut Rig, data: Data, byte: u8) {
        let common = Common { connection: self.connection, cookie: self.cookie, ..Common::default() };
        let payload = vec![byte; data.payload_bytes.into()];
        self.stranger.emit(rig, [STRANGER, 1], &common, &Body::Data(data), &payload);
        rig.now = rig.now.after(10 * US);
        rig.network.advance(rig.now);
        rig.endpoints[1].poll(rig.now);
        self.stranger.received();
    }

    /// Sends the packets `from..until` of a message of 100 packets, the first of which has the number `first`.
    fn send_part(&mut self, rig: &mut Rig, (message, first): (u32, u64), (from, until): (u64, u64), byte: u8) {
        for number in from..until {
            let (offset, psn) = (number * 1000, first + number);
            let data = Data { psn, message, offset, message_bytes: 100_000, payload_bytes: 1000, ..Data::default() };
            self.send(rig, data, byte);
        }
    }
}

/// One message after the other has the same number, while the user has taken none: an attack that returned another peer's bytes.
//= docs/specs/transport.md#TRN-53 refused packets
#[test]
fn a_number_that_comes_again_reveals_nothing() {
    let mut rig = Rig::with(2, false, Impairments::delay(US), |_, config| config.flow.max_data_bytes = 1 << 30);
    let victim = rig.connect(0, 1);
    for _ in 0..4 {
        rig.endpoints[0].send(victim, Bytes::from(vec![0x5e; 100_000])).unwrap();
    }
    assert!(rig.run(US, 10 * MS, |rig| rig.delivered(0) == 4));
    rig.events.iter_mut().for_each(Vec::clear);
    let mut attacker = Attacker::new(&mut rig);
    rig.events.iter_mut().for_each(Vec::clear);
    // As many as may wait for the user.
    let few = u64::from(owner::MAX_UNREAD);
    for psn in 0..few {
        let data = Data { psn, message: psn as u32, message_bytes: 1, payload_bytes: 1, ..Data::default() };
        attacker.send(&mut rig, data, 0xa0);
    }
    let number = few as u32;
    attacker.send_part(&mut rig, (number, few), (0, 100), 0xa1);
    attacker.send_part(&mut rig, (number, few + 100), (0, 99), 0xa2);
    let taken: Vec<_> = std::iter::from_fn(|| rig.endpoints[1].poll_event()).collect();
    assert_eq!(taken.len() as u64, few);
    rig.run(US, 20 * US, |_| false);
    attacker.send_part(&mut rig, (number, few + 100), (99, 100), 0xa2);
    rig.run(US, 20 * US, |_| false);
    let received = rig.received(1);
    let others: usize = received.iter().map(|(.., data)| data.iter().filter(|byte| **byte == 0x5e).count()).sum();
    assert_eq!(others, 0, "bytes of another peer");
    assert!(
        received.iter().all(|(.., data)| data.iter().all(|byte| *byte == 0xa1)),
        "only what the message itself wrote"
    );
    assert_eq!(received.len(), 1);
}
