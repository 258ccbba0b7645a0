//! Settings that are declared once, as Rust structs.
//!
//! A struct with `#[derive(Serialize, Deserialize, JsonSchema)]` says what a table of a TOML file may hold: field names,
//! types, defaults (`#[serde(default)]`), ranges (`#[schemars(range(..))]`) and, in the doc comments, what each field means.
//! From that one declaration come
//! - the values, by [`Document::read`], from a file and from assignments `path=value` that replace parts of it;
//! - messages that name file, line and column, or the assignment, and what is allowed there ([`Mistake`]);
//! - a JSON Schema, by [`schema`], with which editors complete and check files;
//! - the tables of the documentation, by [`markdown`].
//!
//! A field that is an `Option` takes `"auto"` too, which means the same as leaving it out.
//!
//! A field that takes one value may have a list of values in a file: [`Document::variants`] makes a document for each combination.
//! A declaration with `#[schemars(extend("x-single" = true))]` refuses such a list. One with `#[schemars(extend("x-file" = true))]` is
//! the path of a file.
//!
//! Connections have the same settings with and without a scenario: [`Transport`] declares them.
#![forbid(unsafe_code)]

mod axes;
mod check;
mod document;
mod file_schema;
mod mistake;
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
pub use file_schema::file_schema;
pub use mistake::Mistake;
pub use schema::schema;
pub use tables::{Meanings, Setting, Word, keys, markdown};
pub use text::{MAX_SETTINGS_BYTES, may_quote, read_file, read_text};
pub use transport::{ConnectionPath, Connections, Ip, Transport, one_or_list_of};
