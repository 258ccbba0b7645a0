//! Settings on the command line: `--set PATH=VALUE`, and flags that are short for it.
//!
//! A flag is a line in a table: those for connections stand below, and what a command has besides them is its [`Flags`]. A flag's help text is
//! the first sentence of the comment at the declaration of its setting.

use std::marker::PhantomData;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use spray_settings::{Connections, Document, Meanings, assignment};

use crate::failure::{Failure, Outcome};

/// A flag with a value, or several with commas between, unless it is a [`FILE`]: name, name of the value, path of the setting.
pub type Value = (&'static str, &'static str, &'static str);
/// A flag without a value: name, path of the setting, value that the flag gives it.
pub type Switch = (&'static str, &'static str, &'static str);
/// A flag whose value is short for a table or for several settings: name, name of the value, help text.
pub type ShortForm = (&'static str, &'static str, &'static str, Expand);
/// Turns the value of a flag into settings and their values. The error says what is allowed.
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

/// What a command may set, and its flags besides those for connections.
pub trait Flags {
    /// Flags with a value.
    const VALUES: &'static [Value] = &[];
    /// Flags without.
    const SWITCHES: &'static [Switch] = &[];
    /// Flags that are short for more than one setting.
    const SHORT_FORMS: &'static [ShortForm] = &[];

    /// What all settings mean.
    fn meanings() -> Meanings;
}

impl Flags for Connections {
    fn meanings() -> Meanings {
        Meanings::of::<Self>()
    }
}

/// The changes that a command line makes in the settings of a command with these flags.
#[derive(Clone, Debug, Default)]
pub struct Overrides<F = Connections>(Vec<Assignment>, PhantomData<F>);

#[derive(Clone, Debug)]
struct Assignment {
    path: String,
    value: String,
    /// As the user wrote it.
    label: String,
}

impl<F: Flags + Default> Overrides<F> {
    /// Makes the changes.
    ///
    /// # Errors
    /// 2 for an assignment that is not possible.
    pub fn apply(&self, document: &mut Document) -> Outcome {
        self.0.iter().try_for_each(|Assignment { path, value, label }| {
            document.assign(path, value, label).map_err(Failure::refused)
        })
    }

    /// Makes the changes of the short form `--name text`.
    ///
    /// # Errors
    /// What is allowed, for another value.
    pub fn expand(&mut self, name: &str, text: &str, expand: Expand) -> Result<(), String> {
        let label = format!("--{name} {text}");
        let assignments = expand(text).map_err(|why| format!("{label}: {why}"))?;
        assignments.iter().for_each(|(path, value)| self.push(path, value, label.clone()));
        Ok(())
    }

    /// Adds an assignment. `label` is the flag that it comes from, as the user wrote it.
    pub fn push(&mut self, path: &str, value: &str, label: String) {
        self.0.push(Assignment { path: path.into(), value: value.into(), label });
    }

    /// The flags of all settings that the command has.
    fn arguments(command: Command) -> Command {
        let meanings = F::meanings();
        let about = |path: &str| {
            let meaning = meanings.get(path).unwrap_or_default();
            meaning.split(". ").next().unwrap_or_default().trim_end_matches('.').to_string()
        };
        let flags = VALUES.iter().chain(F::VALUES).map(|(name, value, path)| {
            let flag = Arg::new(*name).long(*name).value_name(*value).help(about(path)).action(ArgAction::Append);
            // A file's name may have commas.
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
    /// Only the command that runs gets its flags, because their help takes the whole declaration of the settings.
    fn augment_args(command: Command) -> Command {
        command.defer(Self::arguments)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// A list in TOML.
fn listed(values: &[String]) -> String {
    format!("[{}]", values.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", "))
}

/// Text in TOML, which has the escapes of JSON.
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
    fn values_with_commas_are_a_list_but_for_files() {
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
    fn every_flag_is_short_for_a_setting_that_there_is() {
        let meanings = Connections::meanings();
        for path in VALUES.iter().map(|flag| flag.2) {
            assert!(meanings.get(path).is_some_and(|about| !about.is_empty()), "{path}");
        }
    }
}
