//! Conservation of frames, determinism, and each impairment; property tests where there is a
//! property.

use proptest::prelude::*;

use super::*;

const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
const B: [u8; 6] = [2, 0, 0, 0, 0, 2];
const C: [u8; 6] = [2, 0, 0, 0, 0, 3];
const HARSH: Impairments = Impairments {
    delay_ps: 5_000,
    jitter_ps: 40_000,
    loss_ppm: 200_000,
    duplicate_ppm: 100_000,
    corrupt_ppm: 50_000,
    mark_ppm: 0,
    trim_ppm: 0,
};

fn pair(config: MemoryConfig) -> (MemoryNetwork, MemoryDevice, MemoryDevice) {
    let network = MemoryNetwork::new(config);
    let (a, b) = (network.attach(A), network.attach(B));
    (network, a, b)
}

/// Sends a frame of `len` bytes to `to`, filled with `fill` after the addresses. Returns whether a
/// free frame was available.
fn send(device: &mut MemoryDevice, to: [u8; 6], fill: u8, len: usize) -> bool {
    let Some(id) = device.allocate() else { return false };
    let space = device.frame_mut(&id);
    space[..6].copy_from_slice(&to);
    space[6..len].fill(fill);
    match device.transmit(id, len as u32) {
        Ok(()) => true,
        Err(id) => {
            device.release(id);
            false
        }
    }
}

/// Receives all frames, releases them, and returns the last byte of each.
fn drain(device: &mut MemoryDevice) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    let mut fills = Vec::new();
    while device.receive(&mut out, 64).unwrap() > 0 {
        for Received { frame, len, .. } in out.drain(..) {
            fills.push(device.frame(&frame, len)[len as usize - 1]);
            device.release(frame);
        }
        device.flush().unwrap();
    }
    fills
}

fn audit_all(network: &MemoryNetwork, devices: &[&MemoryDevice]) {
    network.audit().unwrap();
    for device in devices {
        device.audit().unwrap();
    }
}

#[test]
fn frames_arrive_in_order_and_unchanged_without_impairments() {
    let (network, mut a, mut b) = pair(MemoryConfig::default());
    for fill in 0..200 {
        assert!(send(&mut a, B, fill, 100));
    }
    a.flush().unwrap();
    assert_eq!(drain(&mut b), (0..200).collect::<Vec<u8>>());
    assert_eq!(drain(&mut a), [0; 0]);
    audit_all(&network, &[&a, &b]);
    assert_eq!(b.stats().rx_bytes, 200 * 100);
}

#[test]
fn frames_leave_at_the_flush_and_arrive_when_due() {
    let (network, mut a, mut b) = pair(MemoryConfig { impairments: Impairments::delay(1_000), ..Default::default() });
    send(&mut a, B, 7, 64);
    network.advance(Time::from_ps(10_000));
    assert_eq!(drain(&mut b), [0; 0]);
    a.flush().unwrap();
    assert_eq!(network.next_due(), Some(Time::from_ps(11_000)));
    network.advance(Time::from_ps(11_000).before(Time::STEP_PS));
    assert_eq!(drain(&mut b), [0; 0]);
    network.advance(Time::from_ps(11_000));
    assert_eq!(drain(&mut b), [7]);
    assert_eq!(network.next_due(), None);
}

#[test]
fn group_frames_reach_all_others_and_unknown_addresses_none() {
    let (network, mut a, mut b) = pair(MemoryConfig::default());
    let mut c = network.attach(C);
    send(&mut a, [0xff; 6], 1, 64);
    send(&mut a, C, 2, 64);
    send(&mut a, [2, 9, 9, 9, 9, 9], 3, 64);
    a.flush().unwrap();
    assert_eq!((drain(&mut a), drain(&mut b), drain(&mut c)), (vec![], vec![1], vec![1, 2]));
    let stats = network.stats();
    assert_eq!((stats.sent, stats.copies, stats.unroutable, stats.delivered), (3, 1, 1, 3));
    audit_all(&network, &[&a, &b, &c]);
}

#[test]
fn a_receiver_that_does_not_release_drops_and_counts() {
    let config = MemoryConfig { frames: 64, rx_ring: 32, tx_ring: 64, ..Default::default() };
    let (network, mut a, mut b) = pair(config);
    let mut held = Vec::with_capacity(64);
    for _ in 0..3 {
        for fill in 0..24 {
            assert!(send(&mut a, B, fill, 64));
        }
        a.flush().unwrap();
        b.receive(&mut held, 64).unwrap();
        b.flush().unwrap();
        audit_all(&network, &[&a, &b]);
    }
    // 32 fill slots, then the 16 frames that are not reserved for sending.
    assert_eq!(held.len(), 48);
    assert_eq!(b.stats().fill_empty, 3 * 24 - 48);
    assert!(b.allocate().is_some(), "receiving must not starve sending");
    held.drain(..).for_each(|received| b.release(received.frame));
    b.flush().unwrap();
    assert_eq!(b.frame_counts().fill, 32);
}

#[test]
fn a_full_tx_ring_returns_the_frame() {
    let (_, mut a, _b) = pair(MemoryConfig { tx_ring: 4, ..Default::default() });
    let sent = (0..6).filter(|&fill| send(&mut a, B, fill, 64)).count();
    assert_eq!((sent, a.stats().tx_ring_full, a.frame_counts().tx), (4, 2, 4));
    a.flush().unwrap();
    assert_eq!(a.frame_counts().tx, 0);
    assert!(send(&mut a, B, 0, 64));
}

#[test]
fn receive_never_grows_the_output() {
    let (_, mut a, mut b) = pair(MemoryConfig::default());
    (0..20).for_each(|fill| assert!(send(&mut a, B, fill, 64)));
    a.flush().unwrap();
    let mut out = Vec::with_capacity(8);
    let room = out.capacity();
    assert_eq!(b.receive(&mut out, 100).unwrap(), room);
    assert_eq!(b.receive(&mut out, 100).unwrap(), 0);
    assert_eq!(out.capacity(), room);
}

#[test]
#[should_panic(expected = "not held by the caller")]
fn a_handle_of_another_device_is_refused() {
    let (_, mut a, b) = pair(MemoryConfig::default());
    let id = a.allocate().unwrap();
    let _bytes = b.frame(&id, 1);
}

#[test]
fn impairments_have_the_configured_rates() {
    let (network, mut a, mut b) = pair(MemoryConfig { seed: 3, impairments: HARSH, ..Default::default() });
    let total = 100_000_u64;
    for round in 0..total / 100 {
        (0..100).for_each(|_| assert!(send(&mut a, B, 0, 80)));
        a.flush().unwrap();
        network.advance(Time::from_ps((round + 1) * 50_000));
        drain(&mut b);
    }
    let stats = network.stats();
    let near =
        |count: u64, expected: u64| assert!(count.abs_diff(expected) < expected / 20, "{count}, expected {expected}");
    near(stats.lost, total / 5);
    near(stats.duplicated, total * 8 / 100);
    near(stats.corrupted, total * 88 / 2000);
    assert_eq!(stats.no_buffer, 0);
    audit_all(&network, &[&a, &b]);
}

#[test]
fn jitter_reorders() {
    let impairments = Impairments { jitter_ps: 1_000_000, ..Default::default() };
    let (network, mut a, mut b) = pair(MemoryConfig { impairments, ..Default::default() });
    (0..100).for_each(|fill| assert!(send(&mut a, B, fill, 64)));
    a.flush().unwrap();
    network.advance(Time::from_ps(1_000_000));
    let mut fills = drain(&mut b);
    assert!(!fills.is_sorted());
    fills.sort_unstable();
    assert_eq!(fills, (0..100).collect::<Vec<u8>>());
}

#[test]
fn one_sender_can_be_impaired_alone() {
    let (network, mut a, mut b) = pair(MemoryConfig::default());
    network.set_sender_impairments(&a, Impairments { loss_ppm: 1_000_000, ..Default::default() });
    send(&mut a, B, 1, 64);
    send(&mut b, A, 2, 64);
    a.flush().unwrap();
    b.flush().unwrap();
    assert_eq!((drain(&mut a), drain(&mut b)), (vec![2], vec![]));
    network.set_impairments(Impairments::default());
    send(&mut a, B, 3, 64);
    a.flush().unwrap();
    assert_eq!(drain(&mut b), [3]);
}

#[test]
fn impairments_of_one_sender_do_not_depend_on_another() {
    let fates = |interleaved: bool| {
        let (network, mut a, mut b) = pair(MemoryConfig { seed: 11, impairments: HARSH, ..Default::default() });
        let mut c = network.attach(C);
        for fill in 0..100 {
            send(&mut a, B, fill, 64);
            a.flush().unwrap();
            if interleaved {
                send(&mut c, A, fill, 64);
                c.flush().unwrap();
            }
        }
        network.advance(Time::from_ps(1_000_000));
        drain(&mut b)
    };
    assert_eq!(fates(false), fates(true));
}

#[test]
fn devices_work_from_separate_threads() {
    let (network, mut a, mut b) = pair(MemoryConfig::default());
    let (total, got) = (20_000_u64, std::sync::atomic::AtomicU64::new(0));
    let load = || got.load(std::sync::atomic::Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sent = 0;
            while sent < total {
                // Keeps the frames in flight below the size of the receiver's fill ring, as a
                // window would.
                if sent - load() < 256 && send(&mut a, B, 0, 64) {
                    sent += 1;
                } else {
                    std::thread::yield_now();
                }
                a.flush().unwrap();
            }
        });
        scope.spawn(|| {
            while load() < total {
                got.fetch_add(drain(&mut b).len() as u64, std::sync::atomic::Ordering::Relaxed);
                std::thread::yield_now();
            }
        });
    });
    audit_all(&network, &[&a, &b]);
    assert_eq!(network.stats().delivered, total);
}

/// One step of a random history.
#[derive(Debug, Clone)]
enum Op {
    Send { from: usize, to: usize, len: usize },
    Flush(usize),
    Receive { at: usize, budget: usize },
    Release { at: usize, nth: usize },
    Advance(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..3_usize, 0..4_usize, 14..200_usize).prop_map(|(from, to, len)| Op::Send { from, to, len }),
        3 => (0..3_usize).prop_map(Op::Flush),
        3 => (0..3_usize, 1..40_usize).prop_map(|(at, budget)| Op::Receive { at, budget }),
        3 => (0..3_usize, 0..100_usize).prop_map(|(at, nth)| Op::Release { at, nth }),
        2 => (0..20_000_u64).prop_map(Op::Advance),
    ]
}

fn impairments() -> impl Strategy<Value = Impairments> {
    let ppm = || prop_oneof![Just(0), 0..=1_000_000_u32];
    (0..10_000_u64, 0..30_000_u64, ppm(), ppm(), ppm()).prop_map(
        |(delay_ps, jitter_ps, loss_ppm, duplicate_ppm, corrupt_ppm)| Impairments {
            delay_ps,
            jitter_ps,
            loss_ppm,
            duplicate_ppm,
            corrupt_ppm,
            ..Impairments::default()
        },
    )
}

/// Runs a history and returns everything observable.
fn play(ops: &[Op], impairments: Impairments, seed: u64) -> (NetworkStats, Vec<DeviceStats>, Vec<Vec<u8>>) {
    let config = MemoryConfig {
        seed,
        frames: 64,
        frame_size: 256,
        rx_ring: 16,
        tx_ring: 16,
        mtu: 242,
        in_flight: 50,
        impairments,
        ..MemoryConfig::default()
    };
    let network = MemoryNetwork::new(config);
    let macs = [A, B, C, [0xff; 6]];
    let mut devices: Vec<MemoryDevice> = macs[..3].iter().map(|&mac| network.attach(mac)).collect();
    let mut held: Vec<Vec<Received>> = (0..3).map(|_| Vec::with_capacity(64)).collect();
    let (mut seen, mut now) = (Vec::new(), Time::ZERO);
    for op in ops {
        match *op {
            Op::Send { from, to, len } => drop(send(&mut devices[from], macs[to], len as u8, len)),
            Op::Flush(at) => devices[at].flush().unwrap(),
            Op::Receive { at, budget } => {
                let before = held[at].len();
                devices[at].receive(&mut held[at], budget).unwrap();
                seen.extend(
                    held[at][before..].iter().map(|received| devices[at].frame(&received.frame, received.len).to_vec()),
                );
            }
            Op::Release { at, nth } if !held[at].is_empty() => {
                let nth = nth % held[at].len();
                let received = held[at].swap_remove(nth);
                devices[at].release(received.frame);
            }
            Op::Release { .. } => {}
            Op::Advance(step_ps) => {
                now = now.after(step_ps);
                network.advance(now);
            }
        }
        network.audit().unwrap();
        for (device, held) in devices.iter().zip(&held) {
            device.audit().unwrap();
            assert_eq!(device.frame_counts().held, held.len());
        }
    }
    (network.stats(), devices.iter().map(DeviceHealth::stats).collect(), seen)
}

proptest! {
    /// sent + copies = lost + unroutable + overflow + no_buffer + in flight + delivered, after
    /// every step of every history; the same seed gives the same run.
    #[test]
    fn every_frame_is_accounted_for(ops in prop::collection::vec(op(), 1..400), faults in impairments(), seed: u64) {
        let run = play(&ops, faults, seed);
        prop_assert_eq!(&run, &play(&ops, faults, seed));
        let (network, devices, seen) = run;
        prop_assert_eq!(network.sent, devices.iter().map(|stats| stats.tx_completed).sum::<u64>());
        prop_assert_eq!(network.no_buffer, devices.iter().map(|stats| stats.fill_empty).sum::<u64>());
        prop_assert_eq!(seen.len() as u64, devices.iter().map(|stats| stats.rx).sum::<u64>());
        prop_assert!(seen.len() as u64 <= network.delivered);
    }

    #[test]
    fn corruption_always_changes_the_frame(mut frame in prop::collection::vec(any::<u8>(), 1..300), seed: u64) {
        use rand_core::SeedableRng;
        let before = frame.clone();
        impair::corrupt(&mut rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed), &mut frame);
        prop_assert_eq!(frame.len(), before.len());
        let changed = frame.iter().zip(&before).filter(|(a, b)| a != b).count();
        prop_assert!((1..=4).contains(&changed), "{} bytes changed", changed);
    }
}

#[test]
fn only_unmarked_ect_frames_of_spray_are_marked() {
    use spray_wire::{Body, Ecn, Envelope, EvPort, Probe, emit, parse};
    for (src, dst) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
        for (ecn, marked) in [(Ecn::Ect0, true), (Ecn::Ect1, true), (Ecn::NotEct, false), (Ecn::Ce, false)] {
            let (src, dst) = (src.parse().unwrap(), dst.parse().unwrap());
            let src_port = EvPort::new(50_000);
            let envelope = Envelope {
                src_mac: A,
                dst_mac: B,
                src,
                dst,
                src_port,
                dst_port: spray_wire::Ports::DEFAULT.first(),
                dscp: 0,
                ecn,
                ttl: 64,
            };
            let mut frame = [0; 200];
            let probe = Body::Probe(Probe::default());
            let len = emit(&mut frame, &envelope, &Default::default(), &probe, &[]).unwrap();
            let before = frame;
            assert_eq!(impair::mark(&mut frame[..len]), marked, "{ecn:?}");
            assert_eq!(frame != before, marked);
            let parsed = parse(&frame[..len], spray_wire::Ports::DEFAULT).unwrap().expect("its checksums are right");
            assert_eq!(parsed.envelope, Envelope { ecn: if marked { Ecn::Ce } else { ecn }, ..envelope });
        }
    }
    assert!(!impair::mark(&mut [0; 20]));
}

#[test]
fn data_frames_are_trimmed_and_marked_as_a_switch_would() {
    use spray_wire::{Body, Common, Data, Ecn, Envelope, EvPort, emit, parse};
    let impairments = Impairments { trim_ppm: 1_000_000, mark_ppm: 1_000_000, ..Impairments::default() };
    for (src, dst) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
        let (network, mut a, mut b) = pair(MemoryConfig { impairments, ..Default::default() });
        let envelope = Envelope {
            src_mac: A,
            dst_mac: B,
            src: src.parse().unwrap(),
            dst: dst.parse().unwrap(),
            src_port: EvPort::new(50_000),
            dst_port: spray_wire::Ports::DEFAULT.first(),
            dscp: spray_wire::DSCP_DATA,
            ecn: Ecn::Ect0,
            ttl: 64,
        };
        let common = Common { connection: 7, cookie: 8, ..Common::default() };
        let data = Data {
            psn: 3,
            timestamp: Time::from_ns(900),
            message: 1,
            offset: 0,
            message_bytes: 100,
            payload_bytes: 100,
            ack_now: false,
            ..Data::default()
        };
        let id = a.allocate().unwrap();
        let len = emit(a.frame_mut(&id), &envelope, &common, &Body::Data(data), &[5; 100]).unwrap();
        a.transmit(id, len as u32).unwrap();
        a.flush().unwrap();
        let mut out = Vec::with_capacity(1);
        assert_eq!(b.receive(&mut out, 1).unwrap(), 1);
        let frame = parse(b.frame(&out[0].frame, out[0].len), spray_wire::Ports::DEFAULT).unwrap().unwrap();
        assert!(frame.trimmed);
        assert_eq!((frame.body, frame.payload), (Body::Data(data), &[][..]));
        assert_eq!(frame.envelope.ecn, Ecn::Ce);
        assert_eq!((network.stats().trimmed, network.stats().marked), (1, 1));
    }
}
