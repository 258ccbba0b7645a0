mod build;
mod check;
mod clock;
mod cpus;
mod dragonfly;
mod fixtures;
mod flowcut;
mod layouts;
mod properties;
mod reunion;
mod verdict;

use super::{HopBench, KernelClock, SwitchProgram};
use build::fabric;
use fixtures::{Case, cases};
use spray_fabric::{BinScale, ChassisSpec, Fabric, LinkState, Node, Scheme, Switching};
use spray_pipeline::Verdict;
use spray_pipeline::queue::{QUEUE_WORDS, Queue};
use spray_test_support::NativeSwitch;

impl SwitchProgram {
    /// Returns the bytes queued at a port at virtual time `now_ps`: of both classes, and of the
    /// control class.
    fn queue_bytes(&self, port: usize, now_ps: u64) -> [u64; 2] {
        let drain = self.tables.ports[port].drain(now_ps);
        let waiting = |words: &[u64; QUEUE_WORDS]| Queue::from_words(words).locate(now_ps, &drain).bytes();
        self.maps.queue_words(port).expect("a port").each_ref().map(waiting)
    }
}

/// An implementation of the switches, for frames that enter at leaf 0.
trait Engine {
    fn run(&self, frame: &[u8]) -> (Verdict, Vec<u8>);
}

impl Engine for NativeSwitch {
    fn run(&self, frame: &[u8]) -> (Verdict, Vec<u8>) {
        let mut frame = frame.to_vec();
        let verdict = self.process(&mut frame, 0, 12_345);
        if let Verdict::Redirect { trimmed_len: len @ 1.., .. } | Verdict::Return { trimmed_len: len @ 1.. } = verdict {
            frame.truncate(len as usize);
        }
        (verdict, frame)
    }
}

impl Engine for SwitchProgram {
    fn run(&self, frame: &[u8]) -> (Verdict, Vec<u8>) {
        self.test_run(frame, 0).unwrap_or_else(|error| panic!("{error}"))
    }
}

fn check(case: &Case, engine: &impl Engine) {
    case.before.iter().for_each(|frame| drop(engine.run(frame)));
    let (verdict, frame) = engine.run(&case.frame);
    assert_eq!(verdict, case.verdict, "{}", case.description);
    match &case.expected {
        Some(expected) => assert_eq!(hex(&frame), hex(expected), "{}", case.description),
        None => assert_eq!(frame, case.frame, "{}: changed", case.description),
    }
}

fn hex(frame: &[u8]) -> String {
    frame.chunks(16).map(|row| row.iter().map(|byte| format!("{byte:02x} ")).collect::<String>() + "\n").collect()
}

#[test]
fn fixtures_in_memory() {
    for case in cases() {
        check(&case, &NativeSwitch::new(&case.chassis()).expect("a valid fabric"));
    }
}

#[test]
fn fixtures_in_the_kernel() {
    let Some(mut program) = loaded() else { return };
    for case in cases() {
        program.configure(&case.chassis()).expect("a fabric of the same shape");
        check(&case, &program);
    }
}

/// Returns the program. Without root returns `None`, and the test skips.
fn loaded() -> Option<SwitchProgram> {
    loaded_for(&fabric())
}

/// As [`loaded`], for fabrics of this shape.
fn loaded_for(fabric: &Fabric) -> Option<SwitchProgram> {
    if !spray_test_support::has_root() {
        return None;
    }
    // With capacity for the bins of every test.
    let bins = BinScale::new(0, 1, 1, 1, usize::MAX);
    let spec = ChassisSpec { bins, hop_by_hop: true, ..ChassisSpec::whole(fabric) };
    Some(SwitchProgram::load(&spec, &KernelClock::new().expect("root")).unwrap_or_else(|error| panic!("{error}")))
}

/// A chassis per switch treats frames in the same way as one chassis for all.
#[test]
fn a_chassis_per_switch_gives_the_result_of_one_chassis() {
    let fabric = fabric();
    let whole = NativeSwitch::new(&ChassisSpec::whole(&fabric)).expect("a valid fabric");
    let single = |switch| ChassisSpec { switch: Some(switch), ..ChassisSpec::whole(&fabric) };
    let singles = [0, 1, 2, 3].map(|switch| NativeSwitch::new(&single(switch)).expect("a valid fabric"));
    for port in 50_000..50_020 {
        let mut frame = build::Spec { port, ..build::Spec::DATA }.frame();
        let expected = whole.run(&frame);
        let (mut switch, mut crossed) = (0, 0);
        let verdict = loop {
            let verdict = singles[switch].process(&mut frame, switch, 0);
            crossed += 1;
            let Verdict::Redirect { port, .. } = verdict else { panic!("{verdict:?}") };
            match fabric.ports[port as usize].to {
                Node::Switch(next) => switch = next,
                Node::Host(_) => break verdict,
            }
        };
        assert_eq!((verdict, crossed), (expected.0, 3));
        assert_eq!(hex(&frame), hex(&expected.1));
    }
    assert_eq!(single(0).external_ports().collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(ChassisSpec::whole(&fabric).external_ports().collect::<Vec<_>>(), [0, 1, 4, 5]);
}

/// Frames that return before each further switch, and are processed one after the other, are
/// treated in the same way as those that cross all switches at once, regardless of the switches'
/// notes.
//= docs/specs/switch.md#SW-32 hop by hop
#[test]
fn hop_by_hop_gives_the_same_results_as_at_once() {
    let Some(mut kernel) = loaded() else { return };
    for scheme in Scheme::anywhere().filter(|scheme| scheme.is_in_kernel()) {
        let switching = Switching { flowlet_gap_ps: 1_000_000, ..Switching::all(scheme) };
        let fabric = Fabric { switching, ..fabric() };
        let at_once = ChassisSpec::whole(&fabric);
        let hop_by_hop = ChassisSpec { hop_by_hop: true, ..at_once.clone() };
        kernel.configure(&hop_by_hop).expect("a fabric of the same shape");
        let whole = NativeSwitch::new(&at_once).expect("a valid fabric");
        let memory = NativeSwitch::new(&hop_by_hop).expect("a valid fabric");
        let mut returned = [0; 2];
        for number in 0..100 {
            let payload = (number % 3 > 0).then_some(1_000);
            let (port, time_ps) = (50_000 + number % 7, build::START_PS + u64::from(number) * 500_000);
            let frame = build::Spec { port, time_ps, payload, ..build::Spec::DATA }.frame();
            let expected = whole.run(&frame);
            let engines: [&dyn Engine; 2] = [&kernel, &memory];
            for (engine, returned) in engines.into_iter().zip(&mut returned) {
                let mut found = engine.run(&frame);
                while let (Verdict::Return { .. }, frame) = &found {
                    *returned += 1;
                    found = engine.run(frame);
                }
                assert!(matches!(found.0, Verdict::Redirect { .. }), "{scheme}: {:?}", found.0);
                assert_eq!(hex(&found.1), hex(&expected.1), "{scheme}, frame {number}");
            }
        }
        assert_eq!(returned, [100; 2], "{scheme}: before the spine's, and not before the last switch");
        for port in 0..fabric.ports.len() {
            let counters = [kernel.counters(port).expect("a port"), memory.counters(port)];
            assert_eq!(counters, [whole.counters(port); 2], "{scheme}: {}", fabric.ports[port].name);
        }
        assert_eq!(kernel.chassis_counters().expect("readable"), whole.chassis_counters(), "{scheme}");
    }
}

#[test]
fn reset_clears_queues_and_counters() {
    let Some(mut program) = loaded() else { return };
    let fabric = Fabric { routes: vec![build::routes(0, &[0])], ..fabric() };
    program.configure(&ChassisSpec::whole(&fabric)).expect("a fabric of the same shape");
    let frame = build::Spec::DATA.frame();
    (0..10).for_each(|_| drop(program.run(&frame)));
    let waiting = |program: &SwitchProgram| program.queue_bytes(2, build::START_PS);
    assert_eq!(waiting(&program), [10 * build::Spec::DATA.len(), 0]);
    assert_eq!(program.counters(2).expect("a port").frames, 10);
    program.reset().expect("writable maps");
    assert_eq!(waiting(&program), [0, 0]);
    assert_eq!(program.counters(2).expect("a port"), spray_fabric::PortCounters::default());
    assert!(program.counters(99).is_err());
}

#[test]
fn fabrics_that_do_not_fit_are_refused() {
    type Damage = fn(&mut Fabric);
    let table: [(Damage, &str); 7] = [
        (|fabric| fabric.routes.clear(), "0 routing epochs, between 1 and 8 are possible"),
        (|fabric| fabric.routes = vec![build::routes(0, &[0]); 9], "9 routing epochs, between 1 and 8 are possible"),
        (|fabric| drop(fabric.routes[0].groups.pop()), "a routing epoch must have one group per switch and host"),
        (|fabric| fabric.routes[0].groups[0][0][0] = 99, "a route names a port that does not exist"),
        (|fabric| fabric.ports[0].to = Node::Switch(9), "port 0->Host(0): an end does not exist"),
        (|fabric| fabric.ports[0].rate_bps = 1, "port 0->Host(0): 1 b/s, between 10 Mb/s and 100 Tb/s are possible"),
        (
            |fabric| (0..9).for_each(|at_ps| build::uplinks(fabric, at_ps, LinkState::UP)),
            "port 0->Switch(2): 9 timed changes, at most 8 are possible",
        ),
    ];
    for (damage, message) in table {
        let mut fabric = fabric();
        damage(&mut fabric);
        let error = NativeSwitch::new(&ChassisSpec::whole(&fabric)).expect_err(message);
        assert_eq!(error.to_string(), format!("the fabric does not fit the switches' tables: {message}"));
    }
}

//= docs/specs/switch.md#SW-17 CPU cost of a switch
#[test]
fn cost_per_hop() {
    if loaded().is_none() {
        return;
    }
    const REPEAT: u32 = 100_000;
    let bench = HopBench::new(Switching::default(), 1).unwrap_or_else(|error| panic!("{error}"));
    let redirect = bench.redirect(REPEAT).unwrap_or_else(|error| panic!("{error}"));
    let hops = [1, HopBench::HOPS].map(|hops| bench.switch(hops, REPEAT).unwrap_or_else(|error| panic!("{error}")));
    println!("a redirect {redirect:?}, one hop {:?}, {} hops {:?}", hops[0], HopBench::HOPS, hops[1]);
    let disorder = bench.out_of_order(HopBench::HOPS, REPEAT).unwrap_or_else(|error| panic!("{error}"));
    println!("out of order {disorder:?}");
}
