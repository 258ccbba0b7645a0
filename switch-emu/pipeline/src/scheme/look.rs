//! Comparison of the ports of a group.

/// A comparison of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The measure of load.
    pub measure: Measure,
    /// Random bits, to break ties.
    pub random: u32,
    /// Index of the paths' words for [`Measure::Path`]; below 2^30.
    pub row: u32,
}

/// The measure of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Measure {
    /// Queued bytes.
    Bytes,
    /// The class of the queue's length: below 5, 10 or 20 % of the limit, or above.
    Class,
    /// The congestion of the path behind the port.
    Path,
}

impl Measure {
    /// Returns the measure with this number.
    #[inline(always)]
    pub const fn from_number(number: u32) -> Self {
        match number {
            number if number == Self::Bytes as u32 => Self::Bytes,
            number if number == Self::Class as u32 => Self::Class,
            _ => Self::Path,
        }
    }
}
