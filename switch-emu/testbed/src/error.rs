//! Why a run on this machine failed.

use std::io;

use spray_nic::device::OpenError;
use spray_nic::endpoint::{ConfigError, ConnectError, SendError};

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
    /// An AF_XDP socket could not be opened.
    #[error("host {host}: {source}")]
    Device {
        /// The host.
        host: String,
        /// Why.
        source: OpenError,
    },
    /// An XDP program could not be loaded, attached or read.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The endpoint of a host refused its settings.
    #[error("host {host}: {source}")]
    Endpoint {
        /// The host.
        host: String,
        /// Why.
        source: ConfigError,
    },
    /// A connection could not be begun.
    #[error("host {host}: {source}")]
    Connect {
        /// The host.
        host: String,
        /// Why.
        source: ConnectError,
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
    #[error("the calibration burst got nothing through the fabric; `spray doctor` checks veth and XDP")]
    Calibration,
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
    /// Whether the machine or the scenario has to change, rather than something gone wrong during the run: exit code 2.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Stopped | Self::Calibration | Self::Io { .. } | Self::Send { .. })
    }

    /// An [`RunError::Io`].
    pub(crate) fn io(doing: &'static str, source: io::Error) -> Self {
        Self::Io { doing, source }
    }
}
