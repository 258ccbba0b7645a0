//! Errors of runs on this machine.

use std::error::Error;
use std::io;

use nix::errno::Errno;
use spray_nic::endpoint::SendError;

use crate::program::ProgramError;

/// An error that ended a run, or kept it from starting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The stop flag was set; everything was removed.
    #[error("stopped")]
    Stopped,
    /// Missing privileges.
    #[error("namespaces and XDP need root; run as root (sudo)")]
    NotRoot,
    /// The scenario needs a feature that this engine lacks.
    #[error("the xdp engine cannot run this scenario: {0}")]
    Unsupported(String),
    /// An external interface is missing or cannot be used.
    #[error("{0}")]
    Port(String),
    /// A network namespace could not be created or entered.
    #[error("network namespace {name}: {doing}: {source}")]
    Namespace {
        /// The namespace.
        name: String,
        /// The failed operation.
        doing: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A link could not be created.
    #[error("link {name}: {doing}: {source}")]
    Link {
        /// The interface.
        name: String,
        /// The failed operation.
        doing: &'static str,
        /// The error of the kernel.
        source: Box<rtnetlink::Error>,
    },
    /// An XDP program could not be loaded, attached or read.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The program of a host could not be loaded, attached or read.
    #[error(transparent)]
    Steer(#[from] spray_nic::xdp::ProgramError),
    /// The socket, the endpoint or a connection of a host could not be created.
    #[error("host {host}: {source}")]
    Host {
        /// The host.
        host: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A message was not accepted.
    #[error("host {host}: {source}")]
    Send {
        /// The host.
        host: String,
        /// The cause.
        source: SendError,
    },
    /// No frame of the calibration burst arrived.
    #[error(
        "no frame of the calibration burst arrived for 30 s; `spray doctor` checks veth and XDP, \
         `--dilation` omits the burst"
    )]
    Calibration,
    /// As [`RunError::Calibration`], while other programs used nearly all processor time.
    #[error(
        "no frame of the calibration burst arrived for 30 s: other programs slowed it down {times} times; \
         wait for them, or run them with `nice -n 19`"
    )]
    Busy {
        /// The factor by which it ran slower.
        times: String,
    },
    /// Another failed operation of the system.
    #[error("{doing}: {source}")]
    Io {
        /// The failed operation.
        doing: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
}

impl RunError {
    /// Returns whether it is bad input, or a missing privilege or feature (exit code 2), rather
    /// than a resource limit or a failure during the run.
    pub fn is_usage(&self) -> bool {
        let is_later =
            matches!(self, Self::Stopped | Self::Calibration | Self::Busy { .. } | Self::Io { .. } | Self::Send { .. });
        !is_later && !is_limit(self)
    }

    /// Wraps an error as [`RunError::Host`].
    pub fn host<E: std::error::Error + Send + Sync + 'static>(host: &str) -> impl Fn(E) -> Self {
        move |source| Self::Host { host: host.into(), source: source.into() }
    }

    /// Wraps the failure to start a thread.
    pub fn thread(source: io::Error) -> Self {
        Self::io("starting a thread (limited by `ulimit -u` and the cgroup's pids.max)", source)
    }

    /// Creates a [`RunError::Io`].
    pub fn io(doing: &'static str, source: io::Error) -> Self {
        Self::Io { doing, source }
    }
}

/// Whether a resource is exhausted: namespaces, open files, threads, memory.
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
