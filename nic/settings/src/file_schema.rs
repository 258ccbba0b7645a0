//! The JSON Schema of a file: lists are allowed in place of one value, and long parts are shared.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use crate::schema::{parts, schema};
use crate::shape::{Shape, is_marked};

/// Returns the JSON Schema of a settings file: [`schema`], with lists where one value is declared.
pub fn file_schema<T: JsonSchema>() -> Value {
    let mut schema = schema::<T>();
    allow_lists(&mut schema);
    let mut definitions = Map::new();
    share(&mut schema, &mut HashMap::new(), &mut definitions);
    schema["definitions"] = definitions.into();
    schema
}

/// Length of the text from which a part becomes a shared definition.
const SHARED_FROM: usize = 200;

fn share(schema: &mut Value, names: &mut HashMap<String, String>, definitions: &mut Map<String, Value>) {
    for part in parts(schema) {
        share(part, names, definitions);
        let text = part.to_string();
        if text.len() > SHARED_FROM {
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

fn allow_list(field: &mut Value) {
    let bare = field.take();
    *field = json!({ "anyOf": [bare, { "type": "array", "items": bare, "minItems": 1 }] });
}
