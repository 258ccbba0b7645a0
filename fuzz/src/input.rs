//! Bytes as a source of choices; at the end of the input every choice is 0.

use spray_wire::{
    Ack, Body, Close, CloseReason, Data, Echoes, Ecn, Envelope, EvPort, Nack, Probe, ProbeAck, Pull, PullRequest,
    Rekey, RekeyMessage, Reset, Section, Time,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug)]
pub(crate) struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.bytes(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// Returns an index below `len`, or `None` if it is 0.
    pub fn index(&mut self, len: usize) -> Option<usize> {
        (len > 0).then(|| usize::from(self.byte()) % len)
    }

    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub fn u32(&mut self) -> u32 {
        self.u64() as u32
    }

    /// Returns a small number, one near an entry of `EDGES`, or any other.
    pub fn u64(&mut self) -> u64 {
        const EDGES: [u64; 8] = [0, 1 << 16, 1 << 31, 1 << 32, 1 << 48, 1 << 63, u64::MAX / 2, u64::MAX];
        let kind = self.byte();
        match kind >> 6 {
            0 => u64::from(kind),
            1 => u64::from(self.u16()),
            2 => EDGES[usize::from(kind & 7)].wrapping_add(u64::from(self.byte())).wrapping_sub(128),
            _ => u64::from_le_bytes(self.array()),
        }
    }

    fn port(&mut self) -> EvPort {
        EvPort::new(self.u16())
    }

    /// Returns any time that a frame can carry.
    fn time(&mut self) -> Time {
        let count = self.u64();
        Time::from_ns(count / 8).after(count % 8 * Time::STEP_PS)
    }

    pub fn envelope(&mut self, v6: bool) -> Envelope {
        let address = |number: u8| match v6 {
            true => IpAddr::V6(Ipv6Addr::new(0xfd53, 0x5052, 0x4159, 0, 0, 0, 0, u16::from(number))),
            false => IpAddr::V4(Ipv4Addr::new(10, 0, 0, number)),
        };
        Envelope {
            src_mac: [2, 0x53, 0x50, 0, 0, 1],
            dst_mac: [2, 0x53, 0x50, 0, 0, 2],
            src: address(1 + self.byte() % 4),
            dst: address(1 + self.byte() % 4),
            src_port: self.port(),
            dst_port: spray_wire::Ports::DEFAULT.first(),
            dscp: self.byte() & 0x3f,
            ecn: Ecn::from_tos(self.byte()),
            ttl: self.byte(),
        }
    }

    /// Returns the body of any frame except those of the handshake, and its payload.
    pub fn body(&mut self) -> (Body, &'a [u8]) {
        let kind = self.byte();
        let body = match kind % 10 {
            // A separate value keeps the meaning of the existing corpus.
            _ if kind == u8::MAX => {
                let (generation, answer) = (self.u16(), self.flag());
                Body::Rekey(Rekey { generation, answer, message: RekeyMessage(self.array()) })
            }
            0 | 1 => return self.data(),
            2 => Body::Ack(self.ack()),
            3 => Body::Nack(Nack {
                psn: self.u64(),
                timestamp_echo: self.time(),
                port: self.port(),
                hops: self.byte(),
                marked: self.flag(),
                payload_bytes: self.u16(),
                missing: self.flag(),
                last_port: self.flag(),
                go_back: self.flag(),
            }),
            4 => Body::Close(Close {
                cumulative: self.u64(),
                reason: CloseReason::from_u32(u32::from(self.byte() % 4)).unwrap_or_default(),
                acknowledgement: self.flag(),
            }),
            5 => Body::Reset(Reset { reason: self.u32() }),
            6 => Body::Probe(Probe { token: self.u64(), timestamp: self.time() }),
            7 => Body::ProbeAck(ProbeAck {
                token: self.u64(),
                timestamp: self.time(),
                port: self.port(),
                hops: self.byte(),
                marked: self.flag(),
            }),
            8 => Body::Pull(Pull { credit_bytes: self.u64() }),
            _ => Body::PullRequest(PullRequest { demand_bytes: self.u64(), pulled_bytes: self.u64() }),
        };
        (body, &[])
    }

    fn data(&mut self) -> (Body, &'a [u8]) {
        let data = Data {
            psn: self.u64(),
            timestamp: self.time(),
            message: self.u32(),
            offset: self.u64(),
            message_bytes: self.u64(),
            payload_bytes: 0,
            section: Section::from_bits(self.u16()),
            ack_now: self.flag(),
            retransmit: self.flag(),
            trailer: self.flag(),
        };
        let length = usize::from(self.byte());
        let payload = self.bytes(length);
        (Body::Data(Data { payload_bytes: payload.len() as u16, ..data }), payload)
    }

    fn ack(&mut self) -> Ack {
        let mut echoes = Echoes::default();
        for _ in 0..self.byte() % 17 {
            echoes.push(self.port(), self.flag(), 15);
        }
        Ack {
            cumulative: self.u64(),
            timestamp_echo: self.time(),
            sack_base: self.u64(),
            bitmap: [self.u64(), self.u64(), self.u64(), self.u64()],
            port: self.port(),
            hops: self.byte(),
            packets: self.byte(),
            marked_packets: self.byte(),
            marked: self.flag(),
            max_data: self.u64(),
            trimmed: self.flag(),
            misrouted: self.flag(),
            echoes,
        }
    }
}
