//! The `sim` engine: the same endpoints and switches under virtual time.
//!
//! [`simulate`] takes a [`SimSpec`] through `spray-core`'s senders and receivers and `spray-pipeline`'s ports, one
//! event for each frame and link. The same spec gives the same outcome to the byte.

mod arena;
mod calendar;
mod common;
mod departures;
mod engine;
mod handover;
mod hosts;
mod mail;
mod messages;
mod net;
mod notices;
mod part;
mod partition;
mod pfc;
mod port;
mod reorder;
mod said;
mod shared;
mod spec;
mod sweep;
mod tables;
mod watch;

pub use spec::{Deadlock, FlowOutcome, FrameBytes, Pfc, PortOutcome, PortSamples, SimOutcome, SimSpec};
use spray_capture::Shared;
use spray_fabric::FlowError;
pub use sweep::over_cores;

#[cfg(test)]
mod tests;

/// Runs `spec` until its flows are through or `until_ps` has come, on at most `threads` threads. The outcome does not depend on how many
/// they are.
///
/// # Errors
/// [`FlowError`] when the spec contradicts itself. Flows that do not complete are no error: the outcome says so.
pub fn simulate(spec: &SimSpec<'_>, threads: usize) -> Result<SimOutcome, FlowError> {
    simulate_watched(spec, threads, None)
}

/// As [`simulate`], while `watch` sees every frame at every interface. The interface of a link is that at its near end; behind the links
/// come the switches, for frames that have no way on from there. What comes out is the same.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_watched(spec: &SimSpec<'_>, threads: usize, watch: Option<&Shared>) -> Result<SimOutcome, FlowError> {
    spec.check()?;
    let common = common::Common::new(spec);
    Ok(match watch {
        None => engine::Engine::new(&common, threads, &()).run(),
        Some(watch) => engine::Engine::new(&common, threads, watch).run(),
    })
}
