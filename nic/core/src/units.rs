//! Quantities stored as integers of a small unit, written as decimals of a large one. Up to six
//! decimals (rates: nine) are exact; others are refused. Settings check their ranges.

#[cfg(any(test, feature = "schema"))]
use alloc::borrow::Cow;
use core::fmt;
use core::str::FromStr;

#[cfg(any(test, feature = "schema"))]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// Defines a quantity written as a decimal of a large unit, stored as an integer of a small one.
macro_rules! quantity {
    (
        $(#[$about:meta])* $Name:ident, $small:ident: $large:literal of $scale:literal, as $schema:tt;
        $(#[$about_new:meta])* $new:ident
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $Name(u64);

        impl $Name {
            $(#[$about_new])*
            pub const fn $new(value: u64) -> Self {
                Self(value)
            }

            #[doc = concat!("The quantity in the unit of [`Self::", stringify!($new), "`].")]
            #[inline]
            pub const fn $small(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if self.0.is_multiple_of($scale) {
                    (self.0 / $scale).fmt(f)
                } else {
                    (self.0 as f64 / $scale as f64).fmt(f)
                }
            }
        }

        impl Serialize for $Name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if self.0.is_multiple_of($scale) {
                    serializer.serialize_u64(self.0 / $scale)
                } else {
                    serializer.serialize_f64(self.0 as f64 / $scale as f64)
                }
            }
        }

        impl<'de> Deserialize<'de> for $Name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Decimal { what: $large, scale: $scale }).map(Self)
            }
        }

        #[cfg(any(test, feature = "schema"))]
        impl JsonSchema for $Name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($Name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let mut schema = json_schema!($schema);
                if $scale != USUAL_SCALE {
                    schema.insert("x-decimals".into(), u64::ilog10($scale).into());
                }
                schema
            }
        }
    };
}

quantity! {
    /// A time, written in microseconds.
    Micros, ps: "a number of microseconds" of 1_000_000, as { "type": "number", "minimum": 0 };
    /// Creates it from picoseconds.
    from_ps
}

quantity! {
    /// A rate, written in Gb/s.
    Gbps, bps: "a number of Gb/s" of 1_000_000_000, as { "type": "number", "minimum": 0 };
    /// Creates it from bits per second.
    from_bps
}

quantity! {
    /// A ratio or share, written as a decimal, `1.65`, or as text in per cent, `"165%"`.
    Ratio, ppm: "a number" of 1_000_000, as { "type": ["number", "string"], "minimum": 0, "pattern": "^([0-9.]+ *%|0)$" };
    /// Creates it from millionths.
    from_ppm
}

impl Micros {
    /// Creates it from microseconds.
    pub const fn new(us: u64) -> Self {
        Self(us.saturating_mul(1_000_000))
    }
}

impl Gbps {
    /// Creates it from Gb/s.
    pub const fn new(gbps: u64) -> Self {
        Self(gbps.saturating_mul(1_000_000_000))
    }
}

impl Ratio {
    /// Creates it from thousandths.
    pub const fn permille(permille: u64) -> Self {
        Self(permille.saturating_mul(1_000))
    }

    /// Returns the ratio in thousandths, rounded to the nearest.
    pub const fn to_permille(self) -> u64 {
        (self.0 + 500) / 1_000
    }

    /// Returns this ratio of `whole`, rounded down.
    #[inline]
    pub const fn of(self, whole: u64) -> u64 {
        let part = whole as u128 * self.0 as u128 / 1_000_000;
        if part > u64::MAX as u128 { u64::MAX } else { part as u64 }
    }
}

/// The error for a text that is not a [`Ratio`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseRatioError;

impl fmt::Display for ParseRatioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a percentage with its sign and at most four decimals, such as `25%`")
    }
}

impl core::error::Error for ParseRatioError {}

impl FromStr for Ratio {
    type Err = ParseRatioError;

    /// Reads `"25%"` and `"0"`. Requires the sign otherwise: `1` may mean all or a hundredth.
    fn from_str(text: &str) -> Result<Self, ParseRatioError> {
        let number = text.strip_suffix('%').or((text == "0").then_some(text)).ok_or(ParseRatioError)?.trim_end();
        let percent = number.parse::<f64>().map_err(|_| ParseRatioError)?;
        let decimal = Decimal { what: "a percentage", scale: 10_000 };
        decimal.visit_f64::<serde::de::value::Error>(percent).map(Self).map_err(|_| ParseRatioError)
    }
}

/// Reads a decimal of a large unit as an integer of a small one, `scale` of them per large one.
struct Decimal {
    what: &'static str,
    scale: u64,
}

/// The scale for which a schema omits the number of decimals: six.
#[cfg(any(test, feature = "schema"))]
const USUAL_SCALE: u64 = 1_000_000;

/// Limit of exact integers in `f64`.
const MAX_EXACT: f64 = 9e15;

impl Visitor<'_> for Decimal {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from 0 with at most {} decimals", self.what, self.scale.ilog10())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        value.checked_mul(self.scale).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Unsigned(value), &self))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        match u64::try_from(value) {
            Ok(value) => self.visit_u64(value),
            Err(_) => Err(E::invalid_value(serde::de::Unexpected::Signed(value), &self)),
        }
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<u64, E> {
        let scaled = value * self.scale as f64 + 0.5;
        // The division restores the value unless it has more decimals.
        let is_exact = |small: u64| small as f64 / self.scale as f64 == value;
        if value >= 0.0 && scaled < MAX_EXACT && is_exact(scaled as u64) {
            Ok(scaled as u64)
        } else {
            Err(E::invalid_value(serde::de::Unexpected::Float(value), &self))
        }
    }
}

/// A number of bytes, written as an integer or as text with a unit: `4150`, `"4 MiB"`, `"1.5 kB"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    /// Creates it from bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Creates it from KiB.
    pub const fn kib(kib: u64) -> Self {
        Self(kib.saturating_mul(1 << 10))
    }

    /// Creates it from MiB.
    pub const fn mib(mib: u64) -> Self {
        Self(mib.saturating_mul(1 << 20))
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

/// Units of [`ByteSize`], in order of preference for output.
const BYTE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// The error for a text that is not a [`ByteSize`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseByteSizeError;

impl fmt::Display for ParseByteSizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a whole number of bytes, or one with B, kB, MB, GB, KiB, MiB or GiB, such as \"4 MiB\"")
    }
}

impl core::error::Error for ParseByteSizeError {}

impl FromStr for ByteSize {
    type Err = ParseByteSizeError;

    /// Reads `"4 MiB"`, `"1.5kB"`, `"1_500"`. The result must be an integer.
    fn from_str(text: &str) -> Result<Self, ParseByteSizeError> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
        let (number, unit) = (text[..end].replace('_', ""), text[end..].trim());
        let named = BYTE_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
        let factor = named.or(unit.is_empty().then_some(1)).ok_or(ParseByteSizeError)?;
        let bytes = number.parse::<f64>().map_err(|_| ParseByteSizeError)? * factor as f64;
        // The text has no sign, so the number is not negative.
        if bytes < MAX_EXACT && bytes as u64 as f64 == bytes { Ok(Self(bytes as u64)) } else { Err(ParseByteSizeError) }
    }
}

impl fmt::Display for ByteSize {
    /// Writes a multiple of a binary unit with the largest such unit, else bytes: `4 MiB`, `4150`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match BYTE_UNITS[..3].iter().find(|(_, factor)| self.0 > 0 && self.0.is_multiple_of(*factor)) {
            Some((unit, factor)) => write!(f, "{} {unit}", self.0 / factor),
            None => self.0.fmt(f),
        }
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match BYTE_UNITS[..3].iter().any(|(_, factor)| self.0 > 0 && self.0.is_multiple_of(*factor)) {
            true => serializer.collect_str(self),
            false => serializer.serialize_u64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = ByteSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of bytes, or a text such as \"4 MiB\"")
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<ByteSize, E> {
                Ok(ByteSize(value))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<ByteSize, E> {
                let unexpected = serde::de::Unexpected::Signed(value);
                u64::try_from(value).map(ByteSize).map_err(|_| E::invalid_value(unexpected, &self))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ByteSize, E> {
                text.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Bytes)
    }
}

#[cfg(any(test, feature = "schema"))]
impl JsonSchema for ByteSize {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ByteSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "minimum": 0,
            "pattern": "^[0-9][0-9_.]* *(B|kB|MB|GB|KiB|MiB|GiB)?$",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::ToString;

    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct All {
        time_us: Micros,
        rate_gbps: Gbps,
        ratio: Ratio,
        bytes: ByteSize,
    }

    fn read(time: &str, rate: &str, ratio: &str, bytes: &str) -> Result<All, toml::de::Error> {
        toml::from_str(&format!("time_us = {time}\nrate_gbps = {rate}\nratio = {ratio}\nbytes = {bytes}\n"))
    }

    #[test]
    fn quantities_are_parsed_and_displayed() {
        let all = read("8.337", "400", "1.65", "\"4 MiB\"").unwrap();
        let [time_us, rate_gbps] = [8_337_000, 400_000_000_000];
        assert_eq!(
            all,
            All {
                time_us: Micros::from_ps(time_us),
                rate_gbps: Gbps::from_bps(rate_gbps),
                ratio: Ratio::permille(1_650),
                bytes: ByteSize::mib(4)
            }
        );
        let text = toml::to_string(&all).unwrap();
        assert_eq!(text, "time_us = 8.337\nrate_gbps = 400\nratio = 1.65\nbytes = \"4 MiB\"\n");
        assert_eq!(toml::from_str::<All>(&text).unwrap(), all);
        let shown = [all.time_us.to_string(), all.rate_gbps.to_string(), all.ratio.to_string(), all.bytes.to_string()];
        assert_eq!(shown, ["8.337", "400", "1.65", "4 MiB"]);
    }

    #[test]
    fn six_decimals_are_exact() {
        let some = (0..2_000_000).step_by(9_973);
        for ps in some.chain([1, 999_999, 9_007_199_254_740, 4_000_000_000_000_001]) {
            let text = format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000);
            let all = read(&text, "0", &text, "0").unwrap();
            assert_eq!((all.time_us.ps(), all.ratio.ppm()), (ps, ps), "{text}");
            assert_eq!(toml::from_str::<All>(&toml::to_string(&all).unwrap()).unwrap(), all);
        }
        assert_eq!(read("0", "100.000001", "0", "0").unwrap().rate_gbps.bps(), 100_000_001_000);
    }

    #[test]
    fn invalid_quantities_are_rejected() {
        for bad in ["-1", "-0.5", "nan", "inf", "true", "\"1\"", "1e300", "99999999999999999"] {
            assert!(read(bad, "0", "0", "0").is_err(), "{bad}");
            assert!(read("0", "0", "0", bad).is_err() != (bad == "\"1\"" || bad == "99999999999999999"), "{bad}");
        }
        let message = read("-1", "0", "0", "0").unwrap_err().to_string();
        assert!(message.contains("expected a number of microseconds from 0"), "{message}");
        // Values that would be rounded.
        for bad in ["0.0000001", "8.3370004", "0.33333333", "1e-7"] {
            assert!(read(bad, "0", "0", "0").is_err() && read("0", "0", bad, "0").is_err(), "{bad}");
        }
        assert!(read("0", "0.000000001", "0", "0").is_ok() && read("0", "0.0000000001", "0", "0").is_err());
    }

    #[test]
    fn byte_sizes_accept_binary_suffixes_only() {
        let good =
            [("0", 0), ("1_500", 1500), ("4 MiB", 4 << 20), ("1.5KiB", 1536), ("2 GB", 2_000_000_000), ("7 B", 7)];
        good.iter().for_each(|(text, value)| assert_eq!(text.parse(), Ok(ByteSize::new(*value)), "{text}"));
        for bad in ["", "MiB", "1.5", "1.0005 kB", "4 mib", "-1", "1e3", "4 MiB x", "99999999 GiB"] {
            assert_eq!(bad.parse::<ByteSize>(), Err(ParseByteSizeError), "{bad}");
        }
    }

    #[test]
    fn ratios_as_text_need_a_percent_sign() {
        for (text, ppm) in [("25%", 250_000), ("0.0001 %", 1), ("100%", 1_000_000), ("0", 0), ("165%", 1_650_000)] {
            assert_eq!(text.parse(), Ok(Ratio::from_ppm(ppm)), "{text}");
        }
        for bad in ["1", "0.5", "", "%", "-1%", "nan%", "0.00001%", "1%%"] {
            assert_eq!(bad.parse::<Ratio>(), Err(ParseRatioError), "{bad}");
        }
    }

    #[test]
    fn a_ratio_of_a_whole_is_rounded_down() {
        assert_eq!(Ratio::permille(1_650).of(8_337_001), 13_756_051);
        assert_eq!(Ratio::permille(2_000).of(u64::MAX), u64::MAX);
    }
}
