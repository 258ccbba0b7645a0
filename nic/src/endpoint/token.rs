//! Tokens: a client proves that it receives what is sent to its address before anything is kept for it.

use spray_core::Time;
use std::net::IpAddr;

use ring::hmac;
use subtle::ConstantTimeEq;

/// How long a token is given out: 2^43 ps, which are 8.8 s. It is taken for as long again.
const PERIOD: u32 = 43;

/// The maker of tokens, and their judge. It keeps nothing about clients.
#[derive(Debug)]
pub(crate) struct Tokens(hmac::Key);

impl Tokens {
    pub(crate) fn new(secret: &[u64; 4]) -> Self {
        let bytes = secret.map(u64::to_be_bytes);
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes.as_flattened()))
    }

    /// The token that a client must show for the connection that it numbers so.
    //= docs/specs/endpoint.md#END-2 the address first
    pub(crate) fn make(&self, now: Time, client: IpAddr, connection: u32, cookie: u64) -> [u8; 16] {
        self.of(now.intervals(PERIOD), client, connection, cookie)
    }

    /// Whether this is its token, and not too old: from 8.8 to 17.6 s.
    pub(crate) fn is_right(&self, now: Time, client: IpAddr, connection: u32, cookie: u64, token: &[u8; 16]) -> bool {
        let period = now.intervals(PERIOD);
        let periods = [Some(period), period.checked_sub(1)].into_iter().flatten();
        // To compare takes the same time wherever they differ.
        periods.map(|period| self.of(period, client, connection, cookie)).any(|right| right.ct_eq(token).into())
    }

    fn of(&self, period: u64, client: IpAddr, connection: u32, cookie: u64) -> [u8; 16] {
        let mut context = hmac::Context::with_key(&self.0);
        match client {
            IpAddr::V4(address) => context.update(&address.octets()),
            IpAddr::V6(address) => context.update(&address.octets()),
        }
        context.update(&period.to_be_bytes());
        context.update(&connection.to_be_bytes());
        context.update(&cookie.to_be_bytes());
        let tag = context.sign();
        *tag.as_ref().first_chunk().expect("SHA-256 gives 32 bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/specs/endpoint.md#END-2 the address first
    #[test]
    fn a_token_is_for_one_client_one_connection_and_some_seconds() {
        const PERIOD_PS: u64 = 1 << PERIOD;
        let at = |ps| Time::ZERO.after(ps);
        let tokens = |secret| Tokens::new(&[secret; 4]);
        let (ours, client, other) = (tokens(1), IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let token = ours.make(at(5_000), client, 7, 8);
        assert!(
            ours.is_right(at(5_000), client, 7, 8, &token)
                && ours.is_right(at(2 * PERIOD_PS).before(1_000), client, 7, 8, &token)
        );
        assert!(!ours.is_right(at(2 * PERIOD_PS), client, 7, 8, &token));
        assert!(!ours.is_right(at(5_000), other, 7, 8, &token) && !ours.is_right(at(5_000), client, 6, 8, &token));
        assert!(
            !ours.is_right(at(5_000), client, 7, 9, &token) && !tokens(2).is_right(at(5_000), client, 7, 8, &token)
        );
        assert!(!ours.is_right(at(5_000), client, 7, 8, &[0; 16]));
        let late = ours.make(at(3 * PERIOD_PS), client, 7, 8);
        assert!(!ours.is_right(at(PERIOD_PS), client, 7, 8, &late));
    }
}
