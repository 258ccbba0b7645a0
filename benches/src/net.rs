//! Networks in real time on this machine: two hosts on a veth pair ([`Pair`]), two hosts and a
//! switch ([`VethBench`]). Needs root.

pub mod bare;
mod measure;
mod pair;
mod transport;
mod veth;

pub use measure::{Latency, Throughput};
pub use pair::Pair;
pub use veth::{Transport, VethBench, probe_veth_xdp};
