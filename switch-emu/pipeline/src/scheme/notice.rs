//! What switches tell each other in frames of their own.

/// A frame from one switch to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// The switch that it goes to.
    pub to: u32,
    /// What its trail notes.
    pub note: u64,
    /// The flow that it is about, where its trail says so.
    pub flow: u64,
    /// What else its trail notes.
    pub more: [u64; 2],
    /// Links that it names.
    pub links: u32,
}
