//! Connections that last for minutes, with exchanges of fresh keys that are lost, repeated and
//! reordered.

use spray_wire::{Body, Rekey, RekeyMessage};

use super::*;
use crate::keys::{Keys, PrivateKey};

const SECOND: u64 = 1000 * MS;
/// The host that forwards the frames of the two others.
const ATTACKER: usize = 9;
/// By then a first exchange is complete.
const FIRST: u64 = 129 * SECOND;

/// Gives both hosts one key.
fn with_keys() -> impl FnMut(usize, &mut EndpointConfig) {
    let keys = Keys::new(PrivateKey::generate().unwrap(), vec![]);
    move |_, config| {
        config.keys = Some(keys.clone());
        config.idle_timeout_ps = SECOND;
        config.flow.max_data_bytes = 1 << 20;
        config.flow.max_message_bytes = 1 << 19;
    }
}

impl Rig {
    /// Returns the generations of this connection's keys, at the client and at the server.
    fn generations(&self, both: [ConnectionId; 2]) -> [u16; 2] {
        let of = |host: usize| {
            let connection = self.endpoints[host].machine.table.get(both[host]).unwrap();
            connection.seals.as_ref().unwrap().opener.generation()
        };
        [of(0), of(1)]
    }

    fn sent_rekeys(&self) -> [u64; 2] {
        [0, 1].map(|host| self.endpoints[host].stats().sent[Kind::Rekey])
    }
}

/// Messages are sent in both directions throughout, while frames are lost, duplicated, reordered,
/// corrupted and trimmed.
//= docs/specs/endpoint.md#END-46 fresh keys
#[test]
fn keys_change_every_two_minutes_while_data_flows() {
    let impairments = Impairments {
        delay_ps: 5 * US,
        jitter_ps: 20 * US,
        loss_ppm: 20_000,
        duplicate_ppm: 20_000,
        corrupt_ppm: 20_000,
        mark_ppm: 0,
        trim_ppm: 20_000,
    };
    let mut rig = Rig::with(2, false, impairments, with_keys());
    let ours = rig.connect(0, 1);
    assert!(rig.run(5 * US, 100 * MS, |rig| !rig.accepted(1).is_empty()));
    let both = [ours, rig.accepted(1)[0]];
    for round in 0..2_000 {
        for (host, connection) in both.into_iter().enumerate() {
            rig.endpoints[host].send_at(connection, content(round, 3_000), rig.now).unwrap();
        }
        let next = rig.now.after(200 * MS);
        let arrived = |rig: &mut Rig| [0, 1].into_iter().all(|host| rig.delivered(host) == round + 1);
        let (failed, stats) = ([rig.failed(0), rig.failed(1)], rig.endpoints[1].stats());
        assert!(rig.run(20 * MS, SECOND, arrived), "{round}: {failed:?} {stats:?}");
        rig.run(20 * MS, next.since(rig.now), |_| false);
    }
    assert_eq!(rig.generations(both), [3, 3], "in 400 s");
    for host in [0, 1] {
        let received = rig.received(host);
        assert_eq!(received.len(), 2_000);
        assert!(
            received
                .iter()
                .enumerate()
                .all(|(at, (_, message, data))| message.0 as usize == at && *data == content(at, 3_000))
        );
        assert!(rig.failed(host).is_empty());
    }
    rig.endpoints[1].close(both[1]);
    assert!(rig.run(5 * US, 1000 * MS, |rig| rig.closed(0) == 1 && rig.closed(1) == 1));
    rig.audit();
}

/// What happens to a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Treatment {
    Forward,
    Lose,
    Duplicate,
    /// It is delivered after the next frame in its direction.
    Delay,
    /// It is delivered when the test releases it.
    Hold,
}

/// An on-path attacker between two hosts, which recognises Rekeys, as anyone can, and forwards all
/// other frames.
struct OnPathAttacker {
    device: MemoryDevice,
    arrivals: Vec<Received>,
    delayed: Vec<Vec<u8>>,
    held: Vec<Vec<u8>>,
    rekeys: Vec<Rekey>,
}

impl OnPathAttacker {
    fn new(rig: &Rig) -> Self {
        let device = rig.network.attach(mac(ATTACKER));
        Self { device, arrivals: Vec::with_capacity(256), delayed: Vec::new(), held: Vec::new(), rekeys: Vec::new() }
    }

    /// Connects two hosts through this one.
    fn connect(&mut self, rig: &mut Rig) -> [ConnectionId; 2] {
        let peer = Peer { mac: mac(ATTACKER), ..peer(1, false) };
        let ours = rig.endpoints[0].connect(rig.now, peer, None).unwrap();
        assert!(self.run(rig, 10 * MS, |_, _| Treatment::Forward, |rig| !rig.accepted(1).is_empty()));
        [ours, rig.accepted(1)[0]]
    }

    /// Runs until `done` returns true or `limit_ps` has passed. `treatment` gets the Rekeys, numbered
    /// from 0 per side, and the client's later frames.
    fn run(
        &mut self,
        rig: &mut Rig,
        limit_ps: u64,
        mut treatment: impl FnMut(&Rekey, usize) -> Treatment,
        mut done: impl FnMut(&mut Rig) -> bool,
    ) -> bool {
        let end = rig.now.after(limit_ps);
        while rig.now < end {
            let next_at = rig.step(rig.now);
            self.forward(&mut treatment);
            if done(rig) {
                return true;
            }
            let next_at = next_at.min(rig.network.next_due().unwrap_or(Time::NEVER));
            rig.now = next_at.clamp(rig.now.after(100_000), rig.now.after(50 * MS)).min(end);
        }
        false
    }

    fn forward(&mut self, treatment: &mut impl FnMut(&Rekey, usize) -> Treatment) {
        self.device.receive(&mut self.arrivals, 256).unwrap();
        for arrival in self.arrivals.drain(..).collect::<Vec<_>>() {
            let frame = self.device.frame(&arrival.frame, arrival.len).to_vec();
            self.device.release(arrival.frame);
            let mut copy = frame.clone();
            // Decided without keys, from readable fields.
            let body = spray_wire::open(&mut copy, spray_wire::Ports::DEFAULT, |_| true)
                .ok()
                .flatten()
                .map(|frame| frame.body);
            let Some(Body::Rekey(rekey)) = body else {
                self.pass(&frame);
                self.release_delayed();
                continue;
            };
            let number = self.rekeys.iter().filter(|known| known.answer == rekey.answer).count();
            self.rekeys.push(rekey);
            match treatment(&rekey, number) {
                Treatment::Forward => self.pass(&frame),
                Treatment::Lose => {}
                Treatment::Duplicate => [(); 2].into_iter().for_each(|()| self.pass(&frame)),
                Treatment::Delay => {
                    self.delayed.push(frame);
                    continue;
                }
                Treatment::Hold => self.held.push(frame),
            }
            self.release_delayed();
        }
    }

    fn release_delayed(&mut self) {
        std::mem::take(&mut self.delayed).iter().for_each(|frame| self.pass(frame));
    }

    fn release_held(&mut self) {
        std::mem::take(&mut self.held).iter().for_each(|frame| self.pass(frame));
    }

    fn pass(&mut self, frame: &[u8]) {
        // The last byte of the destination address is the host's number plus one.
        let host = usize::from(frame[33]) - 1;
        self.device.flush().unwrap();
        let place = self.device.allocate().unwrap();
        let copy = self.device.frame_mut(&place);
        copy[..frame.len()].copy_from_slice(frame);
        copy[..6].copy_from_slice(&mac(host));
        copy[6..12].copy_from_slice(&mac(ATTACKER));
        self.device.transmit(place, frame.len() as u32).unwrap();
        self.device.flush().unwrap();
    }

    /// Returns the number of exchanges and of answers; repeated messages count once.
    fn exchanges(&self) -> [usize; 2] {
        [false, true].map(|answer| {
            let messages = self.rekeys.iter().filter(|rekey| rekey.answer == answer).map(|rekey| rekey.message.0);
            messages.collect::<std::collections::HashSet<_>>().len()
        })
    }
}

/// Creates two hosts and the attacker between them, with an open connection.
fn with_attacker() -> (Rig, OnPathAttacker, [ConnectionId; 2]) {
    let mut rig = Rig::with(2, false, Impairments::delay(5 * US), with_keys());
    let mut attacker = OnPathAttacker::new(&rig);
    let both = attacker.connect(&mut rig);
    (rig, attacker, both)
}

/// Sends a message in each direction and waits until both arrive.
fn exchange_messages(rig: &mut Rig, attacker: &mut OnPathAttacker, both: [ConnectionId; 2]) {
    let before = [rig.received(0).len(), rig.received(1).len()];
    for host in [0, 1] {
        rig.endpoints[host].send_at(both[host], content(before[host], 20_000), rig.now).unwrap();
    }
    let arrived = |rig: &mut Rig| [0, 1].into_iter().all(|host| rig.received(host).len() == before[host] + 1);
    assert!(attacker.run(rig, 90 * MS, |_, _| Treatment::Forward, arrived));
    assert!([0, 1].into_iter().all(|host| rig.received(host)[before[host]].2 == content(before[host], 20_000)));
}

/// The first of the client's messages, the first of the answers, or both.
//= docs/specs/endpoint.md#END-46 fresh keys
#[test]
fn lost_and_repeated_messages_leave_one_exchange() {
    use Treatment::{Delay, Duplicate, Forward, Hold, Lose};
    for busy in [false, true] {
        for client_terms in [Forward, Lose, Duplicate, Delay, Hold] {
            for answer in [Forward, Lose, Duplicate, Delay, Hold] {
                let (mut rig, mut attacker, both) = with_attacker();
                exchange_messages(&mut rig, &mut attacker, both);
                assert!(!attacker.run(&mut rig, 119 * SECOND, |_, _| Forward, |rig| rig.sent_rekeys() != [0, 0]));
                if busy {
                    for host in [0, 1] {
                        for at in 0..900 {
                            let at = rig.now.after(at * 10 * MS);
                            rig.endpoints[host].send_at(both[host], content(1, 300), at).unwrap();
                        }
                    }
                }
                let treatment = |rekey: &Rekey, number| match (rekey.answer, number) {
                    (false, 0) => client_terms,
                    (true, 0) => answer,
                    _ => Forward,
                };
                assert!(!attacker.run(&mut rig, 10 * SECOND, treatment, |_| false));
                assert_eq!(rig.generations(both), [1, 1], "{client_terms:?} {answer:?}");
                // A late message belongs to a completed exchange.
                attacker.release_held();
                attacker.run(&mut rig, MS, |_, _| Forward, |_| false);
                assert_eq!(
                    (rig.generations(both), attacker.exchanges()),
                    ([1, 1], [1, 1]),
                    "{client_terms:?} {answer:?}"
                );
                let of =
                    |count: fn(&EndpointStats) -> u64| rig.endpoints.iter().map(|end| count(&end.stats())).sum::<u64>();
                assert_eq!((of(|stats| stats.forged), of(|stats| stats.exchanges_limited)), (0, 0));
                let repeats =
                    [client_terms, answer].map(|treatment| u64::from(treatment == Duplicate)).iter().sum::<u64>();
                assert_eq!(of(|stats| stats.replayed), repeats);
                if [client_terms, answer].contains(&Hold) {
                    assert!(of(|stats| stats.unexpected) > 0, "{client_terms:?} {answer:?}");
                }
                if busy {
                    assert_eq!(rig.received(0).len() + rig.received(1).len(), 2 + 2 * 900);
                    assert!(
                        (0..2).all(|host| rig.received(host)[1..].iter().all(|(.., data)| *data == content(1, 300)))
                    );
                } else {
                    exchange_messages(&mut rig, &mut attacker, both);
                }
                assert!(rig.failed(0).is_empty() && rig.failed(1).is_empty());
            }
        }
    }
}

/// An attacker that may have the keys drops the messages of exchanges, or those of one side, and
/// forwards all other frames.
//= docs/specs/endpoint.md#END-46 older than 180 s
#[test]
fn a_connection_with_blocked_exchanges_ends() {
    for answers in [false, true] {
        let (mut rig, mut attacker, _) = with_attacker();
        let treatment = |rekey: &Rekey, _| if rekey.answer == answers { Treatment::Lose } else { Treatment::Forward };
        assert!(!attacker.run(&mut rig, 180 * SECOND, treatment, |rig| rig.failed(0).len() + rig.failed(1).len() > 0));
        // The idle timeout, plus a third of it until the next check.
        assert!(attacker.run(&mut rig, 1_400 * MS, treatment, |rig| rig.failed(0).len() + rig.failed(1).len() == 2));
        let failed = [rig.failed(0)[0], rig.failed(1)[0]];
        assert!(failed.contains(&ConnectionError::StaleKeys), "{failed:?}");
        assert!(failed.iter().all(|error| matches!(error, ConnectionError::StaleKeys | ConnectionError::Aborted)));
        assert!(attacker.exchanges()[0] == 1 && attacker.rekeys.len() > 60, "one message, again and again");
        rig.audit();
    }
}

//= docs/specs/endpoint.md#END-10 closing
#[test]
fn either_side_may_close_during_an_exchange() {
    for (held, closes) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
        let (mut rig, mut attacker, both) = with_attacker();
        let treatment = |rekey: &Rekey, _| if rekey.answer == held { Treatment::Hold } else { Treatment::Forward };
        assert!(attacker.run(&mut rig, FIRST, treatment, |rig| rig.sent_rekeys()[usize::from(held)] > 0));
        rig.endpoints[closes].close(both[closes]);
        attacker.run(&mut rig, 3 * US, treatment, |_| false);
        attacker.release_held();
        assert!(
            attacker.run(&mut rig, 50 * MS, treatment, |rig| rig.closed(0) == 1 && rig.closed(1) == 1),
            "{held} {closes}"
        );
        assert!(rig.failed(0).is_empty() && rig.failed(1).is_empty());
        rig.audit();
    }
}

/// The peer has the keys, and sends invalid messages for the right generation.
//= docs/specs/endpoint.md#END-46 no sooner than 60 s after
#[test]
fn few_messages_of_a_flooding_peer_are_read() {
    let mut rig = Rig::with(2, false, Impairments::delay(5 * US), with_keys());
    let ours = rig.connect(0, 1);
    assert!(rig.run(US, MS, |rig| rig.accepted(1).len() == 1));
    let both = [ours, rig.accepted(1)[0]];
    for round in 0..700u32 {
        let message = RekeyMessage(std::array::from_fn(|at| (round as usize + at) as u8));
        let machine = &mut rig.endpoints[0].machine;
        let index = machine.table.find(ours).unwrap();
        let port = machine.any_port();
        let rekey = Body::Rekey(Rekey { generation: 1, message, answer: round % 5 == 4 });
        machine.shared.control_queue.push_to(machine.table.slot(index).unwrap(), port, rekey);
        rig.run(50 * MS, 100 * MS, |_| false);
    }
    let stats = rig.endpoints[1].stats();
    assert_eq!((stats.forged, stats.exchanges_limited, stats.unexpected), (1, 700 * 4 / 5 - 1, 700 / 5), "{stats:?}");
    assert_eq!((stats.sent[Kind::Rekey], rig.generations(both)), (0, [0, 0]));
    // A valid message is still processed.
    assert!(!rig.run(50 * MS, 60 * SECOND, |rig| rig.failed(1).len() == 1));
    assert_eq!(rig.generations(both), [1, 1]);
    rig.audit();
}

/// The connection is checked for silence once in 20 minutes, and for its keys when they are due.
//= docs/specs/endpoint.md#END-46 fresh keys
#[test]
fn keys_change_where_peers_may_be_silent_for_an_hour() {
    let mut change = with_keys();
    let mut rig = Rig::with(2, false, Impairments::delay(5 * US), |host, config| {
        change(host, config);
        config.idle_timeout_ps = 3_600 * SECOND;
    });
    let ours = rig.connect(0, 1);
    assert!(rig.run(US, MS, |rig| rig.accepted(1).len() == 1));
    let both = [ours, rig.accepted(1)[0]];
    for exchange in 0..4 {
        assert_eq!(rig.generations(both), [exchange; 2]);
        assert!(rig.run(SECOND, FIRST, |rig| rig.generations(both) == [exchange + 1; 2]));
    }
    assert_eq!(rig.endpoints[0].stats().sent[Kind::Rekey], 4);
}

/// A plain connection has no keys to change, and ignores a Rekey.
//= docs/specs/endpoint.md#END-46 changes nothing but a counter
#[test]
fn a_plain_connection_ignores_rekeys() {
    let mut rig = Rig::new(2, false, Impairments::delay(5 * US));
    let ours = rig.connect(0, 1);
    assert!(rig.run(US, MS, |rig| rig.accepted(1).len() == 1));
    for answer in [false, true] {
        let machine = &mut rig.endpoints[0].machine;
        let index = machine.table.find(ours).unwrap();
        let port = machine.any_port();
        let rekey = Body::Rekey(Rekey { generation: 1, answer, ..Rekey::default() });
        machine.shared.control_queue.push_to(machine.table.slot(index).unwrap(), port, rekey);
    }
    assert!(!rig.run(50 * MS, 400 * SECOND, |rig| rig.failed(0).len() == 1));
    assert_eq!((rig.endpoints[1].stats().unexpected, rig.sent_rekeys()), (2, [2, 0]));
    rig.audit();
}
