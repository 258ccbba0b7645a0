//! The JSON Schema of a file: lists are allowed in place of one value, and long parts are definitions.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use crate::schema::{parts, schema};
use crate::shape::{Shape, is_marked};

/// The JSON Schema of a file with the settings of `T`: as [`schema`], and where one value is declared there may be a list, an axis of a sweep.
pub fn file_schema<T: JsonSchema>() -> Value {
    let mut schema = schema::<T>();
    allow_lists(&mut schema);
    let mut definitions = Map::new();
    share(&mut schema, &mut HashMap::new(), &mut definitions);
    schema["definitions"] = definitions.into();
    schema
}

/// Parts longer than this as text become definitions, each once however often it occurs.
const WORTH_A_NAME: usize = 200;

fn share(schema: &mut Value, names: &mut HashMap<String, String>, definitions: &mut Map<String, Value>) {
    for part in parts(schema) {
        share(part, names, definitions);
        let text = part.to_string();
        if text.len() > WORTH_A_NAME {
            let next = format!("part-{}", names.len() + 1);
            let name = names.entry(text).or_insert(next);
            let reference = json!({ "$ref": format!("#/definitions/{name}") });
            definitions.insert(name.clone(), std::mem::replace(part, reference));
        }
    }
}

fn allow_lists(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    object.get_mut("items").into_iter().for_each(allow_lists);
    for key in ["oneOf", "anyOf"] {
        object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().for_each(allow_lists);
    }
    for field in object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        let single = field.get("const").is_some() || is_marked(field, "x-single");
        match Shape::new(field) {
            Shape::Scalar(_) if !single => allow_list(field),
            _ => allow_lists(field),
        }
    }
}

/// Lets `field` take a list of what it takes.
fn allow_list(field: &mut Value) {
    let bare = field.take();
    *field = json!({ "anyOf": [bare, { "type": "array", "items": bare, "minItems": 1 }] });
}
