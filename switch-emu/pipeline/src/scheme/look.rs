//! How the ports of a group are compared.

/// How ports are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// What a queue's load is.
    pub measure: Measure,
    /// Random bits, which decide between equals.
    pub random: u32,
    /// Under [`Measure::Path`], where the words begin that tell of the paths behind ports; below 2^30.
    pub row: u32,
}

/// What a queue's load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Measure {
    /// Bytes that wait.
    Bytes,
    /// The class of the queue's length: below 5, 10 or 20 % of the limit, or above.
    Class,
    /// How congested the path behind the port is.
    Path,
}

impl Measure {
    /// The measure with this number.
    #[inline(always)]
    pub const fn from_number(number: u32) -> Self {
        match number {
            number if number == Self::Bytes as u32 => Self::Bytes,
            number if number == Self::Class as u32 => Self::Class,
            _ => Self::Path,
        }
    }
}
