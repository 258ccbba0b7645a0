//! A peer that is let in and lies: every kind of frame with every kind of value, floods, repetitions, forged echoes.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use spray_wire::{
    Accept, Ack, Body, Close, CloseReason, Data, Echoes, EvPort, MAX_ECHOES, Nack, Probe, ProbeAck, Pull, PullRequest,
    Rekey, Section, Terms,
};

use super::hostile::{STRANGER, Stranger, asked};
use super::*;

/// Draws what a liar says.
struct Liar(Xoshiro256PlusPlus);

impl Liar {
    fn below(&mut self, bound: u32) -> u32 {
        self.0.next_u32() % bound
    }

    /// Small, near a limit, near what is real, or anything.
    fn number(&mut self) -> u64 {
        match self.below(6) {
            0 | 1 => u64::from(self.below(300)),
            2 => u64::from(self.below(100_000)),
            3 => u64::MAX - u64::from(self.below(300)),
            4 => (1 << 32) - 150 + u64::from(self.below(300)),
            _ => self.0.next_u64(),
        }
    }

    fn port(&mut self) -> EvPort {
        EvPort::new(self.0.next_u32() as u16)
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 0
    }

    /// A frame, and as many bytes of payload as it says.
    fn says(&mut self) -> Body {
        let (number, other, port) = (self.number(), self.number(), self.port());
        let timestamp = Time::from_ns(other / 8).after(other % 8 * Time::STEP_PS);
        let small = self.0.next_u32() as u8;
        match self.below(14) {
            0..4 => {
                let bytes = [0, 1, 900, 1000][self.below(4) as usize];
                Body::Data(Data {
                    psn: number,
                    timestamp,
                    message: self.below(40),
                    offset: u64::from(self.below(4)) * 1000,
                    message_bytes: [0, 900, 4_000, 1 << 20, u64::MAX][self.below(5) as usize],
                    payload_bytes: bytes,
                    section: Section::from_bits(self.0.next_u32() as u16),
                    ack_now: self.flag(),
                    retransmit: self.flag(),
                    trailer: self.below(10) == 0,
                })
            }
            4..7 => {
                let mut echoes = Echoes::default();
                (0..self.below(MAX_ECHOES as u32)).for_each(|_| echoes.push(self.port(), self.flag(), MAX_ECHOES));
                Body::Ack(Ack {
                    cumulative: number,
                    timestamp_echo: timestamp,
                    sack_base: self.number(),
                    bitmap: [self.0.next_u64(); 4],
                    port,
                    hops: small,
                    packets: small,
                    marked_packets: small,
                    marked: self.flag(),
                    trimmed: self.flag(),
                    misrouted: self.flag(),
                    max_data: self.number(),
                    echoes,
                })
            }
            7 => Body::Nack(Nack {
                psn: number,
                timestamp_echo: timestamp,
                port,
                missing: self.flag(),
                go_back: self.flag(),
                ..Nack::default()
            }),
            8 => Body::Probe(Probe { token: number, timestamp }),
            9 => Body::ProbeAck(ProbeAck { token: number, timestamp, port, hops: small, marked: self.flag() }),
            10 => Body::Pull(Pull { credit_bytes: number }),
            11 => Body::PullRequest(PullRequest { demand_bytes: number, pulled_bytes: other }),
            12 => Body::Rekey(Rekey { generation: small.into(), answer: self.flag(), ..Rekey::default() }),
            _ if self.below(50) == 0 => {
                Body::Close(Close { cumulative: number, reason: CloseReason::Done, acknowledgement: true })
            }
            _ => Body::Accept(Accept { connection: 3, cookie: number, ..asked(3) }),
        }
    }
}

/// Begins a connection as anybody can. Returns the endpoint's number and cookie for it.
pub(super) fn let_in(rig: &mut Rig, stranger: &mut Stranger, number: u32) -> Option<(u32, u64)> {
    stranger.send(rig, STRANGER, 1, 0, 0, &Body::Connect(asked(number)));
    rig.run(US, 10 * US, |_| false);
    let token = stranger.received().iter().find_map(|body| match body {
        Body::Retry(retry) => Some(retry.token),
        _ => None,
    })?;
    stranger.send(rig, STRANGER, 1, 0, 0, &Body::Connect(Terms { token, max_data: 1 << 20, ..asked(number) }));
    rig.run(US, 10 * US, |_| false);
    let accept = stranger.received().iter().find_map(|body| match body {
        Body::Accept(accept) => Some(*accept),
        _ => None,
    })?;
    let proof = Body::Probe(Probe { token: 1, timestamp: Time::ZERO });
    stranger.send(rig, STRANGER, 1, accept.connection, accept.cookie, &proof);
    Some((accept.connection, accept.cookie))
}

/// `docs/security.md` promises these bounds.
//= docs/specs/endpoint.md#END-11 bounded time
//= docs/specs/endpoint.md#END-8 answers to unknown peers
#[test]
fn whatever_a_peer_says_it_gets_bounded_answers_and_others_are_served() {
    for seed in 0..6 {
        let change = |_: usize, config: &mut EndpointConfig| {
            (config.flow.max_data_bytes, config.flow.max_message_bytes) = (1 << 20, 1 << 20);
        };
        let mut rig = Rig::with(2, seed % 2 == 1, Impairments::delay(US), change);
        let (mut stranger, mut liar) = (Stranger::new(&rig), Liar(Xoshiro256PlusPlus::seed_from_u64(seed)));
        let honest = rig.connect(0, 1);
        rig.endpoints[0].send(honest, content(1, 1_000_000)).unwrap();
        let (mut said, mut heard, mut lets, mut taken) = (0u64, 0u64, 0u64, 0u64);
        while said < 12_000 {
            lets += 1;
            assert!(lets < 600, "no connection ends at each word");
            // The endpoint sends something back, which the liar acknowledges as it likes.
            let Some((connection, cookie)) = let_in(&mut rig, &mut stranger, lets as u32) else { continue };
            rig.run(US, 5 * US, |_| false);
            if let Some(&id) = rig.accepted(1).last() {
                let _ = rig.endpoints[1].send(id, content(9, 20_000));
            }
            for _ in 0..400 {
                for _ in 0..1 + liar.below(20) {
                    let body = liar.says();
                    stranger.send(&rig, STRANGER, 1, connection, cookie, &body);
                    said += 1;
                }
                let now = rig.now;
                rig.run(US, 3 * US, |_| false);
                assert!(rig.now >= now.after(3 * US), "time goes on");
                heard += stranger.received().len() as u64;
                if rig.endpoints[1].machine.table.find(ConnectionId(connection)).is_none() {
                    break;
                }
            }
            taken = taken.max(rig.received(1).iter().map(|(.., data)| data.len() as u64).sum());
            assert!(rig.endpoints[1].connections() <= 16);
        }
        // A frame of a peer's brings at most an answer of each kind, and its own data besides.
        let own = lets * 20_000 / u64::from(PAYLOAD) * 12;
        assert!(heard <= 2 * said + own + 1_000, "{heard} frames for {said}");
        assert!(rig.run(10 * US, 1_000 * MS, |rig| rig.delivered(0) == 1), "the honest peer is served");
        assert!(rig.received(1).iter().any(|(.., data)| *data == content(1, 1_000_000)));
        // Silence ends what is left.
        assert!(rig.run(100 * US, 2_000 * MS, |rig| {
            stranger.received();
            rig.endpoints[1].connections() <= 1
        }));
        stranger.received();
        rig.audit();
    }
}
