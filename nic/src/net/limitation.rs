//! The reason for which an interface is not taken over.

/// Why an interface cannot be taken over, or only with restrictions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limitation {
    /// What it is, such as `a bond`.
    pub is: String,
    /// The reason.
    pub why: &'static str,
    /// The alternative.
    pub instead: String,
}
