//! Hosts of an emulated fabric: endpoints whose devices pass frames on at their virtual times.
//!
//! [`poll`] polls an unmodified endpoint once per event, at the virtual time of that event, however
//! late the machine handles it.
//!
//! | file | content |
//! |---|---|
//! | `device` | stamps sent frames with their time of arrival, holds received ones until theirs |
//! | `held_frames` | frames on hold |
//! | `transmit_order` | order in which hosts send |
//! | `clock` | virtual time |
//! | `lateness` | lateness of frames |

mod clock;
mod device;
mod held_frames;
mod lateness;
mod transmit_order;

#[cfg(test)]
mod tests;

use spray_nic::device::Device;
use spray_nic::{Endpoint, Time};

pub(crate) use self::clock::DilatedClock;
pub use self::device::EmulatedDevice;
pub(crate) use self::device::Emulation;
pub(crate) use self::lateness::Lateness;
pub(crate) use self::transmit_order::TransmitOrder;

/// Limit, so that the other hosts are polled.
const EVENTS_PER_POLL: u32 = 256;

/// Handles every event up to `now_ps` in order, at its own virtual time, and calls `user` after
/// each, which returns whether it had anything to do. Returns when the host has to be polled again.
///
/// The emulation is exact, however late events are handled, as long as every host lags behind the
/// clock by less than the latency of a link: no frame can then be earlier than an event already
/// handled.
//= docs/specs/emulation.md#EMU-3 deterministic results
pub(crate) fn poll<D: Device>(
    endpoint: &mut Endpoint<EmulatedDevice<D>>,
    now_ps: u64,
    mut user: impl FnMut(&mut Endpoint<EmulatedDevice<D>>) -> bool,
) -> u64 {
    if endpoint.device().now_ps().is_none() {
        let next = endpoint.poll(Time::from_ps(now_ps));
        user(endpoint);
        return next.map_or(u64::MAX, Time::ps);
    }
    let poll = |endpoint: &mut Endpoint<EmulatedDevice<D>>| {
        let next = endpoint.poll(Time::from_ps(endpoint.device().now_ps().unwrap_or(now_ps)));
        endpoint.device_mut().poll_next(next);
    };
    endpoint.device_mut().collect(now_ps);
    // For calls since the last poll, such as messages with later start times.
    poll(endpoint);
    for _ in 0..EVENTS_PER_POLL {
        let at_ps = endpoint.device().next_event_ps();
        if at_ps > now_ps {
            break;
        }
        endpoint.device_mut().advance(at_ps);
        poll(endpoint);
        if user(endpoint) {
            poll(endpoint);
        }
    }
    let next_ps = endpoint.device().next_event_ps();
    endpoint.device_mut().handled(now_ps.min(next_ps));
    next_ps
}

/// Polls every host once as [`poll`] does, and lets them send in turns. Returns the time before
/// which everything is handled and sent, at most `now_ps`.
//= docs/specs/emulation.md#EMU-5 order of sending
pub(crate) fn poll_all<D: Device>(
    hosts: &mut [Endpoint<EmulatedDevice<D>>],
    now_ps: u64,
    mut user: impl FnMut(usize, &mut Endpoint<EmulatedDevice<D>>) -> bool,
) -> u64 {
    let poll = |(number, host): (usize, &mut Endpoint<_>)| poll(host, now_ps, |host| user(number, host));
    let next_ps = hosts.iter_mut().enumerate().map(poll).min().unwrap_or(u64::MAX);
    while hosts.iter_mut().fold(false, |any, host| host.device_mut().take_turn() | any) {}
    let done_ps = hosts.iter().map(|host| host.device().done_ps()).min().unwrap_or(u64::MAX);
    now_ps.min(next_ps).min(done_ps)
}
