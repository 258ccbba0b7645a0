//! Queue lengths as scenarios write them.

use std::fmt;

use serde::{Deserialize, Serialize};
use spray_core::units::ByteSize;

use super::number_or_text::NumberOrText;

/// A queue length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "NumberOrText<u64>", into = "String")]
pub enum QueueLength {
    /// Bytes on the wire.
    Bytes(u64),
    /// Full data packets.
    Packets(f64),
    /// Bandwidth-delay products: the longest base RTT of the fabric at the port's own rate.
    Bdp(f64),
    /// Per cent of the queue's limit; not for the limit itself.
    Percent(f64),
}

impl QueueLength {
    /// Parses `"120 kB"`, `"100 packets"`, `"1 bdp"` or `"20 %"`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '_'));
        let number = text[..text.len() - unit.len()].replace('_', "").parse().ok();
        match unit.trim() {
            "packets" | "packet" => number.map(Self::Packets),
            "bdp" | "BDP" => number.map(Self::Bdp),
            "%" => number.filter(|percent| *percent <= 100.0).map(Self::Percent),
            _ => text.parse().ok().map(|bytes: ByteSize| Self::Bytes(bytes.bytes())),
        }
    }
}

impl fmt::Display for QueueLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => ByteSize::new(*bytes).fmt(f),
            Self::Packets(packets) => write!(f, "{packets} packets"),
            Self::Bdp(bdp) => write!(f, "{bdp} bdp"),
            Self::Percent(percent) => write!(f, "{percent} %"),
        }
    }
}

impl From<QueueLength> for String {
    fn from(length: QueueLength) -> Self {
        length.to_string()
    }
}

impl TryFrom<NumberOrText<u64>> for QueueLength {
    type Error = &'static str;

    fn try_from(written: NumberOrText<u64>) -> Result<Self, Self::Error> {
        match written {
            NumberOrText::Number(bytes) => Ok(Self::Bytes(bytes)),
            NumberOrText::Text(text) => Self::parse(&text).ok_or("not a length of a queue"),
        }
    }
}

inline_schema!(QueueLength, {
    "type": ["integer", "string"],
    "minimum": 0,
    "pattern": "^[0-9][0-9_.]* *(packets?|bdp|BDP|%|B|kB|MB|GB|KiB|MiB|GiB)?$",
    "x-allowed": "\"120 kB\", \"100 packets\", \"1 bdp\", \"20 %\" (of the limit), or whole bytes",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_lengths_take_four_units() {
        for (text, length) in [
            ("100 packets", QueueLength::Packets(100.0)),
            ("1.5 bdp", QueueLength::Bdp(1.5)),
            ("20 %", QueueLength::Percent(20.0)),
            ("120000", QueueLength::Bytes(120_000)),
        ] {
            assert_eq!(QueueLength::parse(text), Some(length));
            assert_eq!(length.to_string(), text);
        }
        assert_eq!(QueueLength::parse("20%"), Some(QueueLength::Percent(20.0)));
        assert_eq!(QueueLength::parse("120 kB"), Some(QueueLength::Bytes(120_000)));
        for bad in ["120 %", "packets", "1.5", "-1 bdp", ""] {
            assert_eq!(QueueLength::parse(bad), None, "{bad}");
        }
    }
}
