//! Loads the XDP programs, attaches them and reads their counters. Linux only; needs root.
//!
//! Call [`SwitchProgram::load`], then [`SwitchProgram::egress`] for each egress port and
//! [`SwitchProgram::attach`] for each ingress interface, in the interfaces' network namespace.
//! Dropping a program detaches it.

mod bench;
mod check;
mod clock;
mod deployment;
mod error;
mod host;
mod maps;
mod object;
mod switch;

pub use bench::HopBench;
pub use check::{Checked, VERIFIER_LIMIT, check_folder, check_programs};
pub use clock::KernelClock;
pub use deployment::Hosts;
pub use error::ProgramError;
pub use host::HostProgram;
pub use maps::{MAX_QUEUES, socket_frames};
pub use spray_nic::xdp::{AttachMode, SteerProgram};
pub use switch::SwitchProgram;

#[cfg(test)]
mod tests;
