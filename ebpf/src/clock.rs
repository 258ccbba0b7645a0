//! Reads the kernel's clock, which a time namespace may shift for the process.
#![no_std]
#![no_main]
#![allow(missing_docs, reason = "the classifier macro emits an undocumented function")]

use aya_ebpf::bindings::{TC_ACT_OK, TC_ACT_SHOT};
use aya_ebpf::helpers::generated::bpf_ktime_get_ns;
use aya_ebpf::macros::classifier;
use aya_ebpf::programs::TcContext;
use spray_ebpf as _;

/// Writes the time in nanoseconds to the first eight bytes of a frame: for test runs.
#[classifier]
pub fn clock(context: TcContext) -> i32 {
    // SAFETY: a helper without conditions.
    let now_ns = unsafe { bpf_ktime_get_ns() };
    if context.store(0, &now_ns, 0).is_ok() { TC_ACT_OK as i32 } else { TC_ACT_SHOT as i32 }
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
