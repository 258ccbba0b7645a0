//! The system calls that a process may still make (seccomp).
//!
//! Others fail with `EPERM` instead of ending the process, since C libraries fall back from new
//! calls.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter_all_threads,
};

/// `writes` includes the system calls that change files.
//= docs/specs/endpoint.md#END-29 those for new sockets, processes and programs
pub fn allow_only(writes: bool) -> Result<(), Error> {
    let allowed = allowed(writes)?;
    apply_filter_all_threads(&older_clone()?)?;
    // Nothing more can be installed after it.
    apply_filter_all_threads(&allowed)
}

/// Calls of both ends: no new sockets, processes or programs.
const ALWAYS: &[c_long] = &[
    // Sockets that are open.
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_getsockopt,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    // Connections to the listening socket of `--metrics`.
    libc::SYS_accept4,
    libc::SYS_shutdown,
    libc::SYS_ppoll,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    // Files, within the bounds of Landlock.
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_getdents64,
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // Threads and time. The other filter refuses `clone3`.
    libc::SYS_clone3,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_geteuid,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_getrusage,
    libc::SYS_restart_syscall,
    libc::SYS_getrandom,
    // Signals and exit.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Additional calls of a receiver.
const WRITING: &[c_long] = &[
    libc::SYS_pwrite64,
    libc::SYS_ftruncate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fstatfs,
    #[cfg(not(target_arch = "riscv64"))]
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_unlinkat,
];

pub(super) fn allowed(writes: bool) -> Result<BpfProgram, BackendError> {
    let calls = if writes { [ALWAYS, WRITING].concat() } else { ALWAYS.to_vec() };
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> = calls.into_iter().map(|call| (call, Vec::new())).collect();
    for (call, place, is, value) in bounded(writes) {
        let condition = SeccompCondition::new(place, Length::Dword, is, value)?;
        rules.entry(call).or_default().push(SeccompRule::new(vec![condition])?);
    }
    for (level, option) in FRAGMENTS {
        let both = [(1, level), (2, option)];
        let both = both.map(|(place, value)| SeccompCondition::new(place, Length::Dword, Is::Eq, value as u64));
        rules
            .entry(libc::SYS_setsockopt)
            .or_default()
            .push(SeccompRule::new(both.into_iter().collect::<Result<_, _>>()?)?);
    }
    compile(rules, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow)
}

/// Levels and options by which the kernel fragments packets, after the path MTU has decreased.
const FRAGMENTS: [(libc::c_int, libc::c_int); 3] = [
    (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
    (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER),
    (libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG),
];

/// Calls that are restricted to values of an argument: call, index of the argument, condition.
fn bounded(writes: bool) -> Vec<(c_long, u8, Is, u64)> {
    /// From `linux/bpf.h`.
    const BPF_MAP_LOOKUP_ELEM: u64 = 1;
    const BPF_MAP_UPDATE_ELEM: u64 = 2;
    const BPF_OBJ_GET_INFO_BY_FD: u64 = 15;
    const BPF_LINK_CREATE: u64 = 28;
    const BPF_LINK_DETACH: u64 = 34;
    const NAMESPACES: i32 = libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET;
    /// Set-user-ID, set-group-ID and sticky bits.
    const SPECIAL: u64 = 0o7000;
    let threads_only = Is::MaskedEq(u64::from((libc::CLONE_THREAD | NAMESPACES) as u32));
    let no = |bits: u64| Is::MaskedEq(bits);
    let executes = libc::PROT_EXEC as u64;
    let mut bounded = vec![
        (libc::SYS_clone, 0, threads_only, libc::CLONE_THREAD as u64),
        (libc::SYS_mmap, 2, no(executes), 0),
        (libc::SYS_mprotect, 2, no(executes), 0),
        // Names a thread.
        (libc::SYS_prctl, 0, Is::Eq, libc::PR_SET_NAME as u64),
        // Tests for a terminal. Inserting input is another request.
        (libc::SYS_ioctl, 1, Is::Eq, libc::TCGETS),
        // Reads the steering program's counters.
        (libc::SYS_bpf, 0, Is::Eq, BPF_MAP_LOOKUP_ELEM),
        // Updates the steered Ethernet address.
        (libc::SYS_bpf, 0, Is::Eq, BPF_MAP_UPDATE_ELEM),
        // Tests whether the program is attached.
        (libc::SYS_bpf, 0, Is::Eq, BPF_OBJ_GET_INFO_BY_FD),
        // Attaches the program again after the link was down.
        (libc::SYS_bpf, 0, Is::Eq, BPF_LINK_CREATE),
        (libc::SYS_bpf, 0, Is::Eq, BPF_LINK_DETACH),
        // Waits for the child that restores settings.
        (libc::SYS_wait4, 2, Is::Eq, 0),
        // Ends by a signal, as an abort and a closed pipe do.
        (libc::SYS_tgkill, 0, Is::Eq, std::process::id().into()),
        (libc::SYS_openat, 3, no(SPECIAL), 0),
    ];
    let descriptors = [libc::F_DUPFD_CLOEXEC, libc::F_GETFD, libc::F_SETFD, libc::F_GETFL];
    bounded.extend(descriptors.map(|request| (libc::SYS_fcntl, 1, Is::Eq, request as u64)));
    if writes {
        bounded.extend([(libc::SYS_mkdirat, 2, no(SPECIAL), 0), (libc::SYS_fchmod, 1, no(SPECIAL), 0)]);
    }
    bounded
}

/// Its arguments are in memory and cannot be filtered. C libraries then start threads by `clone`.
fn older_clone() -> Result<BpfProgram, BackendError> {
    compile([(libc::SYS_clone3, Vec::new())].into(), SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32))
}

pub(super) fn compile(
    rules: BTreeMap<c_long, Vec<SeccompRule>>,
    others: SeccompAction,
    listed: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    SeccompFilter::new(rules, others, listed, std::env::consts::ARCH.try_into()?)?.try_into()
}
