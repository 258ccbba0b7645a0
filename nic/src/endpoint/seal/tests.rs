//! Sealed frames of two sides under many keys, also modified by an adversary.

use std::net::IpAddr;

use super::*;

fn secret() -> Secret {
    Secret::new([7; 32])
}

/// A frame as the wire carries it: its number, header, tag of the header, and payload with its tag.
#[derive(Clone)]
struct Wire {
    number: u64,
    covered: Vec<u8>,
    tag: [u8; TAG_BYTES],
    payload: Option<Vec<u8>>,
}

fn sealed(ticket: &FrameKey, payload: Option<&[u8]>) -> Wire {
    let covered = format!("header {}", ticket.number()).into_bytes();
    let payload = payload.map(|text| {
        let mut bytes = text.to_vec();
        let tag = ticket.payload(&covered, &mut bytes);
        [&bytes[..], &tag].concat()
    });
    Wire { number: ticket.number(), tag: ticket.header(&covered), covered, payload }
}

fn judge(opener: &mut Opener, wire: &Wire) -> (Verdict, Vec<u8>) {
    let mut payload = wire.payload.clone();
    let verdict = opener.open(Sealed {
        connection: 1,
        number: wire.number,
        source: IpAddr::from([10, 0, 0, 1]),
        covered: &wire.covered,
        header_tag: wire.tag,
        payload: payload.as_deref_mut(),
    });
    let text = payload.map_or(Vec::new(), |bytes| bytes[..bytes.len() - TAG_BYTES].to_vec());
    (verdict, text)
}

impl Sealer {
    /// Advances as if all frames before `number` had been sent.
    pub(crate) fn skip_to(&mut self, number: u64) {
        for key in (self.count >> FRAMES_BITS) + 1..=number >> FRAMES_BITS {
            self.count = key << FRAMES_BITS;
            // The first frame under a key derives that key.
            if self.count < number {
                self.next();
            }
        }
        self.count = number;
    }
}

impl Opener {
    /// Advances as if all frames before `number` had been received.
    pub(crate) fn skip_to(&mut self, number: u64) {
        for _ in self.current..(number - 1) >> FRAMES_BITS {
            self.on_next_key();
        }
        self.replays.mark(number - 1);
    }
}

/// Returns the ticket of frame `number`, as if all before it had been sent.
fn at(sealer: &mut Sealer, number: u64) -> FrameKey {
    sealer.skip_to(number);
    sealer.next()
}

//= docs/specs/wire.md#WIRE-18 sealed frames
#[test]
fn only_sealed_frames_open_and_only_once() {
    let (mut sealer, mut opener) = (Sealer::new(&secret(), 0), Opener::new(&secret(), 0));
    for round in 0..50 {
        let text = vec![round; usize::from(round) * 70];
        let whole = sealed(&sealer.next(), Some(&text));
        let header = sealed(&sealer.next(), None);
        // The payload is encrypted.
        assert!(text.len() < 16 || whole.payload.as_ref().unwrap()[..text.len()] != text[..]);
        for wire in [&whole, &header] {
            let mut other = wire.clone();
            other.covered[3] ^= 1;
            assert_eq!(judge(&mut opener, &other).0, Verdict::Forged);
            let other = Wire { number: wire.number + 2, ..wire.clone() };
            assert_eq!(judge(&mut opener, &other).0, Verdict::Forged);
            assert_eq!(judge(&mut Opener::new(&Secret::new([8; 32]), 0), wire).0, Verdict::Forged);
        }
        // The tag of a payload is not accepted as a header tag.
        let bytes = whole.payload.clone().unwrap();
        let tag = bytes[bytes.len() - TAG_BYTES..].try_into().unwrap();
        assert_eq!(judge(&mut opener, &Wire { tag, payload: None, ..whole.clone() }).0, Verdict::Forged);
        // A trimmed frame is only its header. After it, the whole frame with the same number is a
        // replay.
        if round % 2 == 0 {
            assert_eq!(judge(&mut opener, &Wire { payload: None, ..whole.clone() }).0, Verdict::Genuine);
            assert_eq!(judge(&mut opener, &whole).0, Verdict::Replayed);
        } else {
            assert_eq!(judge(&mut opener, &whole), (Verdict::Genuine, text));
        }
        assert_eq!(judge(&mut opener, &header).0, Verdict::Genuine);
        assert_eq!(judge(&mut opener, &header).0, Verdict::Replayed);
    }
}

//= docs/specs/wire.md#WIRE-19 numbers and keys
#[test]
fn keys_change_with_the_numbers_and_late_frames_still_open() {
    let (mut sealer, mut opener) = (Sealer::new(&secret(), 0), Opener::new(&secret(), 0));
    let mut keys = Vec::new();
    for epoch in 0..6u64 {
        let first = epoch << FRAMES_BITS;
        let last = first + (1 << FRAMES_BITS) - 1;
        let late = sealed(&at(&mut sealer, last - 1), None);
        let ticket = sealer.next();
        assert_eq!(ticket.number(), last);
        keys.push(Arc::clone(&ticket.key));
        assert_eq!(judge(&mut opener, &sealed(&ticket, Some(b"the last under its key"))).0, Verdict::Genuine);
        let ticket = sealer.next();
        assert!(!Arc::ptr_eq(&ticket.key, keys.last().unwrap()), "another key for {}", ticket.number());
        assert_eq!(judge(&mut opener, &sealed(&ticket, Some(b"the first under the next"))).0, Verdict::Genuine);
        assert_eq!(judge(&mut opener, &late).0, Verdict::Genuine, "sent before the change of keys, delayed");
        assert_eq!(judge(&mut opener, &late).0, Verdict::Replayed);
    }
    // A frame two keys ahead is not genuine, and a forged frame does not advance the key.
    let current = opener.current;
    let far = sealed(&at(&mut sealer, (current + 2) << FRAMES_BITS), None);
    assert_eq!((judge(&mut opener, &far).0, opener.current), (Verdict::Forged, current));
    let forged = Wire { number: ((current + 1) << FRAMES_BITS) + 5, ..sealed(&Sealer::new(&secret(), 0).next(), None) };
    assert_eq!((judge(&mut opener, &forged).0, opener.current), (Verdict::Forged, current));
}

/// Key numbers have 40 bits, frame numbers 64: both continue beyond 32 bits.
//= docs/specs/wire.md#WIRE-19 numbers and keys
#[test]
fn frames_and_their_keys_are_counted_beyond_32_bits() {
    let (mut sealer, mut opener) = (Sealer::new(&secret(), 0), Opener::new(&secret(), 0));
    for end in [1 << 32, 1 << 40] {
        sealer.skip_to(end - 20_000);
        opener.skip_to(end - 20_000);
        let late = sealed(&sealer.next(), None);
        let mut last = None;
        for number in end - 19_999..end + 20_000 {
            let ticket = sealer.next();
            assert_eq!(ticket.number(), number);
            // One frame in seven is lost.
            if number % 7 != 0 {
                let wire = sealed(&ticket, None);
                assert_eq!(judge(&mut opener, &wire).0, Verdict::Genuine, "{number}");
                last = Some(wire);
            }
        }
        assert_eq!(judge(&mut opener, &last.unwrap()).0, Verdict::Replayed);
        assert_eq!(judge(&mut opener, &late).0, Verdict::Replayed, "older than the replay window");
        assert_eq!(opener.current, end >> FRAMES_BITS);
    }
}

/// Earlier keys of a chain cannot be derived from later ones; both sides derive the same.
#[test]
fn a_key_chain_is_one_way_and_equal_at_both_ends() {
    let (mut ours, mut theirs) = (Chain(secret()), Chain(secret()));
    let mut secrets = vec![secret()];
    for _ in 0..20 {
        let (ours_tag, theirs_tag) = (ours.next().seal(0, 1, b"x", &mut []), theirs.next().seal(0, 1, b"x", &mut []));
        assert_eq!((ours_tag, &ours.0), (theirs_tag, &theirs.0));
        assert!(!secrets.contains(&ours.0));
        secrets.push(ours.0.clone());
    }
}
