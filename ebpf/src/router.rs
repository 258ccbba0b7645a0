//! An uplink of a plain Linux router, on the interface's egress before its shaper: ECN marks, early
//! drops, random loss, outages, and interference of middleboxes. The kernel routes and queues;
//! marks and early drops follow a virtual queue that drains at the port's rate.
#![no_std]
#![no_main]
#![allow(missing_docs, reason = "the classifier macro emits an undocumented function")]

use aya_ebpf::bindings::{TC_ACT_OK, TC_ACT_SHOT};
use aya_ebpf::btf_maps::Array;
use aya_ebpf::helpers::generated::{
    bpf_clone_redirect, bpf_get_prandom_u32, bpf_ktime_get_ns, bpf_l3_csum_replace, bpf_skb_ecn_set_ce,
};
use aya_ebpf::macros::{btf_map, classifier};
use aya_ebpf::programs::TcContext;
use spray_ebpf as _;

/// Set by user space, then state of the program. In the order of `RouterProgram` in `spray-tests`.
#[repr(C)]
pub struct Uplink {
    /// Time to drain a byte, in picoseconds.
    ps_per_byte: u64,
    /// Marking threshold, in nanoseconds to drain the queue; `u64::MAX`: never.
    mark_ns: u64,
    /// RED threshold of the average queue, in ns to drain it; `u64::MAX`: never. See [`red`].
    red_ns: u64,
    /// Share of frames to drop, in parts of 2^32; 2^32 and above: all.
    loss: u64,
    /// Drops frames if the queue takes longer than this to drain, in nanoseconds; 0: none.
    police_ns: u64,
    /// Drops longer frames, in bytes; 0: none.
    longest: u64,
    /// Drops UDP datagrams with this value of the source port under `port_mask`, unless that is 0.
    port: u64,
    port_mask: u64,
    /// Drops all frames in the first `burst_ns` of each such period, in nanoseconds; 0: none.
    burst_every_ns: u64,
    burst_ns: u64,
    /// Share of frames to duplicate, in parts of 2^32.
    twice: u64,
    /// Not 0: clears DSCP and ECN.
    clears: u64,
    /// When the virtual queue is empty, in nanoseconds of the kernel's clock.
    empty_ns: u64,
    /// The average of the virtual queue, in 2^-[`RED_SHIFT`] nanoseconds.
    average: u64,
    /// Bytes forwarded.
    bytes: u64,
    /// Frames dropped.
    lost: u64,
}

#[btf_map(name = "uplink")]
static UPLINK: Array<Uplink, 1> = Array::new();

/// Entry point on an uplink's egress.
#[classifier]
pub fn router(context: TcContext) -> i32 {
    let Some(uplink) = UPLINK.get_ptr_mut(0) else { return TC_ACT_OK as i32 };
    // SAFETY: a live map value. With two CPUs at once, only a count or a mark may be missing.
    let uplink = unsafe { &mut *uplink };
    // SAFETY: helpers without conditions.
    let (random, now_ns) = unsafe { (u64::from(bpf_get_prandom_u32()), bpf_ktime_get_ns()) };
    let bytes = u64::from(context.len());
    let waits_until_ns = if uplink.empty_ns > now_ns { uplink.empty_ns } else { now_ns };
    let waits_ns = waits_until_ns - now_ns;
    uplink.average = uplink.average - (uplink.average >> RED_SHIFT) + waits_ns;
    if random < uplink.loss
        || red(uplink.average >> RED_SHIFT, uplink.red_ns, random.rotate_left(16) & 0xffff_ffff)
        || (uplink.police_ns > 0 && waits_ns > uplink.police_ns)
        || (uplink.longest > 0 && bytes > uplink.longest)
        || (uplink.burst_every_ns > 0 && now_ns % uplink.burst_every_ns < uplink.burst_ns)
        || (uplink.port_mask > 0 && source_port(&context).is_some_and(|port| port & uplink.port_mask == uplink.port))
    {
        uplink.lost += 1;
        return TC_ACT_SHOT as i32;
    }
    uplink.bytes += bytes;
    if uplink.clears > 0 {
        clear_service(&context);
    }
    // The copy passes this program too.
    if random.rotate_left(16) & 0xffff_ffff < uplink.twice {
        // SAFETY: the frame of this program, to the interface that it is on.
        unsafe { bpf_clone_redirect(context.skb.skb, (*context.skb.skb).ifindex, 0) };
    }
    if waits_ns >= uplink.mark_ns {
        // SAFETY: the frame of this program. No effect where the sender is not ECN-capable.
        unsafe { bpf_skb_ecn_set_ce(context.skb.skb) };
    }
    uplink.empty_ns = waits_until_ns + bytes * uplink.ps_per_byte / 1000;
    TC_ACT_OK as i32
}

/// The weight of RED's average, 2^-9 (Floyd and Jacobson 1993, §7).
const RED_SHIFT: u32 = 9;

/// Whether RED drops a frame: its probability grows from 0 at `least` to a tenth at three times
/// that, and is 1 above. `random` has 32 bits.
fn red(average: u64, least: u64, random: u64) -> bool {
    let above = average.saturating_sub(least);
    above > 0 && (above >= 2 * least || random < (above << 32) / (20 * least))
}

/// Offset of the IPv4 header, which has no options here.
const IP: usize = 14;
const UDP: u8 = 17;

fn source_port(context: &TcContext) -> Option<u64> {
    let protocol: u8 = context.load(IP + 9).ok()?;
    let port: [u8; 2] = context.load(IP + 20).ok()?;
    (protocol == UDP).then_some(u64::from(u16::from_be_bytes(port)))
}

fn clear_service(context: &TcContext) {
    let Ok(service) = context.load::<u8>(IP + 1) else { return };
    let (from, to) = (u64::from(u16::from_ne_bytes([0, service])), 0);
    if context.store(IP + 1, &0u8, 0).is_ok() {
        // SAFETY: the frame of this program, and its IPv4 header checksum.
        unsafe { bpf_l3_csum_replace(context.skb.skb, IP as u32 + 10, from, to, 2) };
    }
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
