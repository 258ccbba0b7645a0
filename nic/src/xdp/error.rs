//! Errors of loading and using XDP programs.

/// An error of the program loader.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The object has no such program.
    #[error(
        "the XDP object has no program `{0}`; it was built from other sources: run `cargo xtask build-ebpf`, then build again"
    )]
    Missing(&'static str),
    /// The kernel or libbpf refused the program.
    #[error("the kernel refused the XDP program `{program}`: {source}\n{log}")]
    Load {
        /// Name of the program.
        program: &'static str,
        /// libbpf's error.
        source: libbpf_rs::Error,
        /// The end of the verifier's log.
        log: String,
    },
    /// Permissions are missing.
    #[error(
        "not permitted to load the XDP program `{0}`; run as root, or with CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF (CAP_SYS_ADMIN before Linux 5.8)"
    )]
    NotPermitted(&'static str),
    /// Attaching to an interface failed in native mode and in generic mode.
    #[error("cannot attach an XDP program to interface {ifindex}: native: {native}; generic: {generic}")]
    Attach {
        /// Interface index.
        ifindex: u32,
        /// Error in native mode.
        native: String,
        /// Error in generic mode.
        generic: std::io::Error,
    },
    /// A map operation failed.
    #[error("map `{map}`: {source}")]
    Map {
        /// Name of the map.
        map: String,
        /// libbpf's error.
        source: libbpf_rs::Error,
    },
    /// The object has no such map.
    #[error(
        "the XDP program's object has no map `{0}`; it was built from other sources: run `cargo xtask build-ebpf`, then build again"
    )]
    NoMap(String),
    /// There are more addresses than the program supports.
    #[error("{requested} addresses on an interface, but the XDP program supports at most {max}")]
    Addresses {
        /// Requested number.
        requested: usize,
        /// Maximum number.
        max: usize,
    },
}

impl ProgramError {
    /// Converts libbpf's errors of this map.
    pub fn map(map: &str) -> impl Fn(libbpf_rs::Error) -> Self {
        move |source| Self::Map { map: map.into(), source }
    }
}
