//! Results of the simulator for whole scenarios, compared with the papers, the published simulators
//! and the switches in memory.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

mod alone;
mod baselines;
mod bounds;
mod dragonfly;
mod fidelity;
mod flowcut;
mod hashing;
mod host_dr;
mod labels;
mod no_latency;
mod own;
mod reports;
mod reps_shapes;
mod switching;
mod tutorial;
mod untrimmed;
mod worst;
