//! Counters of schemes, declared beside the schemes' rules.

use core::cell::RefCell;

use super::conweave::state::State;
use crate::routes::SwitchConfig;

/// A counter of a scheme.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// The key in results.
    pub key: &'static str,
    /// The title of a column on a terminal.
    pub title: &'static str,
    /// The name, without the unit.
    pub name: &'static str,
    /// `packets`, `bytes`, ...; may be empty.
    pub unit: &'static str,
    /// The meaning.
    pub about: &'static str,
    /// Whether less is better; else it is neutral.
    pub less_is_better: bool,
    /// Whether the value of several switches is their maximum; else the sum.
    pub is_max: bool,
    pub(super) of: fn(&CounterSource<'_>) -> u64,
}

impl PartialEq for Counter {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

pub(super) struct CounterSource<'a> {
    pub(super) switch: &'a SwitchConfig,
    pub(super) words: &'a dyn Fn(u32) -> u64,
    pub(super) state: Option<&'a RefCell<State>>,
}

impl CounterSource<'_> {
    pub(super) fn word(&self, index: u32) -> u64 {
        (self.words)(index)
    }

    /// A value of the switch's [`State`]; 0 without one.
    pub(super) fn state(&self, of: impl Fn(&State) -> u64) -> u64 {
        self.state.map_or(0, |state| of(&state.borrow()))
    }
}

/// Declares the counters of a scheme: meaning, key, title, name, unit, whether `less` is better,
/// whether switches are combined by `sum` or `most`, and how to read it.
macro_rules! scheme_counters {
    ($($(#[doc = $about:literal])+ $key:ident: $title:literal, $name:literal, $unit:literal, $better:ident, $all:ident, $of:expr;)+) => {
        #[cfg(not(target_arch = "bpf"))]
        pub(super) const COUNTERS: &[crate::scheme::counter::Counter] = &[$(crate::scheme::counter::Counter {
            key: stringify!($key),
            title: $title,
            name: $name,
            unit: $unit,
            about: concat!($($about),+).trim_ascii(),
            less_is_better: matches!(stringify!($better).as_bytes(), b"less"),
            is_max: matches!(stringify!($all).as_bytes(), b"most"),
            of: $of,
        }),+];
    };
}
pub(super) use scheme_counters;
