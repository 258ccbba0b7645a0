//! Settings that are declared once, as Rust structs.
//!
//! A struct with `#[derive(Serialize, Deserialize, JsonSchema)]` declares a table of a TOML file:
//! field names, types, defaults (`#[serde(default)]`), ranges (`#[schemars(range(..))]`) and, as
//! doc comments, meanings. From this declaration come
//! - values, by [`Document::read`], from a file and from assignments `path=value` that override it;
//! - messages with file, line and column, or the assignment, and what is allowed ([`Error`]);
//! - a JSON Schema, by [`schema`], for completion and checks in editors;
//! - the tables of the documentation, by [`markdown`].
//!
//! An `Option` accepts `"auto"` too, the same as leaving it out. A field of one value may have a
//! list in a file: [`Document::variants`] makes one document per combination, unless the
//! declaration has `#[schemars(extend("x-single" = true))]`. `"x-file"` marks the path of a file.
//!
//! [`Transport`] declares the settings of connections, with and without a scenario.
#![forbid(unsafe_code)]

mod axes;
mod check;
mod document;
mod error;
mod file_schema;
mod schema;
mod shape;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod transport;
mod variants;

pub use axes::{Axis, AxisValue};
pub use check::did_you_mean;
pub use document::{Document, assignment};
pub use error::Error;
pub use file_schema::file_schema;
pub use schema::schema;
pub use tables::{Meanings, Setting, Word, keys, markdown};
pub use text::{MAX_SETTINGS_BYTES, may_quote, read_file, read_text};
pub use transport::{ConnectionPath, Connections, Ip, Transport, one_or_list_of};
