//! Why a program could not be loaded or used.

/// An error of the program loader.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The object holds no such program.
    #[error(
        "the XDP object has no program `{0}`; it was built from other sources: run `cargo xtask build-ebpf`, then build again"
    )]
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
    /// Missing rights.
    #[error(
        "not permitted to load the XDP program `{0}`; run as root, or with CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF (CAP_SYS_ADMIN before Linux 5.8)"
    )]
    NotPermitted(&'static str),
    /// Attaching to an interface failed in native mode and in generic mode.
    #[error("cannot attach an XDP program to interface {ifindex}: native: {native}; generic: {generic}")]
    Attach {
        /// The interface.
        ifindex: u32,
        /// Error in native mode.
        native: String,
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
    /// The object has no such map.
    #[error(
        "the XDP program's object has no map `{0}`; it was built from other sources: run `cargo xtask build-ebpf`, then build again"
    )]
    NoMap(String),
    /// More addresses than the program compares.
    #[error("{asked} addresses of an interface are to be steered; at most {most} are possible")]
    Addresses {
        /// How many were asked for.
        asked: usize,
        /// How many there may be.
        most: usize,
    },
}

impl ProgramError {
    /// Makes libbpf's error the one of this map.
    pub fn map(map: &str) -> impl Fn(libbpf_rs::Error) -> Self {
        move |source| Self::Map { map: map.into(), source }
    }
}
