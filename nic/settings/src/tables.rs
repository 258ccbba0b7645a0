//! The tables of the documentation.

use std::sync::Arc;

use serde_json::Value;

use crate::check::header;
use crate::shape::{Field, Scalar, Shape, Table};

/// Returns all settings of `T` in Markdown, one section per table.
pub fn markdown<T: schemars::JsonSchema + 'static>() -> String {
    let mut text = String::new();
    if let Shape::Table(table) = &*Shape::of::<T>() {
        section(&mut text, table, "", &[]);
    }
    text
}

/// The meanings of a declaration's settings.
#[derive(Debug)]
pub struct Meanings(Arc<Shape>);

impl Meanings {
    /// Creates the meanings of `T`.
    pub fn of<T: schemars::JsonSchema + 'static>() -> Self {
        Self(Shape::of::<T>())
    }

    /// Returns the meaning of the setting at `path`, or `None` if there is no such setting.
    pub fn get(&self, path: &str) -> Option<String> {
        self.0.field(path).map(meaning)
    }

    /// Returns the setting at `path`, or `None` if there is no such setting.
    pub fn setting(&self, path: &str) -> Option<Setting> {
        self.0.field(path).map(Setting::of)
    }

    /// Returns the settings of the table, or list of tables, at `path`; otherwise empty.
    pub fn settings(&self, path: &str) -> Vec<Setting> {
        let table = self.0.field(path).and_then(|field| inner(&field.shape));
        table.map_or_else(Vec::new, |(table, _)| table.fields.iter().map(Setting::of).collect())
    }

    /// Returns the paths of all settings of that name, in any table.
    pub fn named(&self, name: &str) -> Vec<String> {
        let mut found = Vec::new();
        walk(&self.0, "", &mut |path, _, field| found.extend((field.name == name).then(|| path.to_string())));
        found
    }

    /// Returns all described words that settings accept.
    pub fn words(&self) -> Vec<Word> {
        let mut found = Vec::new();
        walk(&self.0, "", &mut |path, table, field| {
            let Some(words) = field.shape.described() else { return };
            let is_tag = table.tag.as_ref().is_some_and(|(tag, _)| *tag == field.name);
            for (word, meaning) in words {
                let own = |field: &&Field| is_tag && field.only.contains(word);
                let settings = table.fields.iter().filter(own).map(Setting::of).collect();
                found.push(Word {
                    word: word.clone(),
                    path: path.into(),
                    is_kind: is_tag,
                    meaning: meaning.clone(),
                    settings,
                });
            }
        });
        found
    }

    /// Returns the names of all settings and tables at the top level.
    pub fn top(&self) -> Vec<&str> {
        match &*self.0 {
            Shape::Table(table) => table.fields.iter().map(|field| field.name.as_str()).collect(),
            _ => Vec::new(),
        }
    }
}

fn walk<'a>(shape: &'a Shape, path: &str, visit: &mut dyn FnMut(&str, &'a Table, &'a Field)) {
    let Some((table, _)) = inner(shape) else { return };
    for field in &table.fields {
        let own = if path.is_empty() { field.name.clone() } else { format!("{path}.{}", field.name) };
        visit(&own, table, field);
        walk(&field.shape, &own, visit);
    }
}

/// A word that a setting accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word.
    pub word: String,
    /// Path of the setting.
    pub path: String,
    /// Whether it selects the kind of a table.
    pub is_kind: bool,
    /// Meaning of the word.
    pub meaning: String,
    /// The settings that only this kind has.
    pub settings: Vec<Setting>,
}

/// A setting, described.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Setting {
    /// Name in its table.
    pub name: String,
    /// Unit of the value; empty if it has none.
    pub unit: &'static str,
    /// Default value; empty if it has none.
    pub default: String,
    /// Allowed values.
    pub allowed: String,
    /// Meaning.
    pub meaning: String,
}

impl Setting {
    fn of(field: &Field) -> Self {
        let default = match &field.default {
            _ if field.required => "required".into(),
            Some(Value::Number(number)) => number.as_f64().unwrap_or_default().to_string(),
            Some(Value::Array(items)) => items.iter().map(Value::to_string).collect::<Vec<_>>().join(", "),
            Some(value) => value.to_string(),
            None => String::new(),
        };
        let allowed = format!("{}{}", if field.auto { "\"auto\", or " } else { "" }, field.shape.allowed());
        Self { name: field.name.clone(), unit: unit(&field.name), default, allowed, meaning: meaning(field) }
    }
}

/// Returns the fields of `T` in Markdown, one line each with unit and meaning, parents first.
pub fn keys<T: schemars::JsonSchema + 'static>() -> String {
    fn lines(text: &mut String, shape: &Shape, prefix: &str) {
        let Shape::Table(table) = shape else { return };
        for field in &table.fields {
            let name = format!("{prefix}{}", field.name);
            *text += &format!("| `{name}` | {} | {} |\n", unit(&field.name), meaning(field).replace('|', "\\|"));
            match &field.shape {
                Shape::List(list) => lines(text, &list.of, &format!("{name}[].")),
                inner => lines(text, inner, &format!("{name}.")),
            }
        }
    }
    let mut text = String::from("| key | unit | meaning |\n|---|---|---|\n");
    lines(&mut text, &Shape::of::<T>(), "");
    text
}

/// Writes the section of the table at `path`, described by `about`, then those of nested tables.
fn section(text: &mut String, table: &Table, about: &str, path: &[&str]) {
    let rows: Vec<&Field> = table.fields.iter().filter(|field| inner(&field.shape).is_none()).collect();
    let title = header(path);
    *text += &format!("\n## {}\n", if path.is_empty() { title } else { format!("`{title}`") });
    if !about.is_empty() {
        *text += &format!("\n{about}\n");
    }
    if !rows.is_empty() {
        *text += "\n| field | unit | default | allowed | meaning |\n|---|---|---|---|---|\n";
        rows.iter().for_each(|field| *text += &row(field));
    }
    for field in &table.fields {
        if let Some((inside, listed)) = inner(&field.shape) {
            let path: Vec<&str> =
                path.iter().copied().chain([field.name.as_str()]).chain(listed.then_some("0")).collect();
            section(text, inside, &meaning(field), &path);
        }
    }
}

/// Returns the table in a field, and whether it is a list of tables.
fn inner(shape: &Shape) -> Option<(&Table, bool)> {
    match shape {
        Shape::Table(table) => Some((table, false)),
        Shape::List(list) => inner(&list.of).map(|(table, _)| (table, true)),
        Shape::Scalar(_) => None,
    }
}

fn row(field: &Field) -> String {
    let Setting { name, unit, default, allowed, meaning } = Setting::of(field);
    let cells = [unit.to_string(), default, allowed, meaning];
    format!("| `{name}` | {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

fn meaning(field: &Field) -> String {
    let mut parts = vec![field.about.clone()];
    if let Shape::Scalar(Scalar::Choice(words)) = &field.shape {
        let described = words.iter().filter(|(_, about)| !about.is_empty());
        parts.extend(described.map(|(word, about)| format!("`{word}`: {about}")));
    }
    if !field.only.is_empty() {
        parts.push(format!("Only with {}.", field.only.join(", ")));
    }
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

/// Returns the unit that is the name's suffix, or an empty string.
fn unit(name: &str) -> &'static str {
    let units = [("_us", "us"), ("_gbps", "Gb/s"), ("_bytes", "bytes"), ("_packets", "packets"), ("_percent", "%")];
    let of = |(suffix, _): &(&str, &str)| name.ends_with(suffix) || *name == suffix[1..];
    units.iter().find(|unit| of(unit)).map_or("", |(_, unit)| unit)
}
