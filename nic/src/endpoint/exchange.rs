//! The key exchange: Noise IK (<https://noiseprotocol.org>, §7.5) in Connect and Accept.
//!
//! The client knows whom it connects to, and says who it is under the server's key. Both sides' terms and addresses are part of what is
//! authenticated. The client's first sealed frame shows the server that it is no replay.

use std::net::IpAddr;

use snow::params::NoiseParams;
use snow::{Builder, HandshakeState};
use spray_wire::Terms;

use super::seal::Secrets;
use crate::keys::{Keys, PublicKey};

/// X25519, AES-256-GCM and SHA-256 for the exchange itself.
const PATTERN: &str = "Noise_IK_25519_AESGCM_SHA256";
/// Bytes of the client's message: an ephemeral key, its own key sealed, and a tag.
const CONNECT_BYTES: usize = 32 + (32 + 16) + 16;
/// Bytes of a side's terms as they are authenticated.
const TERMS_BYTES: usize = 4 + 8 + 4 + 4 + 8 + 4 + 16;
/// Bytes of the server's message: an ephemeral key, and its terms sealed.
pub(crate) const ACCEPT_BYTES: usize = 32 + TERMS_BYTES + 16;

/// Who connects to whom. A message for others is of no use between these.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) client: IpAddr,
    pub(crate) server: IpAddr,
}

/// A client's side, until the Accept comes.
pub(crate) struct Initiator {
    state: Box<HandshakeState>,
    message: [u8; CONNECT_BYTES],
}

impl std::fmt::Debug for Initiator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Initiator")
    }
}

impl Initiator {
    /// Begins an exchange with the first of the keys' peers; `terms` are those of the Connect. `None` if the peer's key is not one of the
    /// curve's, or the system has no random numbers.
    //= docs/specs/endpoint.md#END-33 the key exchange
    pub(crate) fn new(keys: &Keys, ends: Ends, terms: &Terms) -> Option<Self> {
        let peer = keys.peers.first()?;
        let prologue = prologue(ends, terms);
        let builder = builder().local_private_key(keys.own.bytes()).ok()?.remote_public_key(peer.bytes()).ok()?;
        let mut state = builder.prologue(&prologue).ok()?.build_initiator().ok()?;
        let mut message = [0; CONNECT_BYTES];
        let written = state.write_message(&[], &mut message).ok()?;
        (written == CONNECT_BYTES).then(|| Self { state: Box::new(state), message })
    }

    /// The message that the Connect carries.
    pub(crate) fn message(&self) -> &[u8] {
        &self.message
    }

    /// Takes the server's message, if it is genuine and for these terms of the Accept.
    pub(crate) fn finish(&mut self, terms: &Terms, message: &[u8]) -> Option<Secrets> {
        if message.len() != ACCEPT_BYTES {
            return None;
        }
        let mut sealed_terms = [0; TERMS_BYTES];
        let read = self.state.read_message(message, &mut sealed_terms).ok()?;
        if read != TERMS_BYTES || sealed_terms != bytes_of(terms) {
            return None;
        }
        let (sending, receiving) = self.state.dangerously_get_raw_split();
        Some(Secrets { sending, receiving })
    }
}

/// A server's side, between the Connect and its answer.
pub(crate) struct Responder(HandshakeState);

impl Responder {
    /// Reads a client's message; `terms` are those of its Connect. `None` unless the client holds one of the peers' keys and meant this
    /// server. It costs some 100 us, whatever the message is.
    //= docs/specs/endpoint.md#END-33 the key exchange
    pub(crate) fn new(keys: &Keys, ends: Ends, terms: &Terms, message: &[u8]) -> Option<Self> {
        if message.len() != CONNECT_BYTES {
            return None;
        }
        let prologue = prologue(ends, terms);
        let builder = builder().local_private_key(keys.own.bytes()).ok()?.prologue(&prologue).ok()?;
        let mut state = builder.build_responder().ok()?;
        state.read_message(message, &mut []).ok()?;
        let client = PublicKey::from_bytes(state.get_remote_static()?)?;
        keys.peers.contains(&client).then_some(Self(state))
    }

    /// The connection's secrets, and the message that the Accept carries; `terms` are those of the Accept.
    pub(crate) fn answer(mut self, terms: &Terms) -> Option<(Secrets, [u8; ACCEPT_BYTES])> {
        let mut message = [0; ACCEPT_BYTES];
        let written = self.0.write_message(&bytes_of(terms), &mut message).ok()?;
        let (receiving, sending) = self.0.dangerously_get_raw_split();
        (written == ACCEPT_BYTES).then_some((Secrets { sending, receiving }, message))
    }
}

fn builder<'a>() -> Builder<'a> {
    Builder::new(PATTERN.parse::<NoiseParams>().expect("a pattern of the library's"))
}

/// What both sides must agree on before the first message.
fn prologue(ends: Ends, terms: &Terms) -> Vec<u8> {
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    [b"spray 1".as_slice(), &octets(ends.client), &octets(ends.server), &bytes_of(terms)].concat()
}

/// A side's terms, as it says them. The length of the message is not among them: there is one for each direction.
fn bytes_of(terms: &Terms) -> [u8; TERMS_BYTES] {
    let Terms { connection, cookie, window_packets, max_payload, max_data, ack_every, token, exchange_bytes: _ } =
        terms;
    let mut bytes = [0; TERMS_BYTES];
    let fields: [&[u8]; 7] = [
        &connection.to_be_bytes(),
        &cookie.to_be_bytes(),
        &window_packets.to_be_bytes(),
        &max_payload.to_be_bytes(),
        &max_data.to_be_bytes(),
        &ack_every.to_be_bytes(),
        token,
    ];
    let mut rest = &mut bytes[..];
    for field in fields {
        let (place, behind) = rest.split_at_mut(field.len());
        place.copy_from_slice(field);
        rest = behind;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::PrivateKey;

    fn respond(keys: &Keys, ends: Ends, theirs: &Terms, message: &[u8], ours: &Terms) -> Option<(Secrets, Vec<u8>)> {
        let (secrets, message) = Responder::new(keys, ends, theirs, message)?.answer(ours)?;
        Some((secrets, message.to_vec()))
    }

    fn keys() -> (PrivateKey, PrivateKey, PrivateKey) {
        let key = || PrivateKey::generate().unwrap();
        (key(), key(), key())
    }

    fn ends() -> Ends {
        Ends { client: IpAddr::from([10, 0, 0, 1]), server: IpAddr::from([10, 0, 0, 2]) }
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
    fn both_sides_get_the_same_secrets_and_nobody_else() {
        let (client, server, stranger) = keys();
        let clients = Keys::new(client.clone(), vec![server.public()]);
        let servers = Keys::new(server.clone(), vec![stranger.public(), client.public()]);
        let mut initiator = Initiator::new(&clients, ends(), &terms(1)).unwrap();
        let (_, message) = respond(&servers, ends(), &terms(1), initiator.message(), &terms(2)).unwrap();
        assert!(initiator.finish(&terms(3), &message).is_none(), "another's terms");
        let mut initiator = Initiator::new(&clients, ends(), &terms(1)).unwrap();
        let (theirs, message) = respond(&servers, ends(), &terms(1), initiator.message(), &terms(2)).unwrap();
        let mut broken = message.clone();
        broken[40] ^= 1;
        assert!(initiator.finish(&terms(2), &broken).is_none() && initiator.finish(&terms(2), &[]).is_none());
        let ours = initiator.finish(&terms(2), &message).unwrap();
        assert_eq!((ours.sending, ours.receiving), (theirs.receiving, theirs.sending));
        assert_ne!(ours.sending, ours.receiving);
        let (again, _) = respond(&servers, ends(), &terms(1), initiator.message(), &terms(2)).unwrap();
        assert_ne!(again.sending, theirs.sending, "every exchange has its own");
    }

    #[test]
    fn a_server_answers_only_its_peers_and_what_was_meant_for_it() {
        let (client, server, stranger) = keys();
        let clients = Keys::new(client.clone(), vec![server.public()]);
        let servers = Keys::new(server.clone(), vec![client.public()]);
        let meant = Initiator::new(&clients, ends(), &terms(1)).unwrap();
        let answers =
            |keys: &Keys, ends, terms: &Terms, message: &[u8]| respond(keys, ends, terms, message, terms).is_some();
        assert!(answers(&servers, ends(), &terms(1), meant.message()));
        assert!(!answers(&Keys::new(stranger.clone(), vec![client.public()]), ends(), &terms(1), meant.message()));
        assert!(!answers(&Keys::new(server.clone(), vec![stranger.public()]), ends(), &terms(1), meant.message()));
        assert!(!answers(&servers, ends(), &terms(2), meant.message()), "other terms");
        let other = Ends { client: IpAddr::from([10, 0, 0, 3]), ..ends() };
        assert!(!answers(&servers, other, &terms(1), meant.message()), "from elsewhere");
        let reflected = Ends { client: ends().server, server: ends().client };
        let shared = Keys::new(client.clone(), vec![]);
        let mine = Initiator::new(&shared, ends(), &terms(1)).unwrap();
        assert!(answers(&shared, ends(), &terms(1), mine.message()), "one key for all");
        assert!(!answers(&shared, reflected, &terms(1), mine.message()), "sent back to its sender");
        for bytes in [0, 1, CONNECT_BYTES - 1] {
            assert!(!answers(&servers, ends(), &terms(1), &meant.message()[..bytes]));
        }
        assert!(!answers(&servers, ends(), &terms(1), &[0; CONNECT_BYTES]));
        let nobody = PublicKey::from_bytes(&[0; 32]).unwrap();
        // A key that no exchange is possible with is refused without a panic.
        let _ = Initiator::new(&Keys::new(client, vec![nobody]), ends(), &terms(1));
    }
}
