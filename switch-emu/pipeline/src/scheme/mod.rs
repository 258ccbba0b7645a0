//! How a switch chooses among the equal-cost ports of a group: a file for each rule, a line in `list.rs` for each scheme.
//!
//! A scheme sees the frame, its group, the switch's own words of memory ([`Forwarding::word`]) and the queues behind its ports
//! ([`Forwarding::waiting`]). `docs/specs/switching.md` states the rules (`SWC-n`).

mod adaptive;
#[cfg(test)]
pub(crate) mod chassis;
mod conga;
#[cfg(not(target_arch = "bpf"))]
pub mod conweave;
#[cfg(not(target_arch = "bpf"))]
mod counted;
mod detour;
mod drill;
mod flowcut;
mod flowlet;
mod forwarding;
mod hashed;
mod layout;
mod list;
#[cfg(not(target_arch = "bpf"))]
mod notice;
mod ofan;
mod recall;
pub mod reunion;
mod rotation;

pub use adaptive::{Look, MOST_IN_KERNEL, Measure, least, score};
#[cfg(not(target_arch = "bpf"))]
pub use conweave::{Expiry, Order, State};
#[cfg(not(target_arch = "bpf"))]
pub use counted::{Counted, Counter};
pub use detour::{Groups, MOST_GROUPS};
pub use flowlet::FLOWLETS;
use forwarding::leaf;
pub use forwarding::{Arrival, Forwarding, PortWord, Waiting, port_words};
pub use hashed::hashed;
pub use layout::{Layout, Pointers, Size};
pub use list::Scheme;
#[cfg(not(target_arch = "bpf"))]
pub use notice::{Notice, poll};
pub use recall::{NO_PORT, OPEN, Step, part, recall};
pub use spray_wire::flowcut::Rule as FlowcutRule;

use crate::routes::{Choice, Group, SwitchConfig};

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
        Scheme::Rr => rotation::simple(tables, group, frame),
        Scheme::RrPermuted => rotation::permuted(tables, switch, group, frame),
        Scheme::Jsq => Some(least_loaded(tables, switch, group, frame, Measure::Bytes)),
        Scheme::Drill => drill::rank(tables, switch, group, frame),
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
