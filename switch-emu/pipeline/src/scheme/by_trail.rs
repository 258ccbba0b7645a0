//! Schemes that [use the frame's trail](Scheme::uses_trail).
//!
//! Each step is a separate function in the kernel, since its stack has no room for two.

use super::choose::choose_by;
#[cfg(not(target_arch = "bpf"))]
use super::conweave;
use super::forwarding::{Arrival, Forwarding};
use super::list::Scheme;
#[cfg(not(target_arch = "bpf"))]
use super::notice::Notice;
#[cfg(not(target_arch = "bpf"))]
use super::reunion;
use super::reunion::Hop;
use super::subprograms::{NO_PORT, OPEN, Step};
use super::{conga, flowcut};
use crate::frame::Frame;
use crate::verdict::Cause;

/// Returns the egress port of a frame at a switch with a stateful scheme.
///
/// # Errors
/// [`Cause::NoRoute`] without a route, or while a flow must wait before it changes its port.
#[inline(always)]
pub fn route_by_trail<F: Forwarding>(tables: &F, frame: &mut Frame, host: u32) -> Result<u32, Cause> {
    let switch = tables.switch(frame.switch).ok_or(Cause::NoRoute)?;
    let port = match Scheme::from_number(switch.scheme) {
        Scheme::Conga => run_step(tables, Step::Conga, frame, host, OPEN),
        #[cfg(not(target_arch = "bpf"))]
        Scheme::ConWeave => conweave::route(tables, switch, frame, host),
        scheme => match scheme.reunion_base() {
            Some(base) => route_by_reunion(tables, frame, host, base),
            None => run_step(tables, Step::Flowcut, frame, host, OPEN),
        },
    };
    port.ok_or(Cause::NoRoute)
}

#[inline(always)]
fn route_by_reunion<F: Forwarding>(tables: &F, frame: &mut Frame, host: u32, base: Scheme) -> Option<u32> {
    run_step(tables, Step::Begin, frame, host, OPEN)?;
    run_step(tables, Step::Move, frame, host, OPEN)?;
    let given = run_step(tables, Step::Prepare, frame, host, OPEN)?;
    let port = match base {
        Scheme::Conga => run_step(tables, Step::Conga, frame, host, given)?,
        #[cfg(not(target_arch = "bpf"))]
        Scheme::ConWeave => conweave::under_reunion(tables, frame, host, given_port(given))?,
        _ if given != OPEN => given,
        _ => run_step(tables, Step::Base, frame, host, OPEN)?,
    };
    run_step(tables, Step::Settle, frame, host, port)
}

#[inline(always)]
fn run_step<F: Forwarding>(tables: &F, step: Step, frame: &mut Frame, host: u32, port: u32) -> Option<u32> {
    let answer = tables.step(step, frame, host, port);
    if answer == NO_PORT { None } else { Some(answer) }
}

#[inline(always)]
const fn given_port(port: u32) -> Option<u32> {
    if port == OPEN { None } else { Some(port) }
}

/// Runs a step; returns [`NO_PORT`] for none.
#[inline(always)]
pub fn step<F: Forwarding>(tables: &F, step: Step, frame: &mut Frame, host: u32, port: u32) -> u32 {
    run(tables, step, frame, host, port).unwrap_or(NO_PORT)
}

#[inline(always)]
fn run<F: Forwarding>(tables: &F, step: Step, frame: &mut Frame, host: u32, port: u32) -> Option<u32> {
    let switch = tables.switch(frame.switch)?;
    match step {
        Step::Conga => conga::route(tables, switch, frame, host, given_port(port)),
        Step::Flowcut => {
            flowcut::route(tables, switch, frame, host, switch.scheme == Scheme::FlowcutSwitch as u32).ok()
        }
        Step::Begin => {
            Hop::new(tables, switch, frame, host)?.begin()?;
            Some(OPEN)
        }
        Step::Move => {
            Hop::new(tables, switch, frame, host)?.reroute(frame)?;
            Some(OPEN)
        }
        Step::Prepare => Some(match Hop::new(tables, switch, frame, host)?.prepare(frame)? {
            Some(given) => given,
            None => OPEN,
        }),
        Step::Base => {
            let base = Scheme::from_number(switch.scheme).reunion_base()?;
            Some(choose_by(tables, switch, &Arrival::of(frame, host), base)?.port)
        }
        Step::Settle => {
            Hop::new(tables, switch, frame, host)?.settle(frame, port)?;
            Some(port)
        }
        Step::Path => Hop::new(tables, switch, frame, host)?.take_path(port),
    }
}

/// Returns the next control frame of a switch; `None`: none now.
#[cfg(not(target_arch = "bpf"))]
pub fn poll<F: Forwarding>(tables: &F, switch: u32) -> Option<Notice> {
    reunion::poll(tables, switch).or_else(|| tables.state(switch)?.borrow_mut().poll())
}
