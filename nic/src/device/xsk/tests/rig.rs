//! A veth pair between two anonymous network namespaces, each with a program that redirects every
//! frame to the AF_XDP socket of its queue.
//!
//! A namespace lives as long as the threads in it, so that nothing is left behind, however the test
//! ends.

use std::{
    ffi::c_void,
    fs, io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    process::Command,
    sync::{Condvar, Mutex, mpsc},
    thread,
    time::Duration,
};

use libbpf_rs::libbpf_sys as bpf;

/// A barrier for two threads with a timeout of 20 s, so that the failure of one thread does not
/// block the other.
#[derive(Default)]
pub(super) struct TimedBarrier {
    arrivals: Mutex<u32>,
    changed: Condvar,
}

impl TimedBarrier {
    pub(super) fn wait(&self) {
        assert!(self.all_arrived(), "the other thread did not come: did it fail?");
    }

    fn all_arrived(&self) -> bool {
        let mut arrivals = self.arrivals.lock().expect("no panic while it is locked");
        *arrivals += 1;
        let round = arrivals.div_ceil(2);
        self.changed.notify_all();
        let timeout = Duration::from_secs(20);
        let waited = self.changed.wait_timeout_while(arrivals, timeout, |arrivals| *arrivals < 2 * round);
        !waited.expect("no panic while it is locked").1.timed_out()
    }
}

/// Keeps a thread's namespace, and thus the veth pair, until the other thread has ended too.
struct EndBarrier<'a>(&'a TimedBarrier);

impl Drop for EndBarrier<'_> {
    fn drop(&mut self) {
        self.0.all_arrived();
    }
}

/// Runs both functions concurrently, each in its own namespace with one end of a veth pair of two
/// queues: `spray-d0` for `left`, `spray-d1` for `right`.
pub(super) fn run_on_veth<L: Send, R: Send>(
    mtu: u32,
    left: impl FnOnce(&str) -> L + Send,
    right: impl FnOnce(&str) -> R + Send,
) -> (L, R) {
    let (sender, receiver) = mpsc::channel();
    let (ready, wait) = mpsc::channel();
    let end = TimedBarrier::default();
    thread::scope(|scope| {
        let end = &end;
        let left = scope.spawn(move || {
            let _together = EndBarrier(end);
            enter_namespace();
            let peer: i32 = receiver.recv().expect("the other thread lives");
            let queues = "numtxqueues 2 numrxqueues 2";
            ip(&format!("link add spray-d0 {queues} type veth peer name spray-d1 {queues} netns {peer}"));
            up("spray-d0", mtu);
            ready.send(()).expect("the other thread lives");
            left("spray-d0")
        });
        let right = scope.spawn(move || {
            let _together = EndBarrier(end);
            enter_namespace();
            // SAFETY: no arguments, cannot fail.
            sender.send(unsafe { libc::gettid() }).expect("the other thread lives");
            wait.recv().expect("the other thread lives");
            up("spray-d1", mtu);
            right("spray-d1")
        });
        (finish(left), finish(right))
    })
}

fn finish<T>(handle: thread::ScopedJoinHandle<'_, T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn enter_namespace() {
    // SAFETY: takes a flag only, and changes this thread alone.
    let outcome = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    assert_eq!(outcome, 0, "unshare: {}", io::Error::last_os_error());
    // Neighbour discovery would send frames that the test does not expect.
    fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").expect("writable as root");
}

pub(super) fn up(interface: &str, mtu: u32) {
    ip(&format!("link set {interface} mtu {mtu} up"));
}

/// Runs `ip` in this thread's namespace.
pub(super) fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("iproute2 is installed");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Sets SCHED_IDLE: a spinning thread must leave its core to softirq, as the endpoints' threads do.
pub(super) fn yield_to_softirq() {
    crate::sys::set_idle_priority().expect("lowering one's own priority needs no rights");
}

/// The smallest redirecting program: `return bpf_redirect_map(&xskmap, ctx->rx_queue_index,
/// XDP_PASS)`. Detached when dropped.
pub(super) struct Steer {
    map: OwnedFd,
    _link: OwnedFd,
}

impl Steer {
    pub(super) fn attach(interface: &str) -> Self {
        let name = std::ffi::CString::new(interface).expect("no NUL");
        // SAFETY: the pointer is to a string that ends in a NUL.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        assert_ne!(index, 0, "no {interface}");
        // SAFETY: the name and the options may be null.
        let map = owned(unsafe {
            bpf::bpf_map_create(bpf::BPF_MAP_TYPE_XSKMAP, std::ptr::null(), 4, 4, 64, std::ptr::null())
        });
        let program = load(&map);
        // SAFETY: both are valid, and the options may be null.
        let link =
            owned(unsafe { bpf::bpf_link_create(program.as_raw_fd(), index as i32, bpf::BPF_XDP, std::ptr::null()) });
        Self { map, _link: link }
    }

    pub(super) fn register(&self, queue: u32, socket: RawFd) {
        // SAFETY: key and value are live and have the map's sizes.
        let outcome = unsafe {
            bpf::bpf_map_update_elem(
                self.map.as_raw_fd(),
                (&raw const queue).cast::<c_void>(),
                (&raw const socket).cast::<c_void>(),
                0,
            )
        };
        assert_eq!(outcome, 0, "registering: {}", io::Error::last_os_error());
    }
}

fn load(map: &OwnedFd) -> OwnedFd {
    let instruction = |code: u8, registers: (u8, u8), off: i16, imm: i32| {
        let mut out = bpf::bpf_insn { code, off, imm, ..Default::default() };
        out.set_dst_reg(registers.0);
        out.set_src_reg(registers.1);
        out
    };
    let program = [
        instruction(0x61, (2, 1), 16, 0),              // r2 = *(u32 *)(r1 + 16), rx_queue_index
        instruction(0x18, (1, 1), 0, map.as_raw_fd()), // r1 = the map, in two slots
        instruction(0, (0, 0), 0, 0),
        instruction(0xb7, (3, 0), 0, 2),  // r3 = XDP_PASS
        instruction(0x85, (0, 0), 0, 51), // call bpf_redirect_map
        instruction(0x95, (0, 0), 0, 0),  // exit
    ];
    // SAFETY: the instructions are live and counted, the licence ends in a NUL, name and options
    // may be null.
    owned(unsafe {
        bpf::bpf_prog_load(
            bpf::BPF_PROG_TYPE_XDP,
            std::ptr::null(),
            c"Dual MIT/GPL".as_ptr(),
            program.as_ptr(),
            program.len() as _,
            std::ptr::null_mut(),
        )
    })
}

fn owned(fd: i32) -> OwnedFd {
    assert!(fd >= 0, "bpf: {}", io::Error::last_os_error());
    // SAFETY: the descriptor was just created and has no other owner.
    unsafe { OwnedFd::from_raw_fd(fd) }
}
