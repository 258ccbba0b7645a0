//! Fuzz targets. Each takes any bytes and panics when an invariant is violated.
//!
//! `cargo test -p spray-fuzz` runs every target over its corpus, `corpus/NAME`, and a fixed number
//! of mutations of it. `cargo xtask fuzz` runs them guided by coverage.
#![forbid(unsafe_code)]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod endpoint;
mod files;
mod frames;
mod hosts;
mod input;
mod messages;

/// A target and the name of its corpus.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name.
    pub name: &'static str,
    /// Runs the target on one input.
    pub run: fn(&[u8]),
    /// Mutations of the corpus in `cargo xtask ci`; the tests run a fourth of them.
    pub mutations: usize,
}

/// All targets.
pub const TARGETS: [Target; 10] = [
    target("frame", frames::frame, 600_000),
    target("codec", frames::codec, 300_000),
    target("switch", frames::switch, 100_000),
    target("topology", files::topology, 150_000),
    target("matrix", files::matrix, 80_000),
    target("failures", files::failures, 30_000),
    target("sizes", files::sizes, 80_000),
    target("scenario", files::scenario, 3_000),
    target("endpoint", endpoint::endpoint, 5_000),
    target("messages", messages::messages, 2_000),
];

const fn target(name: &'static str, run: fn(&[u8]), mutations: usize) -> Target {
    Target { name, run, mutations }
}
