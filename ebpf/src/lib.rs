//! Shared by the XDP programs: bounded packet access, per-CPU words, and the panic handler.
#![no_std]

use aya_ebpf::bindings::xdp_md;
use aya_ebpf::programs::XdpContext;
use core::cell::UnsafeCell;
use spray_pipeline::shim::{SHIM_BYTES, Shimmed};
use spray_pipeline::word::Word;
use spray_wire::switch_view::Packet;

/// The frame of an XDP program, without its first `SKIP` bytes.
pub struct XdpPacket<'a, const SKIP: usize = 0>(pub &'a XdpContext);

impl<const SKIP: usize> XdpPacket<'_, SKIP> {
    /// The first `N` bytes, if the frame has them; the verifier repeats the check.
    #[inline(always)]
    fn start<const N: usize>(&self) -> Option<*mut [u8; N]> {
        let start = self.0.data();
        if start + SKIP + N > self.0.data_end() { None } else { Some((start + SKIP) as *mut [u8; N]) }
    }
}

impl<const SKIP: usize> Packet for XdpPacket<'_, SKIP> {
    #[inline(always)]
    fn frame_bytes(&self) -> u32 {
        (self.0.data_end() - self.0.data()) as u32 - SKIP as u32
    }

    #[inline(always)]
    fn head<const N: usize>(&self) -> Option<&[u8; N]> {
        // SAFETY: bytes of this run's frame; the borrow of self keeps writers out.
        self.start().map(|start| unsafe { &*start })
    }

    #[inline(always)]
    fn head_mut<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        // SAFETY: as above; the borrow of self keeps this slice the only one.
        self.start().map(|start| unsafe { &mut *start })
    }
}

impl Shimmed for XdpPacket<'_> {
    #[inline(always)]
    fn bytes(&self) -> u32 {
        self.frame_bytes()
    }

    #[inline(always)]
    fn split(&mut self) -> Option<(&mut [u8; SHIM_BYTES], impl Packet + '_)> {
        let shim = self.start()?;
        // SAFETY: bytes of the frame, which is this run's alone; the rest begins behind them.
        Some((unsafe { &mut *shim }, XdpPacket::<SHIM_BYTES>(self.0)))
    }
}

/// A word of a per-CPU map.
#[repr(transparent)]
pub struct CpuWord(UnsafeCell<u64>);

// Volatile: LLVM 22 has no atomic loads and stores for BPF; an aligned access is one instruction.
impl Word for CpuWord {
    #[inline(always)]
    fn load(&self) -> u64 {
        // SAFETY: this CPU's aligned word; XDP programs do not interrupt each other on a CPU.
        unsafe { self.0.get().read_volatile() }
    }
    #[inline(always)]
    fn store(&self, value: u64) {
        // SAFETY: as above.
        unsafe { self.0.get().write_volatile(value) }
    }
}

/// Returns the index of the ingress interface.
#[inline(always)]
pub fn ingress_ifindex(context: &XdpContext) -> u32 {
    let raw: *mut xdp_md = context.ctx;
    // SAFETY: the kernel hands a valid context to the program.
    unsafe { (*raw).ingress_ifindex }
}

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
