//! Why a run on this machine failed.

use std::error::Error;
use std::io;

use nix::errno::Errno;
use spray_nic::endpoint::SendError;

use crate::program::ProgramError;

/// Why a run on this machine failed, or did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The stop flag was set; everything was removed.
    #[error("stopped")]
    Stopped,
    /// Missing rights.
    #[error("namespaces and XDP need root; run as root (sudo)")]
    NotRoot,
    /// The scenario asks for what this engine cannot do.
    #[error("the xdp engine cannot run this scenario: {0}")]
    Unsupported(String),
    /// An interface that was given for a host cannot be had, or one is missing.
    #[error("{0}")]
    Port(String),
    /// A network namespace could not be made or entered.
    #[error("network namespace {name}: {doing}: {source}")]
    Namespace {
        /// The namespace.
        name: String,
        /// What was being done.
        doing: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A link could not be made.
    #[error("link {name}: {doing}: {source}")]
    Link {
        /// The interface.
        name: String,
        /// What was being done.
        doing: &'static str,
        /// What the kernel said.
        source: Box<rtnetlink::Error>,
    },
    /// An XDP program could not be loaded, attached or read.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The program of a host could not be loaded, attached or read.
    #[error(transparent)]
    Steer(#[from] spray_nic::xdp::ProgramError),
    /// The socket, the endpoint or a connection of a host could not be made.
    #[error("host {host}: {source}")]
    Host {
        /// The host.
        host: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A message was not taken.
    #[error("host {host}: {source}")]
    Send {
        /// The host.
        host: String,
        /// Why.
        source: SendError,
    },
    /// The calibration burst got nothing through.
    #[error(
        "the calibration burst got nothing through the fabric for 30 s; `spray doctor` checks veth and XDP, \
         `--dilation` goes without the burst"
    )]
    Calibration,
    /// As before, and other programs left the burst next to no processor time.
    #[error(
        "the calibration burst got nothing through the fabric for 30 s: others use this machine so much that it ran {times} times slower \
         than alone; wait for them, or run them with `nice -n 19`"
    )]
    Busy {
        /// How many times slower.
        times: String,
    },
    /// Anything else that the machine refused.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl RunError {
    /// Whether it is bad input, or a right or a feature that is missing, rather than a limit of the machine or something gone wrong during the
    /// run: exit code 2.
    pub fn is_usage(&self) -> bool {
        let is_later =
            matches!(self, Self::Stopped | Self::Calibration | Self::Busy { .. } | Self::Io { .. } | Self::Send { .. });
        !is_later && !is_limit(self)
    }

    /// An [`RunError::Host`].
    pub fn host<E: std::error::Error + Send + Sync + 'static>(host: &str) -> impl Fn(E) -> Self {
        move |source| Self::Host { host: host.into(), source: source.into() }
    }

    /// A thread could not be started.
    pub fn thread(source: io::Error) -> Self {
        Self::io("starting a thread (`ulimit -u` and the cgroup's pids.max limit how many there may be)", source)
    }

    /// An [`RunError::Io`].
    pub fn io(doing: &'static str, source: io::Error) -> Self {
        Self::Io { doing, source }
    }
}

/// Whether the machine has no more of something: namespaces, open files, threads, memory.
fn is_limit(error: &RunError) -> bool {
    const LIMITS: [Errno; 6] =
        [Errno::ENOSPC, Errno::EMFILE, Errno::ENFILE, Errno::EAGAIN, Errno::ENOMEM, Errno::ENOBUFS];
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let number = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        if number.is_some_and(|number| LIMITS.contains(&Errno::from_raw(number))) {
            return true;
        }
        cause = error.source();
    }
    false
}
