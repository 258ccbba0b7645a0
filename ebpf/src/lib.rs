//! What the XDP programs share: bounded packet access, shared words, the panic handler that the language demands.
#![no_std]
#![feature(core_intrinsics)]
#![expect(internal_features, reason = "the prebuilt core for BPF has no fetch_add on AtomicU64")]

use aya_ebpf::bindings::xdp_md;
use aya_ebpf::programs::XdpContext;
use core::cell::UnsafeCell;
use core::intrinsics::{AtomicOrdering, atomic_cxchg, atomic_xadd};
use spray_pipeline::queue::{Drain, Queue};
use spray_pipeline::shim::{SHIM_BYTES, Shimmed};
use spray_pipeline::word::Word;
use spray_wire::switch_view::Packet;

/// The frame under an XDP program, behind so many bytes of another header.
pub struct XdpPacket<'a, const SKIP: usize = 0>(pub &'a XdpContext);

impl<const SKIP: usize> XdpPacket<'_, SKIP> {
    /// The first `N` bytes, if the frame is that long; the verifier repeats the check.
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
        // SAFETY: the bytes lie inside the frame, which is this program run's alone; the borrow of self keeps writers out.
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
        // SAFETY: the bytes lie inside the frame, which is this program run's alone; what is behind them begins where they end.
        Some((unsafe { &mut *shim }, XdpPacket::<SHIM_BYTES>(self.0)))
    }
}

/// A word of a map that all CPUs share.
#[repr(transparent)]
pub struct SharedWord(UnsafeCell<u64>);

/// A word of a per-CPU map.
#[repr(transparent)]
pub struct CpuWord(UnsafeCell<u64>);

// Volatile instead of atomic loads and stores: LLVM 22 cannot select the latter for BPF. An aligned 64-bit access is
// one instruction either way.
impl Word for SharedWord {
    #[inline(always)]
    fn load(&self) -> u64 {
        // SAFETY: an aligned word of a live map value.
        unsafe { self.0.get().read_volatile() }
    }
    #[inline(always)]
    fn store(&self, value: u64) {
        // SAFETY: as above.
        unsafe { self.0.get().write_volatile(value) }
    }
    #[inline(always)]
    fn add(&self, value: u64) {
        // SAFETY: as above; one atomic instruction.
        unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::Relaxed }>(self.0.get(), value) };
    }
    #[inline(always)]
    fn exchange(&self, seen: u64, value: u64) {
        const SEQ_CST: AtomicOrdering = AtomicOrdering::SeqCst;
        // SAFETY: as above.
        unsafe { atomic_cxchg::<u64, SEQ_CST, SEQ_CST>(self.0.get(), seen, value) };
    }
    #[inline(always)]
    fn next(&self) -> u64 {
        // Not relaxed: for that the compiler emits the instruction that does not fetch the value before.
        // SAFETY: as above.
        unsafe { atomic_xadd::<u64, u64, { AtomicOrdering::SeqCst }>(self.0.get(), 1) }
    }
    #[inline(always)]
    fn walk(queue: &Queue<Self>, from: u64, to: u64, drain: &Drain) {
        // SAFETY: both are references, valid for the call.
        unsafe { spray_walk(queue, from, to, drain) };
    }
    #[inline(always)]
    fn stride(queue: &Queue<Self>, from: u64, to: u64, drain: &Drain) {
        // SAFETY: as above.
        unsafe { spray_stride(queue, from, to, drain) };
    }
}

/// [`Queue::walk`] as a global function: the verifier checks it once by itself instead of at every hop and queue, whose
/// 128 rounds each would exceed its limits.
///
/// # Safety
/// The pointers are null or valid.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn spray_walk(queue: *const Queue<SharedWord>, from: u64, to: u64, drain: *const Drain) -> u32 {
    // The verifier wants the null checks: it knows the pointers only by their types.
    // SAFETY: by this function's contract.
    if let (Some(queue), Some(drain)) = unsafe { (queue.as_ref(), drain.as_ref()) } {
        queue.walk(from, to, drain);
    }
    0
}

/// [`Queue::stride`] as a global function, for the same reason.
///
/// # Safety
/// The pointers are null or valid.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn spray_stride(queue: *const Queue<SharedWord>, from: u64, to: u64, drain: *const Drain) -> u32 {
    // SAFETY: by this function's contract.
    if let (Some(queue), Some(drain)) = unsafe { (queue.as_ref(), drain.as_ref()) } {
        queue.stride(from, to, drain);
    }
    0
}

impl Word for CpuWord {
    #[inline(always)]
    fn load(&self) -> u64 {
        // SAFETY: an aligned word of this CPU's map value; XDP programs do not interrupt each other on a CPU.
        unsafe { self.0.get().read_volatile() }
    }
    #[inline(always)]
    fn store(&self, value: u64) {
        // SAFETY: as above.
        unsafe { self.0.get().write_volatile(value) }
    }
    #[inline(always)]
    fn add(&self, value: u64) {
        self.store(self.load().wrapping_add(value));
    }
    #[inline(always)]
    fn exchange(&self, _seen: u64, value: u64) {
        self.store(value);
    }
    #[inline(always)]
    fn next(&self) -> u64 {
        let value = self.load();
        self.store(value.wrapping_add(1));
        value
    }
}

/// Index of the interface that the frame came in by.
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
