//! Real sockets on a veth pair between namespaces. Without root most of these tests are skipped.

use std::{
    io::ErrorKind,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use super::{rings::RECEIVES_PER_CHECK, *};
use crate::net::ethtool::{Feature, Rule, RuleTable};

mod interfaces;
mod many_queues;
mod polled;
mod restore;
mod rig;
mod taken_over;

use rig::{Steer, TimedBarrier, ip, run_on_veth, up, yield_to_softirq};
use spray_test_support::has_root;

const MTU: u32 = 3498;

/// Writes an Ethernet header of an unassigned type and a sequence number.
fn write(space: &mut [u8], sequence: u64) {
    space[..12].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1]);
    space[12..14].copy_from_slice(&[0x88, 0xb5]);
    space[14..22].copy_from_slice(&sequence.to_be_bytes());
}

fn read(frame: &[u8]) -> u64 {
    u64::from_be_bytes(frame[14..22].try_into().expect("8 bytes"))
}

fn open(interface: &str) -> (XskDevice, Steer) {
    let steer = Steer::attach(interface);
    let device = XskDevice::open(&XskConfig::new(interface, 0)).unwrap();
    steer.register(0, device.fd());
    (device, steer)
}

#[expect(clippy::disallowed_methods, reason = "the kernel's side of these tests runs in real time")]
fn clock() -> Instant {
    Instant::now()
}

/// Fails when a count has not changed for ten seconds. The total time is not limited, because
/// SCHED_IDLE threads get little time on a busy machine.
struct StallCheck {
    last: u64,
    since: Instant,
}

impl StallCheck {
    fn new() -> Self {
        Self { last: 0, since: clock() }
    }

    /// Called in a spinning loop; yields the core when the count has not changed.
    fn check(&mut self, count: u64, state: impl Fn() -> String) {
        if count != self.last {
            (self.last, self.since) = (count, clock());
        } else {
            assert!(self.since.elapsed() < Duration::from_secs(10), "stuck at {count}: {}", state());
            std::thread::yield_now();
        }
    }
}

/// Polls until `done` returns true; panics after two seconds.
fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let start = clock();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(2), "still waiting: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn send(device: &mut XskDevice, sequence: u64, len: u32) -> bool {
    let Some(id) = device.allocate() else { return false };
    write(device.frame_mut(&id), sequence);
    match device.transmit(id, len) {
        Ok(()) => true,
        Err(id) => {
            device.release(id);
            false
        }
    }
}

#[test]
fn a_device_may_move_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<XskDevice>();
}

#[test]
fn errors_state_a_remedy() {
    let config = XskConfig::new("spray-none", 0);
    let message = XskDevice::open(&config).unwrap_err().to_string();
    assert_eq!(message, "no interface `spray-none` in this network namespace; `ip link` lists those there are");
    let long = XskDevice::open(&XskConfig::new("a name longer than the kernel takes", 0)).unwrap_err();
    assert!(matches!(long, OpenError::NoInterface { .. }), "{long}");
    let uneven = XskDevice::open(&XskConfig { tx_ring: 1000, ..config.clone() }).unwrap_err().to_string();
    assert_eq!(uneven, "AF_XDP configuration: tx_ring is 1000; a power of two is needed");
    let odd = XskDevice::open(&XskConfig { frame_size: 3000, ..config.clone() }).unwrap_err().to_string();
    assert_eq!(odd, "AF_XDP configuration: frame_size is 3000; 2048 or 4096 are possible");
    let small = XskConfig { frame_size: 2048, ..config }.check_mtu(3498).unwrap_err().to_string();
    assert_eq!(
        small,
        "frames of 2048 bytes hold 1792 bytes, but MTU 3498 of `spray-none` needs 3512; \
         use larger frames (at most a page) or `ip link set spray-none mtu 1778`"
    );
}

#[test]
fn refusals_of_the_kernel_are_distinguished() {
    if !has_root() {
        return;
    }
    let attempt = |config: XskConfig| XskDevice::open(&config).err().map(|error| error.to_string());
    run_on_veth(
        1500,
        |interface| {
            let config = XskConfig::new(interface, 0);
            let device = XskDevice::open(&config).unwrap();
            assert!(!device.zero_copy(), "veth has no zero-copy, so auto must fall back and say so");
            let busy = attempt(config.clone()).unwrap();
            assert!(busy.starts_with("queue 0 of `spray-d0` is in use by another AF_XDP socket"), "{busy}");
            drop(device);
            assert_eq!(attempt(config.clone()), None, "a closed device frees its queue");
            let zero_copy = attempt(XskConfig { mode: BindMode::ZeroCopy, ..config.clone() }).unwrap();
            assert!(zero_copy.contains("does not support zero-copy"), "{zero_copy}");
            let queue = attempt(XskConfig { queue: 77, mode: BindMode::Copy, ..config.clone() }).unwrap();
            assert!(queue.contains("has no queue 77"), "{queue}");
        },
        |interface| {
            // Drops the privileges of this thread alone; the C library's function would change all
            // threads.
            let unprivileged: libc::c_long = 65534;
            // SAFETY: three plain numbers.
            let outcome = unsafe { libc::syscall(libc::SYS_setresuid, unprivileged, unprivileged, unprivileged) };
            assert_eq!(outcome, 0);
            let refused = attempt(XskConfig { frames: 64, ..XskConfig::new(interface, 0) }).unwrap();
            assert!(refused.starts_with("not permitted to open an AF_XDP socket"), "{refused}");
        },
    );
}

#[test]
fn two_hundred_thousand_frames_cross_without_loss() {
    if !has_root() {
        return;
    }
    const TOTAL: u64 = 200_000;
    const LEN: u32 = 3000;
    // Below the 256 frames of veth's ring, which drops the excess.
    const WINDOW: u64 = 192;
    let (arrived, start) = (AtomicU64::new(0), TimedBarrier::default());
    let sender = |interface: &str| {
        let (mut device, _steer) = open(interface);
        yield_to_softirq();
        start.wait();
        let (mut sent, mut stall_check) = (0, StallCheck::new());
        while arrived.load(Relaxed) < TOTAL {
            let allowed = (arrived.load(Relaxed) + WINDOW).min(TOTAL);
            let burst = (allowed - sent).min(64);
            for _ in 0..burst {
                sent += u64::from(send(&mut device, sent, LEN));
            }
            if burst > 0 || device.frame_counts().tx > 0 {
                device.flush().unwrap();
            }
            stall_check.check(sent, || format!("{:?} {:?}", device.stats(), device.frame_counts()));
        }
        eventually("completions", || {
            device.flush().unwrap();
            device.frame_counts().tx == 0
        });
        device.audit().unwrap();
        device.stats()
    };
    let receiver = |interface: &str| {
        let (mut device, _steer) = open(interface);
        yield_to_softirq();
        let mut out = Vec::with_capacity(64);
        start.wait();
        let begin = clock();
        let (mut next, mut stall_check) = (0, StallCheck::new());
        while next < TOTAL {
            let count = device.receive(&mut out, 64).unwrap();
            for Received { frame, len, .. } in out.drain(..) {
                assert_eq!((read(device.frame(&frame, len)), len), (next, LEN));
                next += 1;
                device.release(frame);
            }
            if count > 0 {
                device.flush().unwrap();
                arrived.store(next, Relaxed);
            }
            stall_check.check(next, || format!("{:?}", device.stats()));
        }
        let elapsed = begin.elapsed();
        device.audit().unwrap();
        (device.stats(), device.frame_counts(), elapsed)
    };
    let (tx, (rx, frame_counts, elapsed)) = run_on_veth(MTU, sender, receiver);
    assert_eq!((tx.tx, tx.tx_completed, tx.tx_dropped, tx.tx_invalid), (TOTAL, TOTAL, 0, 0), "{tx:?}");
    assert_eq!((rx.rx, rx.rx_lost(), rx.fill_empty, rx.rx_invalid), (TOTAL, 0, 0, 0), "{rx:?}");
    assert_eq!(frame_counts, FrameCounts { total: 4096, free: 2048, fill: 2048, held: 0, tx: 0 });
    let rate = TOTAL as f64 / elapsed.as_secs_f64();
    eprintln!(
        "{LEN} B over veth, copy mode: {:.0} kpps, {:.2} Gb/s, {:.1} frames a kick",
        rate / 1e3,
        rate * f64::from(LEN) * 8e-9,
        TOTAL as f64 / tx.kicks as f64
    );
}

#[test]
fn one_flush_sends_a_full_tx_ring() {
    if !has_root() {
        return;
    }
    let done = TimedBarrier::default();
    let sender = |interface: &str| {
        let (mut device, _steer) = open(interface);
        // 32 frames per call, as in every kernel before 6.17. Where this cannot be set, that is the
        // kernel's budget anyway.
        let _set = device.socket.raise_kick_budget(32);
        done.wait();
        let sent = (0..4096).filter(|&sequence| send(&mut device, sequence, 1000)).count();
        assert_eq!(sent, 2048, "half the frames are in the fill ring, the other half sent");
        assert_eq!(device.frame_counts().tx, 2048);
        device.flush().unwrap();
        eventually("completions", || {
            device.flush().unwrap();
            device.frame_counts().tx == 0
        });
        device.audit().unwrap();
        let stats = device.stats();
        assert!(stats.kicks >= 2048 / 32, "{stats:?}");
        assert_eq!((stats.tx_completed, stats.tx_dropped), (2048, 0), "{stats:?}");
        done.wait();
    };
    let receiver = |interface: &str| {
        let (mut device, _steer) = open(interface);
        let mut out = Vec::with_capacity(4096);
        done.wait();
        eventually("all frames", || {
            device.receive(&mut out, 4096).unwrap();
            out.len() == 2048
        });
        assert!(out.iter().zip(0..).all(|(got, sequence)| read(device.frame(&got.frame, got.len)) == sequence));
        assert_eq!(device.frame_counts(), FrameCounts { total: 4096, free: 2048, fill: 0, held: 2048, tx: 0 });
        device.audit().unwrap();
        done.wait();
    };
    run_on_veth(MTU, sender, receiver);
}

#[test]
fn a_caller_that_holds_all_frames_recovers() {
    if !has_root() {
        return;
    }
    let small = |interface: &str| {
        let steer = Steer::attach(interface);
        let config = XskConfig::with_frames(interface, 0, 128);
        let device = XskDevice::open(&config).unwrap();
        steer.register(0, device.fd());
        (device, steer)
    };
    let (phase, sent) = (TimedBarrier::default(), AtomicU64::new(0));
    let sender = |interface: &str| {
        let (mut device, _steer) = small(interface);
        phase.wait();
        for _ in 0..2 {
            for _ in 0..10 {
                let full = (0..64).filter(|_| !send(&mut device, 0, 100)).count();
                sent.fetch_add(64 - full as u64, Relaxed);
                device.flush().unwrap();
                device.audit().unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
            phase.wait();
            phase.wait();
        }
        assert_eq!(device.stats().tx, sent.load(Relaxed));
    };
    let receiver = |interface: &str| {
        let (mut device, _steer) = small(interface);
        let mut held = Vec::with_capacity(128);
        phase.wait();
        phase.wait();
        for _ in 0..4 {
            device.receive(&mut held, 128).unwrap();
            device.flush().unwrap();
            device.audit().unwrap();
        }
        // One fill ring's worth of frames had arrived; the rest was dropped, and none can arrive
        // before a release or refill.
        assert_eq!(held.len(), 64);
        let stats = device.stats();
        assert!(stats.fill_empty > 0, "{stats:?}");
        assert_eq!(stats.rx_dropped_ring_full, 0);
        let reply = device.allocate().expect("receiving must not starve sending");
        device.release(reply);
        held.drain(..).for_each(|received| device.release(received.frame));
        device.flush().unwrap();
        assert_eq!(device.frame_counts().fill, 64);
        phase.wait();
        phase.wait();
        assert!(device.receive(&mut held, 128).unwrap() > 0);
        device.audit().unwrap();
        phase.wait();
    };
    run_on_veth(MTU, sender, receiver);
}

#[test]
fn received_frames_can_be_sent_back() {
    if !has_root() {
        return;
    }
    let done = TimedBarrier::default();
    let ping = |interface: &str| {
        let (mut device, _steer) = open(interface);
        let mut out = Vec::with_capacity(64);
        done.wait();
        for sequence in 0..500 {
            assert!(send(&mut device, sequence, 60));
            device.flush().unwrap();
            eventually("the echo", || device.receive(&mut out, 64).unwrap() > 0);
            let Received { frame, len, .. } = out.pop().unwrap();
            assert_eq!((read(device.frame(&frame, len)), len), (sequence + 1_000_000, 60));
            device.release(frame);
        }
        device.audit().unwrap();
        done.wait();
    };
    let echo = |interface: &str| {
        let (mut device, _steer) = open(interface);
        let mut out = Vec::with_capacity(64);
        done.wait();
        for _ in 0..500 {
            eventually("the request", || device.receive(&mut out, 64).unwrap() > 0);
            let Received { frame, len, .. } = out.pop().unwrap();
            let sequence = read(device.frame(&frame, len));
            write(device.frame_mut(&frame), sequence + 1_000_000);
            device.transmit(frame, len).unwrap();
            device.flush().unwrap();
        }
        device.audit().unwrap();
        done.wait();
    };
    run_on_veth(MTU, ping, echo);
}
