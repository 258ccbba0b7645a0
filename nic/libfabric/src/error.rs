//! What calls of the application return when they fail.

use std::ffi::CStr;

use spray_nic::endpoint::{ConnectionError, SendError};
use thiserror::Error;

use crate::abi;

/// A positive error number, of the operating system's or libfabric's.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("error {0}")]
pub struct Errno(pub i32);

impl Errno {
    /// It would have to wait.
    pub const AGAIN: Self = Self(libc::EAGAIN);
    /// An argument makes no sense.
    pub const INVALID: Self = Self(libc::EINVAL);
    /// There is nothing of what was asked for.
    pub const NO_DATA: Self = Self(libc::ENODATA);
    /// The provider does not have that.
    pub const MISSING: Self = Self(libc::ENOSYS);
    /// Not now.
    pub const BAD_STATE: Self = Self(abi::FI_EOPBADSTATE);
    /// The provider does not have those flags.
    pub const BAD_FLAGS: Self = Self(abi::FI_EBADFLAGS);
}

impl From<ConnectionError> for Errno {
    fn from(error: ConnectionError) -> Self {
        Self(match error {
            ConnectionError::ConnectTimeout | ConnectionError::NothingArrives => libc::EHOSTUNREACH,
            ConnectionError::Refused => libc::ECONNREFUSED,
            ConnectionError::Key => libc::EACCES,
            ConnectionError::PeerUnresponsive
            | ConnectionError::LongLost { .. }
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
            // A connection that ends is begun anew by a later send.
            _ => Self::AGAIN,
        }
    }
}

/// What an error number means, for `fi_cq_strerror`.
#[must_use]
pub fn text(errno: i32) -> &'static CStr {
    match errno {
        libc::EHOSTUNREACH => c"the peer does not answer, has another key than this side thinks, or no way leads there",
        libc::ECONNREFUSED => c"the peer takes no connections, or no more of them",
        libc::EACCES => c"the peer and this side do not have each other's keys",
        libc::ETIMEDOUT => c"the peer has fallen silent",
        libc::ECONNRESET => c"the peer has ended, or given up on the connection",
        libc::ENODEV => c"the interface was removed",
        libc::ECANCELED => c"the operation was cancelled",
        abi::FI_ETRUNC => c"the message is longer than the buffer",
        _ => c"it failed",
    }
}
