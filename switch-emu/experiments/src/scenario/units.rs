//! Quantities as people write them.

/// Picoseconds in a microsecond.
pub(crate) const PS_PER_US: f64 = 1e6;

/// Parses bytes: a whole number with or without one of `B`, `kB`, `MB`, `GB`, `KiB`, `MiB`, `GiB`.
pub fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text);
    let factor = match unit {
        "" | "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    let value = number * factor as f64;
    (value.is_finite() && value.fract() == 0.0 && value < 9e15).then_some(value as u64)
}

/// A length of queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QueueLength {
    /// Bytes on the wire.
    Bytes(u64),
    /// Full data packets.
    Packets(f64),
    /// Bandwidth-delay products: the longest base RTT of the fabric at the port's own rate.
    Bdp(f64),
    /// Percent of the queue's limit; not for the limit itself.
    Percent(f64),
}

impl QueueLength {
    /// Parses `"120 kB"`, `"100 packets"`, `"1 bdp"` or `"20 %"`.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, unit) = split(text);
        let valid = number.is_finite() && number >= 0.0;
        match unit {
            "packets" | "packet" if valid => Some(Self::Packets(number)),
            "bdp" | "BDP" if valid => Some(Self::Bdp(number)),
            "%" if (0.0..=100.0).contains(&number) => Some(Self::Percent(number)),
            _ => bytes(text).map(Self::Bytes),
        }
    }
}

/// Splits `"4 MiB"` into the number (NaN where there is none) and the unit.
fn split(text: &str) -> (f64, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let number = text[..end].replace('_', "").parse().unwrap_or(f64::NAN);
    (number, text[end..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_suffixes_and_nothing_else() {
        let good =
            [("0", 0), ("1_500", 1500), ("4 MiB", 4 << 20), ("1.5KiB", 1536), ("2 GB", 2_000_000_000), ("7 B", 7)];
        good.iter().for_each(|(text, value)| assert_eq!(bytes(text), Some(*value), "{text}"));
        for bad in ["", "MiB", "1.5", "1.0005 kB", "4 mib", "-1", "1e3", "4 MiB x", "99999999 GiB"] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
    }

    #[test]
    fn queue_lengths_take_four_units() {
        assert_eq!(QueueLength::parse("100 packets"), Some(QueueLength::Packets(100.0)));
        assert_eq!(QueueLength::parse("1.5 bdp"), Some(QueueLength::Bdp(1.5)));
        assert_eq!(QueueLength::parse("20%"), Some(QueueLength::Percent(20.0)));
        assert_eq!(QueueLength::parse("120 kB"), Some(QueueLength::Bytes(120_000)));
        assert_eq!(QueueLength::parse("120 %"), None);
        assert_eq!(QueueLength::parse("packets"), None);
    }
}
