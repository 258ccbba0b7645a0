//! Frames that an adversary sends, for measurements and tests.

use std::net::IpAddr;

use spray_wire::{
    Body, Common, Connect, DSCP_CONTROL, Data, Ecn, Envelope, EvPort, INITIAL_TTL, Probe, SEAL_BYTES, Seal, TAG_BYTES,
    Time, emit, emit_sealed,
};

use spray_nic::Peer;
use spray_nic::endpoint::{ConnectTag, PeerTags};
use spray_nic::keys::PublicKey;

/// Bytes of the key exchange message after a Connect.
pub const CONNECT_BYTES: usize = 96;

/// Bytes of the proof that the sender holds a listed key.
const PROOF_BYTES: usize = 24;

/// The source and the destination of forged frames.
#[derive(Debug, Clone, Copy)]
pub struct Forger<'a> {
    /// The claimed source of frames.
    pub from: Peer,
    /// The victim's honest peer, which is the claimed source of sealed frames.
    pub honest: IpAddr,
    /// The victim.
    pub to: Peer,
    /// The proof in the sender's Connects.
    pub proof: Proof<'a>,
}

/// The proof of keys in a Connect.
#[derive(Debug, Clone, Copy)]
pub enum Proof<'a> {
    /// None.
    Nothing,
    /// The sender knows the victim's public key.
    Tag(&'a ConnectTag),
    /// The sender holds a key that the victim lists; the second field is the victim's public key.
    Key(&'a PeerTags, &'a PublicKey),
}

impl Proof<'_> {
    /// Returns the payload of a Connect with this key exchange message.
    fn payload(&self, [from, to]: [IpAddr; 2], connect: &Connect, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Nothing => message.to_vec(),
            Self::Key(peers, victim) => {
                peers.payload(victim, from, to, connect, message).expect("the victim's key is among them")
            }
            Self::Tag(tag) => {
                let proof = &[9; PROOF_BYTES][..if message.is_empty() { 0 } else { PROOF_BYTES }];
                let message = [message, proof].concat();
                let tag = tag.of(from, to, connect, &message);
                [&message[..], &tag].concat()
            }
        }
    }
}

/// A forged frame.
#[derive(Debug, Clone, Copy)]
pub enum Forged {
    /// A frame without a seal, with this connection and cookie.
    Plain(u32, u64, Body),
    /// A frame with an invalid seal, with this connection and packet number, and this number of
    /// payload bytes, at most 3,400.
    Sealed(u32, u64, u16),
    /// A Connect with an invalid key exchange message of this length, at most 96 bytes.
    Connect(Connect, usize),
    /// A frame with a header that is modified after computing the checksum.
    Corrupt,
    /// A frame for another port.
    Foreign,
}

/// A seal with an invalid tag.
struct InvalidSeal;

impl Seal for InvalidSeal {
    fn header(&self, _covered: &[u8]) -> [u8; TAG_BYTES] {
        [1; TAG_BYTES]
    }

    fn payload(&self, _covered: &[u8], _payload: &mut [u8]) -> [u8; TAG_BYTES] {
        [1; TAG_BYTES]
    }
}

impl Forger<'_> {
    /// Writes a frame to the start of `space`, which has 4,096 bytes, and returns its length.
    ///
    /// # Panics
    /// If `space` is too small for it.
    pub fn write(&self, space: &mut [u8], forged: &Forged) -> usize {
        let envelope = Envelope {
            src_mac: self.from.mac,
            dst_mac: self.to.mac,
            src: self.from.address,
            dst: self.to.address,
            src_port: EvPort::new(50_000),
            dst_port: spray_wire::Ports::DEFAULT.first(),
            dscp: DSCP_CONTROL,
            ecn: Ecn::NotEct,
            ttl: INITIAL_TTL,
        };
        let common = |connection, cookie| Common { connection, cookie, ..Common::default() };
        let written = match forged {
            Forged::Plain(connection, cookie, body) => {
                let payload = [7; 4_096];
                emit(space, &envelope, &common(*connection, *cookie), body, &payload[..body.payload_bytes()])
            }
            Forged::Sealed(connection, number, payload_bytes) => {
                let envelope = Envelope { src: self.honest, ..envelope };
                let data = Body::Data(Data { psn: *number, payload_bytes: *payload_bytes, ..Data::default() });
                let at = data.header_bytes(false) + SEAL_BYTES;
                let payload_bytes = usize::from(*payload_bytes);
                space[at..at + payload_bytes].fill(7);
                emit_sealed(space, &envelope, &common(*connection, *number), &data, payload_bytes, &InvalidSeal)
            }
            Forged::Connect(connect, bytes) => {
                let message = &[9; CONNECT_BYTES][..*bytes];
                let payload = self.proof.payload([self.from.address, self.to.address], connect, message);
                let connect = Connect { exchange_bytes: payload.len() as u16, ..*connect };
                emit(space, &envelope, &common(0, 0), &Body::Connect(connect), &payload)
            }
            Forged::Corrupt | Forged::Foreign => {
                let probe = Body::Probe(Probe { token: 1, timestamp: Time::from_ns(2) });
                emit(space, &envelope, &common(9, 9), &probe, &[])
            }
        };
        match forged {
            Forged::Corrupt => space[80] ^= 1,
            Forged::Foreign => space[36] ^= 1,
            _ => {}
        }
        written.expect("a frame that fits")
    }
}
