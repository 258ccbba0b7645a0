//! The tag at the end of a Connect to a server with keys. A client without the server's public key
//! gets no answer.

use std::net::IpAddr;

use ring::hmac;
use spray_wire::Terms;
use subtle::ConstantTimeEq;

use crate::endpoint::seal::noise::{Parties, connect_prologue};
use crate::keys::PublicKey;

/// Creates and checks the tags for one server.
#[derive(Debug, Clone)]
pub struct ConnectTag(hmac::Key);

impl ConnectTag {
    /// Bytes of a tag.
    pub const BYTES: usize = 16;

    /// Creates it for Connects to the holder of this key.
    #[must_use]
    pub fn new(server: &PublicKey) -> Self {
        let key = [b"spray connect".as_slice(), server.bytes()].concat();
        Self(hmac::Key::new(hmac::HMAC_SHA256, &key))
    }

    /// Returns the tag of a Connect between these addresses, with these terms and this message of
    /// the key exchange.
    //= docs/specs/endpoint.md#END-45 no answer to unauthenticated peers
    #[must_use]
    pub fn of(&self, client: IpAddr, server: IpAddr, terms: &Terms, message: &[u8]) -> [u8; Self::BYTES] {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(&connect_prologue(Parties { client, server }, terms));
        context.update(message);
        let tag = context.sign();
        *tag.as_ref().first_chunk().expect("SHA-256 gives 32 bytes")
    }

    /// Returns the part of a Connect's payload before the tag, if the tag is valid.
    pub(crate) fn open<'a>(&self, parties: Parties, terms: &Terms, payload: &'a [u8]) -> Option<&'a [u8]> {
        let (message, shown) = payload.split_last_chunk::<{ Self::BYTES }>()?;
        let right = self.of(parties.client, parties.server, terms, message);
        bool::from(right.ct_eq(shown)).then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::PrivateKey;

    //= docs/specs/endpoint.md#END-45 no answer to unauthenticated peers
    #[test]
    fn a_tag_is_for_one_server_one_client_and_one_connect() {
        let [ours, other] = [0; 2].map(|_| ConnectTag::new(&PrivateKey::generate().unwrap().public()));
        let parties = Parties { client: IpAddr::from([10, 0, 0, 1]), server: IpAddr::from([10, 0, 0, 2]) };
        let terms = Terms { connection: 7, cookie: 8, ..Terms::default() };
        let shown = |parties: Parties, terms: &Terms, message: &[u8]| {
            [message, &ours.of(parties.client, parties.server, terms, message)].concat()
        };
        for message in [&[][..], &[5; 96]] {
            let payload = shown(parties, &terms, message);
            assert_eq!(ours.open(parties, &terms, &payload), Some(message));
            assert_eq!(other.open(parties, &terms, &payload), None, "of another server");
            let from_elsewhere = Parties { client: IpAddr::from([10, 0, 0, 3]), ..parties };
            assert_eq!(ours.open(from_elsewhere, &terms, &payload), None);
            for terms in [Terms { token: [1; 16], ..terms }, Terms { cookie: 9, ..terms }] {
                assert_eq!(ours.open(parties, &terms, &payload), None);
            }
            for at in 0..payload.len() {
                let mut broken = payload.clone();
                broken[at] ^= 1;
                assert_eq!(ours.open(parties, &terms, &broken), None);
            }
            assert_eq!(ours.open(parties, &terms, &payload[1..]), None);
        }
        assert_eq!(ours.open(parties, &terms, &[]), None);
    }
}
