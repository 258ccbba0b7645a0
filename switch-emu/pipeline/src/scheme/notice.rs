//! Control frames between switches.

/// A control frame from one switch to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// The destination switch.
    pub to: u32,
    /// The note of its trail.
    pub note: u64,
    /// The flow concerned, if the trail has one.
    pub flow: u64,
    /// The further notes of its trail.
    pub more: [u64; 2],
    /// The number of links listed.
    pub links: u32,
}
