//! Properties of every frame: no panic, every lost frame is counted, and resulting frames are
//! valid.

use super::super::SwitchProgram;
use super::Engine;
use super::build::{LATENCY_PS, START_PS, Spec, fabric, uplinks};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use spray_fabric::{
    BinScale, ChassisSpec, Fabric, FlowHash, HashFields, HashFunction, LinkState, PortCounters, PortSamples, Scheme,
    Switching, reunion,
};
use spray_pipeline::Verdict;
use spray_pipeline::shim::{SHIM_BYTES, Shim};
use spray_test_support::NativeSwitch;
use spray_wire::{Ecn, Ports};
use std::collections::{HashMap, HashSet};

/// Generates valid frames: any host, any port, times within 120 us in any order.
fn ours() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![Just(None), (0..=3_000u16).prop_map(Some)];
    let parts = (any::<bool>(), 0..5u16, any::<u16>(), 0..70u8, any::<bool>(), 0..120_000_000u64, payload);
    parts.prop_map(|(v6, to, port, ttl, ect, delay_ps, payload)| {
        let ecn = if ect { Ecn::Ect0 } else { Ecn::NotEct };
        Spec { v6, to, port, ttl, ecn, time_ps: START_PS + delay_ps, payload, ..Spec::DATA }.frame()
    })
}

/// Generates valid frames with a few bytes overwritten and the end cut off.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    (ours(), vec((0..160usize, any::<u8>()), 0..4), any::<prop::sample::Index>()).prop_map(|(mut frame, edits, cut)| {
        edits.into_iter().for_each(|(at, byte)| {
            if let Some(place) = frame.get_mut(at) {
                *place = byte;
            }
        });
        let len = frame.len();
        frame.truncate(14 + cut.index(len * 2).min(len - 14));
        frame
    })
}

/// Returns a fabric with every impairment of links.
fn lossy() -> Fabric {
    let mut fabric = fabric();
    uplinks(&mut fabric, START_PS + 10_000_000, LinkState { loss_ppm: 300_000, rate_ppm: 250_000, ..LinkState::UP });
    uplinks(&mut fabric, START_PS + 90_000_000, LinkState { silent_drop: true, ..LinkState::UP });
    uplinks(&mut fabric, START_PS + 110_000_000, LinkState::UP);
    fabric
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_frame_is_accounted_for(frames in vec(prop_oneof![4 => ours(), 1 => damaged()], 1..200)) {
        let fabric = lossy();
        let switch = NativeSwitch::new(&ChassisSpec::whole(&fabric)).expect("a valid fabric");
        let (mut passed, mut dropped, mut sent) = (0, 0, 0);
        for frame in &frames {
            match switch.run(frame).0 {
                Verdict::Pass => passed += 1,
                Verdict::Drop(_) | Verdict::Expired { .. } => dropped += 1,
                Verdict::Redirect { .. } | Verdict::Return { .. } => sent += 1,
            }
        }
        let chassis = switch.chassis_counters();
        let at_ports: u64 = (0..fabric.ports.len()).map(|port| switch.counters(port).drops()).sum();
        // A damaged frame may look like one returned by its host.
        let shim = |frame: &&Vec<u8>| frame.first_chunk().and_then(Shim::read);
        let returned = frames.iter().filter_map(|frame| shim(&frame)).filter(|shim| shim.between).count();
        prop_assert_eq!(chassis.frames, (frames.len() - returned) as u64);
        prop_assert_eq!((chassis.passed, chassis.forwarded), (passed, sent));
        prop_assert_eq!(dropped, chassis.malformed + chassis.no_route + chassis.hop_limit + at_ports);
    }

    #[test]
    fn resulting_frames_are_valid(frames in vec(ours(), 1..200)) {
        let switch = NativeSwitch::new(&ChassisSpec::whole(&lossy())).expect("a valid fabric");
        for frame in &frames {
            let (verdict, out) = switch.run(frame);
            let Verdict::Redirect { trimmed_len, .. } = verdict else { continue };
            let parse = |frame| spray_wire::parse(frame, Ports::DEFAULT);
            let (before, after) = (parse(&frame[SHIM_BYTES..]), parse(&out[SHIM_BYTES..]));
            let (Ok(Some(before)), Ok(Some(after))) = (before, after) else {
                return Err(TestCaseError::fail(format!("{after:?}")));
            };
            prop_assert_eq!(after.trimmed, trimmed_len != 0);
            prop_assert_eq!(before.body, after.body);
            prop_assert!(after.trimmed || before.payload == after.payload);
            // To the host at the same leaf there is only the last port, which the host emulates.
            let hops = before.envelope.ttl - after.envelope.ttl;
            let [came_ps, left_ps] = [frame, &out].map(|frame| Shim::read(frame.first_chunk().unwrap()).unwrap().virtual_time_ps);
            prop_assert!(left_ps >= came_ps + u64::from(hops) * LATENCY_PS);
            prop_assert!(hops == 2 || hops == 0 && frame == &out);
        }
    }

    #[test]
    fn random_bytes_never_panic(frames in vec(vec(any::<u8>(), 0..300), 1..50)) {
        let switch = NativeSwitch::new(&ChassisSpec::whole(&fabric())).expect("a valid fabric");
        frames.iter().for_each(|frame| drop(switch.run(frame)));
    }

    //= docs/specs/switch.md#SW-8 random decisions
    #[test]
    fn the_same_frames_have_the_same_verdicts(frames in vec(ours(), 1..100)) {
        let verdicts = || {
            let switch = NativeSwitch::new(&ChassisSpec::whole(&lossy())).expect("a valid fabric");
            frames.iter().map(|frame| switch.run(frame)).collect::<Vec<_>>()
        };
        prop_assert_eq!(verdicts(), verdicts());
    }
}

/// The kernel and memory run the same source: over a long disordered stream they must agree frame
/// by frame, with every scheme.
#[test]
fn kernel_and_memory_agree() {
    //= docs/specs/switching.md#SWC-2 one implementation
    let Some(mut kernel) = super::loaded() else { return };
    let mut taken = HashMap::new();
    for scheme in Scheme::anywhere().filter(|scheme| scheme.is_in_kernel()) {
        let reunion = reunion::Settings { interval_ps: 1_000_000, ..reunion::Settings::default() };
        let switching = Switching { flowlet_gap_ps: 1_000_000, reunion, ..Switching::all(scheme) };
        let (frames, verdicts) = agree(&mut kernel, Fabric { switching, ..lossy() });
        assert!(frames.iter().all(|frames| *frames > 0), "{scheme}: {frames:?}");
        taken.entry(verdicts).or_insert(scheme);
    }
    // If a scheme had no effect, its verdicts would equal those of another. Here weights are equal,
    // so `wcmp` is `ecmp` and `ofan-fib` is `ofan`; no spine has a choice, so `flowcut-switch` is
    // `flowcut-ingress`; no flow is an elephant, so Reunion's are their bases. `ofan-shortest` is
    // `ofan` if that happens to start with the shortest queues.
    let same = [Scheme::Wcmp, Scheme::OfanFib, Scheme::OfanShortest, Scheme::FlowcutSwitch];
    let is_different = |scheme: &Scheme| !same.contains(scheme) && scheme.reunion_base().is_none();
    let different: HashSet<_> =
        Scheme::anywhere().filter(|scheme| scheme.is_in_kernel()).filter(is_different).collect();
    assert_eq!(taken.into_values().filter(is_different).collect::<HashSet<_>>(), different);
}

#[test]
fn kernel_and_memory_hash_alike() {
    //= docs/specs/switching.md#SWC-2 one implementation
    //= docs/specs/switching.md#SWC-24 functions
    let Some(mut kernel) = super::loaded() else { return };
    let mut taken = HashSet::new();
    for function in [HashFunction::Ideal, HashFunction::Crc16, HashFunction::Crc32, HashFunction::Xor] {
        for fields in [HashFields::FiveTuple, HashFields::Addresses, HashFields::Ports, HashFields::FlowLabel] {
            let switching = Switching { hash: FlowHash { function, fields }, ..Switching::default() };
            let (frames, verdicts) = agree(&mut kernel, Fabric { switching, ..lossy() });
            assert!(
                fields == HashFields::Addresses || frames.iter().all(|frames| *frames > 0),
                "{fields:?}: {frames:?}"
            );
            taken.insert(verdicts);
        }
    }
    // With one source host, several functions may give few pairs of addresses the same hash.
    assert!(taken.len() > 12, "{}", taken.len());
}

/// Runs frames through the kernel and memory; returns the number of frames on each of leaf 0's
/// uplinks, and all verdicts.
fn agree(kernel: &mut SwitchProgram, fabric: Fabric) -> ([u64; 2], Vec<Verdict>) {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let bins = BinScale::new(START_PS, 1_000_000, 200_000_000, 1, usize::MAX);
    let spec = ChassisSpec { bins, ..ChassisSpec::whole(&fabric) };
    let scheme = fabric.switching.scheme(0);
    kernel.configure(&spec).expect("a fabric of the same shape");
    let memory = NativeSwitch::new(&spec).expect("a valid fabric");
    let frames = vec(prop_oneof![9 => ours(), 1 => damaged()], 4_000);
    let frames = frames.new_tree(&mut runner).expect("no filters").current();
    let run = |frame: &Vec<u8>| {
        let (verdict, out) = memory.run(frame);
        assert_eq!(kernel.run(frame), (verdict, out), "{scheme}");
        verdict
    };
    let verdicts = frames.iter().map(run).collect();
    let now_ps = START_PS + 200_000_000;
    let samples = kernel.samples(now_ps).expect("readable");
    for (port, samples) in (0..fabric.ports.len()).zip(&samples) {
        check_samples(samples, &memory.counters(port));
        assert_eq!(*samples, memory.samples(port, now_ps), "{}", fabric.ports[port].name);
        assert_eq!(kernel.counters(port).expect("a port"), memory.counters(port), "{}", fabric.ports[port].name);
        assert_eq!(kernel.queue_bytes(port, now_ps), memory.queue_bytes(port, now_ps));
    }
    assert_eq!(kernel.chassis_counters().expect("readable"), memory.chassis_counters());
    if scheme == Scheme::Ecmp {
        check_marks(kernel, fabric.ports.len());
    }
    ([2, 3].map(|port| kernel.counters(port).expect("a port").frames), verdicts)
}

/// The sums over all bins equal the counters.
//= docs/specs/switch.md#SW-24 sums over all bins
fn check_samples(samples: &PortSamples, counters: &PortCounters) {
    let mut sum = samples.before;
    samples.bins.iter().for_each(|bin| sum.add(bin));
    let found = [sum.sent_bytes, sum.queue_max, sum.queued, sum.marks, sum.trims, sum.drops];
    let queued = counters.frames + counters.drops_random;
    let PortCounters { bytes, queue_max, marks, trims, .. } = *counters;
    assert_eq!(found, [bytes, queue_max, queued, marks, trims, counters.drops()]);
}

/// Checks that the stream was long enough to fill the queue.
fn check_marks(kernel: &SwitchProgram, ports: usize) {
    let all: Vec<_> = (0..ports).map(|port| kernel.counters(port).expect("a port")).collect();
    let total = |of: fn(&PortCounters) -> u64| all.iter().map(of).sum::<u64>();
    assert!(total(|port| port.marks) > 0 && total(|port| port.trims) > 0 && total(|port| port.drops_random) > 0);
}
