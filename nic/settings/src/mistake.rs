//! What is wrong with a setting, and where.

/// A mistake in settings. It prints as `file:line:column: what; allowed: ...`, or as `--set path=value: what; allowed: ...`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct Mistake {
    /// The file, with line and column, both from 1, where it could be read; or the assignment.
    pub place: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The file, at this byte.
    File(usize),
    /// The assignment, as the user wrote it.
    Assignment(String),
}
