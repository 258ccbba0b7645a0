//! The JSON Schema of a declaration.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

pub(crate) const AUTO: &str = "auto";

/// Returns the JSON Schema of `T`, with declared fields only and `"auto"` in place of `null`.
pub fn schema<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft07();
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    close(&mut schema);
    schema
}

/// Returns the direct subschemas.
pub(crate) fn parts(schema: &mut Value) -> Vec<&mut Value> {
    let mut found = Vec::new();
    for (key, value) in schema.as_object_mut().into_iter().flatten() {
        match (key.as_str(), value) {
            ("properties", Value::Object(fields)) => found.extend(fields.values_mut()),
            ("anyOf" | "oneOf", Value::Array(all)) => found.extend(all),
            ("items", one) => found.push(one),
            _ => {}
        }
    }
    found
}

/// Makes `schema` and its subschemas refuse undeclared fields.
fn close(schema: &mut Value) {
    parts(schema).into_iter().for_each(close);
    let Value::Object(object) = schema else { return };
    // The fields of a table have their own defaults.
    if object.get("default").is_some_and(is_of_tables) {
        object.remove("default");
    }
    list_aliases(object);
    merge_variants(object);
    if object.get("type").is_some_and(|kind| kind == "object") {
        object.insert("additionalProperties".into(), false.into());
    }
    null_is_auto(object);
    for key in ["description", "title"] {
        if let Some(Value::String(text)) = object.get_mut(key) {
            *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        }
    }
}

/// Returns whether this is the default of a table or, empty, of a list of tables.
fn is_of_tables(default: &Value) -> bool {
    default.is_object() || default.as_array().is_some_and(Vec::is_empty)
}

/// Adds the other names of words, which the declaration gives as `x-alias`.
fn list_aliases(object: &mut Map<String, Value>) {
    let Some(Value::Array(words)) = object.get_mut("oneOf") else { return };
    for mut word in std::mem::take(words) {
        let alias = word.as_object_mut().and_then(|word| word.remove("x-alias"));
        let same = format!("The same as `{}`.", word["const"].as_str().unwrap_or_default());
        words.push(word);
        words.extend(alias.map(|alias| json!({ "description": same, "type": "string", "const": alias })));
    }
}

/// Copies the common fields into each variant, since a variant refuses fields outside of it.
fn merge_variants(object: &mut Map<String, Value>) {
    let is_table = |variant: &Value| variant.get("properties").is_some();
    if !object.get("oneOf").and_then(Value::as_array).is_some_and(|variants| variants.iter().all(is_table)) {
        return;
    }
    object.remove("type");
    let (fields, required) = (object.remove("properties"), object.remove("required"));
    for variant in object["oneOf"].as_array_mut().into_iter().flatten() {
        if let (Some(Value::Object(common)), Some(Value::Object(own))) = (&fields, variant.get_mut("properties")) {
            let later = std::mem::replace(own, common.clone());
            own.extend(later);
        }
        if let (Some(Value::Array(common)), Some(Value::Array(own))) = (&required, variant.get_mut("required")) {
            own.extend(common.iter().cloned());
        }
    }
}

/// Replaces `null`, from an `Option`, by `"auto"`.
fn null_is_auto(object: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = object.get_mut("type")
        && let Some(null) = kinds.iter().position(|kind| kind == "null")
    {
        kinds.remove(null);
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            object.insert("type".into(), kind);
        }
        let about = ["title", "description"].map(|key| (key, object.remove(key)));
        object.remove("default");
        let bare = Value::Object(std::mem::take(object));
        about
            .into_iter()
            .for_each(|(key, text)| text.into_iter().for_each(|text| drop(object.insert(key.into(), text))));
        object.insert("anyOf".into(), json!([bare, { "const": AUTO }]));
        object.insert("default".into(), AUTO.into());
    }
    if let Some(Value::Array(kinds)) = object.get_mut("anyOf")
        && let Some(null) = kinds.iter_mut().find(|kind| kind.get("type").is_some_and(|kind| kind == "null"))
    {
        *null = json!({ "const": AUTO });
        object.insert("default".into(), AUTO.into());
    }
}
