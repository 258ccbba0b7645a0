//! Errors of the application's calls.

use std::ffi::CStr;

use spray_nic::endpoint::{ConnectionError, SendError};
use thiserror::Error;

use crate::abi;

/// A positive error number of the operating system or libfabric.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("error {0}")]
pub struct Errno(pub i32);

impl Errno {
    /// The call would block.
    pub const AGAIN: Self = Self(libc::EAGAIN);
    pub const INVALID: Self = Self(libc::EINVAL);
    pub const NO_DATA: Self = Self(libc::ENODATA);
    pub const MISSING: Self = Self(libc::ENOSYS);
    pub const BAD_STATE: Self = Self(abi::FI_EOPBADSTATE);
    pub const BAD_FLAGS: Self = Self(abi::FI_EBADFLAGS);
}

impl From<ConnectionError> for Errno {
    fn from(error: ConnectionError) -> Self {
        Self(match error {
            ConnectionError::ConnectTimeout | ConnectionError::NoXdpProgram => libc::EHOSTUNREACH,
            ConnectionError::Refused => libc::ECONNREFUSED,
            ConnectionError::Key => libc::EACCES,
            ConnectionError::PeerUnresponsive
            | ConnectionError::MtuBlackHole { .. }
            | ConnectionError::IdleTimeout
            | ConnectionError::StaleKeys => libc::ETIMEDOUT,
            ConnectionError::InterfaceGone => libc::ENODEV,
            _ => libc::ECONNRESET,
        })
    }
}

impl From<SendError> for Errno {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Size { .. } => Self(libc::EMSGSIZE),
            // A later send opens a new connection.
            _ => Self::AGAIN,
        }
    }
}

/// Returns the description of an error number, for `fi_cq_strerror`.
pub fn text(errno: i32) -> &'static CStr {
    match errno {
        libc::EHOSTUNREACH => c"the peer is unreachable, does not respond, or has another key than expected",
        libc::ECONNREFUSED => c"the peer refused the connection, or has no space for more",
        libc::EACCES => c"the peer and this host do not trust each other's keys",
        libc::ETIMEDOUT => c"the peer stopped responding",
        libc::ECONNRESET => c"the peer closed or aborted the connection",
        libc::ENODEV => c"the interface was removed",
        libc::ECANCELED => c"the operation was cancelled",
        abi::FI_ETRUNC => c"the message is longer than the buffer",
        _ => c"unknown error",
    }
}
