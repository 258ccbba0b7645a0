//! The memory of schemes.

use super::flowlet::FLOWLETS;
use super::layout::Size;
use super::list::Scheme;
use super::{conga, flowcut, reunion};

impl Scheme {
    /// Returns the words of memory of a switch with this scheme, without pointers.
    pub const fn words(self, size: &Size) -> u32 {
        match self {
            Self::AdaptiveFlowlet | Self::LetFlow => FLOWLETS,
            Self::Conga => conga::words(size),
            Self::FlowcutIngress | Self::FlowcutSwitch => flowcut::WORDS,
            Self::Reunion | Self::ReunionConWeave => reunion::WORDS,
            Self::ReunionLetFlow => FLOWLETS + reunion::WORDS,
            Self::ReunionConga => conga::words(size) + reunion::WORDS,
            _ => 0,
        }
    }
}
