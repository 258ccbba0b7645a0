//! Dispatches the choice of a port to the scheme.

use super::forwarding::{Arrival, Forwarding, least_loaded};
use super::list::Scheme;
use super::subprograms::LoadMeasure;
use super::{detour, drill, flowlet, hashed, ofan, rotation};
use crate::routes::{Choice, Group, SwitchConfig};

/// Chooses the port by which a frame leaves a switch. `None` = no route.
//= docs/specs/switch.md#SW-4 routes and epochs
//= docs/specs/switching.md#SWC-1 choice among equal-cost ports
#[inline(always)]
pub fn choose<F: Forwarding>(tables: &F, frame: &Arrival) -> Option<Choice> {
    let switch = tables.switch(frame.switch)?;
    let scheme = Scheme::from_number(switch.scheme);
    if scheme.needs_groups() {
        return detour::choose(tables, switch, frame, scheme);
    }
    choose_by(tables, switch, frame, scheme)
}

/// Chooses as [`choose`], by a scheme that uses shortest paths only.
#[inline(always)]
pub(super) fn choose_by<F: Forwarding>(
    tables: &F,
    switch: &SwitchConfig,
    frame: &Arrival,
    scheme: Scheme,
) -> Option<Choice> {
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
        // Usually handled by [`route_by_trail`](super::route_by_trail()).
        Scheme::Conga
        | Scheme::ConWeave
        | Scheme::FlowcutIngress
        | Scheme::FlowcutSwitch
        | Scheme::Reunion
        | Scheme::ReunionLetFlow
        | Scheme::ReunionConga
        | Scheme::ReunionConWeave => Some(hashed::rank(switch, group, frame.flow)),
        //= docs/specs/switching.md#SWC-8 OFAN's pointers
        Scheme::Rr | Scheme::Ofan | Scheme::OfanFib => rotation::simple(tables, group, frame),
        Scheme::RrPermuted => rotation::permuted(tables, switch, group, frame),
        Scheme::Jsq => Some(least_loaded(tables, switch, group, frame, LoadMeasure::Bytes)),
        Scheme::Drill => drill::rank(tables, switch, group, frame),
        Scheme::Adaptive => Some(least_loaded(tables, switch, group, frame, LoadMeasure::Class)),
        Scheme::AdaptiveFlowlet => flowlet::rank(tables, switch, group, frame, |_| {
            least_loaded(tables, switch, group, frame, LoadMeasure::Class)
        }),
        Scheme::LetFlow => flowlet::rank(tables, switch, group, frame, |_| hashed::random(switch, group, frame)),
        Scheme::OfanShortest => ofan::rank_from_shortest(tables, switch, group, frame),
    }
}
