//! JSON Schema in the form that checks and documents use.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use schemars::JsonSchema;
use serde_json::Value;

use crate::schema::{AUTO, schema};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    Table(Table),
    List(List),
    Scalar(Scalar),
}

/// A table, with the fields of all its variants in one list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub about: String,
    /// The field that selects the variant, such as `kind`, and its words.
    pub tag: Option<(String, Vec<String>)>,
    pub fields: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub name: String,
    pub about: String,
    pub shape: Shape,
    pub required: bool,
    pub default: Option<Value>,
    pub auto: bool,
    /// Whether a list of values is an error, rather than an axis of a sweep.
    pub single: bool,
    /// The variants with this field; empty if all have it.
    pub only: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct List {
    pub of: Box<Shape>,
    /// Whether one element may be written without brackets.
    pub single: bool,
    /// Whether it must not be empty.
    pub filled: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Flag,
    Text,
    File,
    Integer(i64, i64),
    /// Minimum, maximum, and number of significant decimals, if limited.
    Number(f64, f64, Option<u32>),
    /// As `Number`, or text with a percent sign.
    Ratio(f64, f64, Option<u32>),
    Bytes(i64, i64),
    /// Words and their meanings.
    Choice(Vec<(String, String)>),
    /// A custom form that the type's `Deserialize` checks.
    Custom(String),
}

impl Shape {
    /// Returns the shape of `T`, cached: large ones take milliseconds, and sweeps read often.
    pub fn of<T: JsonSchema + 'static>() -> Arc<Self> {
        static MADE: LazyLock<Mutex<HashMap<TypeId, Arc<Shape>>>> = LazyLock::new(Mutex::default);
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(made.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(Self::new(&schema::<T>()))))
    }

    /// Converts a schema from [`crate::schema`].
    pub fn new(schema: &Value) -> Self {
        let any = schema.get("anyOf").and_then(Value::as_array);
        if let Some([one, other]) = any.map(Vec::as_slice) {
            return match Self::new(other) {
                Self::List(list) => Self::List(List { single: true, ..list }),
                _ => Self::new(one),
            };
        }
        if is_table(schema) {
            return Self::Table(Table { about: text(schema, "description"), tag: None, fields: fields(schema, &[]) });
        }
        let variants = schema.get("oneOf").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if variants.first().is_some_and(is_table) {
            return Self::Table(Table::of_variants(text(schema, "description"), variants));
        }
        if let Some(items) = schema.get("items") {
            let filled = schema.get("minItems").and_then(Value::as_u64) > Some(0);
            return Self::List(List { of: Self::new(items).into(), single: false, filled });
        }
        Self::Scalar(Scalar::new(schema))
    }

    /// Returns the field at `path`. Indices in lists are optional.
    pub fn field(&self, path: &str) -> Option<&Field> {
        let mut found = None;
        let mut here = self;
        for name in path.split('.') {
            let is_place = name.parse::<usize>().is_ok();
            if let (Self::List(list), false) = (here, is_place) {
                here = &list.of;
            }
            here = match here {
                Self::Table(table) => {
                    found = Some(table.fields.iter().find(|field| field.name == name)?);
                    &found?.shape
                }
                Self::List(list) => &list.of,
                Self::Scalar(_) => return None,
            };
        }
        found
    }

    /// Returns whether it accepts a value or a list of values, rather than tables.
    pub fn is_plain(&self) -> bool {
        match self {
            Self::Table(_) => false,
            Self::List(list) => list.of.is_plain(),
            Self::Scalar(_) => true,
        }
    }

    /// Returns the accepted words, alone or in a list; empty if other values are accepted.
    pub fn words(&self) -> Vec<&str> {
        match self {
            Self::Scalar(Scalar::Choice(words)) => words.iter().map(|(word, _)| word.as_str()).collect(),
            Self::List(list) => list.of.words(),
            _ => Vec::new(),
        }
    }

    /// Returns the accepted words, alone or in a list, if they have descriptions.
    pub fn described(&self) -> Option<&[(String, String)]> {
        match self {
            Self::Scalar(Scalar::Choice(words)) => {
                words.iter().any(|(_, about)| !about.is_empty()).then_some(words.as_slice())
            }
            Self::List(list) => list.of.described(),
            _ => None,
        }
    }

    /// Returns what is allowed, for messages and documents.
    pub fn allowed(&self) -> String {
        match self {
            Self::Table(_) => "a table".into(),
            Self::List(List { of, single, .. }) => match **of {
                Self::Table(_) => format!("{}a list of tables", if *single { "a table or " } else { "" }),
                Self::Scalar(Scalar::Text) => "a list of names".into(),
                _ => format!("{}a list of {}", if *single { "one or " } else { "" }, of.allowed()),
            },
            Self::Scalar(scalar) => scalar.allowed(),
        }
    }
}

impl Table {
    fn of_variants(about: String, variants: &[Value]) -> Self {
        let is_tag = |name: &&String| variants.iter().all(|variant| variant["properties"][name].get("const").is_some());
        let tag = variants[0]["properties"].as_object().and_then(|fields| fields.keys().find(is_tag).cloned());
        let tag = tag.unwrap_or_else(|| unreachable!("variants are told apart by a field"));
        let word = |variant: &Value| text(&variant["properties"][&tag], "const");
        let meanings = variants.iter().map(|variant| (word(variant), text(variant, "description"))).collect();
        let mut all: Vec<Field> = vec![Field {
            name: tag.clone(),
            about: String::new(),
            shape: Shape::Scalar(Scalar::Choice(meanings)),
            required: true,
            default: None,
            auto: false,
            single: true,
            only: Vec::new(),
        }];
        for variant in variants {
            for field in fields(variant, &[word(variant)]).into_iter().filter(|field| field.name != tag) {
                let is_same = |known: &&mut Field| field == Field { only: field.only.clone(), ..(**known).clone() };
                match all.iter_mut().find(is_same) {
                    Some(known) => known.only.extend(field.only),
                    None => all.push(field),
                }
            }
        }
        let words: Vec<String> = variants.iter().map(word).collect();
        all.iter_mut().filter(|field| field.only.len() == words.len()).for_each(|field| field.only.clear());
        Self { about, tag: Some((tag, words)), fields: all }
    }
}

fn fields(schema: &Value, only: &[String]) -> Vec<Field> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let field = |(name, schema): (&String, &Value)| {
        let is_auto = |kind: &Value| kind.get("const").is_some_and(|word| word == AUTO);
        Field {
            name: name.clone(),
            about: text(schema, "description"),
            shape: Shape::new(schema),
            required: required.contains(&name.as_str()),
            default: schema.get("default").cloned(),
            auto: schema["anyOf"].as_array().into_iter().flatten().any(is_auto),
            single: is_marked(schema, "x-single"),
            only: only.to_vec(),
        }
    };
    schema["properties"].as_object().into_iter().flatten().map(field).collect()
}

impl Scalar {
    fn new(schema: &Value) -> Self {
        if let Some(allowed) = schema.get("x-allowed").and_then(Value::as_str) {
            return Self::Custom(allowed.into());
        }
        let words = choices(schema);
        if !words.is_empty() {
            return Self::Choice(words);
        }
        let bound = |name: &str| schema.get(name).filter(|bound| bound.is_number());
        let whole =
            |name: &str| bound(name).and_then(|bound| bound.as_i64().or(bound.as_f64().map(|bound| bound as i64)));
        let (min, max) = (whole("minimum").unwrap_or(i64::MIN), whole("maximum").unwrap_or(i64::MAX));
        let real = |name: &str| bound(name).and_then(Value::as_f64);
        let (real_min, real_max) = (real("minimum").unwrap_or(f64::MIN), real("maximum").unwrap_or(f64::MAX));
        match schema["type"].as_str() {
            _ if schema["type"] == serde_json::json!(["integer", "string"]) => Self::Bytes(min.max(0), max),
            _ if schema["type"] == serde_json::json!(["number", "string"]) => {
                Self::Ratio(real_min, real_max, decimals(schema))
            }
            Some("boolean") => Self::Flag,
            Some("integer") => Self::Integer(min, max),
            Some("number") => Self::Number(real_min, real_max, decimals(schema)),
            _ if is_marked(schema, "x-file") => Self::File,
            _ => Self::Text,
        }
    }

    pub fn allowed(&self) -> String {
        match self {
            Self::Flag => "true, false".into(),
            Self::Text | Self::File => "text".into(),
            Self::Integer(min, max) => format!("a whole number from {min} to {max}"),
            Self::Number(f64::MIN, f64::MAX, _) => "a number".into(),
            Self::Number(min, max, _) | Self::Ratio(min, max, _) => format!("{min} to {max}"),
            Self::Bytes(min, max) => format!("{min} to {max}, or with a suffix as \"4 MiB\""),
            Self::Choice(words) => words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", "),
            Self::Custom(allowed) => allowed.clone(),
        }
    }
}

/// Significant decimals: six of a quantity, which is not a `double`, unless the schema sets them.
fn decimals(schema: &Value) -> Option<u32> {
    let own = schema.get("x-decimals").and_then(Value::as_u64).map(|decimals| decimals as u32);
    own.or((schema.get("format").is_none()).then_some(6))
}

fn choices(schema: &Value) -> Vec<(String, String)> {
    if schema.get("const").is_some() {
        return vec![(text(schema, "const"), text(schema, "description"))];
    }
    let words = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let nested = schema["oneOf"].as_array().into_iter().flatten().flat_map(choices);
    words.map(|word| (word.to_string(), String::new())).chain(nested).collect()
}

/// Returns whether the declaration of a field, or of its `Option`, has this mark.
pub(crate) fn is_marked(schema: &Value, mark: &str) -> bool {
    [schema, &schema["anyOf"][0]].iter().any(|schema| schema.get(mark).and_then(Value::as_bool) == Some(true))
}

fn is_table(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

fn text(schema: &Value, key: &str) -> String {
    schema.get(key).and_then(Value::as_str).unwrap_or_default().into()
}
