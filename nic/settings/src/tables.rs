//! The tables of the documentation.

use std::sync::Arc;

use serde_json::Value;

use crate::check::header;
use crate::shape::{Field, Scalar, Shape, Table};

/// All settings of `T` in Markdown, with a section for each table.
pub fn markdown<T: schemars::JsonSchema + 'static>() -> String {
    let mut text = String::new();
    if let Shape::Table(table) = &*Shape::of::<T>() {
        section(&mut text, table, "", &[]);
    }
    text
}

/// What the settings of a declaration mean.
#[derive(Debug)]
pub struct Meanings(Arc<Shape>);

impl Meanings {
    /// The tables of `T`.
    pub fn of<T: schemars::JsonSchema + 'static>() -> Self {
        Self(Shape::of::<T>())
    }

    /// What the setting at `path` means; `None` where there is none.
    pub fn get(&self, path: &str) -> Option<String> {
        self.0.field(path).map(meaning)
    }

    /// The setting at `path`; `None` where there is none.
    pub fn setting(&self, path: &str) -> Option<Setting> {
        self.0.field(path).map(Setting::of)
    }

    /// The settings in the table at `path`, or in the tables of the list there; none where there is neither.
    pub fn settings(&self, path: &str) -> Vec<Setting> {
        let table = self.0.field(path).and_then(|field| inner(&field.shape));
        table.map_or_else(Vec::new, |(table, _)| table.fields.iter().map(Setting::of).collect())
    }

    /// The paths of all settings of that name, whatever table they stand in.
    pub fn named(&self, name: &str) -> Vec<String> {
        let mut found = Vec::new();
        walk(&self.0, "", &mut |path, _, field| found.extend((field.name == name).then(|| path.to_string())));
        found
    }

    /// All words with a meaning that a setting takes, by the setting.
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

    /// The names of all settings and tables at the top.
    pub fn top(&self) -> Vec<&str> {
        match &*self.0 {
            Shape::Table(table) => table.fields.iter().map(|field| field.name.as_str()).collect(),
            _ => Vec::new(),
        }
    }
}

/// Calls `visit` with the path, the table and the field of every setting.
fn walk<'a>(shape: &'a Shape, path: &str, visit: &mut dyn FnMut(&str, &'a Table, &'a Field)) {
    let Some((table, _)) = inner(shape) else { return };
    for field in &table.fields {
        let own = if path.is_empty() { field.name.clone() } else { format!("{path}.{}", field.name) };
        visit(&own, table, field);
        walk(&field.shape, &own, visit);
    }
}

/// A word that a setting takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word.
    pub word: String,
    /// The path of the setting.
    pub path: String,
    /// Whether it says of which kind a table is.
    pub is_kind: bool,
    /// What it means.
    pub meaning: String,
    /// The settings that go with this kind and not with all.
    pub settings: Vec<Setting>,
}

/// A setting, in words.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Setting {
    /// Its name in its table.
    pub name: String,
    /// The unit of its value; empty where it has none.
    pub unit: &'static str,
    /// What it is if nobody sets it; empty where nothing is.
    pub default: String,
    /// What it may be.
    pub allowed: String,
    /// What it means.
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

/// The fields of `T` in Markdown, a line for each with its unit and meaning. A field with fields of its own is followed by these.
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

/// Writes the section of the table at `path`, then those of the tables in it. `about` says what the table is for.
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

/// The table in a field, and whether it is a list of them.
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

/// What the field means: its comment, its words, and the variants that have it.
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

/// The unit in which a name ends; empty if it ends in none.
fn unit(name: &str) -> &'static str {
    let units = [("_us", "us"), ("_gbps", "Gb/s"), ("_bytes", "bytes"), ("_packets", "packets"), ("_percent", "%")];
    let of = |(suffix, _): &(&str, &str)| name.ends_with(suffix) || *name == suffix[1..];
    units.iter().find(|unit| of(unit)).map_or("", |(_, unit)| unit)
}
