//! Loads the XDP programs, attaches them and reads their counters. Linux only; needs root.
//!
//! Order of calls: [`SwitchProgram::load`], then [`SwitchProgram::egress`] for every port that leaves the chassis and
//! [`SwitchProgram::attach`] for every interface that enters it, both from the network namespace of those interfaces.
//! Dropping a program detaches it everywhere.

mod bench;
mod check;
mod clock;
mod deployment;
mod error;
mod host;
mod maps;
mod object;
mod router;
mod switch;

pub use bench::HopBench;
pub use check::{Checked, VERIFIER_LIMIT, check_folder, check_programs};
pub use clock::KernelClock;
pub use deployment::Hosts;
pub use error::ProgramError;
pub use host::HostProgram;
pub use maps::{MOST_QUEUES, socket_frames};
pub use router::{Meddling, RouterProgram, Uplink};
pub use spray_nic::xdp::{AttachMode, SteerProgram};
pub use switch::SwitchProgram;

#[cfg(test)]
mod tests;
