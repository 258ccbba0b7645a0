//! An uplink of a plain Linux router: ECN marks, random loss, silence. Sits on the interface's egress, before its shaper.
//!
//! The kernel routes and queues. This program does what a kernel without RED and netem cannot: it marks by a virtual queue
//! that the port's rate drains, and it loses frames.
#![no_std]
#![no_main]
#![allow(missing_docs, reason = "the classifier macro emits an undocumented function")]

use aya_ebpf::bindings::{TC_ACT_OK, TC_ACT_SHOT};
use aya_ebpf::btf_maps::Array;
use aya_ebpf::helpers::generated::{bpf_get_prandom_u32, bpf_ktime_get_ns, bpf_skb_ecn_set_ce};
use aya_ebpf::macros::{btf_map, classifier};
use aya_ebpf::programs::TcContext;
use spray_ebpf as _;

/// What user space sets, then what the program counts. The order is that of `spray_testbed::program::router`.
#[repr(C)]
pub struct Uplink {
    /// Time to drain a byte, in picoseconds; 0: it never marks.
    ps_per_byte: u64,
    /// It marks when the queue takes longer than this to drain, in nanoseconds.
    mark_ns: u64,
    /// Share of frames to lose, in parts of 2^32; 2^32 and above lose every frame.
    loss: u64,
    /// When the virtual queue is empty, in nanoseconds of the kernel's clock.
    empty_ns: u64,
    /// Bytes that passed.
    bytes: u64,
    /// Frames that were lost.
    lost: u64,
}

#[btf_map(name = "uplink")]
static UPLINK: Array<Uplink, 1> = Array::new();

/// Entry point on an uplink's egress.
#[classifier]
pub fn router(context: TcContext) -> i32 {
    let Some(uplink) = UPLINK.get_ptr_mut(0) else { return TC_ACT_OK as i32 };
    // SAFETY: a live map value. Two CPUs may work on it at once: a count or a mark may then be missing, nothing else.
    let uplink = unsafe { &mut *uplink };
    // SAFETY: helpers without conditions.
    let (random, now_ns) = unsafe { (u64::from(bpf_get_prandom_u32()), bpf_ktime_get_ns()) };
    if random < uplink.loss {
        uplink.lost += 1;
        return TC_ACT_SHOT as i32;
    }
    let bytes = u64::from(context.len());
    uplink.bytes += bytes;
    let waits_until_ns = if uplink.empty_ns > now_ns { uplink.empty_ns } else { now_ns };
    if uplink.ps_per_byte > 0 && waits_until_ns - now_ns > uplink.mark_ns {
        // SAFETY: the frame under this program. It changes nothing where the sender does not take marks.
        unsafe { bpf_skb_ecn_set_ce(context.skb.skb) };
    }
    uplink.empty_ns = waits_until_ns + bytes * uplink.ps_per_byte / 1000;
    TC_ACT_OK as i32
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
