//! What a receiver does not take.

/// Why something is not taken, in words for the sender and for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl Refusal {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}
