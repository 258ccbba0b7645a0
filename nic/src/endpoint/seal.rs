//! Seals and opens the frames of one generation of a connection's keys, with a window against
//! replays.
//!
//! Each direction has a secret and counts its frames from 0. Generation and count are the frame's
//! number, which is the nonce. After 2^24 frames both sides switch to the next key, by the number.

pub(in crate::endpoint) mod generations;
pub(crate) mod noise;
pub(in crate::endpoint) mod rekey;
mod replay;
pub(in crate::endpoint) mod zeroed;

use std::sync::Arc;

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, MAX_TAG_LEN, Nonce, UnboundKey};
use ring::hkdf;
use spray_wire::{Seal, Sealed, TAG_BYTES};
use zeroize::Zeroizing;

use self::replay::Replays;
use self::zeroed::Zeroed;

/// Bits of a frame's number that count the frames of a generation; those above are the generation.
const COUNT_BITS: u32 = 48;
/// Bits of a frame's number that count the frames of a key. 2^24 frames of 256 blocks keep an
/// attacker's advantage below 2^-60.
const FRAMES_BITS: u32 = 24;
/// First byte of the nonce: one key serves headers and payloads.
const HEADER: u8 = 0;
const PAYLOAD: u8 = 1;

const _: () = assert!(MAX_TAG_LEN == TAG_BYTES);

/// The secret that the keys of one direction are derived from. Zeroed when dropped.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

/// Returns the generation of keys of a frame's number.
#[inline]
pub(crate) fn generation(number: u64) -> u16 {
    (number >> COUNT_BITS) as u16
}

/// The secrets of both directions.
#[derive(Clone)]
pub(crate) struct Secrets {
    pub(crate) sending: Secret,
    pub(crate) receiving: Secret,
}

/// An AES-GCM key. Zeroed when dropped.
struct Key(Zeroed<LessSafeKey>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    fn seal(&self, part: u8, number: u64, covered: &[u8], text: &mut [u8]) -> [u8; TAG_BYTES] {
        let tag = self.0.seal_in_place_separate_tag(nonce(part, number), Aad::from(covered), text);
        let tag = tag.expect("a frame is far shorter than the cipher's limit");
        tag.as_ref().try_into().expect("as long as every tag")
    }

    /// Decrypts in place; `text` ends with its tag.
    fn open(&self, part: u8, number: u64, covered: &[u8], text: &mut [u8]) -> bool {
        self.0.open_in_place(nonce(part, number), Aad::from(covered), text).is_ok()
    }
}

fn nonce(part: u8, number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[0] = part;
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// The keys of one direction, in order.
#[derive(Clone)]
struct Chain(Secret);

impl Chain {
    /// Derives the next key. Earlier keys cannot be derived from the new state.
    fn next(&mut self) -> Key {
        let chain = Zeroed::new(hkdf::Salt::new(hkdf::HKDF_SHA256, b"spray").extract(&*self.0));
        let mut key = Zeroizing::new([0; 16]);
        expand(&chain, b"frames", &mut *key);
        expand(&chain, b"next", &mut *self.0);
        Key(Zeroed::new(LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &*key).expect("16 bytes"))))
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Chain")
    }
}

fn expand(chain: &hkdf::Prk, about: &[u8], out: &mut [u8]) {
    struct Bytes(usize);
    impl hkdf::KeyType for Bytes {
        fn len(&self) -> usize {
            self.0
        }
    }
    let filled = chain.expand(&[about], Bytes(out.len())).and_then(|made| made.fill(out));
    filled.expect("fewer bytes than HKDF can give");
}

#[derive(Debug)]
pub(crate) struct Sealer {
    chain: Chain,
    key: Arc<Key>,
    /// The generation, shifted to its bits.
    base: u64,
    count: u64,
}

impl Sealer {
    pub(crate) fn new(secret: &Secret, generation: u16) -> Self {
        let mut chain = Chain(secret.clone());
        let key = Arc::new(chain.next());
        Self { chain, key, base: u64::from(generation) << COUNT_BITS, count: 0 }
    }

    //= docs/specs/wire.md#WIRE-19 numbers and keys
    pub(crate) fn next(&mut self) -> FrameKey {
        if self.count > 0 && self.count.trailing_zeros() >= FRAMES_BITS {
            self.key = Arc::new(self.chain.next());
        }
        let frame_key = FrameKey { key: Arc::clone(&self.key), number: self.base | self.count };
        // At 10^9 frames/s 48 bits last for three days, and a generation for minutes.
        self.count += 1;
        frame_key
    }
}

/// The unique number and the key of a frame.
#[derive(Debug)]
pub(crate) struct FrameKey {
    key: Arc<Key>,
    number: u64,
}

impl FrameKey {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl Seal for FrameKey {
    fn header(&self, covered: &[u8]) -> [u8; TAG_BYTES] {
        self.key.seal(HEADER, self.number, covered, &mut [])
    }

    fn payload(&self, covered: &[u8], payload: &mut [u8]) -> [u8; TAG_BYTES] {
        self.key.seal(PAYLOAD, self.number, covered, payload)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Genuine,
    /// A duplicate, or older than the replay window.
    Replayed,
    Forged,
}

/// Opens the frames of a generation, each once.
#[derive(Debug)]
pub(crate) struct Opener {
    generation: u16,
    chain: Chain,
    /// The number of the current key.
    current: u64,
    /// The previous, current and next key. Frames on slow paths may still need the previous one.
    keys: [Option<Key>; 3],
    replays: Replays,
}

impl Opener {
    pub(crate) fn new(secret: &Secret, generation: u16) -> Self {
        let mut chain = Chain(secret.clone());
        let keys = [None, Some(chain.next()), Some(chain.next())];
        Self { generation, chain, current: 0, keys, replays: Replays::default() }
    }

    #[inline]
    pub(crate) fn generation(&self) -> u16 {
        self.generation
    }

    /// Opens a frame of its generation, and decrypts its payload in place if it is authentic. A
    /// forged frame costs the work of one key.
    //= docs/specs/wire.md#WIRE-19 numbers and keys
    pub(crate) fn open(&mut self, sealed: Sealed<'_>) -> Verdict {
        let Sealed { number, covered, header_tag, payload, .. } = sealed;
        let count = number & ((1 << COUNT_BITS) - 1);
        if !self.replays.is_fresh(count) {
            return Verdict::Replayed;
        }
        let place = (count >> FRAMES_BITS).wrapping_sub(self.current).wrapping_add(1);
        let key = usize::try_from(place).ok().and_then(|place| self.keys.get(place)).and_then(Option::as_ref);
        let Some(key) = key else { return Verdict::Forged };
        let is_genuine = match payload {
            Some(payload) => key.open(PAYLOAD, number, covered, payload),
            None => key.open(HEADER, number, covered, &mut { header_tag }),
        };
        if !is_genuine {
            return Verdict::Forged;
        }
        self.replays.mark(count);
        if place == 2 {
            self.on_next_key();
        }
        Verdict::Genuine
    }

    fn on_next_key(&mut self) {
        self.current += 1;
        self.keys.rotate_left(1);
        self.keys[2] = Some(self.chain.next());
    }
}

#[cfg(test)]
mod tests;
