//! Why a program could not be loaded or used.

/// An error of the program loader.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The programs were not built when this binary was.
    #[error("the XDP program `{0}` is missing: run `cargo xtask build-ebpf`, then build again")]
    Missing(&'static str),
    /// The kernel or libbpf refused the program; the log says where.
    #[error("the kernel refused the XDP program `{program}`: {source}\n{log}")]
    Load {
        /// Which program.
        program: &'static str,
        /// libbpf's error.
        source: libbpf_rs::Error,
        /// The verifier's last words.
        log: String,
    },
    /// Attaching to an interface failed in native mode and in generic mode.
    #[error("cannot attach an XDP program to interface {ifindex}: native: {native}; generic: {generic}")]
    Attach {
        /// The interface.
        ifindex: u32,
        /// Error in native mode.
        native: std::io::Error,
        /// Error in generic mode.
        generic: std::io::Error,
    },
    /// A map operation failed.
    #[error("map `{map}`: {source}")]
    Map {
        /// Which map.
        map: String,
        /// libbpf's error.
        source: libbpf_rs::Error,
    },
    /// The fabric asks for something that the program cannot hold.
    #[error("the fabric does not fit the XDP program: {0}")]
    Fabric(String),
    /// The fabric does not fit the switches' tables.
    #[error(transparent)]
    Tables(#[from] spray_fabric::TablesError),
    /// A test run failed.
    #[error("BPF test run: {0}")]
    TestRun(#[source] libbpf_rs::Error),
}

impl ProgramError {
    pub(super) fn map(map: &str) -> impl Fn(libbpf_rs::Error) -> Self {
        move |source| Self::Map { map: map.into(), source }
    }
}
