//! What the switches with a scheme count, each declared beside the scheme's rules.

use core::cell::RefCell;

use super::conweave::state::State;
use crate::routes::SwitchConfig;

/// Something that the switches with a scheme count.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// Its key in results.
    pub key: &'static str,
    /// Above a column on a terminal.
    pub title: &'static str,
    /// In words, without the unit.
    pub name: &'static str,
    /// `packets`, `bytes`, ...; empty for what has none.
    pub unit: &'static str,
    /// What it means.
    pub about: &'static str,
    /// Whether less of it is better; else it says how a run went, not how well.
    pub less_is_better: bool,
    /// Whether several switches together count the greatest of their values; else they count the sum.
    pub is_most: bool,
    /// Reads the counter of a switch.
    pub(super) of: fn(&Seen<'_>) -> u64,
}

impl PartialEq for Counter {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

/// A switch whose counters are read.
pub(super) struct Seen<'a> {
    pub(super) switch: &'a SwitchConfig,
    pub(super) words: &'a dyn Fn(u32) -> u64,
    pub(super) state: Option<&'a RefCell<State>>,
}

impl Seen<'_> {
    /// A word of the switches' memory.
    pub(super) fn word(&self, index: u32) -> u64 {
        (self.words)(index)
    }

    /// A value of the switch's [`State`]; 0 without one.
    pub(super) fn state(&self, of: impl Fn(&State) -> u64) -> u64 {
        self.state.map_or(0, |state| of(&state.borrow()))
    }
}

/// Declares the counters of a scheme: what each means, its key, its title, its name, its unit, whether `less` is better, whether that of all
/// switches is the `sum` or the `most`, and how it is read.
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
            is_most: matches!(stringify!($all).as_bytes(), b"most"),
            of: $of,
        }),+];
    };
}
pub(super) use scheme_counters;
