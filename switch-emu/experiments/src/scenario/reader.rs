//! Typed access to one table of a scenario, with errors that point at the value.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::error::{ScenarioError, Source};
use super::fields::{Field, Kind, Section};
use super::units::{self, PS_PER_US, QueueLength};

/// A value and where it stands.
pub(crate) type At<T> = (T, Range<usize>);

/// One table, whose keys are known to be the section's.
pub(crate) struct Table<'a> {
    pub source: &'a Source<'a>,
    pub span: Range<usize>,
    section: &'static Section,
    table: &'a DeTable<'a>,
}

type Value<'a> = (&'a DeValue<'a>, Range<usize>);

/// A value under a name that no section lists: a scheme's parameter.
pub(crate) struct Setting<'a> {
    pub source: &'a Source<'a>,
    /// With the tables that it is in, as `flowcut.rtt_ratio`.
    pub name: String,
    /// Where the name stands.
    pub at: Range<usize>,
    /// The value as text: numbers in decimal, `true`, `false`, or what a string holds.
    pub text: String,
    /// Where the value stands.
    pub value_at: Range<usize>,
}

impl<'a> Table<'a> {
    /// Opens `table`, refusing keys that the section does not have.
    pub fn open(
        source: &'a Source<'a>,
        section: &'static Section,
        table: &'a DeTable<'a>,
        span: Range<usize>,
    ) -> Result<Self, ScenarioError> {
        for key in table.keys() {
            if !section.fields.iter().any(|field| field.name == key.get_ref()) {
                let names: Vec<_> = section.fields.iter().map(|field| field.name).collect();
                let message =
                    format!("unknown field `{}` in {}; allowed: {}", key.get_ref(), section.header, names.join(", "));
                return Err(source.error(&key.span(), message));
            }
        }
        Ok(Self { source, span, section, table })
    }

    fn field(&self, name: &str) -> &'static Field {
        let field = self.section.fields.iter().find(|field| field.name == name);
        field.unwrap_or_else(|| unreachable!("{} has a field {name}", self.section.header))
    }

    fn value(&self, name: &str) -> Option<Value<'a>> {
        let (_, value) = self.table.iter().find(|(key, _)| key.get_ref() == name)?;
        Some((value.get_ref(), value.span()))
    }

    /// Where field `name` stands, or the table where it does not.
    pub fn span_of(&self, name: &str) -> Range<usize> {
        self.value(name).map_or(self.span.clone(), |(_, span)| span)
    }

    /// An error at field `name`.
    pub fn error(&self, name: &str, message: impl Into<String>) -> ScenarioError {
        self.source.error(&self.span_of(name), message)
    }

    /// The error of a field that is missing.
    pub fn missing(&self, name: &str) -> ScenarioError {
        let allowed = self.field(name).kind.allowed().1;
        self.source.error(&self.span, format!("{} needs `{name}`; allowed: {allowed}", self.section.header))
    }

    fn refused(&self, name: &str) -> ScenarioError {
        let span = self.span_of(name);
        let given = self.source.text.get(span.clone()).unwrap_or_default().lines().next().unwrap_or_default();
        self.source.error(&span, format!("`{name}` is {given}; allowed: {}", self.field(name).kind.allowed().1))
    }

    /// Refuses fields that do not go with `kind`, the value of the field `discriminant`.
    pub fn check_kind(&self, discriminant: &str, kind: &str) -> Result<(), ScenarioError> {
        for (key, _) in self.table.iter() {
            let field = self.field(key.get_ref());
            if !field.only.is_empty() && !field.only.contains(&kind) {
                let goes = |field: &&Field| field.only.is_empty() || field.only.contains(&kind);
                let names: Vec<_> = self.section.fields.iter().filter(goes).map(|field| field.name).collect();
                let message =
                    format!("`{}` does not go with {discriminant} `{kind}`; allowed: {}", field.name, names.join(", "));
                return Err(self.source.error(&key.span(), message));
            }
        }
        Ok(())
    }

    /// A number within the field's bounds.
    pub fn number(&self, name: &str) -> Result<Option<f64>, ScenarioError> {
        let Kind::Number(min, max, _) = self.field(name).kind else { unreachable!("{name} is a number") };
        let Some((value, _)) = self.value(name) else { return Ok(None) };
        let number = as_number(value).filter(|number| (min..=max).contains(number));
        number.map(Some).ok_or_else(|| self.refused(name))
    }

    /// A time in microseconds, as picoseconds.
    pub fn time(&self, name: &str) -> Result<Option<u64>, ScenarioError> {
        Ok(self.number(name)?.map(|us| (us * PS_PER_US).round() as u64))
    }

    /// A rate in Gb/s, as bits a second.
    pub fn rate(&self, name: &str) -> Result<Option<u64>, ScenarioError> {
        Ok(self.number(name)?.map(|gbps| (gbps * 1e9).round() as u64))
    }

    /// A share, in millionths.
    pub fn share(&self, name: &str) -> Result<Option<u32>, ScenarioError> {
        Ok(self.number(name)?.map(|share| (share * 1e6).round() as u32))
    }

    /// A whole number within the field's bounds.
    pub fn integer(&self, name: &str) -> Result<Option<u64>, ScenarioError> {
        let Kind::Integer(min, max, _) = self.field(name).kind else { unreachable!("{name} is an integer") };
        let Some((value, _)) = self.value(name) else { return Ok(None) };
        let number = as_integer(value).filter(|number| (min..=max).contains(number));
        number.map(Some).ok_or_else(|| self.refused(name))
    }

    /// Bytes, as a whole number or as text with a suffix.
    pub fn bytes(&self, name: &str) -> Result<Option<u64>, ScenarioError> {
        let Kind::Bytes(min, max) = self.field(name).kind else { unreachable!("{name} is bytes") };
        let Some((value, _)) = self.value(name) else { return Ok(None) };
        let number = as_integer(value).or_else(|| value.as_str().and_then(units::bytes));
        number.filter(|number| (min..=max).contains(number)).map(Some).ok_or_else(|| self.refused(name))
    }

    /// Text that is not empty.
    pub fn text(&self, name: &str) -> Result<Option<At<&'a str>>, ScenarioError> {
        let Some((value, span)) = self.value(name) else { return Ok(None) };
        let text = value.as_str().filter(|text| !text.is_empty());
        text.map(|text| Some((text, span))).ok_or_else(|| self.refused(name))
    }

    /// One of the field's words; a whole number counts as its digits.
    pub fn choice(&self, name: &str) -> Result<Option<&'static str>, ScenarioError> {
        let Kind::Choice(words) = self.field(name).kind else { unreachable!("{name} is a choice") };
        let Some((value, _)) = self.value(name) else { return Ok(None) };
        let given = value.as_str().or_else(|| value.as_integer().map(|integer| integer.as_str()));
        let word = given.and_then(|given| words.iter().find(|word| **word == given));
        word.map(|word| Some(*word)).ok_or_else(|| self.refused(name))
    }

    /// One or a list of words, not checked.
    pub fn words(&self, name: &str) -> Result<Option<Vec<At<&'a str>>>, ScenarioError> {
        let Some((value, span)) = self.value(name) else { return Ok(None) };
        if let (Some(text), Kind::Choices(_)) = (value.as_str(), &self.field(name).kind) {
            return Ok(Some(vec![(text, span)]));
        }
        let array = value.as_array().filter(|array| !array.is_empty()).ok_or_else(|| self.refused(name))?;
        let word = |item: &'a toml::Spanned<DeValue<'a>>| Some((item.get_ref().as_str()?, item.span()));
        array.iter().map(word).collect::<Option<Vec<_>>>().map(Some).ok_or_else(|| self.refused(name))
    }

    /// The words that field `name` takes.
    pub fn allowed(&self, name: &str) -> String {
        self.field(name).kind.allowed().1
    }

    /// `true` or `false`.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, ScenarioError> {
        let Some((value, _)) = self.value(name) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.refused(name))
    }

    /// A length of queue.
    pub fn queue(&self, name: &str) -> Result<Option<QueueLength>, ScenarioError> {
        let Some((value, _)) = self.value(name) else { return Ok(None) };
        let length = as_integer(value).map(QueueLength::Bytes).or_else(|| value.as_str().and_then(QueueLength::parse));
        length.map(Some).ok_or_else(|| self.refused(name))
    }

    /// `"auto"` (`None`) or a number within the field's bounds.
    pub fn auto(&self, name: &str) -> Result<Option<f64>, ScenarioError> {
        let Kind::Auto(min, max) = self.field(name).kind else { unreachable!("{name} is auto or a number") };
        match self.value(name) {
            None => Ok(None),
            Some((value, _)) if value.as_str() == Some("auto") => Ok(None),
            Some((value, _)) => {
                let number = as_number(value).filter(|number| (min..=max).contains(number));
                number.map(Some).ok_or_else(|| self.refused(name))
            }
        }
    }

    /// The table `name`, an empty one at this table's place where it is missing.
    pub fn table(&self, name: &str, section: &'static Section) -> Result<Option<Table<'a>>, ScenarioError> {
        let Some((value, span)) = self.value(name) else { return Ok(None) };
        let table = value.as_table().ok_or_else(|| self.refused(name))?;
        Table::open(self.source, section, table, span).map(Some)
    }

    /// What the table `name` sets, itself and in tables of its own; nothing where it is missing.
    pub fn settings(&self, name: &str) -> Result<Vec<Setting<'a>>, ScenarioError> {
        let Some((value, _)) = self.value(name) else { return Ok(Vec::new()) };
        let mut settings = Vec::new();
        for (key, value) in value.as_table().ok_or_else(|| self.refused(name))?.iter() {
            match value.get_ref().as_table() {
                None => settings.push(self.setting(key.get_ref().to_string(), key.span(), value)?),
                Some(inner) => {
                    for (param, value) in inner.iter() {
                        settings.push(self.setting(
                            format!("{}.{}", key.get_ref(), param.get_ref()),
                            param.span(),
                            value,
                        )?);
                    }
                }
            }
        }
        // In the order in which they stand.
        settings.sort_by_key(|setting| setting.at.start);
        Ok(settings)
    }

    fn setting(
        &self,
        name: String,
        at: Range<usize>,
        value: &'a toml::Spanned<DeValue<'a>>,
    ) -> Result<Setting<'a>, ScenarioError> {
        let (source, value_at, value) = (self.source, value.span(), value.get_ref());
        let text = match value {
            DeValue::String(text) => text.to_string(),
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::Float(float) => float.as_str().replace('_', ""),
            DeValue::Integer(integer) => {
                as_integer(value).map_or_else(|| integer.as_str().into(), |number| number.to_string())
            }
            _ => {
                let message = format!("`{name}` is a list or a table; allowed: a number, true, false, or text");
                return Err(source.error(&value_at, message));
            }
        };
        Ok(Setting { source, name, at, text, value_at })
    }

    /// The list of tables `name`, empty where it is missing.
    pub fn tables(&self, name: &str, section: &'static Section) -> Result<Vec<Table<'a>>, ScenarioError> {
        let Some((value, _)) = self.value(name) else { return Ok(Vec::new()) };
        let array = value.as_array().ok_or_else(|| self.refused(name))?;
        let open = |item: &'a toml::Spanned<DeValue<'a>>| {
            let table = item.get_ref().as_table().ok_or_else(|| self.refused(name))?;
            Table::open(self.source, section, table, item.span())
        };
        array.iter().map(open).collect()
    }
}

fn as_integer(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok()
}

fn as_number(value: &DeValue<'_>) -> Option<f64> {
    match value.as_float() {
        Some(float) => float.as_str().replace('_', "").parse().ok(),
        None => as_integer(value).map(|integer| integer as f64),
    }
}
