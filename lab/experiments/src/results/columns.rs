//! Columns of tables, declared once for CSV, JSON, Parquet and the documentation.

use std::fmt::Write as _;
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use serde_json::Value;

use super::measures::Measure;
use super::statistics::round3;

pub(super) struct Column<R> {
    name: Text,
    unit: Text,
    about: Text,
    of: Of<R>,
}

type Text = &'static str;

/// Type of a column and its accessor. `None` and empty text are missing values.
enum Of<R> {
    Text(fn(&R) -> String),
    Count(fn(&R) -> Option<u64>),
    Measure(&'static Measure, fn(&Measure, &R) -> Option<f64>),
    /// Rounded to thousandths; three decimals in CSV.
    Real(fn(&R) -> Option<f64>),
    Flag(fn(&R) -> bool),
}

pub(super) const fn text<R>(name: Text, about: Text, of: fn(&R) -> String) -> Column<R> {
    Column { name, unit: "", about, of: Of::Text(of) }
}

pub(super) const fn flag<R>(name: Text, about: Text, of: fn(&R) -> bool) -> Column<R> {
    Column { name, unit: "", about, of: Of::Flag(of) }
}

pub(super) const fn count<R>([name, unit]: [Text; 2], about: Text, of: fn(&R) -> Option<u64>) -> Column<R> {
    Column { name, unit, about, of: Of::Count(of) }
}

pub(super) const fn real<R>([name, unit]: [Text; 2], about: Text, of: fn(&R) -> Option<f64>) -> Column<R> {
    Column { name, unit, about, of: Of::Real(of) }
}

/// A column of a table: the values of all rows, or one that all of them share.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Values {
    pub name: String,
    pub kind: Kind,
    rows: usize,
    values: Vec<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Whole,
    /// With this number of decimals in CSV, or as many as needed.
    Real(Option<usize>),
    Flag,
}

impl<R> Column<R> {
    pub fn of_measure(measure: &'static Measure, of: fn(&Measure, &R) -> Option<f64>) -> Self {
        let Measure { key: name, unit, about, .. } = *measure;
        Self { name, unit, about, of: Of::Measure(measure, of) }
    }

    pub fn values(&self, rows: &[R]) -> Values {
        let values: Vec<Value> = match self.of {
            Of::Text(of) => {
                rows.iter().map(of).map(|text| if text.is_empty() { Value::Null } else { text.into() }).collect()
            }
            Of::Count(of) => rows.iter().map(|row| of(row).map(|count| count.min(i64::MAX as u64)).into()).collect(),
            Of::Measure(measure, of) if measure.is_count => {
                rows.iter().map(|row| of(measure, row).map(|count| count as i64).into()).collect()
            }
            Of::Measure(measure, of) => rows.iter().map(|row| of(measure, row).map(round3).into()).collect(),
            Of::Real(of) => rows.iter().map(|row| of(row).map(round3).into()).collect(),
            Of::Flag(of) => rows.iter().map(|row| of(row).into()).collect(),
        };
        Values::new(self.name.into(), self.kind(), values)
    }

    fn kind(&self) -> Kind {
        match self.of {
            Of::Text(_) => Kind::Text,
            Of::Measure(Measure { is_count: true, .. }, _) | Of::Count(_) => Kind::Whole,
            Of::Measure(..) | Of::Real(_) => Kind::Real(Some(3)),
            Of::Flag(_) => Kind::Flag,
        }
    }
}

impl Values {
    /// Creates a column; missing values are null.
    pub fn new(name: String, kind: Kind, values: Vec<Value>) -> Self {
        Self { name, kind, rows: values.len(), values }
    }

    pub fn has_any(&self) -> bool {
        self.values.iter().any(|value| !value.is_null())
    }

    /// Repeats the value of a single row.
    pub fn repeated(self, rows: usize) -> Self {
        Self { rows, ..self }
    }

    fn value(&self, row: usize) -> &Value {
        self.values.get(row).unwrap_or(&self.values[0])
    }

    /// Formats a field as CSV (RFC 4180); a missing value is empty.
    fn field(&self, row: usize) -> String {
        match (self.value(row), self.kind) {
            (Value::Null, _) => String::new(),
            (Value::String(text), _) => quoted(text),
            (Value::Number(number), Kind::Real(Some(decimals))) => {
                format!("{:.decimals$}", number.as_f64().unwrap_or_default())
            }
            (Value::Number(number), Kind::Real(None)) => number.as_f64().unwrap_or_default().to_string(),
            (value, _) => value.to_string(),
        }
    }
}

pub(super) fn markdown<R>(columns: &[Column<R>]) -> String {
    columns.iter().fold("| column | type | unit | meaning |\n|---|---|---|---|\n".into(), |text, column| {
        let kind = match column.kind() {
            Kind::Text => "text",
            Kind::Whole => "whole",
            Kind::Real(_) => "number",
            Kind::Flag => "true or false",
        };
        format!("{text}| `{}` | {kind} | {} | {} |\n", column.name, column.unit, column.about)
    })
}

/// Quotes a field with a comma, a quote or a line break.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

pub(super) fn csv(columns: &[Values]) -> String {
    let names: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    let mut out = names.join(",") + "\n";
    for row in 0..columns.first().map_or(0, |column| column.rows) {
        for (index, column) in columns.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(out, "{comma}{}", column.field(row)).expect("a String takes everything");
        }
        out.push('\n');
    }
    out
}

/// Formats the rows as JSON lines, an object each.
pub(super) fn json_lines(columns: &[Values]) -> String {
    let mut out = String::new();
    for row in 0..columns.first().map_or(0, |column| column.rows) {
        for (index, column) in columns.iter().enumerate() {
            let (before, value) = (if index > 0 { ',' } else { '{' }, column.value(row));
            write!(out, "{before}\"{}\":{value}", column.name).expect("a String takes everything");
        }
        out.push_str("}\n");
    }
    out
}

/// Encodes the columns as a Parquet file.
pub(super) fn parquet(columns: &[Values]) -> Result<Vec<u8>, ParquetError> {
    let field = |column: &Values| {
        let (kind, converted) = match column.kind {
            Kind::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            Kind::Whole => (Physical::INT64, ConvertedType::NONE),
            Kind::Real(_) => (Physical::DOUBLE, ConvertedType::NONE),
            Kind::Flag => (Physical::BOOLEAN, ConvertedType::NONE),
        };
        let field = Type::primitive_type_builder(&column.name, kind).with_repetition(Repetition::OPTIONAL);
        field.with_converted_type(converted).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("row").with_fields(fields).build()?;
    let properties = WriterProperties::builder().set_created_by("spray".into()).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut rows = writer.next_row_group()?;
    for column in columns {
        match column.kind {
            Kind::Text => write::<ByteArrayType, _>(&mut rows, column, |value| value.as_str().map(ByteArray::from))?,
            Kind::Whole => write::<Int64Type, _>(&mut rows, column, Value::as_i64)?,
            Kind::Real(_) => write::<DoubleType, _>(&mut rows, column, Value::as_f64)?,
            Kind::Flag => write::<BoolType, _>(&mut rows, column, Value::as_bool)?,
        }
    }
    rows.close()?;
    writer.into_inner()
}

fn write<T: DataType, W: std::io::Write + Send>(
    rows: &mut SerializedRowGroupWriter<'_, W>,
    column: &Values,
    of: fn(&Value) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let Some(mut writer) = rows.next_column()? else { return Ok(()) };
    let values = || (0..column.rows).map(|row| of(column.value(row)));
    let there: Vec<i16> = values().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values().flatten().collect();
    writer.typed::<T>().write_batch(&values, Some(&there), None)?;
    writer.close()
}
