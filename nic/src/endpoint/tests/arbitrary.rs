//! A peer with an open connection that sends arbitrary frames: every kind, with small, large and
//! random values, floods, repetitions, forged echoes.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use spray_wire::{
    Accept, Ack, Body, Close, CloseReason, Data, Echoes, EvPort, MAX_ECHOES, Nack, Probe, ProbeAck, Pull, PullRequest,
    Rekey, Section, Terms,
};

use super::hostile::{RAW_HOST, RawHost, client_terms};
use super::*;

/// A generator of arbitrary frames.
struct FrameGenerator(Xoshiro256PlusPlus);

impl FrameGenerator {
    fn below(&mut self, bound: u32) -> u32 {
        self.0.next_u32() % bound
    }

    /// Small, near a limit, near a plausible value, or random.
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

    /// Returns a frame with a valid payload length.
    fn frame(&mut self) -> Body {
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
            _ => Body::Accept(Accept { connection: 3, cookie: number, ..client_terms(3) }),
        }
    }
}

/// Opens a connection without any key. Returns the endpoint's number and cookie for it.
pub(super) fn open_unauthenticated(rig: &mut Rig, raw_host: &mut RawHost, number: u32) -> Option<(u32, u64)> {
    raw_host.send(rig, RAW_HOST, 1, 0, 0, &Body::Connect(client_terms(number)));
    rig.run(US, 10 * US, |_| false);
    let token = raw_host.received().iter().find_map(|body| match body {
        Body::Retry(retry) => Some(retry.token),
        _ => None,
    })?;
    raw_host.send(rig, RAW_HOST, 1, 0, 0, &Body::Connect(Terms { token, max_data: 1 << 20, ..client_terms(number) }));
    rig.run(US, 10 * US, |_| false);
    let accept = raw_host.received().iter().find_map(|body| match body {
        Body::Accept(accept) => Some(*accept),
        _ => None,
    })?;
    let proof = Body::Probe(Probe { token: 1, timestamp: Time::ZERO });
    raw_host.send(rig, RAW_HOST, 1, accept.connection, accept.cookie, &proof);
    Some((accept.connection, accept.cookie))
}

/// The bounds stated in `docs/security.md`.
//= docs/specs/endpoint.md#END-11 bounded time
//= docs/specs/endpoint.md#END-8 answers to unknown peers
#[test]
fn arbitrary_frames_get_bounded_answers() {
    for seed in 0..6 {
        let change = |_: usize, config: &mut EndpointConfig| {
            (config.flow.max_data_bytes, config.flow.max_message_bytes) = (1 << 20, 1 << 20);
        };
        let mut rig = Rig::with(2, seed % 2 == 1, Impairments::delay(US), change);
        let (mut raw_host, mut generator) =
            (RawHost::new(&rig), FrameGenerator(Xoshiro256PlusPlus::seed_from_u64(seed)));
        let honest = rig.connect(0, 1);
        rig.endpoints[0].send(honest, content(1, 1_000_000)).unwrap();
        let (mut sent, mut answers, mut attempts, mut taken) = (0u64, 0u64, 0u64, 0u64);
        while sent < 12_000 {
            attempts += 1;
            assert!(attempts < 600, "connections end after too few frames");
            // The endpoint also sends data, which the peer acknowledges arbitrarily.
            let Some((connection, cookie)) = open_unauthenticated(&mut rig, &mut raw_host, attempts as u32) else {
                continue;
            };
            rig.run(US, 5 * US, |_| false);
            if let Some(&id) = rig.accepted(1).last() {
                let _ = rig.endpoints[1].send(id, content(9, 20_000));
            }
            for _ in 0..400 {
                for _ in 0..1 + generator.below(20) {
                    let body = generator.frame();
                    raw_host.send(&rig, RAW_HOST, 1, connection, cookie, &body);
                    sent += 1;
                }
                let now = rig.now;
                rig.run(US, 3 * US, |_| false);
                assert!(rig.now >= now.after(3 * US), "time advances");
                answers += raw_host.received().len() as u64;
                if rig.endpoints[1].machine.table.find(ConnectionId(connection)).is_none() {
                    break;
                }
            }
            taken = taken.max(rig.received(1).iter().map(|(.., data)| data.len() as u64).sum());
            assert!(rig.endpoints[1].connections() <= 16);
        }
        // A frame of the peer causes at most one answer of each kind; the endpoint's data is
        // counted separately.
        let own = attempts * 20_000 / u64::from(PAYLOAD) * 12;
        assert!(answers <= 2 * sent + own + 1_000, "{answers} frames for {sent}");
        assert!(rig.run(10 * US, 1_000 * MS, |rig| rig.delivered(0) == 1), "the honest peer is served");
        assert!(rig.received(1).iter().any(|(.., data)| *data == content(1, 1_000_000)));
        // The remaining connections end by timeout.
        assert!(rig.run(100 * US, 2_000 * MS, |rig| {
            raw_host.received();
            rig.endpoints[1].connections() <= 1
        }));
        raw_host.received();
        rig.audit();
    }
}
