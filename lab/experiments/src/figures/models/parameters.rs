//! Parameters of a model.

use toml::Table;

/// A table that checks values on access.
pub(super) struct Parameters<'a>(pub &'a Table);

impl Parameters<'_> {
    pub fn number(&self, name: &str) -> Result<f64, String> {
        let value =
            self.0.get(name).and_then(|value| value.as_float().or_else(|| value.as_integer().map(|n| n as f64)));
        value.ok_or_else(|| format!("the model needs a number `{name}`"))
    }

    pub fn text(&self, name: &str) -> Result<&str, String> {
        self.0.get(name).and_then(toml::Value::as_str).ok_or_else(|| format!("the model needs a text `{name}`"))
    }

    pub fn count(&self, name: &str) -> Result<usize, String> {
        let value = self.0.get(name).and_then(toml::Value::as_integer).and_then(|value| usize::try_from(value).ok());
        value.ok_or_else(|| format!("the model needs a whole number `{name}`"))
    }
}
