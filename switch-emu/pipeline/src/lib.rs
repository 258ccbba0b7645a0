//! The emulated switch: parse, route, queue, mark, trim, fail; no_std, for kernel and simulator.
//!
//! [`process()`] moves a frame through a chassis. No clock, allocation, panic, float or unbounded
//! loop, so that the kernel's verifier accepts it. `docs/specs/switch.md` states its rules
//! (`SW-n`), `docs/specs/virtual-queue.md` those of the queue (`VQ-n`).
#![no_std]
#![forbid(unsafe_code)]

#[cfg(not(target_arch = "bpf"))]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod bins;
pub mod config;
pub mod counters;
pub mod deployment;
#[cfg(not(target_arch = "bpf"))]
pub mod fifo;
pub mod flow_hash;
pub mod frame;
pub mod hash;
mod hop;
pub mod impairment;
#[cfg(not(target_arch = "bpf"))]
pub mod last_port;
pub mod link;
mod packed;
pub mod port;
mod process;
pub mod queue;
pub mod routes;
pub mod scheme;
pub mod shim;
mod stages;
mod tables;
pub mod trail;
mod units;
mod verdict;
mod view;
pub mod word;

pub use hop::{cross, enter, is_last};
pub use process::{process, process_any};
pub use stages::Stages;
pub use tables::{Tables, note};
pub use verdict::{Cause, Verdict};
pub use view::View;

#[cfg(test)]
mod tests;
