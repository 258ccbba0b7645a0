//! The emulated switch: parse, route, queue, mark, trim, fail. no_std, shared by the XDP program and the simulator.
#![no_std]
#![forbid(unsafe_code)]

pub mod config;
pub mod counters;
pub mod hash;
pub mod queue;
pub mod word;
