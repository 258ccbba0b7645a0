//! Key exchanges between two sides, also under attack.

use std::collections::HashSet;
use std::net::IpAddr;

use spray_wire::{Seal, TAG_BYTES, Terms};

use super::*;
use crate::endpoint::seal::noise::Parties;
use crate::endpoint::seal::{Secret, Secrets};
use crate::keys::PrivateKey;

const SECOND_PS: u64 = 1_000_000_000_000;
const RETRY: HandshakeConfig = HandshakeConfig { retry_ps: SECOND_PS / 10, attempts: 3 };

fn at(seconds: u64) -> Time {
    Time::ZERO.after(seconds * SECOND_PS)
}

/// Both sides of a connection.
struct Pair {
    client: Seals,
    server: Seals,
    keys: [Keys; 2],
    limit: Rekeys,
    /// The client's secrets of the first generation.
    secrets: Secrets,
}

impl Pair {
    /// Creates a connection with keys of this generation at 0 s. The server trusts another client
    /// too, whose key is returned.
    fn new(generation: u16) -> (Self, PrivateKey) {
        let [client, server, other] = [(); 3].map(|()| PrivateKey::generate().unwrap());
        let clients = Keys::new(client.clone(), vec![server.public()]);
        let servers = Keys::new(server, vec![other.public(), client.public()]);
        (Self::of([clients, servers], generation), other)
    }

    fn of(keys: [Keys; 2], generation: u16) -> Self {
        let ends = Parties { client: IpAddr::from([10, 0, 0, 1]), server: IpAddr::from([10, 0, 0, 2]) };
        let terms = Terms::default();
        let (mut initiator, message) = Initiator::new(&keys[0], ends, &terms).unwrap();
        let (theirs, answer) = Responder::new(&keys[1], ends, &terms, &message).unwrap().answer(&terms).unwrap();
        let (ours, _) = initiator.finish(&answer).unwrap();
        let of = |seals: Seals, secrets: &Secrets| Seals {
            sealer: Sealer::new(&secrets.sending, generation),
            opener: Opener::new(&secrets.receiving, generation),
            ..seals
        };
        let client = of(Seals::of_client(Time::ZERO, &ours), &ours.secrets);
        let server = of(Seals::of_server(Time::ZERO, &theirs), &theirs.secrets);
        Self { client, server, keys, limit: Rekeys::default(), secrets: ours.secrets }
    }

    fn request(&mut self, now: Time) -> Rekey {
        self.client.request(now, &self.keys[0], &RETRY).unwrap()
    }

    fn answer(&mut self, now: Time, request: &Rekey) -> Result<Rekey, Unusable> {
        self.server.take_request(now, &self.keys[1], request, &mut self.limit)
    }

    /// Performs a whole exchange, up to the client's first frame.
    fn exchange(&mut self, now: Time) {
        let request = self.request(now);
        let answer = self.answer(now, &request).unwrap();
        self.client.take_answer(now, &answer).unwrap();
        assert_eq!(judge(&mut self.server, now, &sealed(&mut self.client)), Verdict::Genuine);
    }

    fn generations(&self) -> [u16; 2] {
        [&self.client, &self.server].map(|seals| seals.opener.generation())
    }
}

/// A frame: its number, and its header's tag.
type Wire = (u64, [u8; TAG_BYTES]);

fn sealed(seals: &mut Seals) -> Wire {
    let ticket = seals.sealer.next();
    (ticket.number(), ticket.header(b"header"))
}

fn wire(&(number, header_tag): &Wire) -> Sealed<'static> {
    let source = IpAddr::from([10, 0, 0, 1]);
    Sealed { connection: 1, number, source, covered: b"header", header_tag, payload: None }
}

fn judge(seals: &mut Seals, now: Time, frame: &Wire) -> Verdict {
    seals.open(now, wire(frame))
}

/// Also when the number of the generation wraps.
//= docs/specs/endpoint.md#END-46 fresh keys
//= docs/specs/wire.md#WIRE-19 numbers and keys
#[test]
fn each_exchange_gives_the_next_generation_and_late_frames_still_open() {
    let (mut pair, _) = Pair::new(u16::MAX - 2);
    let mut old: Vec<[Wire; 2]> = Vec::new();
    for round in 0..6u16 {
        let now = at(120 * (u64::from(round) + 1));
        let generation = (u16::MAX - 2).wrapping_add(round);
        assert_eq!(pair.generations(), [generation; 2]);
        let [late, later] = [(); 2].map(|()| [sealed(&mut pair.client), sealed(&mut pair.server)]);
        let request = pair.request(now);
        let answer = pair.answer(now, &request).unwrap();
        assert_eq!((request.generation, answer.generation), (generation.wrapping_add(1), generation.wrapping_add(1)));
        assert_eq!(pair.request(now), request, "the same again");
        assert_eq!(pair.answer(now, &request), Ok(answer));
        assert_eq!(
            super::generation(sealed(&mut pair.server).0),
            generation,
            "the client may not have received the answer"
        );
        pair.client.take_answer(now, &answer).unwrap();
        assert_eq!(pair.client.take_answer(now, &answer), Err(Unusable::Unexpected), "a repeated answer");
        // The server switches to the new keys with the client's first frame, and not before.
        let early = sealed(&mut pair.server);
        assert_eq!(judge(&mut pair.client, now, &early), Verdict::Genuine);
        let first = sealed(&mut pair.client);
        assert_eq!(super::generation(first.0), generation.wrapping_add(1));
        assert_eq!(judge(&mut pair.server, now, &(first.0, [0; TAG_BYTES])), Verdict::Forged);
        assert_eq!(pair.generations(), [generation.wrapping_add(1), generation]);
        assert_eq!(judge(&mut pair.server, now, &first), Verdict::Genuine);
        assert_eq!(pair.server.since, now);
        assert_eq!(judge(&mut pair.client, now, &sealed(&mut pair.server)), Verdict::Genuine);
        assert_eq!(pair.answer(now, &request), Err(Unusable::Unexpected), "the exchange is over");
        for (seals, frame) in [(&mut pair.server, &late[0]), (&mut pair.client, &late[1])] {
            assert_eq!(judge(seals, now, frame), Verdict::Genuine, "sent before the exchange, delayed");
            assert_eq!(judge(seals, now, frame), Verdict::Replayed);
        }
        for [ours, theirs] in &old {
            assert_eq!(judge(&mut pair.server, now, ours), Verdict::Replayed, "those keys have been deleted");
            assert_eq!(judge(&mut pair.client, now, theirs), Verdict::Replayed);
        }
        // Neither side has keys of the generation after the next.
        let ahead = (u64::from(generation.wrapping_add(2)) << 48, [0; TAG_BYTES]);
        assert_eq!(judge(&mut pair.server, now, &ahead), Verdict::Forged);
        old.push(later);
    }
}

//= docs/specs/wire.md#WIRE-19 no nonce is used twice
#[test]
fn no_frame_has_the_nonce_of_another() {
    let (mut pair, _) = Pair::new(u16::MAX);
    let (mut numbers, mut tags) = (HashSet::new(), HashSet::new());
    for round in 1..5 {
        for frame in 0..300 {
            if frame == 100 {
                pair.exchange(at(120 * round));
            }
            for (side, seals) in [&mut pair.client, &mut pair.server].into_iter().enumerate() {
                let (number, tag) = sealed(seals);
                assert!(numbers.insert((side, number)), "{number:x}");
                assert!(tags.insert(tag), "one tag for one key and number");
            }
        }
    }
    // When the number of a generation repeats, the keys differ.
    let (mut again, _) = Pair::new(u16::MAX);
    let (number, tag) = sealed(&mut again.client);
    assert!(!numbers.insert((0, number)) && tags.insert(tag));
}

//= docs/specs/endpoint.md#END-46 fresh keys
#[test]
fn a_stolen_generation_does_not_reveal_the_next() {
    let (mut pair, stolen) = (Pair::new(0).0, PrivateKey::generate().unwrap());
    let now = at(120);
    let binding = pair.server.binding;
    let request = pair.request(now);
    // Knowing everything in the process's memory except its private key suffices neither to read
    // the client's request nor to send one.
    let thief_keys = Keys::new(stolen, vec![pair.keys[0].own.public()]);
    assert!(Responder::rekey(&thief_keys, &binding, 1, &request.message).is_none());
    let (_, message) = Initiator::rekey(&thief_keys, &binding, 1).unwrap();
    assert!(Responder::rekey(&pair.keys[1], &binding, 1, &message).is_none());
    let Secrets { sending, receiving } = pair.secrets.clone();
    let reads = |secret: &Secret, generation, frame: &Wire| Opener::new(secret, generation).open(wire(frame));
    assert_eq!(reads(&sending, 0, &sealed(&mut pair.client)), Verdict::Genuine);
    assert_eq!(reads(&receiving, 0, &sealed(&mut pair.server)), Verdict::Genuine);
    pair.exchange(now);
    for frame in [sealed(&mut pair.client), sealed(&mut pair.server)] {
        assert_eq!([&sending, &receiving].map(|secret| reads(secret, 1, &frame)), [Verdict::Forged; 2]);
    }
    assert_ne!(pair.client.binding.number(), binding.number());
    assert_eq!(pair.client.binding.number(), pair.server.binding.number());
}

//= docs/specs/endpoint.md#END-46 valid for one exchange of one connection
#[test]
fn messages_of_other_exchanges_and_other_keys_change_nothing() {
    let (mut pair, other_key) = Pair::new(7);
    let now = at(200);
    let mut other_pair = Pair::of(pair.keys.clone(), 7);
    let (request, other_request) = (pair.request(now), other_pair.request(now));
    let other_answer = other_pair.answer(now, &other_request).unwrap();
    // Another client that the server trusts, and that knows everything that the exchange is bound
    // to.
    let other = Keys::new(other_key, vec![pair.keys[1].own.public()]);
    let (_, of_other) = Initiator::rekey(&other, &pair.client.binding, 8).unwrap();
    let wrong_generation = Initiator::rekey(&pair.keys[0], &pair.client.binding, 9).unwrap().1;
    let mut seconds = 200;
    for message in [other_request.message, of_other, wrong_generation, RekeyMessage([9; 96])] {
        let rekey = Rekey { message, ..request };
        assert_eq!(pair.answer(at(seconds), &rekey), Err(Unusable::Forged));
        seconds += 60;
    }
    for generation in [6, 7, 9, 7 + (1 << 15)] {
        assert_eq!(pair.answer(at(seconds), &Rekey { generation, ..request }), Err(Unusable::Unexpected));
        let early = Rekey { generation, ..other_answer };
        assert_eq!(pair.client.take_answer(at(seconds), &early), Err(Unusable::Unexpected));
    }
    assert_eq!(pair.client.take_answer(now, &other_answer), Err(Unusable::Forged));
    // The server sends no requests, and the client no answers.
    assert_eq!(pair.server.take_answer(now, &other_answer), Err(Unusable::Unexpected));
    let own = pair.keys[0].clone();
    assert_eq!(pair.client.take_request(now, &own, &request, &mut pair.limit), Err(Unusable::Unexpected));
    assert_eq!(pair.generations(), [7, 7]);
    // Genuine messages are still accepted.
    assert_eq!(pair.request(now), request);
    let answer = pair.answer(at(seconds), &request).unwrap();
    pair.client.take_answer(now, &answer).unwrap();
    assert_eq!(judge(&mut pair.server, now, &sealed(&mut pair.client)), Verdict::Genuine);
    assert_eq!(pair.generations(), [8, 8]);
}

//= docs/specs/endpoint.md#END-46 no sooner than 60 s after
#[test]
fn few_messages_of_a_flood_are_read() {
    let (mut pair, _) = Pair::new(0);
    let mut read = 0;
    for tenth in 0..6_000u64 {
        let now = Time::ZERO.after(tenth * SECOND_PS / 10);
        let message = RekeyMessage(std::array::from_fn(|at| (tenth + at as u64) as u8));
        match pair.answer(now, &Rekey { generation: 1, message, answer: false }) {
            Err(Unusable::Forged) => read += 1,
            result => assert_eq!(result, Err(Unusable::TooMany)),
        }
    }
    assert_eq!(read, 9, "in ten minutes, the first after one");
    // The same applies while an answered exchange is not yet in use.
    let request = pair.request(at(700));
    let answer = pair.answer(at(700), &request);
    assert!(answer.is_ok());
    let other = Rekey { message: RekeyMessage([1; 96]), ..request };
    assert_eq!(pair.answer(at(900), &other), Err(Unusable::TooMany));
    assert_eq!(pair.answer(at(900), &request), answer);
}

//= docs/specs/endpoint.md#END-46 of all its connections
#[test]
fn messages_read_are_limited_across_connections() {
    let (first, _) = Pair::new(0);
    let mut limit = Rekeys::default();
    let mut pairs: Vec<Pair> = (0..20).map(|_| Pair::of(first.keys.clone(), 0)).collect();
    let mut answered = |now: Time, pairs: &mut Vec<Pair>| {
        let all = pairs.iter_mut().map(|pair| {
            let request = pair.request(now);
            pair.server.take_request(now, &pair.keys[1], &request, &mut limit).is_ok()
        });
        all.filter(|&is_ok| is_ok).count()
    };
    assert_eq!(answered(at(120), &mut pairs), 16);
    assert_eq!(answered(at(121), &mut pairs), 20, "including the delayed ones");
    // Clients also spread the start of their exchanges.
    let due: HashSet<Time> = pairs.iter().map(|pair| Seals::of_client(at(0), &agreed(pair)).rekey_at()).collect();
    assert!(due.len() > 15 && due.iter().all(|due| (at(120)..at(128)).contains(due)), "{due:?}");
}

/// Returns what a pair last agreed on, with other secrets.
fn agreed(pair: &Pair) -> SessionKeys {
    SessionKeys {
        secrets: Secrets { sending: Secret::new([0; 32]), receiving: Secret::new([0; 32]) },
        binding: pair.client.binding,
    }
}

//= docs/specs/endpoint.md#END-46 one answer for each Rekey
#[test]
fn a_client_reads_one_answer_per_request() {
    let (mut pair, _) = Pair::new(0);
    let request = pair.request(at(120));
    let answer = pair.answer(at(120), &request).unwrap();
    let wrong = Rekey { message: RekeyMessage([5; 96]), ..answer };
    assert_eq!(pair.client.take_answer(at(120), &wrong), Err(Unusable::Forged));
    for result in [&wrong, &answer] {
        assert_eq!(pair.client.take_answer(at(120), result), Err(Unusable::TooMany));
    }
    assert_eq!(pair.request(at(121)), request);
    assert_eq!(pair.client.take_answer(at(121), &answer), Ok(()));
    assert_eq!(pair.generations(), [1, 0]);
}

/// The memory of a connection's keys as stated in `docs/security.md`, without the 2 KiB window of
/// each opener.
#[test]
fn keys_take_little_memory() {
    let sizes = [size_of::<Seals>(), size_of::<Opener>(), size_of::<Answered>()];
    assert!(sizes.iter().zip([1_900, 1_720, 2_050]).all(|(size, most)| *size <= most), "{sizes:?}");
}
