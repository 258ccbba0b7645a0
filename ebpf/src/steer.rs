//! The host end of a real link: redirects the transport's frames to AF_XDP sockets by queue.
#![no_std]
#![no_main]
#![allow(missing_docs, reason = "the xdp macro emits an undocumented function")]

use aya_ebpf::bindings::xdp_action::XDP_PASS;
use aya_ebpf::btf_maps::{Array, PerCpuArray, XskMap};
use aya_ebpf::macros::{btf_map, xdp};
use aya_ebpf::programs::XdpContext;
use spray_ebpf::{CpuWord, XdpPacket};
use spray_pipeline::word::Word;
use spray_wire::switch_view::{Addressee, addressed_to};

/// Sockets by receive queue.
#[btf_map(name = "sockets")]
static SOCKETS: XskMap<64> = XskMap::new();
/// The addresses of the sockets; unused places are zeros. As many as in `spray_nic::xdp`.
#[btf_map(name = "own")]
static OWN: Array<[Addressee; 4], 1> = Array::new();
/// Frames of the transport on a queue without a socket.
#[btf_map(name = "strays")]
static STRAYS: PerCpuArray<CpuWord, 1> = PerCpuArray::new();

/// Entry point on a host's interface.
#[xdp]
pub fn steer(context: XdpContext) -> u32 {
    let (Some(to), Some([a, b, c, d])) = (addressed_to(&XdpPacket::<0>(&context)), OWN.get(0)) else { return XDP_PASS };
    if to != *a && to != *b && to != *c && to != *d {
        return XDP_PASS;
    }
    // Without a socket the kernel gets the frame, and answers that the port is unreachable.
    SOCKETS.redirect(context.rx_queue_index(), XDP_PASS.into()).unwrap_or_else(|action| {
        if let Some(strays) = STRAYS.get(0) {
            strays.add(1);
        }
        action
    })
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
