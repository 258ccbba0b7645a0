//! The key exchange: Noise IKpsk2 (<https://noiseprotocol.org>, §7.5 and 9) in Connect and Accept, and later in Rekey.
//! The client has the server's key, and sends its own encrypted to it. Both sides' terms and
//! addresses are authenticated. The client's first sealed frame shows the server that the Connect
//! was no replay. Later exchanges of a connection are the same, bound to the previous one in place
//! of the terms.

use std::net::IpAddr;

use bytes::{Buf, BufMut};
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState};
use spray_wire::{RekeyMessage, Terms};

use crate::endpoint::seal::zeroed::Zeroed;
use crate::endpoint::seal::{Secret, Secrets};
use crate::keys::{Keys, PublicKey};
use crate::x25519::ZeroingResolver;

/// X25519, AES-256-GCM and SHA-256 for the exchange.
const PATTERN: &str = "Noise_IKpsk2_25519_AESGCM_SHA256";
/// Bytes of the client's message: an ephemeral key, its own encrypted key, and a tag.
pub(crate) const CONNECT_BYTES: usize = 32 + (32 + 16) + 16;
/// Bytes of a side's terms, as authenticated.
const TERMS_BYTES: usize = 4 + 8 + 4 + 4 + 8 + 4 + 16;
/// Bytes that a Connect is bound to.
const BOUND_BYTES: usize = 7 + 2 * 16 + TERMS_BYTES;
/// Bytes of the server's message: an ephemeral key, and its encrypted terms.
pub(crate) const ACCEPT_BYTES: usize = 32 + TERMS_BYTES + 16;
/// Bytes of the server's message in a later exchange, which has no payload.
const ANSWER_BYTES: usize = 32 + 16;
const HASH_BYTES: usize = 32;

/// A Rekey has a client's message of the same length.
const _: () = assert!(CONNECT_BYTES == RekeyMessage::BYTES);

/// The two sides. A message is valid only between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parties {
    pub(crate) client: IpAddr,
    pub(crate) server: IpAddr,
}

/// The result of an exchange.
pub(crate) struct SessionKeys {
    pub(crate) secrets: Secrets,
    pub(crate) binding: Binding,
}

impl SessionKeys {
    /// Returns the result after both messages.
    fn by(state: &mut HandshakeState) -> Option<Self> {
        let (of_client, of_server) = state.dangerously_get_raw_split();
        let (of_client, of_server) = (Secret::new(of_client), Secret::new(of_server));
        let (sending, receiving) = if state.is_initiator() { (of_client, of_server) } else { (of_server, of_client) };
        Some(Self { secrets: Secrets { sending, receiving }, binding: Binding::of(state)? })
    }
}

/// Binds a connection's next exchange to the previous one: Noise's hash of that, and the peer's
/// key. Not secret.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding {
    hash: [u8; HASH_BYTES],
    peer: PublicKey,
}

impl Binding {
    fn of(state: &HandshakeState) -> Option<Self> {
        let hash = state.get_handshake_hash().try_into().ok()?;
        Some(Self { hash, peer: PublicKey::from_bytes(state.get_remote_static()?)? })
    }

    pub(crate) fn peer(&self) -> PublicKey {
        self.peer
    }

    /// Returns a number that both sides have, and that differs in every exchange.
    pub(crate) fn number(&self) -> u64 {
        self.hash.iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    /// Returns the prologue of the exchange for this generation of keys, which both sides must
    /// agree on.
    fn prologue(&self, generation: u16) -> [u8; REKEY_BYTES] {
        let mut bytes = [0; REKEY_BYTES];
        let mut rest = &mut bytes[..];
        rest.put_slice(b"spray rekey 1");
        rest.put_slice(&self.hash);
        rest.put_u16(generation);
        bytes
    }
}

/// Bytes that a Rekey is bound to.
const REKEY_BYTES: usize = 13 + HASH_BYTES + 2;

/// The library's state of an exchange. Its secrets, and the private keys in
/// [`X25519`](crate::x25519::X25519), are zeroed when dropped.
type Exchange = Box<Zeroed<HandshakeState>>;

/// The client's state until the Accept arrives.
pub(crate) struct Initiator(Exchange);

impl std::fmt::Debug for Initiator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Initiator")
    }
}

impl Initiator {
    /// Starts an exchange; `terms` are those of the Connect. Returns also its message. `None` if
    /// the peer's key is not listed or not valid, or without random numbers.
    //= docs/specs/endpoint.md#END-33 the key exchange
    pub(crate) fn new(keys: &Keys, parties: Parties, terms: &Terms) -> Option<(Self, [u8; CONNECT_BYTES])> {
        Self::begin(keys, keys.of(parties.server)?, &connect_prologue(parties, terms))
    }

    /// Starts the exchange for a connection's next generation of keys, with the same peer.
    //= docs/specs/endpoint.md#END-46 fresh keys
    pub(crate) fn rekey(keys: &Keys, binding: &Binding, generation: u16) -> Option<(Self, RekeyMessage)> {
        let (initiator, message) = Self::begin(keys, &binding.peer, &binding.prologue(generation))?;
        Some((initiator, RekeyMessage(message)))
    }

    fn begin(keys: &Keys, peer: &PublicKey, prologue: &[u8]) -> Option<(Self, [u8; CONNECT_BYTES])> {
        let builder = builder(keys)?.remote_public_key(peer.bytes()).ok()?;
        let mut state = boxed(builder.prologue(prologue).ok()?.build_initiator().ok()?);
        let mut message = [0; CONNECT_BYTES];
        let written = state.write_message(&[], &mut message).ok()?;
        (written == CONNECT_BYTES).then(|| (Self(state), message))
    }

    /// Reads the server's message, if it is authentic. The terms are those in it, not those of the
    /// Accept around it.
    pub(crate) fn finish(&mut self, message: &[u8]) -> Option<(SessionKeys, Terms)> {
        if message.len() != ACCEPT_BYTES {
            return None;
        }
        let mut terms = [0; TERMS_BYTES];
        let read = self.0.read_message(message, &mut terms).ok()?;
        (read == TERMS_BYTES).then_some((SessionKeys::by(&mut self.0)?, terms_of(&terms)))
    }

    /// Reads the server's message of a later exchange, if it is authentic.
    //= docs/specs/endpoint.md#END-46 fresh keys
    pub(crate) fn finish_rekey(&mut self, message: &RekeyMessage) -> Option<SessionKeys> {
        let (message, _) = message.0.split_first_chunk::<ANSWER_BYTES>()?;
        self.0.read_message(message, &mut []).ok()?;
        SessionKeys::by(&mut self.0)
    }
}

/// The server's state between the Connect and its answer.
pub(crate) struct Responder(Exchange);

impl Responder {
    /// Reads a client's message; `terms` are those of its Connect. `None` unless the client holds a
    /// listed key and addressed this server. Takes 100 us in any case.
    //= docs/specs/endpoint.md#END-33 the key exchange
    pub(crate) fn new(keys: &Keys, parties: Parties, terms: &Terms, message: &[u8]) -> Option<Self> {
        if message.len() != CONNECT_BYTES {
            return None;
        }
        let (state, client) = Self::read(keys, &connect_prologue(parties, terms), message)?;
        keys.trusts(parties.client, &client).then_some(Self(state))
    }

    /// Reads the client's message of a later exchange. `None` unless it is of the connection's
    /// client, for the next generation of keys. Takes as long as the first.
    //= docs/specs/endpoint.md#END-46 fresh keys
    pub(crate) fn rekey(keys: &Keys, binding: &Binding, generation: u16, message: &RekeyMessage) -> Option<Self> {
        let (state, client) = Self::read(keys, &binding.prologue(generation), &message.0)?;
        (client == binding.peer).then_some(Self(state))
    }

    fn read(keys: &Keys, prologue: &[u8], message: &[u8]) -> Option<(Exchange, PublicKey)> {
        let mut state = boxed(builder(keys)?.prologue(prologue).ok()?.build_responder().ok()?);
        state.read_message(message, &mut []).ok()?;
        let client = PublicKey::from_bytes(state.get_remote_static()?)?;
        Some((state, client))
    }

    /// Returns the result, and the message of the Accept; `terms` are those of the Accept.
    pub(crate) fn answer(self, terms: &Terms) -> Option<(SessionKeys, [u8; ACCEPT_BYTES])> {
        self.write(&bytes_of(terms))
    }

    /// Returns the result, and the answer to the message of a later exchange.
    //= docs/specs/endpoint.md#END-46 fresh keys
    pub(crate) fn answer_rekey(self) -> Option<(SessionKeys, RekeyMessage)> {
        let (agreed, written) = self.write::<ANSWER_BYTES>(&[])?;
        let mut message = RekeyMessage::default();
        message.0[..ANSWER_BYTES].copy_from_slice(&written);
        Some((agreed, message))
    }

    fn write<const BYTES: usize>(mut self, payload: &[u8]) -> Option<(SessionKeys, [u8; BYTES])> {
        let mut message = [0; BYTES];
        let written = self.0.write_message(payload, &mut message).ok()?;
        (written == BYTES).then_some((SessionKeys::by(&mut self.0)?, message))
    }
}

fn builder(keys: &Keys) -> Option<Builder<'_>> {
    let pattern = PATTERN.parse::<NoiseParams>().expect("a pattern of the library's");
    let builder = Builder::with_resolver(pattern, Box::new(ZeroingResolver));
    builder.local_private_key(keys.own.bytes()).ok()?.psk(2, keys.pre_shared()).ok()
}

fn boxed(state: HandshakeState) -> Exchange {
    Box::new(Zeroed::new(state))
}

/// Returns the library's state with these keys.
#[cfg(test)]
pub(in crate::endpoint) fn initiator(keys: &Keys, peer: &PublicKey) -> HandshakeState {
    builder(keys).unwrap().remote_public_key(peer.bytes()).unwrap().build_initiator().unwrap()
}

/// Returns the prologue of a Connect's exchange, which its tag covers too.
pub(crate) fn connect_prologue(parties: Parties, terms: &Terms) -> [u8; BOUND_BYTES] {
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    let mut bytes = [0; BOUND_BYTES];
    let mut rest = &mut bytes[..];
    rest.put_slice(b"spray 1");
    rest.put_slice(&octets(parties.client));
    rest.put_slice(&octets(parties.server));
    rest.put_slice(&bytes_of(terms));
    bytes
}

/// Returns a side's terms, as authenticated, without the length of the message, which differs by
/// direction.
fn bytes_of(terms: &Terms) -> [u8; TERMS_BYTES] {
    let mut bytes = [0; TERMS_BYTES];
    let mut rest = &mut bytes[..];
    rest.put_u32(terms.connection);
    rest.put_u64(terms.cookie);
    rest.put_u32(terms.window_packets);
    rest.put_u32(terms.max_payload);
    rest.put_u64(terms.max_data);
    rest.put_u32(terms.ack_every);
    rest.put_slice(&terms.token);
    bytes
}

fn terms_of(bytes: &[u8; TERMS_BYTES]) -> Terms {
    let mut rest = &bytes[..];
    let mut terms = Terms {
        connection: rest.get_u32(),
        cookie: rest.get_u64(),
        window_packets: rest.get_u32(),
        max_payload: rest.get_u32(),
        max_data: rest.get_u64(),
        ack_every: rest.get_u32(),
        ..Terms::default()
    };
    rest.copy_to_slice(&mut terms.token);
    terms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::PrivateKey;

    fn respond(
        keys: &Keys,
        parties: Parties,
        theirs: &Terms,
        message: &[u8],
        ours: &Terms,
    ) -> Option<(Secrets, Vec<u8>)> {
        let (agreed, message) = Responder::new(keys, parties, theirs, message)?.answer(ours)?;
        Some((agreed.secrets, message.to_vec()))
    }

    fn keys() -> (PrivateKey, PrivateKey, PrivateKey) {
        let key = || PrivateKey::generate().unwrap();
        (key(), key(), key())
    }

    fn parties() -> Parties {
        Parties { client: IpAddr::from([10, 0, 0, 1]), server: IpAddr::from([10, 0, 0, 2]) }
    }

    fn terms(connection: u32) -> Terms {
        Terms {
            connection,
            cookie: 5,
            window_packets: 16,
            max_payload: 1000,
            max_data: 9,
            ack_every: 1,
            ..Terms::default()
        }
    }

    //= docs/specs/endpoint.md#END-33 the key exchange
    #[test]
    fn both_sides_and_no_other_get_the_same_secrets() {
        let (client, server, third) = keys();
        let clients = Keys::new(client.clone(), vec![server.public()]);
        let servers = Keys::new(server.clone(), vec![third.public(), client.public()]);
        let (mut initiator, request) = Initiator::new(&clients, parties(), &terms(1)).unwrap();
        let (theirs, message) = respond(&servers, parties(), &terms(1), &request, &terms(2)).unwrap();
        let mut broken = message.clone();
        broken[40] ^= 1;
        assert!(initiator.finish(&broken).is_none() && initiator.finish(&[]).is_none());
        let (SessionKeys { secrets: ours, .. }, terms_received) = initiator.finish(&message).unwrap();
        assert_eq!(terms_received, terms(2));
        assert_eq!((&ours.sending, &ours.receiving), (&theirs.receiving, &theirs.sending));
        assert_ne!(ours.sending, ours.receiving);
        let (rekey, _) = respond(&servers, parties(), &terms(1), &request, &terms(2)).unwrap();
        assert_ne!(rekey.sending, theirs.sending, "every exchange has its own");
    }

    //= docs/specs/endpoint.md#END-33 a second secret of both sides
    #[test]
    fn without_the_pre_shared_secret_nothing_opens() {
        let (client, server, secret) = keys();
        let clients = Keys::new(client.clone(), vec![server.public()]);
        let servers = Keys::new(server, vec![client.public()]);
        let with = |keys: &Keys| keys.clone().with_pre_shared(secret.clone());
        let opens = |clients: &Keys, servers: &Keys| {
            let (mut initiator, request) = Initiator::new(clients, parties(), &terms(1)).unwrap();
            let (_, message) = respond(servers, parties(), &terms(1), &request, &terms(2)).unwrap();
            initiator.finish(&message).is_some()
        };
        assert!(opens(&with(&clients), &with(&servers)) && opens(&clients, &servers));
        assert!(!opens(&with(&clients), &servers) && !opens(&clients, &with(&servers)));
        assert!(!opens(&with(&clients), &servers.with_pre_shared(client)), "another secret");
    }

    #[test]
    fn a_server_answers_only_its_peers() {
        let (client, server, third) = keys();
        let clients = Keys::new(client.clone(), vec![server.public()]);
        let servers = Keys::new(server.clone(), vec![client.public()]);
        let (_, request) = Initiator::new(&clients, parties(), &terms(1)).unwrap();
        let answers = |keys: &Keys, parties, terms: &Terms, message: &[u8]| {
            respond(keys, parties, terms, message, terms).is_some()
        };
        assert!(answers(&servers, parties(), &terms(1), &request));
        assert!(!answers(&Keys::new(third.clone(), vec![client.public()]), parties(), &terms(1), &request));
        assert!(!answers(&Keys::new(server.clone(), vec![third.public()]), parties(), &terms(1), &request));
        assert!(!answers(&servers, parties(), &terms(2), &request), "other terms");
        let other = Parties { client: IpAddr::from([10, 0, 0, 3]), ..parties() };
        assert!(!answers(&servers, other, &terms(1), &request), "from elsewhere");
        let reflected = Parties { client: parties().server, server: parties().client };
        let shared = Keys::new(client.clone(), vec![]);
        let (_, mine) = Initiator::new(&shared, parties(), &terms(1)).unwrap();
        assert!(answers(&shared, parties(), &terms(1), &mine), "one key for all");
        assert!(!answers(&shared, reflected, &terms(1), &mine), "sent back to its sender");
        for bytes in [0, 1, CONNECT_BYTES - 1] {
            assert!(!answers(&servers, parties(), &terms(1), &request[..bytes]));
        }
        assert!(!answers(&servers, parties(), &terms(1), &[0; CONNECT_BYTES]));
        let invalid_key = PublicKey::from_bytes(&[0; 32]).unwrap();
        // A public key with which no exchange is possible is refused without a panic.
        let _ = Initiator::new(&Keys::new(client, vec![invalid_key]), parties(), &terms(1));
    }
}
