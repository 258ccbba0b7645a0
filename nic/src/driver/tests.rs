//! Drivers and their clocks.

use std::cell::Cell;

use super::*;
use crate::{
    clock::MonotonicClock,
    device::{MemoryConfig, MemoryNetwork},
    endpoint::{
        EndpointEvent,
        tests::{US, address, config, mac, peer},
    },
};

#[test]
fn an_idle_driver_sleeps_until_something_is_due() {
    let network = MemoryNetwork::new(MemoryConfig { frame_size: 2048, ..MemoryConfig::default() });
    let config = config(0, false);
    let mut endpoints = vec![Endpoint::new(network.attach(mac(0)), config).unwrap()];
    endpoints[0].connect(0, peer(5, false), None).unwrap();
    let (mut rounds, mut failed) = (0u64, false);
    let idle = Idle::Sleep(Duration::from_millis(5));
    run(&mut endpoints, &mut MonotonicClock::new(), idle, |endpoints, _| {
        rounds += 1;
        failed |= matches!(endpoints[0].poll_event(), Some(EndpointEvent::Failed { .. }));
        if failed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    // Twelve attempts over 8 ms, with 100 rounds of spinning after each at most, and 100 us of spinning before each.
    assert!(rounds < 60_000, "{rounds}");
    assert_eq!(endpoints[0].config().address, address(0, false));
}

/// A clock that stands where it is put, and begins again at 0.
struct Late(Cell<u64>);

impl Clock for Late {
    fn now(&self) -> Time {
        self.0.update(|now| now + US);
        self.0.get()
    }

    fn restart(&mut self) {
        self.0.set(0);
    }
}

//= docs/specs/endpoint.md#END-37 a clock that begins again
#[test]
fn a_driver_begins_its_clock_again_while_nothing_is_connected() {
    let network = MemoryNetwork::new(MemoryConfig { frame_size: 2048, ..MemoryConfig::default() });
    let config = config(0, false);
    let mut endpoints = vec![Endpoint::new(network.attach(mac(0)), config).unwrap()];
    let started_at = RESTART_PS - 1_000 * US;
    endpoints[0].connect(started_at, peer(5, false), None).unwrap();
    let (mut last, mut failed_at, mut restarted) = (0, None, false);
    run(&mut endpoints, &mut Late(Cell::new(started_at)), Idle::Spin, |endpoints, now| {
        if now < last {
            assert!(failed_at.is_some_and(|at| at >= RESTART_PS), "not while a connection exists: {failed_at:?}");
            restarted = true;
        }
        last = now;
        if matches!(endpoints[0].poll_event(), Some(EndpointEvent::Failed { .. })) {
            failed_at = Some(now);
        }
        if restarted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(restarted && last < 10 * US);
}
