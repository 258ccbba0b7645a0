//! Go-back-N against a transcription of the rules in HPCC's published artifact.

use std::vec::Vec;

use proptest::prelude::*;
use spray_wire::{Ack, Data, EvPort, Nack};

use super::*;
use crate::loss::GoBackNConfig;
use crate::rng;
use crate::tests::at_step;
use crate::units::Micros;

const INTERVAL_US: u64 = 40;

fn config() -> FlowConfig {
    let own = GoBackNConfig { nack_interval_us: Micros::new(INTERVAL_US) };
    FlowConfig { receiver: ReceiverConfig::GoBackN(own), ..open_config() }
}

fn arrival(psn: u64) -> Arrival {
    let data = Data {
        psn,
        timestamp: at_step(psn + 1),
        message: 1,
        offset: psn * 1000,
        message_bytes: 1_000_000,
        payload_bytes: 1000,
        ..Data::default()
    };
    Arrival { data, port: EvPort::new(1000), marked: psn % 2 == 1, hops: 3, ..Arrival::default() }
}

/// The receiver's answer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    Ack(u64),
    Nack(u64),
    Nothing,
}

/// `RdmaHw::ReceiverCheckSeq`, with packets instead of bytes and an acknowledgement for every
/// packet.
#[derive(Default)]
struct LiteralReceiver {
    expected: u64,
    nack_timer_ps: u64,
    last_nack: Option<u64>,
}

impl LiteralReceiver {
    fn check_seq(&mut self, now_ps: u64, seq: u64) -> Answer {
        if seq == self.expected {
            self.expected += 1;
            Answer::Ack(self.expected)
        } else if seq > self.expected {
            if now_ps >= self.nack_timer_ps || self.last_nack != Some(self.expected) {
                self.nack_timer_ps = now_ps + INTERVAL_US * US;
                self.last_nack = Some(self.expected);
                Answer::Nack(self.expected)
            } else {
                Answer::Nothing
            }
        } else {
            // The artifact sends nothing here; TRN-51 requires an answer, as InfiniBand does.
            Answer::Ack(self.expected)
        }
    }
}

/// A sender of the artifact: `RdmaQueuePair` and `RecoverQueue`.
#[derive(Default)]
struct LiteralSender {
    una: u64,
    next: u64,
    highest: u64,
}

impl LiteralSender {
    fn acknowledge(&mut self, seq: u64) {
        self.una = self.una.max(seq);
        self.next = self.next.max(self.una);
    }

    fn recover(&mut self) {
        self.next = self.una;
    }

    fn send(&mut self) -> u64 {
        self.next += 1;
        self.highest = self.highest.max(self.next);
        self.next - 1
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Send(u8),
    Ack(u8),
    Nack(u8),
    /// A NACK that arrives late.
    Stale(u8),
    Timeout,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (1..12u8).prop_map(Op::Send),
        3 => (0..20u8).prop_map(Op::Ack),
        2 => (0..20u8).prop_map(Op::Nack),
        1 => (1..20u8).prop_map(Op::Stale),
        1 => Just(Op::Timeout),
    ]
}

struct Ends {
    sender: Sender,
    rng: rng::Rng,
    now: Time,
    literal: LiteralSender,
}

impl Ends {
    fn new() -> Self {
        let mut rng = rng::stream(1, 1);
        let config = FlowConfig { window_packets: 4096, give_up_ps: u64::MAX / 2, ..config() };
        let mut sender = Sender::new(&config, 4096, u64::MAX, &mut rng);
        sender.send_message(1, 1 << 30).unwrap();
        Self { sender, rng, now: at(US), literal: LiteralSender::default() }
    }

    fn step(&mut self, op: Op) -> Result<(), TestCaseError> {
        self.now = self.now.after(US);
        let (now, una, highest) = (self.now, self.literal.una, self.literal.highest);
        let ahead = |ahead: u8| (una + u64::from(ahead)).min(highest);
        let nack = |psn| Nack {
            psn,
            timestamp_echo: now.before(Time::STEP_PS),
            port: EvPort::new(7),
            go_back: true,
            ..Nack::default()
        };
        match op {
            Op::Send(packets) => (0..packets).try_for_each(|_| self.send())?,
            Op::Ack(packets) => {
                let cumulative = ahead(packets);
                self.sender.on_ack(now, &Ack { cumulative, sack_base: cumulative, ..Ack::default() }, &mut ());
                self.literal.acknowledge(cumulative);
            }
            Op::Nack(packets) => {
                let expected = ahead(packets);
                self.sender.on_nack(now, &nack(expected), &mut ());
                self.literal.acknowledge(expected);
                self.literal.recover();
            }
            Op::Stale(_) if una == 0 => {}
            Op::Stale(packets) => self.sender.on_nack(now, &nack(una.saturating_sub(packets.into())), &mut ()),
            Op::Timeout => {
                if self.literal.next > una {
                    self.now = self.sender.poll_timeout().unwrap().max(now);
                    self.sender.on_timeout(self.now, &mut ());
                    self.literal.recover();
                }
            }
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), TestCaseError> {
        let sent = self.sender.poll_transmit(self.now, &mut self.rng, &mut ());
        let Some(Transmit::Data { data, .. }) = sent else { return Err(TestCaseError::fail("nothing to send")) };
        let again = self.literal.next < self.literal.highest;
        prop_assert_eq!((data.psn, data.retransmit), (self.literal.send(), again));
        Ok(())
    }
}

proptest! {
    /// For any arrivals: which packets are stored, and which answers are sent.
    //= docs/specs/go-back-n.md#GBN-1 accepted packets
    //= docs/specs/go-back-n.md#GBN-2 one NACK for a gap
    #[test]
    fn the_receiver_agrees_with_the_published_one(arrivals in prop::collection::vec((0..12u64, 0..30u64), 1..200)) {
        let (mut receiver, mut literal, mut now_ps) = (Receiver::new(&config()), LiteralReceiver::default(), 0);
        for (ahead, after_us) in arrivals {
            now_ps += after_us * US;
            let psn = (literal.expected + ahead).saturating_sub(4).min(literal.expected + 8);
            let is_stored = matches!(receiver.on_data(at(now_ps), &arrival(psn)), DataOutcome::New { place: Some(_) });
            prop_assert_eq!(is_stored, psn == literal.expected);
            let expected = literal.check_seq(now_ps, psn);
            let acks: Vec<_> = core::iter::from_fn(|| receiver.poll_ack()).collect();
            let nacks: Vec<_> = core::iter::from_fn(|| receiver.poll_nack()).collect();
            let answer = match (&acks[..], &nacks[..]) {
                ([ack], []) => Answer::Ack(ack.cumulative),
                ([], [nack]) if nack.go_back && !nack.missing => Answer::Nack(nack.psn),
                ([], []) => Answer::Nothing,
                other => return Err(TestCaseError::fail(std::format!("{other:?}"))),
            };
            prop_assert_eq!((answer, receiver.cumulative()), (expected, literal.expected));
            prop_assert!(acks.iter().all(|ack| ack.bitmap == [0; 4]));
        }
    }

    /// For any feedback: which packet is sent next.
    //= docs/specs/go-back-n.md#GBN-4 going back
    //= docs/specs/go-back-n.md#GBN-6 timeouts
    #[test]
    fn the_sender_agrees_with_the_published_one(ops in prop::collection::vec(op(), 1..120)) {
        let mut ends = Ends::new();
        ops.into_iter().try_for_each(|op| ends.step(op))?;
    }
}

//= docs/specs/go-back-n.md#GBN-3 content of a NACK
#[test]
fn a_nack_acknowledges_and_reports_the_packet_that_was_dropped() {
    let mut receiver = Receiver::new(&config());
    receiver.on_data(Time::ZERO, &arrival(0));
    assert_eq!(receiver.on_data(Time::ZERO, &arrival(3)), DataOutcome::OutOfOrder);
    let nack = receiver.poll_nack().unwrap();
    let expected = Nack {
        psn: 1,
        timestamp_echo: at_step(4),
        port: EvPort::new(1000),
        hops: 3,
        marked: true,
        go_back: true,
        ..Nack::default()
    };
    assert_eq!(nack, expected);
    let mut ends = Ends::new();
    (0..4).for_each(|_| ends.send().unwrap());
    let nack = Nack { psn: 2, timestamp_echo: ends.now, go_back: true, marked: true, port: EvPort::new(7), ..nack };
    ends.sender.on_nack(ends.now.after(9 * US), &nack, &mut ());
    let stats = ends.sender.stats();
    assert_eq!((stats.packets_acked, stats.missing, stats.gone_back, stats.marked_acks), (2, 1, 1, 1));
    assert_eq!((ends.sender.rtt().min_ps(), ends.sender.in_flight_bytes()), (9 * US, 0));
    // A NACK for packets that were never sent.
    ends.sender.on_nack(ends.now, &Nack { psn: 5, ..nack }, &mut ());
    assert_eq!(ends.sender.stats().invalid_acks, 1);
}

//= docs/specs/go-back-n.md#GBN-5 reported losses
#[test]
fn only_the_missing_packet_shrinks_the_window() {
    let mut ends = Ends::new();
    (0..100).for_each(|_| ends.send().unwrap());
    let before = ends.sender.window_bytes();
    let nack = Nack { psn: 0, timestamp_echo: ends.now, go_back: true, port: EvPort::new(7), ..Nack::default() };
    ends.sender.on_nack(ends.now.after(US), &nack, &mut ());
    assert_eq!(before - ends.sender.window_bytes(), 1100, "DCTCP takes a lost packet's bytes");
    assert_eq!(ends.sender.stats().gone_back, 99);
}

//= docs/specs/go-back-n.md#GBN-1 accepted packets
#[test]
fn trimmed_frames_are_dropped_without_an_answer() {
    let mut receiver = Receiver::new(&config());
    for psn in [0, 2] {
        let trimmed = Arrival { trimmed: true, ..arrival(psn) };
        assert_eq!(receiver.on_data(Time::ZERO, &trimmed), DataOutcome::Trimmed);
    }
    assert_eq!((receiver.poll_ack(), receiver.poll_nack(), receiver.stats().trimmed), (None, None, 2));
}

//= docs/specs/go-back-n.md#GBN-7 both ends
#[test]
fn a_sender_that_does_not_go_back_ignores_the_nack() {
    let mut rng = rng::stream(1, 1);
    let mut sender = Sender::new(&open_config(), 64, u64::MAX, &mut rng);
    sender.send_message(1, 5000).unwrap();
    while sender.poll_transmit(at(US), &mut rng, &mut ()).is_some() {}
    sender.on_nack(at(2 * US), &Nack { psn: 1, timestamp_echo: at(US), go_back: true, ..Nack::default() }, &mut ());
    assert_eq!((sender.stats().stale_nacks, sender.stats().packets_acked), (1, 0));
}
