//! Declares the settings that scenario files may contain, with their defaults.

/// Defines a scheme's settings and their enumerations as types of scenarios. A field's default
/// follows its type; any field may be omitted.
macro_rules! settings {
    () => {};
    (
        $(#[$about:meta])*
        pub struct $Name:ident {
            $($(#[doc = $about_field:literal])+ $(#[schemars($($schema:tt)*)])? pub $field:ident: $Type:ty = $default:expr,)*
        }
        $($rest:tt)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        #[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema), schemars(inline))]
        pub struct $Name {
            $(
                $(#[doc = $about_field])+
                $(#[cfg_attr(any(test, feature = "schema"), schemars($($schema)*))])?
                pub $field: $Type,
            )*
        }

        impl Default for $Name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        $crate::settings::settings! { $($rest)* }
    };
    (
        $(#[$about:meta])*
        pub enum $Name:ident { $($(#[$about_variant:meta])* $variant:ident,)+ }
        $($rest:tt)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema), schemars(inline))]
        pub enum $Name {
            $($(#[$about_variant])* $variant,)+
        }

        $crate::settings::settings! { $($rest)* }
    };
}

pub(crate) use settings;
