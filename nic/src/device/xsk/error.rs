//! Errors of opening an AF_XDP device, and their remedies.

use std::io;

use thiserror::Error;

/// Why [`XskDevice::open`](super::XskDevice::open) failed. Each message ends with the remedy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The calling thread's network namespace has no such interface.
    #[error("no interface `{interface}` in this network namespace; `ip link` lists those there are")]
    NoInterface {
        /// The requested name.
        interface: String,
    },
    /// The interface does not have that queue.
    #[error(
        "interface `{interface}` has no queue {queue}; `ethtool -l {interface}` shows how many it has, `ethtool -L` sets that"
    )]
    NoQueue {
        /// The interface.
        interface: String,
        /// The requested queue.
        queue: u32,
    },
    /// Not all queues can be opened: frames that arrive on the others would be lost.
    #[error(
        "{why}. Any of the {queues} queues of `{interface}` may get the next packet, since each has a source port \
         of its own: leave one queue (`ethtool -L {interface} {one}`), or have the NIC put UDP port 61440 on one and name that"
    )]
    QueuesUnavailable {
        /// The interface.
        interface: String,
        /// The number of receive queues.
        queues: u32,
        /// The arguments of `ethtool -L` that leave one queue.
        one: &'static str,
        /// The obstacle.
        why: String,
    },
    /// Missing privileges.
    #[error(
        "not permitted to open an AF_XDP socket on `{interface}`; run as root, or with \
         CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF (CAP_SYS_ADMIN before Linux 5.8)"
    )]
    NotPermitted {
        /// The interface.
        interface: String,
    },
    /// Another socket is bound to the queue.
    #[error(
        "queue {queue} of `{interface}` is in use by another AF_XDP socket; stop that program (`ss --xdp` names it) or choose another queue"
    )]
    QueueBusy {
        /// The interface.
        interface: String,
        /// The queue.
        queue: u32,
    },
    /// The frames could not be pinned.
    #[error(
        "could not pin {bytes} bytes for frames; raise the limit (`ulimit -l unlimited`, or \
         LimitMEMLOCK=infinity in a unit) or use fewer frames"
    )]
    NoMemory {
        /// Bytes of the UMEM.
        bytes: u64,
    },
    /// The driver does not support zero-copy, or not in this configuration.
    #[error(
        "`{interface}` does not support zero-copy on queue {queue}: {why}; use copy mode, or `auto` to take what there is"
    )]
    NoZeroCopy {
        /// The interface.
        interface: String,
        /// The queue.
        queue: u32,
        /// What was refused.
        why: String,
    },
    /// The interface's MTU exceeds a frame.
    #[error(
        "frames of {frame_size} bytes hold {capacity} bytes, but MTU {mtu} of `{interface}` needs {needed}; \
         use larger frames (at most a page) or `ip link set {interface} mtu {}`",
        capacity - (needed - mtu)
    )]
    FrameTooSmall {
        /// The interface.
        interface: String,
        /// Bytes of a frame.
        frame_size: u32,
        /// Bytes of a frame that a packet may use.
        capacity: u32,
        /// The interface's MTU.
        mtu: u32,
        /// Bytes of a packet of that MTU.
        needed: u32,
    },
    /// The configuration contradicts itself or the kernel's limits.
    #[error("AF_XDP configuration: {0}")]
    Config(String),
    /// The kernel has no AF_XDP.
    #[error("this kernel has no AF_XDP sockets; use one built with CONFIG_XDP_SOCKETS=y (Debian's are)")]
    NoAfXdp,
    /// Any other error.
    #[error("{operation} on queue {queue} of `{interface}`: {source}")]
    Io {
        /// The operation.
        operation: &'static str,
        /// The interface.
        interface: String,
        /// The queue.
        queue: u32,
        /// The kernel's error.
        source: io::Error,
    },
}
