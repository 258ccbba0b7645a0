//! Checks settings against their declaration.

use serde_json::{Map, Value};
use spray_core::units::{ByteSize, Ratio};

use crate::document::{Document, Node, Tree, no_entry};
use crate::error::{Error, Origin};
use crate::schema::AUTO;
use crate::shape::{Field, List, Scalar, Shape, Table};

impl Document {
    /// Returns the checked settings in the form that their types deserialize.
    pub(crate) fn checked(&self, shape: &Shape) -> Result<Value, Error> {
        let Shape::Table(table) = shape else { unreachable!("settings are a table") };
        self.table(&self.root, table, &[])
    }

    /// Creates the error for a value that its type refuses to deserialize.
    pub(crate) fn refused(&self, path: &str, shape: &Shape, why: &serde_json::Error) -> Error {
        match shape.field(path) {
            Some(Field { name, shape, auto, .. }) if shape.is_plain() => {
                self.wrong(self.nearest(path), name, shape, *auto)
            }
            _ => self.error(path, why.to_string()),
        }
    }

    /// Creates the error for a value that `shape` does not accept.
    fn wrong(&self, node: &Node, name: &str, shape: &Shape, auto: bool) -> Error {
        let given = match &node.value {
            Tree::Scalar(Value::String(word)) => word,
            _ => &node.given,
        };
        let hint = Some(did_you_mean(given, &shape.words())).filter(|hint| !hint.is_empty());
        let hint = hint.unwrap_or_else(|| suffix_hint(given, shape));
        let allowed = allowed(shape, auto) + &decimals(node, shape).unwrap_or_default();
        self.error_from(&node.at, format!("`{name}` is {}{hint}; allowed: {allowed}", node.given))
    }

    fn table(&self, node: &Node, table: &Table, path: &[&str]) -> Result<Value, Error> {
        let Tree::Table(given) = &node.value else {
            let message = format!("`{}` is {}; allowed: a table", path.last().unwrap_or(&""), node.given);
            return Err(self.error_from(&node.at, message));
        };
        let variant = self.variant(node, table, path)?;
        let applies =
            |field: &&Field| field.only.is_empty() || field.only.iter().any(|only| Some(only) == variant.as_ref());
        let names: Vec<&str> = table.fields.iter().filter(applies).map(|field| field.name.as_str()).collect();
        let unknown = |(name, _): &&(String, Node)| table.fields.iter().all(|field| field.name != *name);
        if let Some((name, node)) = given.iter().find(unknown) {
            let hint = did_you_mean(name, &names);
            let message = format!("unknown field `{name}` {}{hint}; allowed: {}", inside(path), names.join(", "));
            return Err(self.error_from(&node.named_at, message));
        }
        let mut value = Map::new();
        for (name, node) in given {
            let Some(field) = table.fields.iter().filter(applies).find(|field| field.name == *name) else {
                let (tag, variant) =
                    (table.tag.as_ref().map_or("", |(tag, _)| tag), variant.as_deref().unwrap_or_default());
                let message = format!("`{name}` does not apply to {tag} `{variant}`; allowed: {}", names.join(", "));
                return Err(self.error_from(&node.named_at, message));
            };
            if !(field.auto && matches!(&node.value, Tree::Scalar(word) if word == AUTO)) {
                value.insert(name.clone(), self.value(node, &field.shape, field.auto, &[path, &[name]].concat())?);
            }
        }
        let missing = |field: &&Field| field.required && !value.contains_key(&field.name);
        match table.fields.iter().filter(applies).find(missing) {
            Some(field) => Err(self.missing(node, field, path)),
            None => Ok(Value::Object(value)),
        }
    }

    fn variant(&self, node: &Node, table: &Table, path: &[&str]) -> Result<Option<String>, Error> {
        let Some((tag, _)) = &table.tag else { return Ok(None) };
        let field = table.fields.iter().find(|field| field.name == *tag).unwrap_or_else(|| unreachable!("has its tag"));
        let word = node.get(tag).ok_or_else(|| self.missing(node, field, path))?;
        let word = self.value(word, &field.shape, false, &[path, &[tag]].concat())?;
        Ok(word.as_str().map(String::from))
    }

    fn missing(&self, node: &Node, field: &Field, path: &[&str]) -> Error {
        let allowed = allowed(&field.shape, field.auto);
        self.error_from(&node.at, format!("missing field `{}` {}; allowed: {allowed}", field.name, inside(path)))
    }

    fn value(&self, node: &Node, shape: &Shape, auto: bool, path: &[&str]) -> Result<Value, Error> {
        let name = path.iter().rfind(|name| name.parse::<usize>().is_err()).copied().unwrap_or_default();
        match (shape, &node.value) {
            (Shape::Table(table), _) => self.table(node, table, path),
            (Shape::List(List { of, filled, .. }), Tree::List(items)) if !filled || !items.is_empty() => {
                let item = |(index, item): (usize, &Node)| {
                    self.value(item, of, false, &[path, &[index.to_string().as_str()]].concat())
                };
                items.iter().enumerate().map(item).collect::<Result<Vec<_>, _>>().map(Value::Array)
            }
            (Shape::List(List { of, single: true, .. }), Tree::Table(_)) if matches!(**of, Shape::Table(_)) => {
                self.value(node, of, false, path).map(|value| Value::Array(vec![value]))
            }
            (Shape::List(List { of, single: true, .. }), Tree::Scalar(value)) => {
                let read = if let Shape::Scalar(scalar) = &**of { scalar.read(value, node) } else { None };
                read.map(|value| Value::Array(vec![value])).ok_or_else(|| self.wrong(node, name, shape, false))
            }
            (Shape::Scalar(scalar), Tree::Scalar(value)) => {
                scalar.read(value, node).ok_or_else(|| self.wrong(node, name, shape, auto))
            }
            (Shape::List(_), Tree::Table(fields)) if fields.iter().any(|(name, _)| name.parse::<usize>().is_ok()) => {
                Err(self.error_from(&node.at, no_entry(name, 0)))
            }
            _ => Err(self.wrong(node, name, shape, auto)),
        }
    }
}

impl Scalar {
    fn read(&self, value: &Value, node: &Node) -> Option<Value> {
        match self {
            Self::Flag => value.as_bool().map(Value::from),
            Self::Text | Self::File => text(value, node).filter(|text| !text.is_empty()).map(Value::from),
            Self::Integer(min, max) => value.as_i64().filter(|value| (min..=max).contains(&value)).map(Value::from),
            Self::Number(min, max, decimals) | Self::Ratio(min, max, decimals) => {
                let fits =
                    |value: &f64| (min..=max).contains(&value) && decimals.is_none_or(|most| exact(*value, most));
                let percent = || value.as_str()?.parse().ok().map(|ratio: Ratio| ratio.ppm() as f64 / 1e6);
                let may_be_text = matches!(self, Self::Ratio(..));
                value.as_f64().or_else(|| may_be_text.then(percent)?).filter(fits).map(Value::from)
            }
            Self::Bytes(min, max) => {
                let bytes = value.as_i64().or_else(|| value.as_str().and_then(bytes));
                bytes.filter(|bytes| (min..=max).contains(&bytes)).map(Value::from)
            }
            // Digits may be a word.
            Self::Choice(words) => {
                let given = value.as_str().map_or_else(|| node.given.clone(), String::from);
                words.iter().any(|(word, _)| *word == given).then(|| given.into())
            }
            Self::Custom(_) => Some(value.clone()),
        }
    }
}

/// Returns whether `number` has at most `most` decimals.
fn exact(number: f64, most: u32) -> bool {
    let scale = 10f64.powi(most as i32);
    (number * scale).round() / scale == number
}

fn decimals(node: &Node, shape: &Shape) -> Option<String> {
    let Shape::Scalar(Scalar::Number(min, max, Some(most)) | Scalar::Ratio(min, max, Some(most))) = shape else {
        return None;
    };
    let Tree::Scalar(value) = &node.value else { return None };
    value.as_f64().filter(|value| (min..=max).contains(&value)).map(|_| format!(", with at most {most} decimals"))
}

/// Returns ` (did you mean `...`?)` with the name most similar to `given`, or an empty string.
pub fn did_you_mean(given: &str, names: &[&str]) -> String {
    let likeness = |name: &&&str| strsim::jaro_winkler(given, name);
    let nearest = names.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    nearest.filter(|name| likeness(name) > 0.8).map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// Suffixes of [`ByteSize`].
const SUFFIXES: [&str; 7] = ["B", "kB", "MB", "GB", "KiB", "MiB", "GiB"];

fn bytes(text: &str) -> Option<i64> {
    text.parse().ok().map(|bytes: ByteSize| bytes.bytes() as i64)
}

/// Suggests a suffix of bytes that differs in case only, or lists all of them.
fn suffix_hint(given: &str, shape: &Shape) -> String {
    let given = given.trim();
    let end = given.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(given.len());
    let (number, suffix) = (&given[..end], given[end..].trim());
    if number.is_empty() || suffix.is_empty() {
        return String::new();
    }
    match SUFFIXES.iter().find(|known| known.eq_ignore_ascii_case(suffix)) {
        Some(known) if *known != suffix => format!(" (did you mean `{number} {known}`?)"),
        None if matches!(shape, Shape::Scalar(Scalar::Bytes(..))) => format!(" (suffixes: {})", SUFFIXES.join(", ")),
        _ => String::new(),
    }
}

/// Returns the value as text. Assigned values are text in any form: `name=5` needs no quotes.
fn text(value: &Value, node: &Node) -> Option<String> {
    let assigned = matches!(node.at, Origin::Assignment(_)).then(|| node.given.clone());
    value.as_str().map(String::from).or(assigned)
}

fn allowed(shape: &Shape, auto: bool) -> String {
    format!("{}{}", if auto { "\"auto\", or " } else { "" }, shape.allowed())
}

fn inside(path: &[&str]) -> String {
    if path.is_empty() { "at the top level".into() } else { format!("in {}", header(path)) }
}

/// Returns the header of the table at `path` in a file.
pub(crate) fn header(path: &[&str]) -> String {
    let names: Vec<_> = path.iter().filter(|name| name.parse::<usize>().is_err()).copied().collect();
    match path.last() {
        None => "Top level".into(),
        Some(last) if last.parse::<usize>().is_ok() => format!("[[{}]]", names.join(".")),
        Some(_) => format!("[{}]", names.join(".")),
    }
}
