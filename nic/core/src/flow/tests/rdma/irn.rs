//! IRN against a transcription of the sender in §3.1 and §3.2 of the paper.

use std::collections::BTreeSet;
use std::vec::Vec;

use proptest::prelude::*;
use spray_wire::{Ack, Data, EvPort, Nack};

use super::*;
use crate::rng;
use crate::units::Micros;

const CAP: u64 = 24;

fn config(own: IrnConfig) -> FlowConfig {
    FlowConfig { receiver: ReceiverConfig::Irn(own), window_packets: 256, give_up_ps: u64::MAX / 2, ..open_config() }
}

fn plain() -> IrnConfig {
    IrnConfig { cap_packets: Some(CAP as u32), rto_low_us: Some(Micros::new(1 << 30)), ..IrnConfig::default() }
}

/// A sender that searches all its packets for the next one.
#[derive(Default)]
struct Literal {
    next: u64,
    acked: BTreeSet<u64>,
    cumulative: u64,
    /// The last new packet before the current recovery.
    recovery_seq: Option<u64>,
    /// Where the recovery continues its search for lost packets.
    pointer: u64,
}

impl Literal {
    fn on_ack(&mut self, cumulative: u64, sacked: &[u64]) {
        self.cumulative = self.cumulative.max(cumulative);
        self.acked.extend(sacked);
        while self.acked.contains(&self.cumulative) {
            self.cumulative += 1;
        }
        self.recovery_seq = self.recovery_seq.filter(|last| self.cumulative <= *last);
        let is_nack = sacked.iter().any(|psn| *psn >= self.cumulative);
        if is_nack && self.recovery_seq.is_none() {
            (self.recovery_seq, self.pointer) = (Some(self.next - 1), self.cumulative);
        }
    }

    /// Returns the next packet: in a recovery a lost one, else a new one if BDP-FC permits.
    fn send(&mut self) -> Option<u64> {
        let highest = self.acked.last().copied().unwrap_or(0);
        if self.recovery_seq.is_some() {
            let from = self.pointer.max(self.cumulative);
            if let Some(lost) = (from..highest).find(|psn| !self.acked.contains(psn)) {
                self.pointer = lost + 1;
                return Some(lost);
            }
        }
        let is_new = self.next - self.cumulative < CAP;
        self.next += u64::from(is_new);
        is_new.then(|| self.next - 1)
    }
}

struct Rig {
    sender: Sender,
    rng: rng::Rng,
    now: Time,
}

impl Rig {
    fn new(own: IrnConfig) -> Self {
        let (mut rng, config) = (rng::stream(1, 1), config(own));
        let mut sender = Sender::new(&config, 256, u64::MAX, &mut rng);
        sender.send_message(1, 1 << 30).unwrap();
        Self { sender, rng, now: at(US) }
    }

    fn drain(&mut self) -> Vec<u64> {
        self.now = self.now.after(US);
        core::iter::from_fn(|| match self.sender.poll_transmit(self.now, &mut self.rng, &mut ())? {
            Transmit::Data { data, .. } => Some(data.psn),
            other => panic!("{other:?}"),
        })
        .collect()
    }

    fn ack(&mut self, cumulative: u64, sacked: &[u64]) {
        let mut bitmap = [0; 4];
        sacked.iter().for_each(|psn| bitmap[((psn - cumulative) / 64) as usize] |= 1 << ((psn - cumulative) % 64));
        let ack = Ack { cumulative, sack_base: cumulative, bitmap, ..Ack::default() };
        self.sender.on_ack(self.now, &ack, &mut ());
    }
}

proptest! {
    /// For any acknowledgements: which packets are sent next.
    //= docs/specs/irn.md#IRN-2 recoveries
    //= docs/specs/irn.md#IRN-3 lost packets
    //= docs/specs/irn.md#IRN-5 BDP-FC
    //= docs/specs/irn.md#IRN-4 new packets
    #[test]
    fn the_sender_agrees_with_the_papers(acks in prop::collection::vec((0..6u64, prop::collection::vec(0..CAP, 0..4)), 1..80)) {
        let (mut rig, mut literal) = (Rig::new(plain()), Literal::default());
        for (ahead, sacked) in acks {
            let expected: Vec<u64> = core::iter::from_fn(|| literal.send()).collect();
            prop_assert_eq!(rig.drain(), expected);
            let cumulative = (literal.cumulative + ahead).min(literal.next);
            let mut sacked: Vec<u64> = sacked.into_iter().map(|at| cumulative + at).filter(|psn| *psn < literal.next).collect();
            sacked.sort_unstable();
            rig.ack(cumulative, &sacked);
            literal.on_ack(cumulative, &sacked);
        }
    }
}

//= docs/specs/irn.md#IRN-3 lost packets
#[test]
fn each_packet_is_resent_once_per_recovery() {
    let mut rig = Rig::new(plain());
    assert_eq!(rig.drain(), (0..CAP).collect::<Vec<_>>());
    rig.ack(0, &[3]);
    assert_eq!(rig.drain(), [0, 1, 2]);
    rig.ack(0, &[3, 4, 6]);
    assert_eq!(rig.drain(), [5]);
    rig.ack(0, &[3, 4, 6, 7]);
    assert_eq!(rig.drain(), [0; 0], "once");
    //= docs/specs/irn.md#IRN-2 recoveries
    rig.ack(CAP, &[]);
    assert_eq!(rig.drain(), (CAP..2 * CAP).collect::<Vec<_>>(), "after the recovery new packets are sent");
    rig.ack(CAP, &[CAP + 1]);
    assert_eq!(rig.drain(), [CAP], "the next recovery has begun");
}

//= docs/specs/irn.md#IRN-7 NACKs of trimmed frames are unchanged
#[test]
fn a_trimmed_packet_is_resent_at_its_nack() {
    let mut rig = Rig::new(plain());
    rig.drain();
    rig.sender.on_nack(rig.now, &Nack { psn: 3, timestamp_echo: rig.now, ..Nack::default() }, &mut ());
    assert_eq!(rig.drain(), [3]);
}

//= docs/specs/irn.md#IRN-2 recoveries
#[test]
fn a_recovery_may_require_several_nacks() {
    let mut rig = Rig::new(IrnConfig { nacks: 3, ..plain() });
    rig.drain();
    rig.ack(0, &[1]);
    rig.ack(0, &[1, 2]);
    assert_eq!(rig.drain(), [0; 0]);
    rig.ack(4, &[6]);
    rig.ack(4, &[6, 7]);
    assert_eq!(rig.drain(), (CAP..CAP + 4).collect::<Vec<_>>(), "the count restarts with another gap");
    rig.ack(4, &[6, 7, 9]);
    assert_eq!(rig.drain(), [4, 5, 8]);
}

//= docs/specs/irn.md#IRN-6 two timeouts
#[test]
fn few_packets_in_flight_have_the_low_timeout() {
    let own = IrnConfig { rto_low_us: Some(Micros::new(10)), rto_high_us: Some(Micros::new(70)), ..plain() };
    for (packets, timeout_us) in [(1, 10), (2, 10), (3, 70), (9, 70)] {
        let (mut rng, config) = (rng::stream(1, 1), config(own));
        let mut sender = Sender::new(&config, 256, u64::MAX, &mut rng);
        sender.send_message(1, packets * 1000).unwrap();
        while sender.poll_transmit(at(US), &mut rng, &mut ()).is_some() {}
        for round in 1..4 {
            let due = at(US + round * timeout_us * US);
            assert_eq!(sender.poll_timeout(), Some(due), "no backoff");
            sender.on_timeout(due, &mut ());
            while sender.poll_transmit(due, &mut rng, &mut ()).is_some() {}
            assert_eq!(sender.stats().timeouts, round * packets);
        }
    }
    let rto = config(plain()).rto;
    let own = crate::loss::Irn::new(&IrnConfig::default(), &rto);
    assert_eq!((own.timeout_ps(2), own.timeout_ps(3)), (rto.min_ps, rto.min_ps / 100 * 320));
}

/// After a timeout, packets that the recovery has retransmitted are not sent a third time because
/// of packets above them.
//= docs/specs/irn.md#IRN-2 recoveries
#[test]
fn a_timeout_begins_a_recovery() {
    let own = IrnConfig { rto_high_us: Some(Micros::new(70)), rto_low_us: Some(Micros::new(70)), ..plain() };
    let mut rig = Rig::new(own);
    let first = rig.now.after(US);
    rig.drain();
    rig.now = first.after(70 * US);
    rig.sender.on_timeout(rig.now, &mut ());
    assert_eq!(rig.drain(), (0..CAP).collect::<Vec<_>>());
    rig.ack(0, &[9]);
    assert_eq!(rig.drain(), [0; 0]);
}

//= docs/specs/irn.md#IRN-1 the receiver
#[test]
fn a_packet_out_of_order_is_acknowledged_at_once() {
    let packet = |psn| Data {
        psn,
        message: 1,
        offset: psn * 1000,
        message_bytes: 100_000,
        payload_bytes: 1000,
        ..Data::default()
    };
    let arrival = |psn| Arrival { data: packet(psn), port: EvPort::new(1000), hops: 3, ..Arrival::default() };
    let mut receiver = Receiver::new(&FlowConfig { ack_every: 16, ..config(plain()) });
    let mut acks = |psn| {
        assert!(matches!(receiver.on_data(Time::ZERO, &arrival(psn)), DataOutcome::New { place: Some(_) }));
        receiver.poll_ack().map(|ack| (ack.cumulative, (0..20).filter(|psn| ack.selected(*psn)).collect::<Vec<_>>()))
    };
    assert_eq!([0, 1].map(&mut acks), [None, None]);
    assert_eq!(acks(4), Some((2, [4].to_vec())));
    assert_eq!(acks(6), Some((2, [4, 6].to_vec())));
    assert_eq!([2, 3].map(&mut acks), [None, None]);
}

//= docs/specs/irn.md#IRN-5 BDP-FC
#[test]
fn the_cap_is_one_bandwidth_delay_product_by_default() {
    let mut rig = Rig::new(IrnConfig::default());
    assert_eq!(rig.drain().len(), 12, "that of the test path");
}
