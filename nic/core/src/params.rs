//! Parameters of schemes by name: what `--param` and scenario files set, with unit, range, default and meaning.
//!
//! [`parameters!`](crate::params) declares a scheme's settings once: the fields, their documentation for people, and the
//! table that readers and the generated documents use. All values are `u64` in base units: picoseconds, bytes, packets,
//! thousandths, bits a second.

use core::fmt;

/// The unit in which people write a parameter, and what the stored number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A whole number: packets, entropy values, bits.
    Count,
    /// Bytes; stored as they are.
    Bytes,
    /// Written in microseconds, stored in picoseconds.
    Microseconds,
    /// Written as a number such as 1.5, stored in thousandths.
    Ratio,
    /// Written in Gb/s, stored in bits a second.
    Gbps,
    /// `true` or `false`, stored as 1 or 0.
    Flag,
    /// One of some words, stored as its index.
    Choice(&'static [&'static str]),
}

/// One parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name within its scheme.
    pub name: &'static str,
    /// What people write.
    pub unit: Unit,
    /// Least value, in the stored unit.
    pub min: u64,
    /// Largest value, in the stored unit.
    pub max: u64,
    /// Value without one given; [`AUTO`] where it follows from the path, which `auto` writes too.
    pub default: u64,
    /// What it means.
    pub about: &'static str,
}

/// A value that follows from the path; the parameter says how.
pub const AUTO: u64 = u64::MAX;

/// A scheme's settings, by the index of a parameter in its table.
pub trait Group {
    /// The table.
    fn params(&self) -> &'static [Param];

    /// The value of parameter `index`, in the stored unit; 0 outside the table.
    fn value(&self, index: usize) -> u64;

    /// Sets parameter `index` to `value`, in the stored unit and within its range; nothing outside the table.
    fn set_value(&mut self, index: usize, value: u64);

    /// Sets the parameter `name` to what `text` says.
    ///
    /// # Errors
    /// When there is no such parameter, or the text is no value of it.
    fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
        let params = self.params();
        let index = params.iter().position(|param| param.name == name).ok_or(ParamError::Name(params))?;
        let value = params[index].parse(text).ok_or(ParamError::Value(&params[index]))?;
        self.set_value(index, value);
        Ok(())
    }
}

/// Why a parameter cannot be set; the message says what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamError {
    /// No scheme of that name has parameters; these have.
    Scheme(&'static [&'static str]),
    /// The scheme has no such parameter; it has these.
    Name(&'static [Param]),
    /// The value is none of this parameter.
    Value(&'static Param),
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, names: &mut dyn Iterator<Item = &str>| {
            names.enumerate().try_for_each(|(index, name)| write!(f, "{}{name}", if index == 0 { "" } else { ", " }))
        };
        match self {
            Self::Scheme(names) => {
                f.write_str("no such scheme has parameters; allowed: ")?;
                list(f, &mut names.iter().copied())
            }
            Self::Name(params) => {
                f.write_str("no such parameter; allowed: ")?;
                list(f, &mut params.iter().map(|param| param.name))
            }
            Self::Value(param) => write!(f, "allowed for `{}`: {}", param.name, Allowed(param)),
        }
    }
}

impl core::error::Error for ParamError {}

/// What a parameter takes, for errors and documents.
#[derive(Clone, Copy, Debug)]
pub struct Allowed<'a>(pub &'a Param);

impl fmt::Display for Allowed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let param = self.0;
        match param.unit {
            Unit::Flag => f.write_str("true, false")?,
            Unit::Choice(words) => {
                for (index, word) in words.iter().enumerate() {
                    write!(f, "{}{word}", if index == 0 { "" } else { ", " })?;
                }
            }
            _ => {
                param.write(f, param.min)?;
                f.write_str(" to ")?;
                param.write(f, param.max)?;
                f.write_str(match param.unit {
                    Unit::Bytes => " bytes",
                    Unit::Microseconds => " us",
                    Unit::Gbps => " Gb/s",
                    _ => "",
                })?;
            }
        }
        if param.default == AUTO { f.write_str(", or auto") } else { Ok(()) }
    }
}

impl Param {
    /// Reads a value as people write it; `None` when it is none, or outside the range.
    pub fn parse(&self, text: &str) -> Option<u64> {
        if self.default == AUTO && text == "auto" {
            return Some(AUTO);
        }
        let value = match self.unit {
            Unit::Flag => match text {
                "true" => 1,
                "false" => 0,
                _ => return None,
            },
            Unit::Choice(words) => words.iter().position(|word| *word == text)? as u64,
            Unit::Count | Unit::Bytes => text.parse().ok()?,
            Unit::Microseconds => scaled(text, 1e6)?,
            Unit::Ratio => scaled(text, 1e3)?,
            Unit::Gbps => scaled(text, 1e9)?,
        };
        (self.min..=self.max).contains(&value).then_some(value)
    }

    /// Writes a stored value as people would.
    ///
    /// # Errors
    /// The formatter's.
    pub fn write(&self, f: &mut fmt::Formatter<'_>, value: u64) -> fmt::Result {
        let scale = match self.unit {
            _ if value == AUTO => return f.write_str("auto"),
            Unit::Flag => return f.write_str(if value == 0 { "false" } else { "true" }),
            Unit::Choice(words) => return f.write_str(words.get(value as usize).copied().unwrap_or("?")),
            Unit::Count | Unit::Bytes => return write!(f, "{value}"),
            Unit::Microseconds => 1e6,
            Unit::Ratio => 1e3,
            Unit::Gbps => 1e9,
        };
        write!(f, "{}", value as f64 / scale)
    }
}

/// A stored value, written as people would.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(pub &'a Param, pub u64);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, self.1)
    }
}

/// A decimal times `scale`, rounded; `None` for what is no number from 0 to 2^53.
fn scaled(text: &str, scale: f64) -> Option<u64> {
    let value = text.parse::<f64>().ok()? * scale + 0.5;
    // No range contains what is not a number.
    (0.0..9e15).contains(&value).then_some(value as u64)
}

/// Declares the settings of one scheme: a struct of `u64` fields in base units, each with documentation, unit, range
/// and default.
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[doc = $about:literal])+ $field:ident: $unit:expr, $min:expr, $max:expr, $default:expr;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $about])+ pub $field: u64,)*
        }

        impl $name {
            /// Every parameter with its default.
            pub const DEFAULT: Self = Self { $($field: $default,)* };

            /// The table of parameters, in the order of the fields.
            pub const PARAMS: &'static [$crate::params::Param] = {
                #[allow(unused_imports)]
                use $crate::params::Unit::*;
                &[$($crate::params::Param {
                    name: stringify!($field),
                    unit: $unit,
                    min: $min,
                    max: $max,
                    default: $default,
                    about: concat!($($about),+).trim_ascii(),
                },)*]
            };
        }

        impl Default for $name {
            fn default() -> Self {
                Self::DEFAULT
            }
        }

        impl $crate::params::Group for $name {
            fn params(&self) -> &'static [$crate::params::Param] {
                Self::PARAMS
            }

            fn value(&self, index: usize) -> u64 {
                [$(self.$field),*].get(index).copied().unwrap_or(0)
            }

            fn set_value(&mut self, index: usize, value: u64) {
                if let Some(field) = [$(&mut self.$field),*].into_iter().nth(index) {
                    *field = value;
                }
            }
        }
    };
}

/// Declares a struct of several schemes' settings, each under its scheme's name.
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[doc = $about:literal])+ $field:ident $key:literal: $group:ty;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $about])+ pub $field: $group,)*
        }

        impl $name {
            /// Every parameter with its default.
            pub const DEFAULT: Self = Self { $($field: <$group>::DEFAULT,)* };

            /// The schemes that have parameters.
            pub const fn names() -> &'static [&'static str] {
                &[$($key),*]
            }

            /// The settings of `scheme`.
            #[allow(unused_variables)]
            pub fn group(&mut self, scheme: &str) -> Option<&mut dyn $crate::params::Group> {
                match scheme {
                    $($key => Some(&mut self.$field),)*
                    _ => None,
                }
            }

            /// Sets a parameter of `scheme` to what `text` says.
            ///
            /// # Errors
            /// When there is no such scheme or parameter, or the text is no value of it.
            pub fn set(&mut self, scheme: &str, name: &str, text: &str) -> Result<(), $crate::params::ParamError> {
                let none = $crate::params::ParamError::Scheme(Self::names());
                self.group(scheme).ok_or(none)?.set(name, text)
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::DEFAULT
            }
        }
    };
}

pub(crate) use {parameters, settings};

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    parameters! {
        /// For the test.
        pub struct Example {
            /// A time that
            /// goes over two lines.
            gap: Microseconds, 1_000_000, 1_000_000_000, AUTO;
            /// A ratio.
            ratio: Ratio, 1_000, 8_000, 1_500;
            /// A switch.
            on: Flag, 0, 1, 1;
            /// A word.
            rule: Choice(&["paper", "simple"]), 0, 1, 0;
        }
    }

    settings! {
        /// For the test.
        pub struct Both {
            /// The example.
            example "the-example": Example;
        }
    }

    #[test]
    fn values_are_set_as_people_write_them() {
        let mut all = Both::DEFAULT;
        for (name, text) in [("gap", "2.5"), ("ratio", "4"), ("on", "false"), ("rule", "simple")] {
            all.set("the-example", name, text).unwrap();
        }
        assert_eq!(all.example, Example { gap: 2_500_000, ratio: 4_000, on: 0, rule: 1 });
        all.set("the-example", "gap", "auto").unwrap();
        assert_eq!(all.example.gap, AUTO);
        assert_eq!(all.example.value(1), 4_000);
        assert_eq!(Example::PARAMS[0].about, "A time that goes over two lines.");
        let shown = |index: usize| Shown(&Example::PARAMS[index], all.example.value(index)).to_string();
        assert_eq!([0, 1, 2, 3].map(shown), ["auto", "4", "false", "simple"]);
    }

    #[test]
    fn what_is_no_value_is_refused_with_what_is() {
        let mut all = Both::DEFAULT;
        let mut error = |scheme, name, text| all.set(scheme, name, text).unwrap_err().to_string();
        assert_eq!(error("x", "gap", "1"), "no such scheme has parameters; allowed: the-example");
        assert_eq!(error("the-example", "x", "1"), "no such parameter; allowed: gap, ratio, on, rule");
        assert_eq!(error("the-example", "gap", "0.5"), "allowed for `gap`: 1 to 1000 us, or auto");
        assert_eq!(error("the-example", "rule", "x"), "allowed for `rule`: paper, simple");
        for text in ["nan", "inf", "-1", "", "auto", "9", "0.9", "1e300"] {
            assert_eq!(error("the-example", "ratio", text), "allowed for `ratio`: 1 to 8");
        }
        assert_eq!(error("the-example", "on", "1"), "allowed for `on`: true, false");
        assert_eq!(all, Both::DEFAULT);
    }
}
