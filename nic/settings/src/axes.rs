//! The axes of a sweep: settings with lists in place of one value.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A setting for which a document lists several values, with one of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// The setting, such as `transport.payload_bytes`.
    pub path: String,
    /// Its value.
    pub value: AxisValue,
}

/// A value of an axis. All values of one axis are of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AxisValue {
    /// `true` or `false`.
    Flag(bool),
    /// An integer.
    Whole(i64),
    /// A number.
    Number(f64),
    /// Anything else, as it is written.
    Text(String),
}

impl AxisValue {
    /// Returns a number, integer or not.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Whole(number) => Some(*number as f64),
            Self::Number(number) => Some(*number),
            Self::Flag(_) | Self::Text(_) => None,
        }
    }
}

impl fmt::Display for AxisValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Whole(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}
