//! Drivers.

use super::*;
use crate::{
    clock::MonotonicClock,
    device::{MemoryConfig, MemoryNetwork},
    endpoint::{
        EndpointEvent,
        tests::{address, config, mac, peer},
    },
};

#[test]
fn an_idle_driver_sleeps_until_something_is_due() {
    let network = MemoryNetwork::new(MemoryConfig { frame_size: 2048, ..MemoryConfig::default() });
    let config = config(0, false);
    let mut endpoints = vec![Endpoint::new(network.attach(mac(0)), config).unwrap()];
    endpoints[0].connect(Time::ZERO, peer(5, false), None).unwrap();
    let (mut rounds, mut failed) = (0u64, false);
    let idle = Idle::Sleep(Duration::from_millis(5));
    run(&mut endpoints, &mut MonotonicClock::new(), idle, |endpoints, _| {
        rounds += 1;
        failed |= matches!(endpoints[0].poll_event(), Some(EndpointEvent::Failed { .. }));
        if failed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    // Twelve attempts over 8 ms, each after 100 us and before at most 100 rounds of spinning.
    assert!(rounds < 60_000, "{rounds}");
    assert_eq!(endpoints[0].config().address, address(0, false));
}
