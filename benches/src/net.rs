//! Networks of this machine that are measured in real time: two hosts on a veth pair ([`Pair`]), two hosts and a switch
//! ([`VethBench`]), two hosts and Linux routers ([`Routers`]). Needs root.
//!
//! [`VethBench`] measures the transport beside AF_XDP frames without a transport, the kernel's UDP and TCP, and QUIC libraries.

pub mod bare;
mod cpu;
mod exchange;
pub mod kernel_tcp;
pub mod kernel_udp;
mod measure;
mod mmsg;
mod pair;
#[cfg(feature = "quic")]
pub mod quic;
mod routers;
mod veth;

pub use measure::{Latency, Throughput};
pub use pair::Pair;
#[cfg(feature = "quic")]
pub use quic::Quic;
pub use routers::{Changes, RouterQueue, Routers};
pub use veth::{Kernel, Transport, VethBench, probe_veth_xdp};
