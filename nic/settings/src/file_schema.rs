//! The JSON Schema of a file, as text: lists are allowed in place of one value, and each part that occurs more than once is a definition.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use crate::schema::schema;
use crate::shape::{Shape, is_marked};

/// Parts that are shorter than this as text stay where they are.
const WORTH_A_NAME: usize = 60;
/// A value that fits is one line.
const WIDTH: usize = 140;

/// The JSON Schema of a file with the settings of `T`, as text: as [`schema`], and where one value is declared there may be a list, an
/// axis of a sweep.
pub fn file_schema<T: JsonSchema>() -> String {
    let mut schema = schema::<T>();
    allow_lists(&mut schema);
    text(schema)
}

fn allow_lists(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    for key in ["items", "oneOf", "anyOf"] {
        match object.get_mut(key) {
            Some(Value::Array(all)) => all.iter_mut().for_each(allow_lists),
            Some(one) => allow_lists(one),
            None => {}
        }
    }
    for field in
        object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten().map(|(_, field)| field)
    {
        let single = field.get("const").is_some() || is_marked(field, "x-single");
        match Shape::new(field) {
            Shape::Scalar(_) if !single => allow_list(field),
            _ => allow_lists(field),
        }
    }
}

/// Lets `field` take a list of what it takes.
fn allow_list(field: &mut Value) {
    let Value::Object(object) = field else { return };
    let about: Vec<_> =
        ["title", "description", "default"].into_iter().filter_map(|key| Some((key, object.remove(key)?))).collect();
    let bare = Value::Object(std::mem::take(object));
    object.insert("anyOf".into(), json!([bare, { "type": "array", "items": bare, "minItems": 1 }]));
    about.into_iter().for_each(|(key, text)| drop(object.insert(key.into(), text)));
}

/// The text of `schema`. Each part that occurs more than once stands under `definitions`, by the name of the first field that has it.
fn text(mut schema: Value) -> String {
    let mut parts = Parts::default();
    parts.count(&mut schema);
    parts.share(&mut schema, "");
    if let Value::Object(object) = &mut schema {
        object.insert("definitions".into(), parts.definitions.into());
    }
    let mut text = String::new();
    print(&schema, 0, &mut text);
    text + "\n"
}

#[derive(Default)]
struct Parts {
    /// How often each part occurs, by its text.
    occurrences: HashMap<String, usize>,
    /// What refers to each part that has a definition.
    references: HashMap<String, Value>,
    definitions: Map<String, Value>,
}

impl Parts {
    fn count(&mut self, schema: &mut Value) {
        let occurrences = self.occurrences.entry(schema.to_string()).or_default();
        *occurrences += 1;
        // What is in a part that is defined once occurs there once.
        if *occurrences == 1 {
            parts(schema).into_iter().for_each(|(_, part)| self.count(part));
        }
    }

    fn share(&mut self, schema: &mut Value, field: &str) {
        let whole = schema.to_string();
        if let Some(reference) = self.references.get(&whole) {
            *schema = reference.clone();
            return;
        }
        for (name, part) in parts(schema) {
            self.share(part, name.as_deref().unwrap_or(field));
        }
        if whole.len() >= WORTH_A_NAME && self.occurrences.get(&whole).is_some_and(|times| *times > 1) {
            let name = self.free_name(field);
            let reference = json!({ "$ref": format!("#/definitions/{name}") });
            self.definitions.insert(name, std::mem::replace(schema, reference.clone()));
            self.references.insert(whole, reference);
        }
    }

    fn free_name(&self, field: &str) -> String {
        let numbered = (2..).map(|number| format!("{field}-{number}"));
        let mut names = std::iter::once(field.to_owned()).chain(numbered);
        names.find(|name| !self.definitions.contains_key(name)).unwrap_or_default()
    }
}

/// The schemas directly in `schema`, those of fields with their names.
fn parts(schema: &mut Value) -> Vec<(Option<String>, &mut Value)> {
    let mut found = Vec::new();
    for (key, value) in schema.as_object_mut().into_iter().flatten() {
        match (key.as_str(), value) {
            ("properties", Value::Object(fields)) => {
                found.extend(fields.iter_mut().map(|(name, field)| (Some(name.clone()), field)));
            }
            ("anyOf" | "oneOf", Value::Array(all)) => found.extend(all.iter_mut().map(|one| (None, one))),
            ("items", one) => found.push((None, one)),
            _ => {}
        }
    }
    found
}

fn print(value: &Value, depth: usize, text: &mut String) {
    let line = value.to_string();
    let entries: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, field)| (format!("{}: ", json!(name)), field)).collect(),
        Value::Array(all) => all.iter().map(|one| (String::new(), one)).collect(),
        _ => Vec::new(),
    };
    if entries.is_empty() || line.len() + 2 * depth < WIDTH {
        return text.push_str(&line);
    }
    let (open, close) = if value.is_object() { ('{', '}') } else { ('[', ']') };
    let indented = |depth: usize| format!("\n{}", "  ".repeat(depth));
    text.push(open);
    for (place, (name, entry)) in entries.into_iter().enumerate() {
        text.push_str(if place > 0 { "," } else { "" });
        text.push_str(&(indented(depth + 1) + &name));
        print(entry, depth + 1, text);
    }
    text.push_str(&indented(depth));
    text.push(close);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_occurs_twice_is_defined_once_and_means_the_same() {
        let word = json!({ "type": "string", "description": "A word that is long enough for a definition.", "x-single": true });
        let list = json!({ "anyOf": [word, { "type": "array", "items": word }] });
        let whole = json!({ "properties": { "one": list, "two": list, "three": word, "flag": { "type": "boolean" } } });
        let mut shared: Value = serde_json::from_str(&text(whole.clone())).unwrap();
        let definitions = shared.as_object_mut().unwrap().remove("definitions").unwrap();
        assert_eq!(definitions.as_object().unwrap().keys().collect::<Vec<_>>(), ["one", "one-2"]);
        assert_eq!(shared["properties"]["two"], json!({ "$ref": "#/definitions/one-2" }));
        expand(&mut shared, &definitions);
        assert_eq!(shared, whole);
    }

    fn expand(schema: &mut Value, definitions: &Value) {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/definitions/")) {
            *schema = definitions[name].clone();
        }
        parts(schema).into_iter().for_each(|(_, part)| expand(part, definitions));
    }
}
