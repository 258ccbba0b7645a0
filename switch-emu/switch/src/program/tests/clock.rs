//! The program of a deployed fabric and the process that loads it use the same clock.

use libbpf_rs::ProgramInput;
use spray_fabric::{ChassisSpec, LinkChange, LinkState};
use spray_pipeline::deployment::{Attachment, DelayHeader};
use spray_pipeline::scheme::NO_PORT;
use spray_pipeline::shim::SHIM_BYTES;

use super::super::object::pod_bytes;
use super::super::{KernelClock, SwitchProgram};
use super::build::{LATENCY_PS, PS_PER_BYTE, Spec, fabric};

const LOOPBACK: u32 = 1;
const XDP_REDIRECT: u32 = 4;

/// Returns the time at which the frame of a test run is due; `None` if it was dropped.
fn due_ps(program: &SwitchProgram) -> Option<u64> {
    let mut out = vec![0; 8_192];
    let frame = Spec::DATA.frame();
    let input = ProgramInput { data_in: Some(&frame[SHIM_BYTES..]), data_out: Some(&mut out), ..Default::default() };
    let output = program.program("deployed").expect("the program").test_run(input).expect("a test run");
    // No socket receives it.
    assert_ne!(output.return_value, XDP_REDIRECT);
    let is_held = output.data.map_or(0, |data| data.len()) > frame.len() - SHIM_BYTES;
    is_held.then(|| DelayHeader::read(&out).expect("bytes").0.due_ps)
}

//= docs/specs/switch.md#SW-31 one clock
#[test]
fn frames_are_due_and_links_change_by_the_clock_of_the_process() {
    if !spray_test_support::has_root() {
        return;
    }
    let (clock, fabric) = (KernelClock::new().expect("root"), fabric());
    let mut program = SwitchProgram::load_deployed(&ChassisSpec::whole(&fabric), &clock, &[], None).expect("root");
    let here =
        Attachment { switch: 0, host_link: NO_PORT, socket: 0, external: 0, undelayed: 0, learns: 0, mac: [0; 8] };
    program.maps.put("attachments", &LOOPBACK.to_ne_bytes(), pod_bytes(&here)).expect("a map");
    let way_ps = 3 * (Spec::DATA.len() * PS_PER_BYTE + LATENCY_PS);
    let before_ps = clock.now_ps();
    let due = due_ps(&program).expect("a ticket");
    let after_ps = clock.now_ps();
    // Rates are rounded, and the clocks agree to microseconds.
    let slack_ps = 20_000_000;
    assert!(
        (before_ps + way_ps - slack_ps..after_ps + way_ps + slack_ps).contains(&due),
        "{before_ps} {due} {after_ps}"
    );
    for (at_ps, is_up) in [(after_ps + 3_600_000_000_000_000, true), (after_ps, false)] {
        let down = LinkChange { at_ps, state: LinkState { up: false, ..LinkState::UP } };
        for port in [2, 3] {
            program.change_link(port, 100_000_000_000, &down).expect("a port");
        }
        assert_eq!(due_ps(&program).is_some(), is_up);
    }
}
