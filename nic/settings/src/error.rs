//! An error in a setting, with its location.

/// An invalid setting, as `file:line:column: what; allowed: ...` or `--set path=value: ...`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {message}")]
pub struct Error {
    /// The file, with line and column (from 1) if it could be read, or the assignment.
    pub location: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Offset in the file, in bytes.
    File(usize),
    /// An assignment, as the user wrote it.
    Assignment(String),
}
