//! The host end of an emulated link: redirects frames with a shim to the AF_XDP socket.
#![no_std]
#![no_main]
#![allow(missing_docs, reason = "the xdp macro emits an undocumented function")]

use aya_ebpf::bindings::xdp_action::XDP_PASS;
use aya_ebpf::btf_maps::XskMap;
use aya_ebpf::macros::{btf_map, xdp};
use aya_ebpf::programs::XdpContext;
use spray_ebpf::XdpPacket;
use spray_pipeline::shim::{Shim, Shimmed};

/// The socket of the only queue.
#[btf_map(name = "sockets")]
static SOCKETS: XskMap<1> = XskMap::new();

/// Entry point on a host's interface.
#[xdp]
pub fn host(context: XdpContext) -> u32 {
    let is_emulated = XdpPacket::<0>(&context).split().is_some_and(|(head, _)| Shim::read(head).is_some());
    if is_emulated { SOCKETS.redirect(0, XDP_PASS.into()).unwrap_or_else(|action| action) } else { XDP_PASS }
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
