//! Where a scenario is wrong, and what would be right there.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// A mistake in a scenario: prints as `file:line:column: what; allowed: ...`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}:{column}: {message}", file.display())]
pub struct ScenarioError {
    /// The file.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what is allowed.
    pub message: String,
}

/// A scenario's text and where it came from.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub file: &'a Path,
    pub text: &'a str,
}

impl Source<'_> {
    /// An error at the start of `span`, a range of bytes of the text.
    pub fn error(&self, span: &Range<usize>, message: impl Into<String>) -> ScenarioError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        ScenarioError {
            file: self.file.to_path_buf(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }

    /// The folder that the scenario's own relative paths start from.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }
}
