//! Runs every target over its corpus and over a quarter of its mutations, or over all of them if
//! the variable `ALL_MUTATIONS` is set, as by `cargo xtask ci`.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::fs;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use spray_fuzz::{TARGETS, Target};

const SEED: u64 = 0x5eed;
/// The maximum length of a mutated input in bytes.
const LONGEST: usize = 8 << 10;
/// Strings that are edge cases of the parsers.
const WORDS: [&[u8]; 16] = [
    b"0",
    b"1",
    b"-1",
    b"18446744073709551615",
    b"9223372036854775808",
    b"4294967296",
    b"1e308",
    b"nan",
    b".",
    b"\"",
    b"#",
    b"\n",
    b"->",
    b":",
    b"\xc3\xa4",
    b"1000000",
];

/// Returns the inputs of a target's corpus, sorted by name.
fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = spray_test_support::root().join("fuzz/corpus").join(target.name);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = files.map(|file| file.expect("readable").path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("readable")).collect()
}

fn below(rng: &mut Xoshiro256PlusPlus, bound: usize) -> usize {
    ((u64::from(rng.next_u32()) * bound.max(1) as u64) >> 32) as usize
}

/// Modifies an input at random, or inserts a part of another one.
fn mutate(rng: &mut Xoshiro256PlusPlus, input: &mut Vec<u8>, other: &[u8]) {
    let at = below(rng, input.len());
    match below(rng, 7) {
        0 | 1 if !input.is_empty() => input[at] ^= 1 << below(rng, 8),
        2 if !input.is_empty() => input[at] = rng.next_u32() as u8,
        3 if !input.is_empty() => {
            let until = (at + 1 + below(rng, 16)).min(input.len());
            input.drain(at..until);
        }
        4 => {
            let word = WORDS[below(rng, WORDS.len())];
            input.splice(at..at, word.iter().copied());
        }
        5 => {
            // Replaces a number.
            let digits = input[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let word = WORDS[below(rng, WORDS.len())];
            input.splice(at..at + digits, word.iter().copied());
        }
        _ => {
            let from = below(rng, other.len());
            let until = (from + 1 + below(rng, 64)).min(other.len());
            input.splice(at..at, other[from..until].iter().copied());
        }
    }
    input.truncate(LONGEST);
}

fn run(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
    let corpus = corpus(target);
    assert!(!corpus.is_empty(), "{name} has no corpus");
    corpus.iter().for_each(|input| (target.run)(input));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let part = if std::env::var_os("ALL_MUTATIONS").is_some() { 1 } else { 4 };
    for number in 0..target.mutations / part {
        let mut input = corpus[below(&mut rng, corpus.len())].clone();
        let other = &corpus[below(&mut rng, corpus.len())];
        for _ in 0..=below(&mut rng, 8) {
            mutate(&mut rng, &mut input, other);
        }
        if std::panic::catch_unwind(|| (target.run)(&input)).is_err() {
            let file = std::env::temp_dir().join(format!("spray-fuzz-{name}"));
            fs::write(&file, &input).expect("writable");
            panic!("{name}: mutation {number} from seed {SEED}, kept as {}", file.display());
        }
    }
}

#[test]
fn every_target_is_run_here() {
    let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    let expected =
        ["frame", "codec", "switch", "topology", "matrix", "failures", "sizes", "scenario", "endpoint", "messages"];
    assert_eq!(names, expected);
}

#[test]
fn frame() {
    run("frame");
}

#[test]
fn codec() {
    run("codec");
}

#[test]
fn switch() {
    run("switch");
}

#[test]
fn topology() {
    run("topology");
}

#[test]
fn matrix() {
    run("matrix");
}

#[test]
fn failures() {
    run("failures");
}

#[test]
fn sizes() {
    run("sizes");
}

#[test]
fn scenario() {
    run("scenario");
}

#[test]
fn endpoint() {
    run("endpoint");
}

#[test]
fn messages() {
    run("messages");
}
