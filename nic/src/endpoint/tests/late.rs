//! Users that take messages late, and peers that exploit this: a message contains only bytes that
//! its own packets wrote, and a peer uses no more memory than it has sent.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use spray_wire::{Body, Common, Data};

use super::arbitrary::open_unauthenticated;
use super::hostile::{RAW_HOST, RawHost};
use super::*;

/// A peer that sends arbitrary packets on a connection of host 1.
struct Attacker {
    raw_host: RawHost,
    connection: u32,
    cookie: u64,
}

impl Attacker {
    fn new(rig: &mut Rig) -> Self {
        let mut raw_host = RawHost::new(rig);
        let (connection, cookie) = open_unauthenticated(rig, &mut raw_host, 1).unwrap();
        rig.run(US, 10 * US, |_| false);
        Self { raw_host, connection, cookie }
    }

    /// Sends a packet with a payload of `byte`, and has host 1 process it. Its user takes nothing.
    fn send(&mut self, rig: &mut Rig, data: Data, byte: u8) {
        let common = Common { connection: self.connection, cookie: self.cookie, ..Common::default() };
        let payload = vec![byte; data.payload_bytes.into()];
        self.raw_host.emit(rig, [RAW_HOST, 1], &common, &Body::Data(data), &payload);
        rig.now = rig.now.after(10 * US);
        rig.network.advance(rig.now);
        rig.endpoints[1].poll(rig.now);
        self.raw_host.received();
    }

    /// Sends the packets `from..until` of a message of 100 packets, the first of which has the
    /// number `first`.
    fn send_part(&mut self, rig: &mut Rig, (message, first): (u32, u64), (from, until): (u64, u64), byte: u8) {
        for number in from..until {
            let (offset, psn) = (number * 1000, first + number);
            let data = Data { psn, message, offset, message_bytes: 100_000, payload_bytes: 1000, ..Data::default() };
            self.send(rig, data, byte);
        }
    }
}

/// Successive messages reuse one number while the user takes none: an attack that used to return
/// another peer's bytes.
//= docs/specs/transport.md#TRN-53 refused packets
#[test]
fn a_reused_message_number_reveals_no_data() {
    let mut rig = Rig::with(2, false, Impairments::delay(US), |_, config| config.flow.max_data_bytes = 1 << 30);
    let victim = rig.connect(0, 1);
    for _ in 0..4 {
        rig.endpoints[0].send(victim, Bytes::from(vec![0x5e; 100_000])).unwrap();
    }
    assert!(rig.run(US, 10 * MS, |rig| rig.delivered(0) == 4));
    rig.events.iter_mut().for_each(Vec::clear);
    let mut attacker = Attacker::new(&mut rig);
    rig.events.iter_mut().for_each(Vec::clear);
    // The number of messages that may wait for the user.
    let few = u64::from(shared::MAX_UNREAD);
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

/// An action of host 1, or of a peer on one of its connections.
#[derive(Clone, Debug)]
enum Step {
    /// The peer sends packets of the message with this number at another place in the packet
    /// sequence.
    Send { message: u32, place: u64, from: u64, until: u64 },
    /// The user takes a number of messages.
    Take(usize),
    /// Another peer sends messages, which the user takes and drops at once.
    Others,
}

/// Packets of each message.
const PACKETS: u64 = 70;

fn step() -> impl Strategy<Value = Step> {
    let part = prop_oneof![
        2 => Just((0, PACKETS)),
        1 => Just((0, PACKETS - 1)),
        1 => Just((PACKETS - 1, PACKETS)),
        2 => (0..PACKETS, 0..PACKETS).prop_map(|(one, other)| (one.min(other), one.max(other)))
    ];
    prop_oneof![
        8 => (0..4u32, 0..8u64, part).prop_map(|(message, place, (from, until))| Step::Send { message, place, from, until }),
        2 => (1..4usize).prop_map(Step::Take),
        1 => Just(Step::Others),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Each message is delivered once, with what its packets wrote, regardless of how late the user
    /// takes it.
    //= docs/specs/endpoint.md#END-12 only bytes that its own packets wrote
    #[test]
    fn messages_taken_late_contain_what_was_sent(steps in prop::collection::vec(step(), 1..40)) {
        let mut rig = Rig::with(2, false, Impairments::delay(US), |_, config| {
            (config.flow.max_data_bytes, config.flow.window_packets) = (1 << 30, 1024);
        });
        let victim = rig.connect(0, 1);
        rig.run(US, MS, |_| false);
        let mut attacker = Attacker::new(&mut rig);
        let id = ConnectionId(attacker.connection);
        // All but two of the messages that may wait.
        let index = rig.endpoints[1].machine.table.find(id).unwrap();
        rig.endpoints[1].machine.table.slot(index).unwrap().unread = shared::MAX_UNREAD - 2;
        let (mut sent, mut taken) = (HashMap::<(u32, u64), HashSet<u8>>::new(), HashSet::new());
        for (number, step) in steps.into_iter().enumerate() {
            let most = match step {
                Step::Send { message, place, from, until } => {
                    // A value that no other message has, and not 0.
                    let byte = 1 + (message * 60 + number as u32) as u8 % 60 + 60 * message as u8;
                    for packet in from..until {
                        sent.entry((message, packet)).or_default().insert(byte);
                        let data = Data {
                            psn: place * PACKETS + packet,
                            message,
                            offset: packet * 1000,
                            message_bytes: PACKETS * 1000,
                            payload_bytes: 1000,
                            ..Data::default()
                        };
                        attacker.send(&mut rig, data, byte);
                    }
                    continue;
                }
                Step::Take(most) => most,
                Step::Others => {
                    for _ in 0..3 {
                        let _ = rig.endpoints[0].send(victim, Bytes::from(vec![0xfe; 70_000]));
                    }
                    rig.run(10 * US, MS, |_| false);
                    rig.events.iter_mut().for_each(Vec::clear);
                    continue;
                }
            };
            for _ in 0..most {
                let Some(event) = rig.endpoints[1].poll_event() else { break };
                let EndpointEvent::Received { connection, message, data, .. } = event else { continue };
                prop_assert_eq!(connection, id);
                prop_assert!(taken.insert(message.0), "message {} is delivered twice", message.0);
                prop_assert_eq!(data.len() as u64, PACKETS * 1000);
                for (packet, bytes) in (0..).zip(data.chunks(1000)) {
                    prop_assert!(bytes.iter().all(|byte| byte == &bytes[0]));
                    prop_assert!(sent.get(&(message.0, packet)).is_some_and(|sent| sent.contains(&bytes[0])));
                }
            }
        }
    }
}
