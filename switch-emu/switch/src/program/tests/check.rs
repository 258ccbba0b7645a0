//! Every program is loaded, and a rejected one is reported with the verifier's message.

use super::super::check::{PROGRAMS, check};
use super::super::object::{Compiled, STEER, SWITCH};
use super::super::{VERIFIER_LIMIT, check_programs};
use super::loaded;
use libbpf_rs::ObjectBuilder;

//= docs/specs/switch.md#SW-15 verifier limits
/// Verifiers differ in the states that they explore: `cargo xtask kernels` checks others; here no
/// program may come close to the limit.
#[test]
fn every_program_loads_with_room_to_spare() {
    if loaded().is_none() {
        return;
    }
    for checked in check_programs() {
        let verified = checked.verified.unwrap_or_else(|error| panic!("{error}"));
        println!("{}: {verified} instructions verified", checked.program);
        assert!((1..VERIFIER_LIMIT / 8).contains(&verified), "{}: {verified}", checked.program);
    }
}

#[test]
fn every_program_of_the_objects_is_checked() {
    for Compiled { name, bytes } in [SWITCH, STEER] {
        let open = ObjectBuilder::default().open_memory(bytes).expect("an object");
        for program in open.progs() {
            let checked = PROGRAMS.iter().any(|(object, known)| object.name == name && program.name() == *known);
            assert!(checked, "{name}: {:?}", program.name());
        }
    }
}

#[test]
fn a_rejected_program_is_reported_with_the_verifiers_message() {
    if loaded().is_none() {
        return;
    }
    // Replaces `exit` by a read beyond the stack. Code precedes the types, which start with their
    // magic number.
    let mut damaged = SWITCH.bytes.to_vec();
    let code = damaged.windows(4).position(|bytes| bytes == [0x9f, 0xeb, 1, 0]).expect("an object with types");
    for instruction in damaged[..code].as_chunks_mut().0 {
        if *instruction == [0x95, 0, 0, 0, 0, 0, 0, 0] {
            *instruction = [0x79, 0xa0, 8, 0, 0, 0, 0, 0];
        }
    }
    let error =
        check(Compiled { bytes: &damaged, ..SWITCH }, "bench_redirect").expect_err("a rejected program").to_string();
    let (first, log) = error.split_once('\n').expect("more than a line");
    assert!(first.starts_with("the kernel refused the XDP program `switch`"), "{first}");
    assert!(log.contains("processed "), "{log}");
    assert!(check(SWITCH, "bench_redirect").is_ok());
}
