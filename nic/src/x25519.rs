//! X25519 (RFC 7748) with a private key that is zeroed on drop.

use curve25519_dalek::montgomery::MontgomeryPoint;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, RingResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use zeroize::Zeroizing;

/// Bytes of a key and of a shared secret.
const BYTES: usize = 32;

#[derive(Default)]
pub(crate) struct X25519 {
    private: Zeroizing<[u8; BYTES]>,
    public: [u8; BYTES],
}

impl X25519 {
    pub(crate) fn new(private: &[u8; BYTES]) -> Self {
        let public = MontgomeryPoint::mul_base_clamped(*private).to_bytes();
        Self { private: Zeroizing::new(*private), public }
    }

    pub(crate) fn public(&self) -> [u8; BYTES] {
        self.public
    }

    /// Returns the shared secret of a private key and a peer's public key.
    pub(crate) fn shared(private: &[u8; BYTES], peer: [u8; BYTES]) -> Zeroizing<[u8; BYTES]> {
        Zeroizing::new(MontgomeryPoint(peer).mul_clamped(*private).to_bytes())
    }
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        BYTES
    }

    fn priv_len(&self) -> usize {
        BYTES
    }

    fn set(&mut self, private: &[u8]) {
        let Some(private) = private.first_chunk() else { return };
        *self = Self::new(private);
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), snow::Error> {
        let mut private = Zeroizing::new([0; BYTES]);
        rng.try_fill_bytes(&mut *private)?;
        *self = Self::new(&private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &*self.private
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        let (peer, out) = public.first_chunk().zip(out.first_chunk_mut()).ok_or(snow::Error::Dh)?;
        *out = *Self::shared(&self.private, *peer);
        Ok(())
    }
}

/// Resolves the curve to [`X25519`], and everything else to `ring`.
pub(crate) struct ZeroingResolver;

impl CryptoResolver for ZeroingResolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        RingResolver.resolve_rng()
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        (*choice == DHChoice::Curve25519).then(|| Box::new(X25519::default()) as Box<dyn Dh>)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        RingResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        RingResolver.resolve_cipher(choice)
    }
}

#[cfg(test)]
mod tests {
    use snow::resolvers::DefaultResolver;

    use super::*;

    #[test]
    fn keys_and_secrets_agree_with_another_implementation() {
        let [mut own, mut theirs] = [(); 2].map(|()| DefaultResolver.resolve_dh(&DHChoice::Curve25519).unwrap());
        for round in 0..8 {
            let [a, b] = [[round; BYTES], [round ^ 0xa5; BYTES]];
            own.set(&a);
            theirs.set(&b);
            let (ours, mut expected) = (X25519::new(&a), [0; BYTES]);
            own.dh(theirs.pubkey(), &mut expected).unwrap();
            assert_eq!(ours.public(), own.pubkey());
            assert_eq!(*X25519::shared(&a, theirs.pubkey().try_into().unwrap()), expected);
            let mut secret = [0; BYTES];
            ours.dh(theirs.pubkey(), &mut secret).unwrap();
            assert_eq!((secret, ours.privkey()), (expected, &a[..]));
        }
    }
}
