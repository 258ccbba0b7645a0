//! Parameters of schemes by name, as `--param` and scenario files give them.

use spray_core::cc::{CcKind, CcSchemes};
use spray_core::params::{Allowed, Group, Param, ParamError, Unit};
use spray_core::path::Schemes;

use super::reader::Setting;
use super::{ScenarioError, Transport, units};

/// Why a parameter cannot be set; the message says what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParamMistake {
    /// The value is at fault, rather than the name.
    pub of_value: bool,
    /// What is wrong, and what is allowed.
    pub message: String,
}

/// Sets the parameter `name`, as `flowcut.rtt_ratio`, to what `text` says; without a scheme's name it is one of `cc`'s.
/// Bytes may have a suffix, as in `2.5 MB`.
///
/// # Errors
/// When there is no such parameter, or the text is no value of it.
pub fn set_param(
    schemes: &mut Schemes,
    cc_schemes: &mut CcSchemes,
    cc: CcKind,
    name: &str,
    text: &str,
) -> Result<(), ParamMistake> {
    let (scheme, param) = name.split_once('.').unwrap_or((cc.name(), name));
    let Some(group) = schemes.group(scheme).or_else(|| cc_schemes.group(scheme)) else {
        let names = [Schemes::names(), CcSchemes::names()].concat().join(", ");
        return Err(ParamMistake {
            of_value: false,
            message: format!("`{scheme}` has no parameters; allowed: {names}"),
        });
    };
    let is_bytes = group.params().iter().any(|known| known.name == param && known.unit == Unit::Bytes);
    let bytes = units::bytes(text).filter(|_| is_bytes).map(|bytes| bytes.to_string());
    group.set(param, bytes.as_deref().unwrap_or(text)).map_err(|error| match error {
        ParamError::Value(param) => {
            ParamMistake { of_value: true, message: format!("`{name}` is {text}; allowed: {}", Allowed(param)) }
        }
        _ => ParamMistake { of_value: false, message: format!("`{name}`: {error}") },
    })
}

impl Transport {
    /// See [`set_param`].
    ///
    /// # Errors
    /// When there is no such parameter, or the text is no value of it.
    pub fn set_param(&mut self, name: &str, text: &str) -> Result<(), ParamMistake> {
        set_param(&mut self.schemes, &mut self.cc_schemes, self.cc, name, text)
    }

    /// Takes over what a file sets.
    pub(super) fn set_params(&mut self, settings: &[Setting<'_>]) -> Result<(), ScenarioError> {
        for setting in settings {
            self.set_param(&setting.name, &setting.text).map_err(|mistake| {
                setting.source.error(if mistake.of_value { &setting.value_at } else { &setting.at }, mistake.message)
            })?;
        }
        Ok(())
    }
}

/// Every scheme that has parameters, balancers first: its name and its table.
pub fn all_params() -> Vec<(&'static str, &'static [Param])> {
    let (mut schemes, mut cc_schemes) = (Schemes::DEFAULT, CcSchemes::DEFAULT);
    let table = |group: Option<&mut dyn Group>| group.map_or(&[][..], |group| group.params());
    let balancers = Schemes::names().iter().map(|name| (*name, table(schemes.group(name))));
    let ccs = CcSchemes::names().iter().map(|name| (*name, table(cc_schemes.group(name))));
    balancers.chain(ccs).collect()
}

/// How the table of parameters begins.
pub const PARAMS_HEAD: &str = "| parameter | unit | default | allowed | meaning |";

/// All parameters as `docs/scenario.md` has them, in Markdown.
pub fn params_markdown() -> String {
    let mut text = format!("{PARAMS_HEAD}\n|---|---|---|---|---|\n");
    for (scheme, params) in all_params() {
        for param in params {
            let (unit, default) = (unit(param.unit), spray_core::params::Shown(param, param.default));
            let (name, about) = (param.name, param.about.replace('|', "\\|"));
            text += &format!("| `{scheme}.{name}` | {unit} | {default} | {} | {about} |\n", Allowed(param));
        }
    }
    text
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "bytes",
        Unit::Microseconds => "us",
        Unit::Gbps => "Gb/s",
        Unit::Count | Unit::Ratio | Unit::Flag | Unit::Choice(_) => "",
    }
}
