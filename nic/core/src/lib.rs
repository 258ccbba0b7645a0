//! Sans-IO transport: path choice, congestion control, loss detection, sender and receiver.
//!
//! Time and randomness are arguments: nothing reads a clock, and nothing allocates per packet.
//! `on_*` methods take feedback, `poll_*` methods return what to do.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod cc;
pub mod counters;
pub mod event;
pub mod feedback;
pub mod flow;
pub mod host;
mod kinds;
pub mod link;
pub mod loss;
pub mod now;
pub mod path;
pub mod rng;
mod settings;
#[cfg(test)]
mod tests;
pub mod units;

pub use spray_wire::Time;
