//! Schemes that are chosen by name: their names, their settings, and one type for all of them.

use core::fmt;

/// Defines four types from one line per scheme: variant, name (`| "other"` adds an alias), key of
/// its settings, type. Every type implements the `Scheme` in scope.
///
/// - `$Kind`: the schemes; the presets after `presets:`, each a name for a scheme with some settings
///   changed by a function; and those after `pairs:`, two schemes at once with the settings of both.
/// - `$Any`: any of the schemes, or one of another crate, `$Own`.
/// - `$Config`: the settings of one scheme, or the constructor of another crate's, `$Make`.
/// - `$All`: the settings of every scheme under its name, as in a scenario.
macro_rules! kinds {
    (
        $(#[$about_kind:meta])* $Kind:ident, $what:literal;
        $(#[$about_any:meta])* $Any:ident or $Own:ty;
        $(#[$about_config:meta])* $Config:ident or $Make:ty;
        $(#[$about_all:meta])* $All:ident;
        $($(#[doc = $about:literal])+ $variant:ident $name:literal $(| $alias:literal)? $field:ident $scheme:ty;)+
        $(presets: $(
            $(#[doc = $about_preset:literal])+ $preset:ident $preset_name:literal $base:ident $base_field:ident $change:expr;
        )+)?
        $(pairs: $(
            $(#[doc = $about_pair:literal])+ $pair:ident $pair_name:literal ($first:ident, $second:ident) $pair_scheme:ty;
        )+)?
    ) => {
        $(#[$about_kind])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema), schemars(inline))]
        pub enum $Kind {
            $($(#[doc = $about])+ #[serde(rename = $name $(, alias = $alias)?)] $(#[cfg_attr(any(test, feature = "schema"), schemars(extend("x-alias" = $alias)))])? $variant,)+
            $($($(#[doc = $about_preset])+ #[serde(rename = $preset_name)] $preset,)+)?
            $($($(#[doc = $about_pair])+ #[serde(rename = $pair_name)] $pair,)+)?
        }

        impl $Kind {
            /// Every kind, in the order of tables.
            pub const ALL: [Self; Self::names().len()] = [$(Self::$variant,)+ $($(Self::$preset,)+)? $($(Self::$pair,)+)?];

            /// Returns the names, without aliases.
            pub const fn names() -> &'static [&'static str] {
                &[$($name,)+ $($($preset_name,)+)? $($($pair_name,)+)?]
            }

            /// Returns the kind with that name or alias.
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($name $(| $alias)? => Some(Self::$variant),)+
                    $($($preset_name => Some(Self::$preset),)+)?
                    $($($pair_name => Some(Self::$pair),)+)?
                    _ => None,
                }
            }

            /// Its name.
            pub const fn name(self) -> &'static str {
                Self::names()[self as usize]
            }

            /// What it does, in a sentence or two.
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($about),+).trim_ascii(),)+
                    $($(Self::$preset => concat!($($about_preset),+).trim_ascii(),)+)?
                    $($(Self::$pair => concat!($($about_pair),+).trim_ascii(),)+)?
                }
            }

            /// Returns the keys of its settings in a scenario: its scheme's, or both of a pair.
            pub const fn settings_names(self) -> &'static [&'static str] {
                match self {
                    $(Self::$variant => &[$name],)+
                    $($(Self::$preset => Self::$base.settings_names(),)+)?
                    $($(Self::$pair => &[stringify!($first), stringify!($second)],)+)?
                }
            }

            /// Bytes of state that a NIC would hold per connection, settings excluded.
            pub const fn state_bytes(self) -> usize {
                match self {
                    $(Self::$variant => <$scheme as Scheme>::STATE_BYTES,)+
                    $($(Self::$preset => Self::$base.state_bytes(),)+)?
                    $($(Self::$pair => <$pair_scheme as Scheme>::STATE_BYTES,)+)?
                }
            }

            /// Selects its settings from those of all schemes.
            pub fn config(self, all: &$All) -> $Config {
                match self {
                    $(Self::$variant => $Config::$variant(all.$field),)+
                    $($(Self::$preset => $Config::$base($change(all.$base_field)),)+)?
                    $($(Self::$pair => $Config::$pair((all.$first, all.$second)),)+)?
                }
            }
        }

        impl core::str::FromStr for $Kind {
            type Err = UnknownName;

            fn from_str(name: &str) -> Result<Self, UnknownName> {
                let aliases = &[$($(($alias, $name),)?)+];
                Self::named(name).ok_or(UnknownName { what: $what, names: Self::names(), aliases })
            }
        }

        impl core::fmt::Display for $Kind {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }

        $(#[$about_any])*
        #[derive(Debug)]
        pub enum $Any {
            $($(#[doc = $about])+ $variant($scheme),)+
            $($($(#[doc = $about_pair])+ $pair($pair_scheme),)+)?
            /// A scheme of another crate.
            Custom($Own),
        }

        $(#[$about_config])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Config {
            $($(#[doc = $about])+ $variant(<$scheme as Scheme>::Config),)+
            $($($(#[doc = $about_pair])+ $pair(<$pair_scheme as Scheme>::Config),)+)?
            /// A scheme of another crate.
            Custom($Make),
        }

        impl From<$Make> for $Config {
            fn from(own: $Make) -> Self {
                Self::Custom(own)
            }
        }

        impl From<$Kind> for $Config {
            /// Returns the published settings.
            fn from(kind: $Kind) -> Self {
                kind.config(&$All::default())
            }
        }

        $(#[$about_all])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
        #[serde(default)]
        pub struct $All {
            $($(#[doc = $about])+ #[serde(rename = $name)] pub $field: <$scheme as Scheme>::Config,)+
        }

        /// Maps settings to a value by scheme: `of_scheme!(config, Type => value, otherwise)`.
        #[allow(unused_macros, reason = "not every user of this macro needs it")]
        macro_rules! of_scheme {
            ($config:expr, $of:ident => $value:expr, $otherwise:expr) => {
                match $config {
                    $($Config::$variant(_) => { type $of = $scheme; $value })+
                    $($($Config::$pair(_) => { type $of = $pair_scheme; $value })+)?
                    $Config::Custom(_) => $otherwise,
                }
            };
        }

        /// Replaces the settings of a scheme: `map!(config, own, Type => new)`.
        #[allow(unused_macros, reason = "not every user of this macro needs it")]
        macro_rules! map {
            ($config:expr, $own:ident, $of:ident => $value:expr) => {
                match $config {
                    $($Config::$variant($own) => { type $of = $scheme; $Config::$variant($value) })+
                    $($($Config::$pair($own) => { type $of = $pair_scheme; $Config::$pair($value) })+)?
                    $Config::Custom(make) => $Config::Custom(*make),
                }
            };
        }

        /// Creates the scheme of settings: `make!(config, own => (own, arguments), otherwise)`.
        macro_rules! make {
            ($config:expr, $own:ident => $arguments:tt, $otherwise:expr) => {
                match $config {
                    $($Config::$variant($own) => $Any::$variant(Scheme::make $arguments),)+
                    $($($Config::$pair($own) => $Any::$pair(Scheme::make $arguments),)+)?
                    $Config::Custom($own) => $Any::Custom($otherwise),
                }
            };
        }

        /// Calls a method of the scheme.
        macro_rules! dispatch {
            ($any:expr, $inner:ident => $call:expr) => {
                match $any {
                    $($Any::$variant($inner) => $call,)+
                    $($($Any::$pair($inner) => $call,)+)?
                    $Any::Custom($inner) => $crate::kinds::outlined(|| $call),
                }
            };
        }
    };
}

pub(crate) use kinds;

/// Defines methods that forward to the scheme. Needs the `dispatch!` of [`kinds!`].
macro_rules! forward {
    () => {};
    (
        $(#[$about:meta])*
        fn $name:ident(&mut $this:ident $(, $argument:ident: $Type:ty)*) $(-> $Result:ty)?;
        $($rest:tt)*
    ) => {
        $(#[$about])*
        fn $name(&mut $this $(, $argument: $Type)*) $(-> $Result)? {
            dispatch!($this, scheme => scheme.$name($($argument),*))
        }

        $crate::kinds::forward! { $($rest)* }
    };
    (
        $(#[$about:meta])*
        fn $name:ident(&$this:ident $(, $argument:ident: $Type:ty)*) $(-> $Result:ty)?;
        $($rest:tt)*
    ) => {
        $(#[$about])*
        fn $name(&$this $(, $argument: $Type)*) $(-> $Result)? {
            dispatch!($this, scheme => scheme.$name($($argument),*))
        }

        $crate::kinds::forward! { $($rest)* }
    };
}

pub(crate) use forward;

/// Calls a scheme of another crate out of line, so that the built-in ones save no registers for it.
#[cold]
#[inline(never)]
pub(crate) fn outlined<R>(call: impl FnOnce() -> R) -> R {
    call()
}

/// The constructor, of type `Make`, of another crate's algorithm.
pub struct Custom<Make: ?Sized + 'static> {
    /// Its name, for tables.
    pub name: &'static str,
    /// Creates one for a new connection. `Box::leak` makes a closure with settings static.
    pub make: &'static Make,
}

impl<Make: ?Sized> Clone for Custom<Make> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Make: ?Sized> Copy for Custom<Make> {}

impl<Make: ?Sized> fmt::Debug for Custom<Make> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<Make: ?Sized> PartialEq for Custom<Make> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && core::ptr::addr_eq(self.make, other.make)
    }
}

impl<Make: ?Sized> Eq for Custom<Make> {}

/// The error for a name that is not in the list; its message is the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownName {
    pub(crate) what: &'static str,
    pub(crate) names: &'static [&'static str],
    /// Aliases and their names.
    pub(crate) aliases: &'static [(&'static str, &'static str)],
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {}; allowed: {}", self.what, self.names[0])?;
        self.names[1..].iter().try_for_each(|name| write!(f, ", {name}"))?;
        self.aliases.iter().try_for_each(|(alias, name)| write!(f, ", {alias} (same as {name})"))
    }
}

impl core::error::Error for UnknownName {}
