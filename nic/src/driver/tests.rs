//! Hosts on driver threads, over a network in memory.

use std::{
    net::IpAddr,
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering},
    },
};

use super::*;
use crate::{
    clock::{DilatedClock, PatientClock},
    device::{MemoryConfig, MemoryDevice, MemoryNetwork},
    endpoint::{
        EndpointConfig, EndpointEvent,
        tests::{EMULATED, address, config, content, mac, peer},
    },
    sys::monotonic_ns,
};

const HOSTS: usize = 4;
const BYTES: usize = 200_000;

fn hosts(network: &MemoryNetwork) -> Vec<Endpoint<MemoryDevice>> {
    let make = |host| {
        let config = EndpointConfig { ..config(host, false, EMULATED) };
        Endpoint::new(network.attach(mac(host)), config).unwrap()
    };
    (0..HOSTS).map(make).collect()
}

/// Every host sends to the next; returns when each message was complete, by receiver, and how many frames were late.
fn ring(threads: usize) -> (Vec<(IpAddr, u64)>, u64) {
    let network = MemoryNetwork::new(MemoryConfig { frame_size: 2048, ..MemoryConfig::default() });
    let mut endpoints = hosts(&network);
    for (host, endpoint) in endpoints.iter_mut().enumerate() {
        let connection = endpoint.connect(0, peer((host + 1) % HOSTS, false), None).unwrap();
        endpoint.send_at(connection, content(host, BYTES), 20_000_000).unwrap();
    }
    // 100 times slower than the machine; steps below the 1 us of a link and the frame itself.
    let clocks = PatientClock::new(DilatedClock::new(monotonic_ns(), 100.0), 900_000, threads);
    let (done, barrier) = (AtomicU64::new(0), Barrier::new(threads));
    let mut shares: Vec<Vec<Endpoint<MemoryDevice>>> = (0..threads).map(|_| Vec::new()).collect();
    for (host, endpoint) in endpoints.into_iter().enumerate() {
        shares[host % threads].push(endpoint);
    }
    let drive = |share: &mut Vec<Endpoint<MemoryDevice>>, mut clock: PatientClock| {
        let mut completed = Vec::new();
        barrier.wait();
        run(share, &mut clock, Idle::Spin, |endpoints, now_ps| {
            network.advance(now_ps);
            for endpoint in endpoints {
                while let Some(event) = endpoint.poll_event() {
                    match event {
                        EndpointEvent::Received { completed_ps, .. } => {
                            completed.push((endpoint.config().address, completed_ps))
                        }
                        EndpointEvent::Delivered { .. } => drop(done.fetch_add(1, Ordering::SeqCst)),
                        _ => {}
                    }
                }
            }
            if done.load(Ordering::SeqCst) == HOSTS as u64 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        completed
    };
    let mut completed: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> =
            shares.iter_mut().zip(clocks).map(|(share, clock)| scope.spawn(move || drive(share, clock))).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    completed.sort();
    let late = shares.iter().flatten().map(|endpoint| endpoint.stats().late).sum();
    (completed, late)
}

//= docs/specs/endpoint.md#END-17 A clock that waits
#[test]
fn threads_and_stalls_do_not_show_in_an_emulation() {
    let (alone, late) = ring(1);
    assert_eq!((alone.len(), late), (HOSTS, 0));
    assert_eq!(ring(1), (alone.clone(), 0));
    assert_eq!(ring(2), (alone, 0));
}

#[test]
fn an_idle_driver_sleeps_until_something_is_due() {
    let network = MemoryNetwork::new(MemoryConfig { frame_size: 2048, ..MemoryConfig::default() });
    let config = EndpointConfig { mode: crate::Mode::Real, ..config(0, false, EMULATED) };
    let mut endpoints = vec![Endpoint::new(network.attach(mac(0)), config).unwrap()];
    endpoints[0].connect(0, peer(5, false), None).unwrap();
    let (mut rounds, mut failed) = (0u64, false);
    let idle = Idle::Sleep(Duration::from_millis(5));
    run(&mut endpoints, &mut DilatedClock::real(), idle, |endpoints, _| {
        rounds += 1;
        failed |= matches!(endpoints[0].poll_event(), Some(EndpointEvent::Failed { .. }));
        if failed { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    // Twelve attempts over 8 ms, with 100 rounds of spinning after each at most, and 100 us of spinning before each.
    assert!(rounds < 60_000, "{rounds}");
    assert_eq!(endpoints[0].config().address, address(0, false));
}
