//! The target that `SPRAY_FUZZ_TARGET` names, under libFuzzer.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use spray_fuzz::{TARGETS, Target};

fuzz_target!(|bytes: &[u8]| {
    static TARGET: OnceLock<Target> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("SPRAY_FUZZ_TARGET").expect("SPRAY_FUZZ_TARGET names a target");
        *TARGETS.iter().find(|target| target.name == name).expect("there is a target of that name")
    });
    (target.run)(bytes);
});
