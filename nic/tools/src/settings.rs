//! Settings on the command line: `--set PATH=VALUE` and flags.
//!
//! Flags are rows of tables, in this file and in [`Flags`]. The help text of a flag is the first
//! sentence of its setting's doc comment.

use std::marker::PhantomData;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use spray_settings::{Connections, Document, Meanings, assignment};

use crate::failure::{Failure, Outcome};

/// A flag with comma-separated values ([`FILE`]: a single one): name, name of the value, path of
/// the setting.
pub type Value = (&'static str, &'static str, &'static str);
/// A flag without a value: name, path of the setting, value that it sets.
pub type Switch = (&'static str, &'static str, &'static str);
/// A flag that sets a table or several settings: name, name of the value, help text.
pub type ShortForm = (&'static str, &'static str, &'static str, Expand);
/// Converts the value of a flag to settings and values. The error states the allowed values.
pub type Expand = fn(&str) -> Result<Vec<(&'static str, String)>, String>;

/// The name of a value that is a file.
pub const FILE: &str = "FILE";

/// The flags for connections.
const VALUES: [Value; 11] = [
    ("balancer", "NAME", "transport.balancer"),
    ("cc", "NAME", "transport.cc"),
    ("evs", "N", "transport.evs"),
    ("payload", "BYTES", "transport.payload_bytes"),
    ("ack-every", "PACKETS", "transport.ack_every"),
    ("ack-evs", "N", "transport.ack_evs"),
    ("receiver", "NAME", "transport.receiver"),
    ("sack-gap", "PACKETS", "transport.sack_gap_packets"),
    ("sack-rule", "RULE", "transport.sack_rule"),
    ("rto-min-us", "US", "transport.rto_min_us"),
    ("rto-max-us", "US", "transport.rto_max_us"),
];

/// The settings of a command, and its flags besides those for connections.
pub trait Flags {
    /// Flags with a value.
    const VALUES: &'static [Value] = &[];
    /// Flags without a value.
    const SWITCHES: &'static [Switch] = &[];
    /// Flags that set more than one setting.
    const SHORT_FORMS: &'static [ShortForm] = &[];

    /// Returns the descriptions of all settings.
    fn meanings() -> Meanings;
}

impl Flags for Connections {
    fn meanings() -> Meanings {
        Meanings::of::<Self>()
    }
}

/// Changes of settings by a command line.
#[derive(Clone, Debug, Default)]
pub struct Overrides<F = Connections>(Vec<Assignment>, PhantomData<F>);

#[derive(Clone, Debug)]
struct Assignment {
    path: String,
    value: String,
    /// The flag as written by the user.
    label: String,
}

impl<F: Flags + Default> Overrides<F> {
    /// Applies the changes.
    ///
    /// # Errors
    /// 2 for an invalid assignment.
    pub fn apply(&self, document: &mut Document) -> Outcome {
        self.0.iter().try_for_each(|Assignment { path, value, label }| {
            document.assign(path, value, label).map_err(Failure::refused)
        })
    }

    /// Adds the settings of the short form `--name text`.
    ///
    /// # Errors
    /// The allowed values, if `text` is invalid.
    pub fn expand(&mut self, name: &str, text: &str, expand: Expand) -> Result<(), String> {
        let label = format!("--{name} {text}");
        let assignments = expand(text).map_err(|why| format!("{label}: {why}"))?;
        assignments.iter().for_each(|(path, value)| self.push(path, value, label.clone()));
        Ok(())
    }

    /// Adds an assignment. `label` is the flag as written by the user.
    pub fn push(&mut self, path: &str, value: &str, label: String) {
        self.0.push(Assignment { path: path.into(), value: value.into(), label });
    }

    fn arguments(command: Command) -> Command {
        let meanings = F::meanings();
        let about = |path: &str| {
            let meaning = meanings.get(path).unwrap_or_default();
            meaning.split(". ").next().unwrap_or_default().trim_end_matches('.').to_string()
        };
        let flags = VALUES.iter().chain(F::VALUES).map(|(name, value, path)| {
            let flag = Arg::new(*name).long(*name).value_name(*value).help(about(path)).action(ArgAction::Append);
            // File names may contain commas.
            if *value == FILE { flag } else { flag.value_delimiter(',') }
        });
        let switches = F::SWITCHES.iter().map(|(name, path, value)| {
            let help = format!("Sets {path} to {value}");
            Arg::new(*name).long(*name).help(help).action(ArgAction::SetTrue)
        });
        let short = F::SHORT_FORMS.iter().map(|(name, value, help, _)| {
            Arg::new(*name).long(*name).value_name(*value).help(*help).action(ArgAction::Append)
        });
        let set = Arg::new("set").long("set").value_name("PATH=VALUE").action(ArgAction::Append).help(
            "Sets any field, as in transport.reps.buffer=4; may be repeated. `spray explain` has all of them, and says more of these",
        );
        command
            .next_help_heading("Settings")
            .args(flags)
            .args(switches)
            .args(short)
            .arg(set)
            .next_help_heading(None::<&str>)
    }

    fn from(matches: &ArgMatches) -> Result<Self, Error> {
        let mut overrides = Self::default();
        let given = |name: &str| -> Vec<String> {
            let values = matches.try_get_many::<String>(name).ok().flatten();
            values.into_iter().flatten().cloned().collect()
        };
        for (name, _, path) in VALUES.iter().chain(F::VALUES) {
            match given(name).as_slice() {
                [] => {}
                [value] => overrides.push(path, value, format!("--{name} {value}")),
                values => overrides.push(path, &listed(values), format!("--{name} {}", values.join(","))),
            }
        }
        for (name, path, value) in F::SWITCHES {
            if matches.try_get_one::<bool>(name).ok().flatten() == Some(&true) {
                overrides.push(path, value, format!("--{name}"));
            }
        }
        for (name, _, _, expand) in F::SHORT_FORMS {
            for text in given(name) {
                overrides.expand(name, &text, *expand).map_err(|why| refused(&why))?;
            }
        }
        for text in given("set") {
            let (path, value) = assignment(&text).map_err(|mistake| refused(&mistake.to_string()))?;
            overrides.push(path, value, format!("--set {text}"));
        }
        Ok(overrides)
    }
}

fn refused(why: &str) -> Error {
    Error::raw(ErrorKind::ValueValidation, format!("{why}\n"))
}

impl<F: Flags + Default> FromArgMatches for Overrides<F> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Self::from(matches)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.extend(Self::from(matches)?.0);
        Ok(())
    }
}

impl<F: Flags + Default> Args for Overrides<F> {
    /// Deferred, since the help text needs the declarations of all settings.
    fn augment_args(command: Command) -> Command {
        command.defer(Self::arguments)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn listed(values: &[String]) -> String {
    format!("[{}]", values.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", "))
}

/// Returns a TOML string literal; its escapes are those of JSON.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Default)]
    struct Files;

    impl Flags for Files {
        const VALUES: &'static [Value] = &[("failures", FILE, "simulation.failures")];

        fn meanings() -> Meanings {
            Meanings::of::<Connections>()
        }
    }

    #[test]
    fn values_with_commas_are_lists_except_for_files() {
        let given = |words: &[&str]| {
            let command = Overrides::<Files>::arguments(Command::new("run"));
            let matches = command.no_binary_name(true).try_get_matches_from(words).unwrap();
            let Overrides::<Files>(all, _) = Overrides::from(&matches).unwrap();
            (all[0].value.clone(), all[0].label.clone())
        };
        let list = (r#"["ops", "reps"]"#.to_string(), "--balancer ops,reps".to_string());
        assert_eq!(given(&["--balancer", "ops,reps"]), list);
        assert_eq!(given(&["--balancer", "ops", "--balancer=reps"]), list);
        assert_eq!(given(&["--evs", "32"]).0, "32");
        assert_eq!(given(&["--failures", "a,b.txt"]).0, "a,b.txt");
    }

    #[test]
    fn every_flag_refers_to_an_existing_setting() {
        let meanings = Connections::meanings();
        for path in VALUES.iter().map(|flag| flag.2) {
            assert!(meanings.get(path).is_some_and(|about| !about.is_empty()), "{path}");
        }
    }
}
