use super::*;
use std::vec::Vec;
use std::{assert, assert_eq};

const FUNCTIONS: [HashFunction; 4] = [HashFunction::Ideal, HashFunction::Crc16, HashFunction::Crc32, HashFunction::Xor];
const FIELDS: [HashFields; 4] =
    [HashFields::FiveTuple, HashFields::Addresses, HashFields::Ports, HashFields::FlowLabel];

/// Returns a CRC of this width by long division, most significant bit first.
fn long_division(bits: u32, polynomial: u64, initial: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    let mut crc = initial;
    for byte in bytes {
        for bit in (0..8).rev() {
            let out = (crc >> (bits - 1) ^ u64::from(byte >> bit)) & 1;
            crc = ((crc << 1) ^ (out * polynomial)) & ((1 << bits) - 1);
        }
    }
    crc
}

/// Returns the hash as defined by the clauses, of 12 bytes of the frame.
fn literal(function: HashFunction, seed: u32, bytes: [u8; 12]) -> u32 {
    match function {
        HashFunction::Ideal => panic!("the ideal hash has no literal definition"),
        HashFunction::Crc16 => long_division(16, 0x1021, u64::from(seed as u16), bytes) as u32,
        // Least significant bit first: the same with all bits reversed.
        HashFunction::Crc32 => {
            let bytes = bytes.into_iter().map(u8::reverse_bits);
            (long_division(32, 0x04c1_1db7, u64::from(seed.reverse_bits()), bytes) as u32).reverse_bits()
        }
        HashFunction::Xor => {
            let (words, _) = bytes.as_chunks::<2>();
            words.iter().fold(seed as u16, |sum, word| sum ^ u16::from_be_bytes(*word)).into()
        }
    }
}

/// Returns the keys of many flows: random fields, then consecutive ones.
fn keys() -> impl Iterator<Item = Key> {
    let random = |at: u64| Key { addresses: mix(at), ports: mix(at + 1) as u32, label: mix(at + 2) as u32 & 0xf_ffff };
    (1..500u64)
        .map(move |at| random(at << 8))
        .chain((0..500).map(|port| Key { ports: port << 16 | 4_793, ..Key::default() }))
}

#[test]
fn known_check_values() {
    //= docs/specs/switching.md#SWC-24 functions
    // CRC-16/XMODEM, CRC-16/CCITT-FALSE and CRC-32 of "123456789", from the catalogue of CRCs.
    let text = *b"123456789";
    assert_eq!(text.iter().fold(0, |crc, byte| crc16(crc, *byte)), 0x31c3);
    assert_eq!(text.iter().fold(0xffff, |crc, byte| crc16(crc, *byte)), 0x29b1);
    assert_eq!(!text.iter().fold(!0, |crc, byte| crc32(crc, *byte)), 0xcbf4_3926);
}

#[test]
fn digests_and_seeds_are_the_hash_of_twelve_bytes() {
    //= docs/specs/switching.md#SWC-23 hash input
    //= docs/specs/switching.md#SWC-25 seeds
    let key =
        Key { addresses: u64::from_le_bytes([10, 0, 0, 1, 10, 0, 0, 2]), ports: 50_000 << 16 | 4_793, label: 0xabcde };
    let [ports, label] = [key.ports, key.label].map(u32::to_be_bytes);
    for function in &FUNCTIONS[1..] {
        for fields in FIELDS {
            let (addresses, entropy) = match fields {
                HashFields::FiveTuple => ([10, 0, 0, 1, 10, 0, 0, 2], ports),
                HashFields::Addresses => ([10, 0, 0, 1, 10, 0, 0, 2], [0; 4]),
                HashFields::Ports => ([0; 8], ports),
                HashFields::FlowLabel => ([10, 0, 0, 1, 10, 0, 0, 2], label),
            };
            let mut bytes = [0; 12];
            bytes[..8].copy_from_slice(&addresses);
            bytes[8..].copy_from_slice(&entropy);
            for seed in [0, 1, 0xffff, 0x1234_5678, u32::MAX] {
                let digest = FlowHash { function: *function, fields }.digest(&key);
                let hash = (digest ^ function.seed(seed)) as u32;
                assert_eq!(hash, literal(*function, seed, bytes), "{function:?}, {fields:?}, {seed:#x}");
            }
        }
    }
}

#[test]
fn literal_hashes_of_random_keys() {
    //= docs/specs/switching.md#SWC-24 functions
    for key in keys() {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&key.addresses.to_le_bytes());
        bytes[8..].copy_from_slice(&key.ports.to_be_bytes());
        for function in &FUNCTIONS[1..] {
            let digest = FlowHash { function: *function, ..FlowHash::default() }.digest(&key);
            assert_eq!(digest, u64::from(literal(*function, 0, bytes)), "{function:?}, {key:?}");
        }
    }
}

#[test]
fn fields_outside_the_hash_input_have_no_effect() {
    //= docs/specs/switching.md#SWC-23 hash input
    let key = Key { addresses: 1 << 40 | 3, ports: 5 << 16 | 6, label: 7 };
    let changed = [Key { addresses: 9, ..key }, Key { ports: 9, ..key }, Key { label: 9, ..key }];
    for function in FUNCTIONS {
        let matters = |fields| {
            let hash = FlowHash { function, fields };
            changed.map(|other| hash.digest(&key) != hash.digest(&other))
        };
        assert_eq!(
            FIELDS.map(matters),
            [[true, true, false], [true, false, false], [false, true, false], [true, false, true]]
        );
    }
}

#[test]
fn each_number_is_one_choice() {
    for hash in FUNCTIONS.into_iter().flat_map(|function| FIELDS.map(|fields| FlowHash { function, fields })) {
        assert_eq!(FlowHash::from_number(hash.number()), hash);
    }
}

/// Returns the ports that flows take at a second switch, of those that take one port of the first;
/// both switches have eight ports.
fn second(function: HashFunction, [one, other]: [u64; 2], offset: u32) -> Vec<u32> {
    let hash = FlowHash { function, ..FlowHash::default() };
    let digests = (0..4_096).map(|port| hash.digest(&Key { addresses: 77, ports: port << 16, label: 0 }));
    let here = digests.filter(|digest| place(function, digest ^ one, 0, 8) == 3);
    let mut places: Vec<_> = here.map(|digest| place(function, digest ^ other, offset, 8)).collect();
    assert!(places.len() > 400, "{}", places.len());
    places.sort_unstable();
    places.dedup();
    places
}

#[test]
fn another_seed_renumbers_a_linear_hash_and_an_offset_does_not() {
    //= docs/specs/switching.md#SWC-26 polarisation
    for function in FUNCTIONS {
        let [one, other] = [function.seed(7), function.seed(0x8642_1357)];
        assert_eq!(second(function, [one; 2], 0).len(), 1, "{function:?}: the same seed");
        let linear = function != HashFunction::Ideal;
        assert_eq!(second(function, [one, other], 0).len(), if linear { 1 } else { 8 }, "{function:?}: another seed");
        assert_eq!(second(function, [one, other], 5).len(), 8, "{function:?}: another seed and offset");
    }
}

//= docs/specs/switching.md#SWC-25 seeds
#[test]
fn every_bit_of_a_seed_changes_the_ideal_hash() {
    let none = HashFunction::Ideal.seed(0);
    assert!((0..32).all(|bit| HashFunction::Ideal.seed(1 << bit) != none));
}

#[test]
fn source_ports_are_spread_over_any_number_of_slots() {
    //= docs/specs/switching.md#SWC-24 functions
    for (function, count) in FUNCTIONS.into_iter().flat_map(|function| [3, 8, 24].map(|count| (function, count))) {
        let hash = FlowHash { function, ..FlowHash::default() };
        let mut counts = std::vec![0u32; count as usize];
        for port in 49_152..=65_535u32 {
            let digest = hash.digest(&Key { addresses: 0x0200_000a_0100_000a, ports: port << 16 | 4_793, label: 0 });
            counts[place(function, digest ^ function.seed(9), 5, count) as usize] += 1;
        }
        let mean = 16_384 / count;
        assert!(counts.iter().all(|found| found.abs_diff(mean) < mean / 10), "{function:?}: {counts:?}");
    }
}
