//! Entropy values and the UDP source ports that stand for them (WIRE-13).

/// The largest set of EVs: every source port but 0.
pub const MAX_EVS: u32 = 65_535;

/// The dynamic range of RFC 6335 §6 holds this many ports.
const DYNAMIC_PORTS: u32 = 16_384;
const DYNAMIC_BASE: u16 = 49_152;

const fn base(evs: u32) -> u16 {
    if evs <= DYNAMIC_PORTS { DYNAMIC_BASE } else { 1 }
}

/// Return the UDP source port of the EV with index `ev` in a set of `evs` (1..=[`MAX_EVS`]).
///
/// Never panics: an index outside the set gives a port that stands for another index or for none.
#[inline]
pub const fn ev_port(ev: u16, evs: u32) -> u16 {
    base(evs).wrapping_add(ev)
}

/// Return the index of the EV that a UDP source port stands for in a set of `evs`, or `None` outside the set.
#[inline]
pub const fn port_ev(port: u16, evs: u32) -> Option<u16> {
    match port.checked_sub(base(evs)) {
        Some(ev) if (ev as u32) < evs => Some(ev),
        _ => None,
    }
}
