//! Several CPUs run the program at once.

use super::super::switch::SWITCH;
use super::build::{PS_PER_BYTE, START_PS, Spec, fabric, routes};
use super::loaded;
use libbpf_rs::ProgramInput;
use spray_fabric::{ChassisSpec, Fabric, Scheme, Switching};
use spray_test_support::NativeSwitch;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{hint, thread};

const THREADS: u64 = 4;
const FRAMES: u64 = 2_000;

/// Every frame is counted, and no two frames use the same value of a pointer.
#[test]
fn concurrent_senders_lose_no_frame_and_no_pointer_value() {
    //= docs/specs/switching.md#SWC-5 pointers
    let Some(mut program) = loaded() else { return };
    for scheme in Scheme::anywhere().filter(|scheme| scheme.is_in_kernel()) {
        let fabric = Fabric { switching: Switching::all(scheme), ..fabric() };
        program.configure(&ChassisSpec::whole(&fabric)).expect("a fabric of the same shape");
        program.prepare_test(0).expect("writable maps");
        let program = &program;
        let send = |thread: u64| {
            for frame in 0..FRAMES {
                let port = 1_000 + (frame * THREADS + thread) as u16;
                // By the kernel's clock, because threads are not at the same virtual time.
                let frame = Spec { time_ps: 0, port, ..Spec::DATA }.frame();
                let input = ProgramInput { data_in: Some(&frame), ..Default::default() };
                program.program(SWITCH).expect("the program").test_run(input).expect("a test run");
            }
        };
        thread::scope(|scope| (0..THREADS).for_each(|thread| drop(scope.spawn(move || send(thread)))));
        let chassis = program.chassis_counters().expect("readable");
        assert_eq!((chassis.frames, chassis.forwarded), (THREADS * FRAMES, THREADS * FRAMES), "{scheme}");
        let uplinks = [2, 3].map(|port| program.counters(port).expect("a port").frames);
        assert_eq!(uplinks.iter().sum::<u64>(), THREADS * FRAMES, "{scheme}");
        if matches!(scheme, Scheme::Rr | Scheme::Ofan | Scheme::OfanFib) {
            assert_eq!(uplinks[0], uplinks[1], "{scheme}: a pointer value was used twice");
        }
    }
}

/// The maximum lead of one thread over the other, in frames: the test is about concurrent access,
/// not disorder.
const AHEAD: u64 = 1;

/// Two CPUs send more to one port than its rate, in lockstep: the port marks, trims and forwards as
/// many frames as with one CPU that receives all frames in order.
#[test]
fn a_port_loaded_by_two_cpus_agrees_with_the_model() {
    //= docs/specs/virtual-queue.md#VQ-12 several CPUs
    let Some(mut program) = loaded() else { return };
    let fabric = Fabric { routes: vec![routes(0, &[0])], ..fabric() };
    let spec = ChassisSpec::whole(&fabric);
    program.configure(&spec).expect("a fabric of the same shape");
    program.prepare_test(0).expect("writable maps");
    // A load of 130 %.
    let gap_ps = Spec::DATA.len() * PS_PER_BYTE * 10 / 13;
    let frame = |number: u64| {
        let port = 50_000 + (number % 1_000) as u16;
        Spec { time_ps: START_PS + number * gap_ps, port, ..Spec::DATA }.frame()
    };
    let done = [AtomicU64::new(0), AtomicU64::new(0)];
    let (program, done, frame) = (&program, &done, &frame);
    let send = |thread: usize| {
        for number in 0..FRAMES {
            // Threads that yield immediately take turns on a single CPU.
            let mut spins = 0_u32;
            while number > done[1 - thread].load(Ordering::Relaxed) + AHEAD {
                spins += 1;
                if spins.is_multiple_of(10_000) { thread::yield_now() } else { hint::spin_loop() }
            }
            let frame = frame(2 * number + thread as u64);
            let input = ProgramInput { data_in: Some(&frame), ..Default::default() };
            program.program(SWITCH).expect("the program").test_run(input).expect("a test run");
            done[thread].store(number + 1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| [0, 1].map(|thread| drop(scope.spawn(move || send(thread)))));
    let model = NativeSwitch::new(&spec).expect("a valid fabric");
    for number in 0..2 * FRAMES {
        model.process(&mut frame(number), 0, 0);
    }
    let (kernel, model) = (program.counters(2).expect("a port"), model.counters(2));
    assert_eq!(kernel.frames + kernel.drops_queue, 2 * FRAMES);
    assert_eq!(model.frames + model.drops_queue, 2 * FRAMES);
    assert!(model.trims > FRAMES / 4 && model.marks > FRAMES / 2, "{model:?}");
    // Each CPU decides without the frame that the other is processing, and no byte is lost for
    // later frames.
    for (name, kernel, model, off) in [
        ("bytes", kernel.bytes, model.bytes, 10 * Spec::DATA.len()),
        ("trims", kernel.trims, model.trims, 10),
        ("marks", kernel.marks, model.marks, 30),
    ] {
        assert!(kernel.abs_diff(model) <= off, "{name}: {kernel}, but {model} in order");
    }
}
