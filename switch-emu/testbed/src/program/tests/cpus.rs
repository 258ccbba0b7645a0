//! Several CPUs run the program at once.

use super::super::switch::SWITCH;
use super::build::{Spec, fabric};
use super::loaded;
use libbpf_rs::ProgramInput;
use spray_fabric::{ChassisSpec, Fabric, Scheme, Switching};
use std::thread;

const THREADS: u64 = 4;
const FRAMES: u64 = 2_000;

/// Every frame is accounted for, and no two take one turn of a pointer.
#[test]
fn senders_at_once_lose_no_frame_and_no_turn() {
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
                // By the kernel's clock: threads are not at the same virtual time.
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
            assert_eq!(uplinks[0], uplinks[1], "{scheme}: a turn was taken twice");
        }
    }
}
