mod build;
mod fixtures;
mod properties;

use super::{ChassisSpec, NativeSwitch, SteerProgram, SwitchProgram};
use build::fabric;
use fixtures::{Case, cases};
use spray_pipeline::Verdict;

/// Something that takes a frame in at leaf 0.
trait Engine {
    fn run(&self, frame: &[u8]) -> (Verdict, Vec<u8>);
}

impl Engine for NativeSwitch {
    fn run(&self, frame: &[u8]) -> (Verdict, Vec<u8>) {
        let mut frame = frame.to_vec();
        let verdict = self.process(&mut frame, 0, 12_345);
        if let Verdict::Redirect { trimmed_len: len @ 1.., .. } = verdict {
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
        check(&case, &NativeSwitch::new(&ChassisSpec::whole(&case.fabric)).expect("a valid fabric"));
    }
}

#[test]
fn fixtures_in_the_kernel() {
    let Some(mut program) = loaded() else { return };
    for case in cases() {
        program.configure(&ChassisSpec::whole(&case.fabric)).expect("a fabric of the same shape");
        check(&case, &program);
    }
}

/// The program, or `None` with a word of explanation where it cannot be loaded.
fn loaded() -> Option<SwitchProgram> {
    if !std::fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("Uid:\t0")) {
        eprintln!("SKIPPED: loading XDP programs takes root");
        return None;
    }
    match SwitchProgram::load(&ChassisSpec::whole(&fabric())) {
        Err(error @ super::ProgramError::Missing(_)) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        result => Some(result.unwrap_or_else(|error| panic!("{error}"))),
    }
}

#[test]
fn programs_load() {
    let Some(program) = loaded() else { return };
    println!("switch: {:?}", program.info());
    let steer = SteerProgram::load().unwrap_or_else(|error| panic!("{error}"));
    println!("steer: {:?}", steer.info());
}

#[test]
fn cost_per_hop() {
    if loaded().is_none() {
        return;
    }
    let cost = super::bench_per_hop(100_000).unwrap_or_else(|error| panic!("{error}"));
    println!("{cost:?}: {:.0} ns per hop, {:.0} ns per further hop", cost.per_hop_ns(), cost.further_hop_ns());
}
