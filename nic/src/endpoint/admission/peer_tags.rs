//! The proof that a client holds a listed key, which a server checks before any costly computation:
//! a tag under the secret of both sides' static keys.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;

use ring::hmac;
use spray_wire::Terms;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::endpoint::admission::connect_tag::ConnectTag;
use crate::endpoint::seal::noise::{CONNECT_BYTES, Parties, connect_prologue};
use crate::keys::{Keys, PublicKey};

/// Bytes of a client's name and of its tag.
const NAME_BYTES: usize = 8;
const TAG_BYTES: usize = 16;

/// The part of a Connect after the message of the key exchange.
pub(crate) type Proof = [u8; NAME_BYTES + TAG_BYTES];

/// The client's name for the server, the same in all its Connects.
type Name = [u8; NAME_BYTES];

/// Creates and checks the proofs for the holders of listed keys.
pub struct PeerTags {
    peers: HashMap<PublicKey, Peer>,
    /// The public key of a client, by its name.
    clients: HashMap<Name, PublicKey>,
}

struct Peer {
    key: hmac::Key,
    /// Our name at that peer.
    own_name: Name,
}

impl PeerTags {
    /// Creates it for all keys that give a secret. The first call with a set of keys costs a
    /// Diffie-Hellman for each.
    #[must_use]
    pub fn new(keys: &Keys) -> Self {
        let own = keys.own.public();
        let mut tags = Self { peers: HashMap::new(), clients: HashMap::new() };
        for &(peer, ref secret) in keys.secrets() {
            let Some(secret) = secret else { continue };
            let key = Zeroizing::new([b"spray client".as_slice(), &**secret, keys.pre_shared()].concat());
            let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
            tags.clients.insert(name(&key, &peer, &own), peer);
            let own_name = name(&key, &own, &peer);
            tags.peers.insert(peer, Peer { key, own_name });
        }
        tags
    }

    /// Returns the payload of a Connect to the holder of `key`: the message of the key exchange and
    /// the proof, if there is a message, and the tag. `None` if that key is not listed.
    //= docs/specs/endpoint.md#END-45 no answer to unauthenticated peers
    #[must_use]
    pub fn payload(
        &self,
        key: &PublicKey,
        client: IpAddr,
        server: IpAddr,
        terms: &Terms,
        message: &[u8],
    ) -> Option<Vec<u8>> {
        let mut payload = message.to_vec();
        if !message.is_empty() {
            payload.extend(self.proof(key, Parties { client, server }, terms, message)?);
        }
        payload.extend(ConnectTag::new(key).of(client, server, terms, &payload));
        Some(payload)
    }

    /// Returns the proof of a Connect to the holder of `server`.
    //= docs/specs/endpoint.md#END-48 a client proves which listed key it holds
    pub(in crate::endpoint) fn proof(
        &self,
        server: &PublicKey,
        parties: Parties,
        terms: &Terms,
        message: &[u8],
    ) -> Option<Proof> {
        let Peer { key, own_name } = self.peers.get(server)?;
        let mut proof = [0; NAME_BYTES + TAG_BYTES];
        let (to_name, to_tag) = proof.split_at_mut(NAME_BYTES);
        to_name.copy_from_slice(&masked(*own_name, &ConnectTag::new(server), parties, terms, message));
        to_tag.copy_from_slice(&tag(key, parties, terms, message));
        Some(proof)
    }

    /// Returns the key of a Connect's client, and its message; `own` creates the tags of Connects
    /// to this server. Takes the same time with any number of listed keys.
    //= docs/specs/endpoint.md#END-48 a client proves which listed key it holds
    pub(in crate::endpoint) fn open<'a>(
        &self,
        own: &ConnectTag,
        parties: Parties,
        terms: &Terms,
        payload: &'a [u8],
    ) -> Option<(&PublicKey, &'a [u8; CONNECT_BYTES])> {
        let (message, proof) = payload.split_first_chunk::<CONNECT_BYTES>()?;
        let (shown_name, shown_tag) = proof.split_first_chunk::<NAME_BYTES>()?;
        let client = self.clients.get(&masked(*shown_name, own, parties, terms, message))?;
        let right = tag(&self.peers.get(client)?.key, parties, terms, message);
        bool::from(right.ct_eq(shown_tag)).then_some((client, message))
    }
}

impl fmt::Debug for PeerTags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerTags").field("peers", &self.peers.len()).finish_non_exhaustive()
    }
}

fn name(key: &hmac::Key, client: &PublicKey, server: &PublicKey) -> Name {
    let mut context = hmac::Context::with_key(key);
    [b"name".as_slice(), client.bytes(), server.bytes()].iter().for_each(|part| context.update(part));
    first(&context.sign())
}

/// Masks or unmasks a name: without the server's key it looks random.
fn masked(mut name: Name, server: &ConnectTag, parties: Parties, terms: &Terms, message: &[u8]) -> Name {
    let mask = server.of(parties.client, parties.server, terms, message);
    name.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
    name
}

fn tag(key: &hmac::Key, parties: Parties, terms: &Terms, message: &[u8]) -> [u8; TAG_BYTES] {
    let mut context = hmac::Context::with_key(key);
    context.update(&connect_prologue(parties, terms));
    context.update(message);
    first(&context.sign())
}

fn first<const BYTES: usize>(tag: &hmac::Tag) -> [u8; BYTES] {
    *tag.as_ref().first_chunk().expect("SHA-256 gives 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::PrivateKey;

    fn parties() -> Parties {
        Parties { client: IpAddr::from([10, 0, 0, 1]), server: IpAddr::from([10, 0, 0, 2]) }
    }

    fn keys<const N: usize>() -> [PrivateKey; N] {
        [(); N].map(|()| PrivateKey::generate().unwrap())
    }

    //= docs/specs/endpoint.md#END-48 a client proves which listed key it holds
    #[test]
    fn a_server_identifies_its_peers_and_rejects_others() {
        let [client, server, other, secret] = keys();
        let listed: Vec<_> = keys::<20>().iter().map(PrivateKey::public).chain([client.public()]).collect();
        let (servers, own) = (Keys::new(server.clone(), listed.clone()), ConnectTag::new(&server.public()));
        let clients = Keys::new(client.clone(), vec![server.public()]);
        let (terms, message) = (Terms { connection: 7, ..Terms::default() }, [9; CONNECT_BYTES]);
        let shown = |keys: &Keys, terms: &Terms| {
            let proof = PeerTags::new(keys).proof(&server.public(), parties(), terms, &message).unwrap();
            [&message[..], &proof].concat()
        };
        let opens = |keys: &Keys, payload: &[u8]| {
            let tags = PeerTags::new(keys);
            tags.open(&own, parties(), &terms, payload).map(|(key, message)| (*key, *message))
        };
        let payload = shown(&clients, &terms);
        assert_eq!(opens(&servers, &payload), Some((client.public(), message)));
        for at in 0..payload.len() {
            let mut broken = payload.clone();
            broken[at] ^= 1;
            assert_eq!(opens(&servers, &broken), None, "{at}");
        }
        assert!((0..payload.len()).all(|length| opens(&servers, &payload[..length]).is_none()));
        assert_eq!(opens(&servers, &shown(&clients, &Terms { cookie: 1, ..terms })), None);
        let unlisted = Keys::new(other, vec![server.public()]);
        assert_eq!(opens(&servers, &shown(&unlisted, &terms)), None);
        let with_secret = |keys: &Keys| keys.clone().with_pre_shared(secret.clone());
        assert_eq!(opens(&servers, &shown(&with_secret(&clients), &terms)), None, "another pre-shared secret");
        assert!(opens(&with_secret(&servers), &shown(&with_secret(&clients), &terms)).is_some());
        let shared = Keys::new(server.clone(), vec![]);
        assert!(opens(&shared, &shown(&shared, &terms)).is_some(), "one key for all");
    }

    #[test]
    fn a_clients_tag_looks_random_without_the_servers_key() {
        let [client, server] = keys();
        let clients = Keys::new(client, vec![server.public()]);
        let shown = |cookie| {
            let terms = Terms { cookie, ..Terms::default() };
            let proof =
                PeerTags::new(&clients).proof(&server.public(), parties(), &terms, &[9; CONNECT_BYTES]).unwrap();
            u64::from_be_bytes(*proof.first_chunk().unwrap())
        };
        let differing = (0..100).map(|cookie| (shown(cookie) ^ shown(cookie + 1)).count_ones()).sum::<u32>();
        assert!((2_900..3_500).contains(&differing), "{differing} of 6,400 bits");
    }
}
