//! A fabric on this machine: the XDP programs that play the switches, and what measures them. Linux only.

/// Baselines for `spray bench veth`.
pub mod bench;
pub mod program;
