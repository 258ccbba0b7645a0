//! Kinds of a thing that are chosen by name: one enum that names them, one type that is any of them.

/// Makes both from one line per kind: variant, name, type. Every type implements the `Scheme` in scope.
///
/// Where it stands, `dispatch!(any, inner => call)` then calls a method of whichever kind it is.
macro_rules! kinds {
    (
        $(#[$about_kind:meta])* $Kind:ident;
        $(#[$about_any:meta])* $Any:ident;
        $($(#[doc = $about:literal])+ $variant:ident $name:literal $scheme:ty;)+
    ) => {
        $(#[$about_kind])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $Kind {
            $($(#[doc = $about])+ $variant,)+
        }

        impl $Kind {
            /// Every kind, in the order in which tables show them.
            pub const ALL: [Self; Self::names().len()] = [$(Self::$variant),+];

            /// The names that [`FromStr`](core::str::FromStr) takes, aliases left out.
            pub const fn names() -> &'static [&'static str] {
                &[$($name),+]
            }

            /// Its name.
            pub const fn name(self) -> &'static str {
                Self::names()[self as usize]
            }

            /// What it does, in a sentence or two.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => concat!($($about),+).trim_ascii(),)+ }
            }

            /// Bytes of state of a connection: what a NIC would hold for each, settings left out.
            pub const fn state_bytes(self) -> usize {
                match self { $(Self::$variant => <$scheme as Scheme>::STATE_BYTES,)+ }
            }
        }

        impl core::fmt::Display for $Kind {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }

        $(#[$about_any])*
        #[derive(Clone, Debug)]
        pub enum $Any {
            $($(#[doc = $about])+ $variant($scheme),)+
        }

        /// Maps every kind to what its type says: `of_scheme!(kind, Type => value)`.
        #[allow(unused_macros)]
        macro_rules! of_scheme {
            ($kind:expr, $of:ident => $value:expr) => {
                match $kind { $($Kind::$variant => { type $of = $scheme; $value })+ }
            };
        }

        /// Makes the kind's own: `make!(kind, arguments)`.
        macro_rules! make {
            ($kind:expr, $arguments:tt) => {
                match $kind { $($Kind::$variant => $Any::$variant(Scheme::make $arguments),)+ }
            };
        }

        /// Calls a method of whichever kind it is.
        macro_rules! dispatch {
            ($any:expr, $inner:ident => $call:expr) => {
                match $any { $($Any::$variant($inner) => $call,)+ }
            };
        }
    };
}

pub(crate) use kinds;
