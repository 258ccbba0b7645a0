//! Errors of the switches' programs.

use spray_nic::xdp;

/// An error of the switches' programs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// A program is missing, or could not be loaded, attached, read or written.
    #[error(transparent)]
    Program(#[from] xdp::ProgramError),
    /// The fabric exceeds a limit of the program.
    #[error("the fabric does not fit the XDP program: {0}")]
    Fabric(String),
    /// The fabric does not fit the switches' tables.
    #[error(transparent)]
    Tables(#[from] spray_fabric::TablesError),
    /// Frames that drivers drop cannot be counted.
    #[error("the tracepoint xdp:xdp_devmap_xmit: {0}")]
    Tracepoint(#[source] libbpf_rs::Error),
    /// A test run failed.
    #[error("BPF test run: {0}")]
    TestRun(#[source] libbpf_rs::Error),
}

impl ProgramError {
    pub(super) fn map(map: &str) -> impl Fn(libbpf_rs::Error) -> Self {
        move |source| Self::Program(xdp::ProgramError::map(map)(source))
    }
}
