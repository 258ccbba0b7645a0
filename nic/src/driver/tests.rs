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
    device::{MemoryConfig, MemoryDevice, MemoryNetwork, Received},
    endpoint::{
        EndpointConfig, EndpointEvent,
        tests::{EMULATED, US, address, config, content, mac, peer},
    },
    sys::monotonic_ns,
    turns::Turns,
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

/// Takes so much time with every look.
struct Leaps(u64);

impl Clock for Leaps {
    fn tick(&mut self, _handled_ps: u64) -> u64 {
        self.0 += 300 * US;
        self.0
    }

    fn real_ns(&self, _ps: u64) -> u64 {
        0
    }
}

/// Hosts call one that is silent, again and again. Returns the virtual times of their frames in the order in which they came there.
fn calls(threads: usize, in_turns: bool) -> Vec<u64> {
    const LONG: u64 = 20_000 * US;
    let network = MemoryNetwork::new(MemoryConfig { frame_size: 2048, ..MemoryConfig::default() });
    let turns = Turns::new(HOSTS, US);
    let mut shares: Vec<Vec<Endpoint<MemoryDevice>>> = (0..threads).map(|_| Vec::new()).collect();
    for (host, mut endpoint) in hosts(&network).into_iter().enumerate() {
        for call in 0..3 {
            endpoint.connect(1 + (call * 7 + host as u64 * 3) * US, peer(HOSTS, false), None).unwrap();
        }
        let endpoint = if in_turns { endpoint.with_turn(turns.of(host)) } else { endpoint };
        shares[host % threads].push(endpoint);
    }
    let mut silent = network.attach(mac(HOSTS));
    silent.flush().unwrap();
    std::thread::scope(|scope| {
        for share in &mut shares {
            scope.spawn(|| {
                run(share, &mut Leaps(0), Idle::Spin, |endpoints, now_ps| {
                    let is_over = now_ps > LONG && endpoints.iter().all(|endpoint| endpoint.done_ps() > LONG);
                    if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
            });
        }
    });
    network.advance(2 * LONG);
    let (mut times, mut arrivals) = (Vec::new(), Vec::with_capacity(64));
    while silent.receive(&mut arrivals, 64).unwrap() > 0 {
        for Received { frame, len } in arrivals.drain(..) {
            times.extend(spray_wire::peek_virtual_time(silent.frame(&frame, len)));
            silent.release(frame);
        }
    }
    times
}

//= docs/specs/endpoint.md#END-16b turns
#[test]
fn hosts_that_send_in_turns_send_in_the_order_of_virtual_time() {
    let alone = calls(1, true);
    assert_eq!(alone.len(), HOSTS * 3 * 12);
    assert!(alone.is_sorted(), "{alone:?}");
    assert_eq!(calls(2, true), alone);
    assert_eq!(calls(4, true), alone);
    let (mut free, mut sorted) = (calls(1, false), alone);
    assert!(!free.is_sorted(), "so long a step shows the difference");
    free.sort_unstable();
    sorted.sort_unstable();
    assert_eq!(free, sorted);
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

/// A clock that stands where it is put, and begins again at 0.
struct Late(u64);

impl Clock for Late {
    fn tick(&mut self, _handled_ps: u64) -> u64 {
        self.0 += US;
        self.0
    }

    fn real_ns(&self, _ps: u64) -> u64 {
        0
    }

    fn restart(&mut self) -> bool {
        self.0 = 0;
        true
    }
}

//= docs/specs/endpoint.md#END-37 a clock that begins again
#[test]
fn a_driver_begins_its_clock_again_while_nothing_is_connected() {
    let network = MemoryNetwork::new(MemoryConfig { frame_size: 2048, ..MemoryConfig::default() });
    let config = EndpointConfig { mode: crate::Mode::Real, ..config(0, false, EMULATED) };
    let mut endpoints = vec![Endpoint::new(network.attach(mac(0)), config).unwrap()];
    let started_ps = RESTART_PS - 1_000 * US;
    endpoints[0].connect(started_ps, peer(5, false), None).unwrap();
    let (mut last_ps, mut failed_ps, mut restarted) = (0, None, false);
    run(&mut endpoints, &mut Late(started_ps), Idle::Spin, |endpoints, now_ps| {
        if now_ps < last_ps {
            assert!(failed_ps.is_some_and(|at_ps| at_ps >= RESTART_PS), "not while a connection exists: {failed_ps:?}");
            restarted = true;
        }
        last_ps = now_ps;
        if matches!(endpoints[0].poll_event(), Some(EndpointEvent::Failed { .. })) {
            failed_ps = Some(now_ps);
        }
        if restarted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(restarted && last_ps < 10 * US);
}
