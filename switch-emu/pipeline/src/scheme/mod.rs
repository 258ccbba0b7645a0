//! How a switch chooses among the equal-cost ports of a group: a file for each rule, a line in `list.rs` for each scheme.
//!
//! A scheme sees the frame, its group, the switch's own words of memory ([`Forwarding::word`]) and the queues behind its ports
//! ([`Forwarding::waiting`]). `docs/specs/switching.md` states the rules (`SWC-n`).

mod adaptive;
mod conga;
#[cfg(not(target_arch = "bpf"))]
pub mod conweave;
mod detour;
mod flowcut;
mod flowlet;
mod forwarding;
mod hashed;
mod layout;
mod list;
#[cfg(not(target_arch = "bpf"))]
mod notice;
mod ofan;
pub mod reunion;
mod rotation;
#[cfg(test)]
mod two_leaves;

pub use adaptive::{Look, MOST_IN_KERNEL, Measure, least, score};
pub use detour::{Groups, MOST_GROUPS};
pub use flowcut::Entries;
pub use flowlet::FLOWLETS;
use forwarding::leaf;
pub use forwarding::{Arrival, Forwarding, Waiting, port_word, port_words};
pub use hashed::hashed;
pub use layout::{Layout, Pointers, Size};
pub use list::Scheme;
#[cfg(not(target_arch = "bpf"))]
pub use notice::{Notice, poll};

use crate::Cause;
use crate::frame::Frame;
use crate::routes::{Choice, Group, SwitchConfig};

/// The port by which a frame leaves a switch whose scheme [remembers](Scheme::remembers): it reads and writes the frame's trail too.
///
/// # Errors
/// [`Cause::NoRoute`] when no port leads on, or a flow must wait before it takes another one.
#[inline(always)]
pub fn recall<F: Forwarding>(tables: &F, frame: &mut Frame, host: u32) -> Result<u32, Cause> {
    let switch = tables.switch(frame.switch).ok_or(Cause::NoRoute)?;
    match Scheme::from_number(switch.scheme) {
        Scheme::Conga => recall_conga(tables, frame, host),
        Scheme::FlowcutIngress | Scheme::FlowcutSwitch => recall_flowcut(tables, frame, host),
        #[cfg(not(target_arch = "bpf"))]
        Scheme::ConWeave => conweave::route(tables, switch, frame, host).ok_or(Cause::NoRoute),
        scheme => {
            let base = scheme.reunion_base().ok_or(Cause::NoRoute)?;
            reunion::route(tables, switch, frame, host, base).ok_or(Cause::NoRoute)
        }
    }
}

/// [`recall`] at a switch with `conga`: one of its parts, each a function of its own in the kernel.
#[inline(always)]
pub fn recall_conga<F: Forwarding>(tables: &F, frame: &mut Frame, host: u32) -> Result<u32, Cause> {
    let switch = tables.switch(frame.switch).ok_or(Cause::NoRoute)?;
    conga::route(tables, switch, frame, host, None).ok_or(Cause::NoRoute)
}

/// [`recall`] at a switch with `flowcut-ingress` or `flowcut-switch`.
#[inline(always)]
pub fn recall_flowcut<F: Forwarding>(tables: &F, frame: &mut Frame, host: u32) -> Result<u32, Cause> {
    let switch = tables.switch(frame.switch).ok_or(Cause::NoRoute)?;
    flowcut::route(tables, switch, frame, host, switch.scheme == Scheme::FlowcutSwitch as u32)
}

/// Chooses the port by which a frame leaves a switch. `None` = no route.
//= docs/specs/switch.md#SW-4 routes and epochs
//= docs/specs/switching.md#SWC-1 a choice among equals
#[inline(always)]
pub fn choose<F: Forwarding>(tables: &F, frame: &Arrival) -> Option<Choice> {
    let switch = tables.switch(frame.switch)?;
    let scheme = Scheme::from_number(switch.scheme);
    if scheme.needs_groups() {
        return detour::choose(tables, switch, frame, scheme);
    }
    choose_by(tables, switch, frame, scheme)
}

/// As [`choose`], by a scheme that stays on the shortest ways.
#[inline(always)]
fn choose_by<F: Forwarding>(tables: &F, switch: &SwitchConfig, frame: &Arrival, scheme: Scheme) -> Option<Choice> {
    let group = tables.group(frame.t_ps, frame.switch, frame.host)?;
    let rank = match group.count {
        0 => return None,
        1 => 0,
        _ => rank(tables, switch, &group, frame, scheme)?,
    };
    Some(Choice { port: tables.member(group.first.wrapping_add(rank))?, rank, detour: frame.detour })
}

#[inline(always)]
fn rank<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    group: &Group,
    frame: &Arrival,
    scheme: Scheme,
) -> Option<u32> {
    match scheme {
        Scheme::Ecmp | Scheme::EcmpResilient | Scheme::Wcmp => Some(hashed::rank(switch, group, frame.flow)),
        Scheme::Random | Scheme::Valiant | Scheme::Ugal => Some(hashed::random(switch, group, frame)),
        // [`recall`] finds their ports.
        Scheme::Conga
        | Scheme::ConWeave
        | Scheme::FlowcutIngress
        | Scheme::FlowcutSwitch
        | Scheme::Reunion
        | Scheme::ReunionLetFlow
        | Scheme::ReunionConga
        | Scheme::ReunionConWeave => Some(hashed::rank(switch, group, frame.flow)),
        Scheme::Rr => rotation::simple(tables.word(group.pointer)?, group),
        Scheme::RrPermuted => rotation::permuted(tables.word(group.pointer)?, group, switch),
        Scheme::Jsq => Some(least_loaded(tables, switch, group, frame, Measure::Bytes)),
        Scheme::Adaptive => Some(least_loaded(tables, switch, group, frame, Measure::Class)),
        Scheme::AdaptiveFlowlet => {
            flowlet::rank(tables, switch, group, frame, |_| least_loaded(tables, switch, group, frame, Measure::Class))
        }
        Scheme::LetFlow => flowlet::rank(tables, switch, group, frame, |_| hashed::random(switch, group, frame)),
        Scheme::Ofan | Scheme::OfanFib => ofan::rank(tables, group, frame),
        Scheme::OfanShortest => ofan::rank_from_shortest(tables, switch, group, frame),
    }
}

/// The place of the least loaded port for this frame.
#[inline(always)]
fn least_loaded<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    group: &Group,
    frame: &Arrival,
    measure: Measure,
) -> u32 {
    let look = Look { measure, random: (frame.random(switch) >> 32) as u32, row: 0 };
    tables.least(group, frame.t_ps, &look)
}

#[cfg(test)]
mod tests;
