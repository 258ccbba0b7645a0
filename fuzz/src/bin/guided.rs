//! Runs the target in `SPRAY_FUZZ_TARGET` or in the program's name, under libFuzzer.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use spray_fuzz::{TARGETS, Target};

fuzz_target!(|bytes: &[u8]| {
    static TARGET: OnceLock<Target> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let own = || std::env::current_exe().ok()?.file_name()?.to_str().map(str::to_owned);
        let name = std::env::var("SPRAY_FUZZ_TARGET").ok().or_else(own).expect("SPRAY_FUZZ_TARGET names a target");
        *TARGETS.iter().find(|target| target.name == name).expect("there is a target of that name")
    });
    (target.run)(bytes);
});
