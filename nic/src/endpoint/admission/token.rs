//! Tokens: a client proves that it receives frames at its address before anything is stored for it.

use std::hash::{DefaultHasher, Hasher};
use std::net::IpAddr;

use bytes::Buf;
use ring::hmac;
use spray_core::Time;
use subtle::ConstantTimeEq;

use crate::endpoint::Peer;

/// Period of a token as a power of two: 2^43 ps are 8.8 s. It is valid for the next period too.
const PERIOD: u32 = 43;

/// What a valid token proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Proof {
    None,
    /// The client received a frame to its address, at this or another Ethernet address of the
    /// segment.
    Address,
    /// The client received a frame to this Ethernet address.
    NextHop,
}

/// Creates and checks tokens, without state per client.
#[derive(Debug)]
pub(crate) struct Tokens(hmac::Key);

impl Tokens {
    pub(crate) fn new(secret: &[u64; 4]) -> Self {
        let bytes = secret.map(u64::to_be_bytes);
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes.as_flattened()))
    }

    /// Returns the token of a client's connection, which is sent to the client's Ethernet address.
    //= docs/specs/endpoint.md#END-2 address validation
    pub(crate) fn make(&self, now: Time, client: Peer, connection: u32, cookie: u64) -> [u8; 16] {
        self.of(now.intervals(PERIOD), client, connection, cookie)
    }

    /// Returns what the token proves. It expires after 8.8 to 17.6 s.
    //= docs/specs/endpoint.md#END-47 the second half depends on
    pub(crate) fn proof(&self, now: Time, client: Peer, connection: u32, cookie: u64, token: &[u8; 16]) -> Proof {
        let period = now.intervals(PERIOD);
        let proof_by = |period| {
            let right = self.of(period, client, connection, cookie);
            let (ours, theirs) = (right.split_at(8), token.split_at(8));
            // In constant time.
            match (ours.0.ct_eq(theirs.0).into(), ours.1.ct_eq(theirs.1).into()) {
                (true, true) => Proof::NextHop,
                (true, false) => Proof::Address,
                (false, _) => Proof::None,
            }
        };
        let periods = [Some(period), period.checked_sub(1)].into_iter().flatten();
        periods.map(proof_by).find(|&proof| proof > Proof::None).unwrap_or(Proof::None)
    }

    fn of(&self, period: u64, client: Peer, connection: u32, cookie: u64) -> [u8; 16] {
        let mut context = hmac::Context::with_key(&self.0);
        match client.address {
            IpAddr::V4(address) => context.update(&address.octets()),
            IpAddr::V6(address) => context.update(&address.octets()),
        }
        context.update(&period.to_be_bytes());
        context.update(&connection.to_be_bytes());
        context.update(&cookie.to_be_bytes());
        let tag = context.sign();
        let mut words = tag.as_ref();
        let [first, secret, more] = [(); 3].map(|()| words.get_u64());
        // SipHash with a secret of this client's connection: a second HMAC would cost as much as
        // the first.
        let mut hasher = DefaultHasher::new();
        [secret, more, (&client.mac[..]).get_uint(6)].iter().for_each(|&word| hasher.write_u64(word));
        (u128::from(first) << 64 | u128::from(hasher.finish())).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_PS: u64 = 1 << PERIOD;

    fn client(host: u8, mac: u8) -> Peer {
        Peer { address: IpAddr::from([10, 0, 0, host]), mac: [2, 0, 0, 0, 0, mac] }
    }

    //= docs/specs/endpoint.md#END-2 address validation
    #[test]
    fn a_token_is_for_one_client_and_connection_and_expires() {
        let at = |ps| Time::ZERO.after(ps);
        let tokens = |secret| Tokens::new(&[secret; 4]);
        let (ours, own, other) = (tokens(1), client(1, 1), client(2, 1));
        let token = ours.make(at(5_000), own, 7, 8);
        let proof = |now, client, connection, cookie| ours.proof(now, client, connection, cookie, &token);
        assert_eq!(proof(at(5_000), own, 7, 8), Proof::NextHop);
        assert_eq!(proof(at(2 * PERIOD_PS).before(1_000), own, 7, 8), Proof::NextHop);
        assert_eq!(proof(at(2 * PERIOD_PS), own, 7, 8), Proof::None);
        for (client, connection, cookie) in [(other, 7, 8), (own, 6, 8), (own, 7, 9)] {
            assert_eq!(proof(at(5_000), client, connection, cookie), Proof::None);
        }
        assert_eq!(tokens(2).proof(at(5_000), own, 7, 8, &token), Proof::None);
        assert_eq!(ours.proof(at(5_000), own, 7, 8, &[0; 16]), Proof::None);
        let late = ours.make(at(3 * PERIOD_PS), own, 7, 8);
        assert_eq!(ours.proof(at(PERIOD_PS), own, 7, 8, &late), Proof::None);
    }

    //= docs/specs/endpoint.md#END-47 the second half depends on
    #[test]
    fn a_token_proves_the_ethernet_address_it_was_sent_to() {
        let (ours, now) = (Tokens::new(&[1; 4]), Time::ZERO);
        let token = ours.make(now, client(1, 1), 7, 8);
        assert_eq!(ours.proof(now, client(1, 2), 7, 8, &token), Proof::Address);
        for at in 0..16 {
            let mut broken = token;
            broken[at] ^= 1;
            let expected = if at < 8 { Proof::None } else { Proof::Address };
            assert_eq!(ours.proof(now, client(1, 1), 7, 8, &broken), expected, "{at}");
        }
    }
}
