//! Counters with their names and descriptions.

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its field's name.
    pub name: &'static str,
    /// What it counts, in a sentence or two.
    pub about: &'static str,
    /// Its value.
    pub value: u64,
}

/// Defines a struct of counts, zero by default, with a sum field by field.
#[macro_export]
macro_rules! summed {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Counts:ident { $($(#[$about:meta])* $field_vis:vis $field:ident: $Type:ty,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis struct $Counts {
            $($(#[$about])* $field_vis $field: $Type,)+
        }

        impl core::iter::Sum for $Counts {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
                all.fold(Self::default(), |sum, one| Self { $($field: sum.$field + one.$field,)+ })
            }
        }
    };
}

/// Defines a struct of `u64` counters and, after a semicolon, a part that has counters too.
macro_rules! counters {
    (
        $(#[$meta:meta])*
        pub struct $Stats:ident {
            $($(#[doc = $about:literal])+ $field:ident,)+
            $(; $(#[doc = $part_about:literal])+ $part:ident: $Part:ty,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $Stats {
            $($(#[doc = $about])+ pub $field: u64,)+
            $($(#[doc = $part_about])+ pub $part: $Part,)?
        }

        impl $Stats {
            /// Returns the difference from these counts to `later` ones of the same side.
            #[must_use]
            pub fn delta_to(&self, later: &Self) -> Self {
                Self {
                    $($field: later.$field - self.$field,)+
                    $($part: self.$part.delta_to(&later.$part),)?
                }
            }

            /// Adds the counts of `other`.
            pub fn add(&mut self, other: &Self) {
                $(self.$field = self.$field.saturating_add(other.$field);)+
                $(self.$part.add(&other.$part);)?
            }

            /// Iterates over every counter, parts excluded.
            pub fn iter(&self) -> impl Iterator<Item = $crate::counters::Counter> {
                let all = [$($crate::counters::Counter {
                    name: stringify!($field),
                    about: concat!($($about),+).trim_ascii(),
                    value: self.$field,
                }),+];
                all.into_iter()
            }
        }
    };
}

pub(crate) use counters;
