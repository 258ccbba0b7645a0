//! Structs of measures, with fields declared once, with names, unit and meaning.

/// The direction in which a measure improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Smaller is better.
    Less,
    /// Larger is better.
    More,
    /// Neutral.
    Neither,
}

/// A measure: its declaration, and its accessor `of`.
#[derive(Clone, Copy, Debug)]
pub struct Measure<Of> {
    /// Key in `summary.json`, and column name.
    pub key: &'static str,
    /// Column title on terminals, with the unit.
    pub title: &'static str,
    /// Full name, without the unit.
    pub name: &'static str,
    /// `us`, `bytes`, ...; may be empty.
    pub unit: &'static str,
    /// Meaning.
    pub about: &'static str,
    /// Decimals in tables.
    pub digits: usize,
    /// The direction in which it improves.
    pub better: Better,
    pub(super) is_count: bool,
    pub(super) of: Of,
}

impl<F> Measure<ValueOf<F>> {
    pub(super) fn map<Of>(&self, of: fn(ValueOf<F>) -> Of) -> Measure<Of> {
        let Self { key, title, name, unit, about, digits, better, is_count, of: value } = *self;
        Measure { key, title, name, unit, about, digits, better, is_count, of: of(value) }
    }
}

pub(super) type ValueOf<F> = fn(&F) -> Option<f64>;

pub(super) trait Value {
    const IS_COUNT: bool;
    fn value(self) -> Option<f64>;
}

impl Value for u64 {
    const IS_COUNT: bool = true;
    fn value(self) -> Option<f64> {
        Some(self as f64)
    }
}

impl Value for f64 {
    const IS_COUNT: bool = false;
    fn value(self) -> Option<f64> {
        Some(self)
    }
}

impl Value for Option<f64> {
    const IS_COUNT: bool = false;
    fn value(self) -> Option<f64> {
        self
    }
}

/// Declares fields by type, terminal title, name, unit, decimals and which values are better.
macro_rules! figures {
    (
        $(#[$meta:meta])* $name:ident;
        $($(#[doc = $about:literal])+ $key:ident: $type:ty, $title:literal, $words:literal, $unit:literal, $digits:literal, $better:ident;)+
    ) => {
        #[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        $(#[$meta])*
        pub struct $name {
            $($(#[doc = $about])+ pub $key: $type,)+
        }

        impl $name {
            pub(super) const MEASURES: &[crate::results::field::Measure<crate::results::field::ValueOf<Self>>] = &[$(crate::results::field::Measure {
                key: stringify!($key),
                title: $title,
                name: $words,
                unit: $unit,
                about: concat!($($about),+).trim_ascii(),
                digits: $digits,
                better: crate::results::field::Better::$better,
                is_count: <$type as crate::results::field::Value>::IS_COUNT,
                of: |figures| crate::results::field::Value::value(figures.$key),
            }),+];
        }
    };
}
pub(super) use figures;
