//! Discrete-event simulator that runs the same transport and switch code under virtual time.
//!
//! [`simulate`] runs a [`SimSpec`] with `spray-core`'s senders and receivers and `spray-pipeline`'s
//! ports, with one event per frame and link. The same spec gives the same outcome, byte for byte.

mod arena;
mod batch;
mod calendar;
mod common;
mod control_body;
mod departures;
mod engine;
mod hosts;
mod mailboxes;
mod messages;
mod net;
mod observer;
mod parallel;
mod part;
mod partition;
mod pfc;
mod port;
mod reorder;
mod shared;
mod spec;
mod switches;

pub use parallel::run_parallel;
pub use spec::{Deadlock, FlowOutcome, FrameBytes, Pfc, PortOutcome, PortSamples, SimOutcome, SimSpec};
use spray_capture::Observer;
use spray_fabric::FlowError;

#[cfg(test)]
mod tests;

/// Runs `spec` until all flows have ended or `until_ps` is reached, on at most `threads` threads.
/// The outcome does not depend on the number of threads.
///
/// # Errors
/// [`FlowError`] if the flows or triggers are inconsistent. Incomplete flows are not an error:
/// [`SimOutcome::flows`] reports them.
pub fn simulate(spec: &SimSpec<'_>, threads: usize) -> Result<SimOutcome, FlowError> {
    simulate_observed(spec, threads, None)
}

/// Like [`simulate`], with every frame reported to `watch` at every interface. Interfaces are
/// numbered by link, at its near end; after the links follow the switches, for frames without a
/// route. The outcome is the same.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_observed(
    spec: &SimSpec<'_>,
    threads: usize,
    watch: Option<&Observer>,
) -> Result<SimOutcome, FlowError> {
    spray_fabric::check_flows(spec.flows, spec.triggers, spec.network.hosts.len())?;
    let common = common::Common::new(spec);
    Ok(match watch {
        None => engine::Engine::new(&common, threads, &()).run(),
        Some(watch) => engine::Engine::new(&common, threads, watch).run(),
    })
}
