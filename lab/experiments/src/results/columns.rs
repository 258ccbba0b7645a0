//! Columns of result tables, declared once each with name, unit and meaning; CSV, JSON, Parquet and
//! documentation derive from them.

use std::fmt::Write as _;
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::measures::Measure;
use super::statistics::round3;

/// A column of a table with rows `R`.
pub(super) struct Column<R: ?Sized> {
    name: &'static str,
    unit: &'static str,
    /// Meaning, for the documentation.
    about: &'static str,
    of: Of<R>,
}

/// Type of a column and its accessor. `None` and empty text are missing values.
enum Of<R: ?Sized> {
    Text(fn(&R) -> String),
    Count(fn(&R) -> Option<u64>),
    Measure(&'static Measure, fn(&Measure, &R) -> Option<f64>),
    /// Rounded to thousandths; three decimals in CSV.
    Real(fn(&R) -> Option<f64>),
    Flag(fn(&R) -> bool),
}

pub(super) const fn text<R: ?Sized>(name: &'static str, about: &'static str, of: fn(&R) -> String) -> Column<R> {
    Column { name, unit: "", about, of: Of::Text(of) }
}

pub(super) const fn flag<R: ?Sized>(name: &'static str, about: &'static str, of: fn(&R) -> bool) -> Column<R> {
    Column { name, unit: "", about, of: Of::Flag(of) }
}

pub(super) const fn count<R: ?Sized>(
    [name, unit]: [&'static str; 2],
    about: &'static str,
    of: fn(&R) -> Option<u64>,
) -> Column<R> {
    Column { name, unit, about, of: Of::Count(of) }
}

pub(super) const fn real<R: ?Sized>(
    [name, unit]: [&'static str; 2],
    about: &'static str,
    of: fn(&R) -> Option<f64>,
) -> Column<R> {
    Column { name, unit, about, of: Of::Real(of) }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Values {
    pub name: String,
    pub data: Data,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Data {
    Text(Vec<Option<String>>),
    Whole(Vec<Option<i64>>),
    Real {
        values: Vec<Option<f64>>,
        decimals: Option<usize>,
    },
    Flag(Vec<Option<bool>>),
}

impl<R> Column<R> {
    /// Creates the column of a measure.
    pub fn of_measure(measure: &'static Measure, of: fn(&Measure, &R) -> Option<f64>) -> Self {
        let Measure { key: name, unit, about, .. } = *measure;
        Self { name, unit, about, of: Of::Measure(measure, of) }
    }

    pub fn values(&self, rows: &[R]) -> Values {
        let data = match self.of {
            Of::Text(of) => Data::Text(rows.iter().map(|row| Some(of(row)).filter(|text| !text.is_empty())).collect()),
            Of::Count(of) => {
                let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
                Data::Whole(rows.iter().map(|row| of(row).map(whole)).collect())
            }
            Of::Measure(measure, of) if measure.is_count => {
                Data::Whole(rows.iter().map(|row| of(measure, row).map(|count| count as i64)).collect())
            }
            Of::Measure(measure, of) => reals(rows.iter().map(|row| of(measure, row))),
            Of::Real(of) => reals(rows.iter().map(of)),
            Of::Flag(of) => Data::Flag(rows.iter().map(|row| Some(of(row))).collect()),
        };
        Values { name: self.name.into(), data }
    }
}

fn reals(values: impl Iterator<Item = Option<f64>>) -> Data {
    Data::Real {
        values: values.map(|value| value.filter(|value| value.is_finite()).map(round3)).collect(),
        decimals: Some(3),
    }
}

impl Values {
    pub fn has_any(&self) -> bool {
        match &self.data {
            Data::Text(values) => values.iter().any(Option::is_some),
            Data::Whole(values) => values.iter().any(Option::is_some),
            Data::Real { values, .. } => values.iter().any(Option::is_some),
            Data::Flag(values) => values.iter().any(Option::is_some),
        }
    }

    /// Repeats its first value.
    pub fn repeated(self, rows: usize) -> Self {
        fn first<T: Clone>(values: &[Option<T>], rows: usize) -> Vec<Option<T>> {
            vec![values.first().cloned().flatten(); rows]
        }
        let data = match self.data {
            Data::Text(values) => Data::Text(first(&values, rows)),
            Data::Whole(values) => Data::Whole(first(&values, rows)),
            Data::Real { values, decimals } => Data::Real { values: first(&values, rows), decimals },
            Data::Flag(values) => Data::Flag(first(&values, rows)),
        };
        Self { data, ..self }
    }
}

pub(super) fn markdown<R>(columns: &[Column<R>]) -> String {
    columns.iter().fold("| column | type | unit | meaning |\n|---|---|---|---|\n".into(), |text, column| {
        let kind = match column.of {
            Of::Text(_) => "text",
            Of::Measure(Measure { is_count: true, .. }, _) | Of::Count(_) => "whole",
            Of::Measure(..) | Of::Real(_) => "number",
            Of::Flag(_) => "true or false",
        };
        format!("{text}| `{}` | {kind} | {} | {} |\n", column.name, column.unit, column.about)
    })
}

impl Data {
    fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Whole(values) => values.len(),
            Self::Real { values, .. } => values.len(),
            Self::Flag(values) => values.len(),
        }
    }

    fn json(&self, row: usize) -> serde_json::Value {
        match self {
            Self::Text(values) => values[row].clone().into(),
            Self::Whole(values) => values[row].into(),
            Self::Real { values, .. } => values[row].into(),
            Self::Flag(values) => values[row].into(),
        }
    }

    /// Formats a field as CSV (RFC 4180); a missing value is empty.
    fn field(&self, row: usize) -> String {
        match self {
            Self::Text(values) => values[row].as_deref().map(quoted),
            Self::Whole(values) => values[row].map(|value| value.to_string()),
            Self::Real { values, decimals: Some(decimals) } => values[row].map(|value| format!("{value:.decimals$}")),
            Self::Real { values, decimals: None } => values[row].map(|value| value.to_string()),
            Self::Flag(values) => values[row].map(|value| value.to_string()),
        }
        .unwrap_or_default()
    }
}

/// Quotes a field with a comma, a quote or a line break.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

/// Formats the columns as CSV.
pub(super) fn csv(columns: &[Values]) -> String {
    let names: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    let mut out = names.join(",") + "\n";
    for row in 0..columns.first().map_or(0, |column| column.data.len()) {
        for (index, column) in columns.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(out, "{comma}{}", column.data.field(row)).expect("a String takes everything");
        }
        out.push('\n');
    }
    out
}

/// Formats the rows as JSON lines, an object each.
pub(super) fn json_lines(columns: &[Values]) -> String {
    let mut out = String::new();
    for row in 0..columns.first().map_or(0, |column| column.data.len()) {
        for (index, column) in columns.iter().enumerate() {
            let (before, value) = (if index > 0 { ',' } else { '{' }, column.data.json(row));
            write!(out, "{before}\"{}\":{value}", column.name).expect("a String takes everything");
        }
        out.push_str("}\n");
    }
    out
}

/// Encodes the columns as a Parquet file.
pub(super) fn parquet(columns: &[Values]) -> Result<Vec<u8>, ParquetError> {
    let field = |column: &Values| {
        let (kind, converted) = match column.data {
            Data::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            Data::Whole(_) => (Physical::INT64, ConvertedType::NONE),
            Data::Real { .. } => (Physical::DOUBLE, ConvertedType::NONE),
            Data::Flag(_) => (Physical::BOOLEAN, ConvertedType::NONE),
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
        match &column.data {
            Data::Text(values) => {
                let bytes = |text: &String| ByteArray::from(text.as_str());
                write::<ByteArrayType, _>(
                    &mut rows,
                    &values.iter().map(|value| value.as_ref().map(bytes)).collect::<Vec<_>>(),
                )?;
            }
            Data::Whole(values) => write::<Int64Type, _>(&mut rows, values)?,
            Data::Real { values, .. } => write::<DoubleType, _>(&mut rows, values)?,
            Data::Flag(values) => write::<BoolType, _>(&mut rows, values)?,
        }
    }
    rows.close()?;
    writer.into_inner()
}

/// Writes the next column.
fn write<T: DataType, W: std::io::Write + Send>(
    rows: &mut parquet::file::writer::SerializedRowGroupWriter<'_, W>,
    values: &[Option<T::T>],
) -> Result<(), ParquetError> {
    let Some(mut column) = rows.next_column()? else { return Ok(()) };
    let there: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.iter().flatten().cloned().collect();
    column.typed::<T>().write_batch(&values, Some(&there), None)?;
    column.close()
}
