//! The switch program: the pipeline over BPF maps, one run per frame and chassis.
#![no_std]
#![no_main]
#![feature(core_intrinsics)]
#![expect(internal_features, reason = "the prebuilt core for BPF has no fetch_add on AtomicU64")]
#![allow(missing_docs, reason = "the xdp macro emits an undocumented function")]

mod shared_word;

use aya_ebpf::bindings::xdp_action::{XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX};
use aya_ebpf::btf_maps::{Array, DevMap, HashMap, PerCpuArray, XskMap};
use aya_ebpf::helpers::generated::bpf_get_prandom_u32;
use aya_ebpf::helpers::{bpf_ktime_get_ns, bpf_xdp_adjust_head, bpf_xdp_adjust_tail};
use aya_ebpf::macros::{btf_map, tracepoint, xdp};
use aya_ebpf::programs::{TracePointContext, XdpContext};
use shared_word::SharedWord;
use spray_ebpf::{CpuWord, XdpPacket, ingress_ifindex};
use spray_pipeline::bins::{Bin, Transit};
use spray_pipeline::config::{Globals, PortConfig};
use spray_pipeline::counters::{ChassisCounters, PortCounters};
use spray_pipeline::deployment::{Attachment, DELAY_HEADER_BYTES, DelayHeader, Dest, EXPIRED, MacRewrite, elapsed_ps};
use spray_pipeline::flow_hash::{FlowHash, Key};
use spray_pipeline::frame::Frame;
use spray_pipeline::impairment::{Impaired, Impairment};
use spray_pipeline::queue::PortQueues;
use spray_pipeline::routes::{Group, SwitchConfig};
use spray_pipeline::scheme::{self, LoadMeasure, LoadQuery, NO_PORT, OPEN, Step, Subprograms};
use spray_pipeline::shim::{Shim, Shimmed};
use spray_pipeline::trail::Trail;
use spray_pipeline::word::Word;
use spray_pipeline::{Cause, Stages, Tables, Verdict, View};
use spray_wire::offsets::{self, v4};
use spray_wire::switch_view::{Address, Packet};
use spray_wire::{DSCP_DATA, Ports};

// Sizes are minimums; the loader sets those of the fabric.
#[btf_map(name = "globals")]
static GLOBALS: Array<Globals, 1> = Array::new();
#[btf_map(name = "hosts")]
static HOSTS: HashMap<Address, u32, 1> = HashMap::new();
#[btf_map(name = "switches")]
static SWITCHES: Array<SwitchConfig, 1> = Array::new();
#[btf_map(name = "groups")]
static GROUPS: Array<Group, 1> = Array::new();
#[btf_map(name = "members")]
static MEMBERS: Array<u32, 1> = Array::new();
#[btf_map(name = "words")]
static WORDS: Array<SharedWord, 1> = Array::new();
#[btf_map(name = "ports")]
static PORTS: Array<PortConfig, 1> = Array::new();
#[btf_map(name = "queues")]
static QUEUES: Array<PortQueues<SharedWord>, 1> = Array::new();
#[btf_map(name = "counters")]
static COUNTERS: PerCpuArray<PortCounters<CpuWord>, 1> = PerCpuArray::new();
#[btf_map(name = "chassis")]
static CHASSIS: PerCpuArray<ChassisCounters<CpuWord>, 1> = PerCpuArray::new();
/// The cells of each port's bins, port by port; none in a deployed fabric.
#[btf_map(name = "bins")]
static BINS: Array<Bin<SharedWord>, 1> = Array::new();
/// Switch by ingress interface.
#[btf_map(name = "ingress")]
static INGRESS: HashMap<u32, u32, 4096> = HashMap::new();
/// Interface by port that leaves the chassis.
#[btf_map(name = "egress")]
static EGRESS: DevMap<1> = DevMap::new();

/// By ingress interface, in a deployed fabric.
#[btf_map(name = "attachments")]
static ATTACHMENTS: HashMap<u32, Attachment, 1> = HashMap::new();
/// Sockets of the process that delays frames, by interface and queue.
#[btf_map(name = "holders")]
static HOLDERS: XskMap<1> = XskMap::new();

/// MAC addresses of routed frames, by port.
#[btf_map(name = "cables")]
static CABLES: Array<MacRewrite, 1> = Array::new();

/// By port, in a deployed fabric.
#[btf_map(name = "impairments")]
static IMPAIRMENTS: Array<Impairment, 1> = Array::new();
/// Of the present frame of this CPU.
#[btf_map(name = "impaired")]
static IMPAIRED: PerCpuArray<Impaired, 1> = PerCpuArray::new();

/// Of the present frame of this CPU.
#[btf_map(name = "trail")]
static TRAIL: PerCpuArray<Trail<CpuWord>, 1> = PerCpuArray::new();

/// Of frames between two switches, by number.
#[btf_map(name = "trails")]
static TRAILS: HashMap<u32, Trail<CpuWord>, 1> = HashMap::new();
#[btf_map(name = "next_trail")]
static NEXT_TRAIL: Array<SharedWord, 1> = Array::new();

#[btf_map(name = "bench")]
static BENCH: PerCpuArray<Bench, 1> = PerCpuArray::new();

/// The virtual clock of a benchmark: the next frame's time, and the gap to the one after.
#[repr(C)]
struct Bench {
    now_ps: CpuWord,
    gap_ps: CpuWord,
    /// Mask of the picoseconds by which a frame is out of order: below 2^24.
    early_ps: CpuWord,
}

/// The kernel's clock at the switches' time 0, written by the loader. A variable, since a look-up
/// in an array adds a branch, which the verifier follows.
#[unsafe(link_section = ".data.origin")]
#[unsafe(no_mangle)]
static mut ORIGIN_NS: u64 = 0;

#[inline(always)]
fn now_ps() -> u64 {
    // SAFETY: a helper without arguments, and an aligned word that only the loader writes.
    unsafe { elapsed_ps((&raw const ORIGIN_NS).read_volatile(), bpf_ktime_get_ns()) }
}

/// The maps as the pipeline's tables.
//= docs/specs/switching.md#SWC-2 one implementation
struct Maps;

impl Tables for Maps {
    type Word = SharedWord;
    type Count = CpuWord;
    type TrailWord = CpuWord;

    #[inline(always)]
    fn globals(&self) -> Option<&Globals> {
        GLOBALS.get(0)
    }
    #[inline(always)]
    fn host(&self, address: &Address) -> Option<u32> {
        // SAFETY: hosts change only between runs; a stale number is no wrong access.
        unsafe { HOSTS.get(address) }.copied()
    }
    #[inline(always)]
    fn switch(&self, switch: u32) -> Option<&SwitchConfig> {
        SWITCHES.get(switch)
    }
    #[inline(always)]
    fn group(&self, index: u32) -> Option<&Group> {
        GROUPS.get(index)
    }
    #[inline(always)]
    fn member(&self, index: u32) -> Option<u32> {
        MEMBERS.get(index).copied()
    }
    #[inline(always)]
    fn word(&self, index: u32) -> Option<&SharedWord> {
        WORDS.get(index)
    }
    #[inline(always)]
    fn trail(&self) -> Option<&Trail<CpuWord>> {
        TRAIL.get(0)
    }
    #[inline(always)]
    fn store_trail(&self) -> Option<u32> {
        match spray_store_trail() {
            0 => None,
            number => Some(number),
        }
    }
    #[inline(always)]
    fn take_trail(&self, number: u32) -> bool {
        spray_take_trail(number) != 0
    }
    #[inline(always)]
    fn port(&self, port: u32) -> Option<&PortConfig> {
        PORTS.get(port)
    }
    #[inline(always)]
    fn queues(&self, port: u32) -> Option<&PortQueues<SharedWord>> {
        QUEUES.get(port)
    }
    #[inline(always)]
    fn counters(&self, port: u32) -> Option<&PortCounters<CpuWord>> {
        COUNTERS.get(port)
    }
    #[inline(always)]
    fn chassis(&self) -> Option<&ChassisCounters<CpuWord>> {
        CHASSIS.get(0)
    }
    #[inline(always)]
    fn bin(&self, index: u32) -> Option<&Bin<SharedWord>> {
        BINS.get(index)
    }
    #[inline(always)]
    fn note(&self, port: u32, transit: &Transit) {
        let Transit { arrived_ps, departed_ps, waiting, bytes, flags } = *transit;
        spray_note(port, arrived_ps, departed_ps, u64::from(waiting) << 32 | u64::from(bytes), flags);
    }
}

impl Stages for Maps {
    #[inline(always)]
    fn digest(&self, hash: u32, key: &Key) -> u64 {
        spray_digest(hash, key.addresses, key.ports, key.label)
    }
    #[inline(always)]
    fn cross(&self, frame: &mut Frame, host: u32) -> Result<(), Cause> {
        // SAFETY: a reference, valid for the call.
        Cause::from_code(unsafe { spray_cross(frame, host) }).map_or(Ok(()), Err)
    }
    #[inline(always)]
    fn enter(&self, frame: &mut Frame) -> Result<(), Cause> {
        // SAFETY: a reference, valid for the call.
        Cause::from_code(unsafe { spray_enter(frame) }).map_or(Ok(()), Err)
    }
    #[inline(always)]
    fn route_by_trail(&self, frame: &mut Frame, host: u32) -> Result<u32, Cause> {
        // SAFETY: a reference, valid for the call.
        let port = unsafe { spray_recall(frame, host) };
        if port == NO_PORT { Err(Cause::NoRoute) } else { Ok(port) }
    }
    #[inline(always)]
    fn is_last(&self, switch: u32, t_ps: u64, host: u32) -> bool {
        spray_is_last(switch, t_ps, host) != 0
    }
}

impl Subprograms for Maps {
    #[inline(always)]
    fn step(&self, step: Step, frame: &mut Frame, host: u32, port: u32) -> u32 {
        // SAFETY: a reference, valid for the calls.
        unsafe {
            match step {
                Step::Conga => spray_conga(frame, host, port),
                Step::Flowcut => spray_flowcut(frame, host),
                Step::Begin => spray_begin(frame, host),
                Step::Move => spray_move(frame, host),
                Step::Prepare => spray_prepare(frame, host),
                Step::Base => spray_base(frame, host),
                Step::Settle => spray_settle(frame, host, port),
                Step::Path => spray_path(frame, host, port),
            }
        }
    }
    #[inline(always)]
    fn least(&self, group: &Group, t_ps: u64, query: &LoadQuery) -> u32 {
        spray_least(group.first, u32::from(group.count), t_ps, pack(query))
    }
    #[inline(always)]
    fn score(&self, member: u32, t_ps: u64, query: &LoadQuery, place: u32) -> u64 {
        spray_score(member, place, t_ps, pack(query))
    }
    #[inline(always)]
    fn look_up(&self, first: u32, words: u32, head: u64) -> u64 {
        spray_look_up(first, words, head)
    }
}

/// [`FlowHash::digest`] as a global function, with its own stack.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn spray_digest(hash: u32, addresses: u64, ports: u32, label: u32) -> u64 {
    FlowHash::from_number(hash).digest(&Key { addresses, ports, label })
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn spray_is_last(switch: u32, t_ps: u64, host: u32) -> u32 {
    spray_pipeline::is_last(&Maps, switch, t_ps, host).into()
}

/// Stores the trail of the present frame; returns its number, or 0 if there is no room.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn spray_store_trail() -> u32 {
    let (Some(trail), Some(next)) = (TRAIL.get(0), NEXT_TRAIL.get(0)) else { return 0 };
    // Never 0.
    let number = next.next() as u32 | 1 << 31;
    if TRAILS.insert(&number, trail, 0).is_ok() { number } else { 0 }
}

/// Restores the trail of this number. Returns 1, or 0 if there is none.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn spray_take_trail(number: u32) -> u32 {
    // SAFETY: one frame has the number, and this CPU processes it.
    let (Some(trail), Some(stored)) = (TRAIL.get(0), unsafe { TRAILS.get(&number) }) else { return 0 };
    trail.resume(stored.words());
    u32::from(TRAILS.remove(&number).is_ok())
}

/// Packs into one argument, as BPF functions have at most five.
#[inline(always)]
fn pack(query: &LoadQuery) -> u64 {
    u64::from(query.random) << 32 | u64::from(query.row) << 2 | query.measure as u64
}

#[inline(always)]
fn unpack(packed: u64) -> LoadQuery {
    let low = packed as u32;
    LoadQuery { measure: LoadMeasure::from_number(low & 3), random: (packed >> 32) as u32, row: low >> 2 }
}

/// [`scheme::route_by_trail`] as a global function. The pointer must be null or valid.
#[unsafe(no_mangle)]
#[inline(never)]
unsafe extern "C" fn spray_recall(frame: *mut Frame, host: u32) -> u32 {
    // SAFETY: by this function's contract.
    let Some(frame) = (unsafe { frame.as_mut() }) else { return NO_PORT };
    View::of(&Maps).map_or(NO_PORT, |view| scheme::route_by_trail(&view, frame, host).unwrap_or(NO_PORT))
}

/// Makes each [`Step`] a global function, with its own stack. Only those `given` a port have that
/// parameter: the compiler omits unused ones, but the verifier requires all.
macro_rules! steps {
    ($($name:ident $step:ident $(given $port:ident)?;)+) => {
        $(
            /// Runs this step. The pointer must be null or valid.
            #[unsafe(no_mangle)]
            #[inline(never)]
            unsafe extern "C" fn $name(frame: *mut Frame, host: u32 $(, $port: u32)?) -> u32 {
                let [port, ..] = [$($port,)? OPEN];
                // SAFETY: by this function's contract.
                let Some(frame) = (unsafe { frame.as_mut() }) else { return NO_PORT };
                View::of(&Maps).map_or(NO_PORT, |view| scheme::step(&view, Step::$step, frame, host, port))
            }
        )+
    };
}

steps! {
    spray_conga Conga given port;
    spray_flowcut Flowcut;
    spray_begin Begin;
    spray_move Move;
    spray_prepare Prepare;
    spray_base Base;
    spray_settle Settle given port;
    spray_path Path given port;
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn spray_least(first: u32, count: u32, t_ps: u64, query: u64) -> u32 {
    let (group, query) = (Group { count: count as u16, ..Group::one(first) }, unpack(query));
    View::of(&Maps).map_or(0, |view| scheme::least(&view, &group, t_ps, &query, scheme::MAX_IN_KERNEL))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn spray_score(member: u32, place: u32, t_ps: u64, query: u64) -> u64 {
    View::of(&Maps).map_or(u64::MAX, |view| scheme::score(&view, member, t_ps, &unpack(query), place))
}

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn spray_look_up(first: u32, words: u32, head: u64) -> u64 {
    View::of(&Maps).map_or(0, |view| scheme::reunion::look_up(&view, first, words, head))
}

/// One hop as a global function, which the verifier checks once instead of eight times in a row.
/// Returns 0 or a [`Cause`]. The pointer must be null or valid.
//= docs/specs/switch.md#SW-15 verifier limits
#[unsafe(no_mangle)]
#[inline(never)]
unsafe extern "C" fn spray_cross(frame: *mut Frame, host: u32) -> u32 {
    // The verifier requires the null check: it only knows the pointer's type.
    // SAFETY: by this function's contract.
    let Some(frame) = (unsafe { frame.as_mut() }) else { return Cause::Malformed as u32 };
    match spray_pipeline::cross(&Maps, frame, host) {
        Ok(()) => impair(frame),
        Err(cause) => cause as u32,
    }
}

/// Draws the impairments of the link behind a frame's port. Returns 0.
//= docs/specs/switch.md#SW-29 impairments
#[inline(always)]
fn impair(frame: &Frame) -> u32 {
    if !frame.emulated && IMPAIRMENTS.get(frame.port).is_some_and(|link| link.is_any != 0) {
        spray_impair(frame.port);
    }
    0
}

/// [`Impairment::add_to`] as a global function, with its own stack. Returns 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn spray_impair(port: u32) -> u32 {
    if let (Some(link), Some(frame)) = (IMPAIRMENTS.get(port), IMPAIRED.get_ptr_mut(0)) {
        // SAFETY: this CPU's own, and a helper without conditions.
        unsafe { link.add_to(&mut *frame, || bpf_get_prandom_u32()) };
    }
    0
}

/// [`spray_pipeline::note`] as a global function, with its own stack. Returns 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn spray_note(port: u32, arrived_ps: u64, departed_ps: u64, sizes: u64, flags: u32) -> u32 {
    let (waiting, bytes) = ((sizes >> 32) as u32, sizes as u32);
    spray_pipeline::note(&Maps, port, &Transit { arrived_ps, departed_ps, waiting, bytes, flags });
    0
}

/// The host's own link. Returns 0 or a [`Cause`]. The pointer must be null or valid.
#[unsafe(no_mangle)]
#[inline(never)]
unsafe extern "C" fn spray_enter(frame: *mut Frame) -> u32 {
    // SAFETY: by this function's contract.
    let Some(frame) = (unsafe { frame.as_mut() }) else { return Cause::Malformed as u32 };
    match spray_pipeline::enter(&Maps, frame) {
        Ok(()) => impair(frame),
        Err(cause) => cause as u32,
    }
}

/// Entry point on every interface of a deployed fabric, for any traffic in real time.
#[xdp]
pub fn deployed(context: XdpContext) -> u32 {
    // SAFETY: the loader writes an interface's entry before it attaches there.
    let attachment = || unsafe { ATTACHMENTS.get(ingress_ifindex(&context)) };
    let mut packet = XdpPacket::<0>(&context);
    let Some(here) = attachment() else { return XDP_PASS };
    match here.dest(&Maps, &packet) {
        Dest::Fabric => {}
        Dest::Kernel => return XDP_PASS,
        Dest::Bridge => return redirect_to_xsk(&context, BRIDGED),
    }
    let routed = here.routes(&packet);
    if let Some(impaired) = IMPAIRED.get_ptr_mut(0) {
        // SAFETY: this CPU's own.
        unsafe { *impaired = Impaired::default() };
    }
    // Looked up at each use: a kept value would take room on the small stack.
    let entry = || attachment().map_or((NO_PORT, NO_PORT), |attachment| (attachment.switch, attachment.host_link));
    let (verdict, due_ps) = spray_pipeline::process_any(&Maps, &mut packet, routed, entry, now_ps);
    match verdict {
        Verdict::Redirect { port, trimmed_len } => {
            if trimmed_len != 0 && !cut(&context, trimmed_len) {
                return XDP_ABORTED;
            }
            if routed && CABLES.get(port).is_none_or(|cable| cable.write(&mut packet).is_none()) {
                return XDP_DROP;
            }
            let Impaired { late_ns, flags, .. } = IMPAIRED.get(0).copied().unwrap_or_default();
            if flags == 0 && attachment().is_some_and(|attachment| attachment.undelayed != 0) {
                return redirect(&context, port, 0);
            }
            let due_ps = due_ps.wrapping_add(late_ns.wrapping_mul(1000));
            redirect_to_xsk(&context, DelayHeader { due_ps, port, flags })
        }
        //= docs/specs/switch.md#SW-30 TTL expiry
        Verdict::Expired { port } if attachment().is_some_and(|attachment| attachment.external == 0) => {
            redirect_to_xsk(&context, DelayHeader { due_ps, port, flags: EXPIRED })
        }
        Verdict::Expired { .. } => XDP_DROP,
        // No frame is emulated, so that none is returned.
        Verdict::Drop(_) | Verdict::Return { .. } => XDP_DROP,
        Verdict::Pass => match attachment().map(|attachment| attachment.dest_of_unknown(&packet)) {
            Some(Dest::Bridge) => redirect_to_xsk(&context, BRIDGED),
            _ => XDP_PASS,
        },
    }
}

/// The header of frames for the bridge.
const BRIDGED: DelayHeader = DelayHeader { due_ps: 0, port: NO_PORT, flags: 0 };

/// Redirects a frame to the socket of its interface and queue.
#[inline(always)]
fn redirect_to_xsk(context: &XdpContext, header: DelayHeader) -> u32 {
    // SAFETY: the context is the kernel's; no pointer into the frame lives past this call.
    if unsafe { bpf_xdp_adjust_head(context.ctx, -(DELAY_HEADER_BYTES as i32)) } != 0 {
        return XDP_ABORTED;
    }
    let mut packet = XdpPacket::<0>(context);
    let Some(head) = packet.head_mut() else { return XDP_ABORTED };
    header.write(head);
    // SAFETY: as in `deployed`.
    let Some(attachment) = (unsafe { ATTACHMENTS.get(ingress_ifindex(context)) }) else { return XDP_DROP };
    // SAFETY: the context is the kernel's.
    let queue = unsafe { (*context.ctx).rx_queue_index };
    HOLDERS.redirect(attachment.socket + queue, XDP_DROP.into()).unwrap_or(XDP_DROP)
}

/// Redirected frames that drivers dropped.
#[btf_map(name = "missed_frames")]
static MISSED_FRAMES: PerCpuArray<u64, 1> = PerCpuArray::new();

/// Counts redirected frames to interfaces of the fabric that drivers drop.
#[tracepoint(category = "xdp", name = "xdp_devmap_xmit")]
pub fn missed(context: TracePointContext) -> u32 {
    // The offsets of `to_ifindex` and `drops`, as tracefs shows them.
    const TO: usize = 16;
    const DROPS: usize = 20;
    // SAFETY: the kernel hands in a record of that layout.
    let (to, drops) = unsafe { (context.read_at::<u32>(TO), context.read_at::<i32>(DROPS)) };
    if let (Ok(to), Ok(drops)) = (to, drops)
        // SAFETY: as in `deployed`.
        && unsafe { ATTACHMENTS.get(to) }.is_some()
        && let Some(count) = MISSED_FRAMES.get_ptr_mut(0)
    {
        // SAFETY: this CPU's own.
        unsafe { *count += drops.max(0) as u64 };
    }
    0
}

/// Entry point on every interface of an emulated chassis.
#[xdp]
pub fn switch(context: XdpContext) -> u32 {
    run(&context)
}

/// The redirect that benchmarks compare the switch with.
#[xdp]
pub fn bench_redirect(context: XdpContext) -> u32 {
    EGRESS.redirect(ingress_ifindex(&context) & 1, XDP_DROP.into()).unwrap_or(XDP_DROP)
}

/// The switch on a stream of frames, for benchmarks: turns the repeated buffer into the next frame,
/// one gap later, with another port and a fresh TTL. That counts as the switch's time.
#[xdp]
pub fn bench_switch(context: XdpContext) -> u32 {
    if renew(&mut XdpPacket::<0>(&context)).is_none() {
        return XDP_ABORTED;
    }
    run(&context)
}

#[inline(always)]
fn renew(packet: &mut impl Shimmed) -> Option<()> {
    let bench = BENCH.get(0)?;
    let now_ps = bench.now_ps.load();
    bench.now_ps.store(now_ps.wrapping_add(bench.gap_ps.load()));
    let early_ps = now_ps.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 & bench.early_ps.load();
    let (shim, mut inner) = packet.split()?;
    // Overwrites the state of the previous frame.
    Shim { virtual_time_ps: now_ps.wrapping_sub(early_ps), ..Shim::default() }.write(shim);
    let head: &mut [u8; offsets::min_len(false)] = inner.head_mut()?;
    // In the widths that the pipeline reads: narrower stores would stall its loads.
    head[v4::VERSION_IHL..][..2].copy_from_slice(&[v4::VERSION_IHL_PLAIN, DSCP_DATA << 2 | 2]);
    head[v4::TTL..][..2].copy_from_slice(&[64, offsets::PROTOCOL_UDP]);
    let ports = (now_ps as u32) << 16 | u32::from(Ports::DEFAULT.first());
    head[offsets::udp_src_port_offset(false)..][..4].copy_from_slice(&ports.to_be_bytes());
    Some(())
}

#[inline(always)]
fn run(context: &XdpContext) -> u32 {
    // SAFETY: the loader writes an interface's entry before it attaches there.
    let Some(ingress) = unsafe { INGRESS.get(ingress_ifindex(context)) }.copied() else { return XDP_PASS };
    match spray_pipeline::process(&Maps, &mut XdpPacket::<0>(context), ingress, now_ps) {
        Verdict::Pass => XDP_PASS,
        Verdict::Drop(_) | Verdict::Expired { .. } => XDP_DROP,
        Verdict::Redirect { port, trimmed_len } => redirect(context, port, trimmed_len),
        Verdict::Return { trimmed_len } => {
            if trimmed_len != 0 && !cut(context, trimmed_len) {
                return XDP_ABORTED;
            }
            XDP_TX
        }
    }
}

//= docs/specs/switch.md#SW-16 interfaces of ports
#[inline(always)]
fn redirect(context: &XdpContext, port: u32, trimmed_len: u32) -> u32 {
    if trimmed_len != 0 && !cut(context, trimmed_len) {
        return XDP_ABORTED;
    }
    EGRESS.redirect(port, XDP_DROP.into()).unwrap_or_else(|action| {
        if let Some(chassis) = CHASSIS.get(0) {
            chassis.no_interface.add(1);
        }
        action
    })
}

/// Trims the frame to `len` bytes.
#[inline(always)]
fn cut(context: &XdpContext, len: u32) -> bool {
    // The verifier subtracts packet pointers only in 64 bits: prevents folding both subtractions.
    let present = core::hint::black_box(context.data_end() - context.data());
    // SAFETY: the context is the kernel's; no pointer into the frame lives past this call.
    unsafe { bpf_xdp_adjust_tail(context.ctx, len as i32 - present as i32) == 0 }
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
