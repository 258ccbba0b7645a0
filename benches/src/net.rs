//! Networks of this machine in real time. Needs root.

pub mod bare;
mod measure;
mod pair;
mod transport;
mod veth;

pub use measure::{Latency, Throughput};
pub use pair::Pair;
pub use veth::{Transport, VethBench, probe_veth_xdp};
