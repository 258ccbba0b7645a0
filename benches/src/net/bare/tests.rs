use spray_nic::device::{Impairments, MemoryConfig, MemoryDevice, MemoryNetwork};

use super::*;
use spray_nic::device::DeviceHealth as _;

const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const TARGET: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Returns a network in which the receiver's ring holds one window per [`STALL`] for as long as its
/// thread is descheduled.
fn network() -> (MemoryNetwork, MemoryDevice, MemoryDevice) {
    let network = MemoryNetwork::new(MemoryConfig { frames: 8_192, rx_ring: 4_096, ..MemoryConfig::default() });
    let (sender, receiver) = (network.attach(SOURCE), network.attach(TARGET));
    (network, sender, receiver)
}

fn template(bytes: usize) -> Vec<u8> {
    let mut frame = [TARGET, SOURCE].concat();
    frame.resize(bytes, 0x5a);
    frame
}

fn config(template: &[u8], window: u32) -> BareConfig<'_> {
    BareConfig {
        template,
        duration: Duration::from_millis(30),
        window,
        threads: [DriverOptions { idle: spray_nic::driver::Idle::Spin, ..DriverOptions::real() }; 2],
    }
}

#[test]
fn a_window_over_a_faultless_network_loses_nothing() {
    let (_network, mut sender, mut receiver) = network();
    let frame = template(3000);
    let result = run(&mut sender, &mut receiver, &config(&frame, 128)).expect("memory devices do not fail");
    assert!(result.sent > 128, "{result:?}");
    assert_eq!((result.received, result.bytes), (result.sent, 3000));
    assert!(result.received_gbps() > 0.0);
    sender.audit().expect("no frame lost");
    receiver.audit().expect("no frame lost");
}

#[test]
fn a_completely_lost_window_does_not_stop_the_sender() {
    let (network, mut sender, mut receiver) = network();
    network.set_impairments(Impairments { loss_ppm: 1_000_000, ..Impairments::default() });
    let frame = template(64);
    let mut sent = |millis| {
        let config = BareConfig { duration: Duration::from_millis(millis), ..config(&frame, 8) };
        let result = run(&mut sender, &mut receiver, &config).expect("memory devices do not fail");
        assert_eq!(result.received, 0);
        result.sent
    };
    // On a busy machine a thread may be descheduled for longer than the shorter durations.
    assert!([30, 1_000, 20_000].into_iter().any(|millis| sent(millis) > 8), "stuck after the first window");
}

#[test]
fn a_window_is_considered_lost_only_after_the_stall_time() {
    let start = now();
    let mut window = Window::new(10);
    assert_eq!(window.room(0, 0, start), 10);
    assert_eq!(window.room(10, 4, start), 4);
    assert_eq!(window.room(14, 4, start + STALL / 2), 0);
    assert_eq!(window.room(14, 4, start + STALL), 10);
    // The ten frames that are considered lost no longer count; those sent since are in flight.
    assert_eq!(window.room(17, 4, start + STALL), 7);
}

#[test]
fn a_template_too_long_is_refused() {
    let (_network, mut sender, mut receiver) = network();
    let frame = template(sender.info().max_frame + 1);
    let error = run(&mut sender, &mut receiver, &config(&frame, 1)).expect_err("too long");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn threads_may_run_at_idle_priority() {
    let (_network, mut sender, mut receiver) = network();
    let frame = template(64);
    let config = BareConfig {
        threads: [DriverOptions { idle: spray_nic::driver::Idle::Spin, ..DriverOptions::default() }; 2],
        ..config(&frame, 16)
    };
    run(&mut sender, &mut receiver, &config).expect("lowering the priority requires no privileges");
}

#[test]
fn messages_are_answered_and_all_frames_are_freed() {
    let (_network, mut asking, mut answering) = network();
    let [there, back] = [[TARGET, SOURCE], [SOURCE, TARGET]].map(|head| {
        let mut frame = head.concat();
        frame.resize(120, 0);
        frame
    });
    let took =
        exchange([&mut asking, &mut answering], [there, back], Duration::from_millis(30), config(&[], 1).threads);
    assert!(!took.expect("memory devices do not fail").is_empty());
    asking.audit().expect("no frame lost");
    answering.audit().expect("no frame lost");
}
