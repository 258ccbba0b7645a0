//! A settings file, and assignments that override parts of it. Each value has its origin.

use std::io;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::axes::Axis;
use crate::error::{Error, Origin};
use crate::shape::Shape;
use crate::text::{MAX_SETTINGS_BYTES, read_file};

/// Settings as the user wrote them, not yet checked against a declaration.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    file: PathBuf,
    text: String,
    pub(crate) root: Node,
    pub(crate) axes: Vec<Axis>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub at: Origin,
    /// Origin of the key; of an entry of a list, which has no key, that of the value.
    pub named_at: Origin,
    pub given: String,
    pub value: Tree,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tree {
    Scalar(Value),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
}

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read or is not TOML.
    pub fn load(file: &Path) -> Result<Self, Error> {
        let text = read_file(file, MAX_SETTINGS_BYTES).map_err(|error| Error {
            location: file.display().to_string(),
            message: match error.kind() {
                io::ErrorKind::NotFound => "no such file; `spray init FILE` creates a scenario to begin with".into(),
                _ => format!("cannot be read: {error}"),
            },
        })?;
        Self::parse(file, &text)
    }

    /// Parses `text`. Messages name `file`, and relative paths in it are relative to its folder.
    ///
    /// # Errors
    /// The text is not TOML.
    pub fn parse(file: &Path, text: &str) -> Result<Self, Error> {
        let root = Node::of(Tree::Table(Vec::new()), &Origin::File(0), "");
        let mut document = Self { file: file.to_path_buf(), text: text.into(), root, axes: Vec::new() };
        let table = DeTable::parse(text).map_err(|error| document.not_toml(&error))?;
        document.root.value = nodes(text, table.get_ref(), None);
        Ok(document)
    }

    /// Assigns `value`, in TOML or unquoted text, to the setting at `path`, such as
    /// `transport.reps.buffer`. A number in the path is an index in a list; `+`, or the index after
    /// the last, appends. `label` is the assignment as the user wrote it, for messages.
    ///
    /// # Errors
    /// A part of the path is no table or list, or `value` is an invalid table, list or string.
    pub fn assign(&mut self, path: &str, value: &str, label: &str) -> Result<(), Error> {
        let origin = Origin::Assignment(label.into());
        let error = |message: String| Error { location: label.into(), message };
        let node = assigned(value, &origin).map_err(error)?;
        let (mut here, mut passed) = (&mut self.root, Vec::new());
        for name in path.split('.') {
            let entries = here.entries();
            here = here.child(name, &origin).ok_or_else(|| {
                let parent = if passed.is_empty() { path.into() } else { passed.join(".") };
                error(match entries {
                    Some(entries) if name.parse::<usize>().is_ok() => no_entry(&parent, entries),
                    _ => format!(
                        "`{name}` does not exist in `{parent}`; allowed: PATH=VALUE, as in transport.reps.buffer=4"
                    ),
                })
            })?;
            passed.push(name);
        }
        *here = node;
        Ok(())
    }

    /// Returns the settings, checked against the declaration of `T`.
    ///
    /// # Errors
    /// The first setting that is unknown, missing, of the wrong type or out of range.
    pub fn read<T: DeserializeOwned + JsonSchema + 'static>(&self) -> Result<T, Error> {
        let shape = Shape::of::<T>();
        let value = self.checked(&shape)?;
        serde_path_to_error::deserialize(value).map_err(|error| {
            let path = error.path().to_string().replace('[', ".").replace(']', "");
            self.refused(&path, &shape, error.inner())
        })
    }

    /// Renames the field `old` of the table at `path`, or the text `old` there, if it exists.
    pub fn rename(&mut self, path: &str, old: &str, new: &str) -> bool {
        let renamed = match self.find_mut(path).map(|node| &mut node.value) {
            Some(Tree::Scalar(text)) if *text == *old => Some(text).map(|text| *text = new.into()),
            Some(Tree::Table(all)) => all.iter_mut().find(|(name, _)| name == old).map(|(name, _)| *name = new.into()),
            _ => None,
        };
        renamed.is_some()
    }

    /// Creates an error at the setting at `path` or, if it is not set, at its table.
    pub fn error(&self, path: &str, message: impl Into<String>) -> Error {
        self.error_from(&self.nearest(path).at, message)
    }

    /// Returns whether an assignment set `path` or a part of it.
    pub fn is_assigned(&self, path: &str) -> bool {
        self.find(path).is_some_and(Node::is_assigned)
    }

    /// Returns the base of relative paths in the setting at `path`: the folder of the file, or the
    /// working directory if an assignment set it.
    pub fn folder(&self, path: &str) -> &Path {
        match self.nearest(path).at {
            Origin::File(_) => self.file.parent().unwrap_or(Path::new("")),
            Origin::Assignment(_) => Path::new(""),
        }
    }

    fn not_toml(&self, error: &toml::de::Error) -> Error {
        let span = error.span().unwrap_or(0..0);
        let message = match error.message() {
            "duplicate key" => {
                let key = self.text.get(span.clone()).unwrap_or_default();
                format!("duplicate key `{key}`; allowed: each field once in its table, and a table under one header")
            }
            other => {
                let other = other.lines().collect::<Vec<_>>().join("; ");
                format!("not TOML: {other}; allowed: NAME = VALUE and [TABLE], as `spray init` writes them")
            }
        };
        self.error_from(&Origin::File(span.start), message)
    }

    pub(crate) fn error_from(&self, origin: &Origin, message: impl Into<String>) -> Error {
        let location = match origin {
            Origin::Assignment(label) => label.clone(),
            Origin::File(byte) => {
                let before = self.text.get(..*byte).unwrap_or(&self.text);
                let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
                let (line, column) = (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1);
                format!("{}:{line}:{column}", self.file.display())
            }
        };
        Error { location, message: message.into() }
    }

    /// Returns the node at `path`, or its last ancestor.
    pub(crate) fn nearest(&self, path: &str) -> &Node {
        path.split('.').try_fold(&self.root, |node, name| node.get(name).ok_or(node)).unwrap_or_else(|last| last)
    }

    /// Returns whether `path` is set.
    pub fn has(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    fn find(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(&self.root, Node::get)
    }

    pub(crate) fn find_mut(&mut self, path: &str) -> Option<&mut Node> {
        path.split('.').try_fold(&mut self.root, Node::get_mut)
    }
}

impl Node {
    pub fn get(&self, name: &str) -> Option<&Self> {
        match &self.value {
            Tree::Scalar(_) => None,
            Tree::List(items) => items.get(name.parse::<usize>().ok()?),
            Tree::Table(fields) => {
                let own = fields.iter().find(|(known, _)| known == name).map(|(_, node)| node);
                // A single table is the first entry of its list.
                own.or_else(|| (name == "0").then_some(self))
            }
        }
    }

    fn get_mut(&mut self, name: &str) -> Option<&mut Self> {
        match &mut self.value {
            Tree::Scalar(_) => None,
            Tree::List(items) => items.get_mut(name.parse::<usize>().ok()?),
            Tree::Table(fields) => fields.iter_mut().find(|(known, _)| known == name).map(|(_, node)| node),
        }
    }

    fn entries(&self) -> Option<usize> {
        if let Tree::List(items) = &self.value { Some(items.len()) } else { None }
    }

    /// Returns the child of that name, created if missing.
    fn child(&mut self, name: &str, origin: &Origin) -> Option<&mut Self> {
        let empty = || Self::of(Tree::Table(Vec::new()), origin, "a table");
        if matches!(name, "+" | "0") && matches!(&self.value, Tree::Table(fields) if fields.is_empty()) {
            self.value = Tree::List(Vec::new());
        }
        if name == "0" && matches!(self.value, Tree::Table(_)) {
            return Some(self);
        }
        if name == "+" && matches!(self.value, Tree::Table(_)) {
            let alone = self.clone();
            self.value = Tree::List(vec![alone]);
        }
        match &mut self.value {
            Tree::Scalar(_) => None,
            Tree::List(items) => {
                let index = if name == "+" { items.len() } else { name.parse().ok()? };
                if index == items.len() {
                    items.push(empty());
                }
                items.get_mut(index)
            }
            Tree::Table(fields) => {
                let index = fields.iter().position(|(known, _)| known == name).unwrap_or(fields.len());
                if index == fields.len() {
                    fields.push((name.into(), empty()));
                }
                Some(&mut fields[index].1)
            }
        }
    }

    fn of(value: Tree, origin: &Origin, given: &str) -> Self {
        Self { at: origin.clone(), named_at: origin.clone(), given: given.into(), value }
    }

    fn is_assigned(&self) -> bool {
        matches!(self.at, Origin::Assignment(_))
            || match &self.value {
                Tree::Scalar(_) => false,
                Tree::List(items) => items.iter().any(Self::is_assigned),
                Tree::Table(fields) => fields.iter().any(|(_, node)| node.is_assigned()),
            }
    }
}

/// The message for a path to an entry that `list` does not have.
pub(crate) fn no_entry(list: &str, entries: usize) -> String {
    let last = entries.checked_sub(1).map_or_else(String::new, |last| format!("0 to {last}, or "));
    format!("`{list}` has {entries} entries; allowed: {last}`{list}.+`, which adds one")
}

/// Splits `path=value`.
///
/// # Errors
/// The text has another form.
pub fn assignment(text: &str) -> Result<(&str, &str), Error> {
    let parts = text.split_once('=').map(|(path, value)| (path.trim(), value.trim()));
    parts.filter(|(path, value)| !path.is_empty() && !value.is_empty()).ok_or_else(|| Error {
        location: format!("--set {text}"),
        message: "not an assignment; allowed: PATH=VALUE, as in transport.reps.buffer=4".into(),
    })
}

/// Parses the value of an assignment: TOML, else unquoted text or a list of such values.
fn assigned(text: &str, origin: &Origin) -> Result<Node, String> {
    let line = format!("value = {text}");
    match DeTable::parse(&line) {
        Ok(table) => {
            let Tree::Table(mut fields) = nodes(&line, table.get_ref(), Some(origin)) else { unreachable!("a table") };
            match fields.pop() {
                Some((_, node)) if fields.is_empty() => Ok(node),
                _ => Err("several lines; allowed: one value".into()),
            }
        }
        Err(_) if let Some(words) = bare_list(text) => {
            let items = words.map(|word| assigned(word, origin)).collect::<Result<_, _>>()?;
            Ok(Node::of(Tree::List(items), origin, text))
        }
        Err(error) if text.starts_with(['[', '{', '"', '\'']) => {
            Err(format!("{}; allowed: a value in TOML", error.message().lines().collect::<Vec<_>>().join("; ")))
        }
        Err(_) => Ok(Node::of(Tree::Scalar(text.into()), origin, text)),
    }
}

/// Returns the values of a list without nested brackets.
fn bare_list(text: &str) -> Option<impl Iterator<Item = &str>> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?.trim();
    let words = || inner.strip_suffix(',').unwrap_or(inner).split(',').map(str::trim);
    (!inner.contains(['[', ']', '{', '}']) && words().all(|word| !word.is_empty())).then(words)
}

/// Converts a table in `text`. All nodes get `origin`, or without it their positions in the text.
fn nodes(text: &str, table: &DeTable<'_>, origin: Option<&Origin>) -> Tree {
    let mut fields: Vec<_> = table.iter().collect();
    fields.sort_by_key(|(key, _)| key.span().start);
    let field = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        let mut node = node(text, value, origin);
        node.named_at = origin.cloned().unwrap_or(Origin::File(key.span().start));
        (key.get_ref().to_string(), node)
    };
    Tree::Table(fields.into_iter().map(field).collect())
}

fn node(text: &str, value: &Spanned<DeValue<'_>>, origin: Option<&Origin>) -> Node {
    let span = value.span();
    let at = origin.cloned().unwrap_or(Origin::File(span.start));
    let given = text.get(span).unwrap_or_default();
    let tree = match value.get_ref() {
        DeValue::Table(table) => nodes(text, table, origin),
        DeValue::Array(items) => Tree::List(items.iter().map(|item| node(text, item, origin)).collect()),
        DeValue::String(text) => Tree::Scalar(text.as_ref().into()),
        DeValue::Boolean(flag) => Tree::Scalar((*flag).into()),
        DeValue::Integer(integer) => {
            let number = i64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix());
            Tree::Scalar(number.map_or(Value::Null, Value::from))
        }
        DeValue::Float(float) => {
            let number = float.as_str().replace('_', "").parse().ok().and_then(Number::from_f64);
            Tree::Scalar(number.map_or(Value::Null, Value::Number))
        }
        // No setting is a date.
        DeValue::Datetime(_) => Tree::Scalar(Value::Null),
    };
    Node::of(tree, &at, given.lines().next().unwrap_or_default())
}
