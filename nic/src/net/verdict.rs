//! Why an interface cannot be taken over, or not well.

/// What an interface is, why that matters, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// For instance `a bond`.
    pub is: String,
    /// Why it cannot be taken over, or not well.
    pub why: &'static str,
    /// What to do instead.
    pub instead: String,
}
