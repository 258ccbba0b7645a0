//! `spray explain`: schemes, settings and specifications, by name.

use std::path::Path;

use include_dir::{Dir, include_dir};
use serde_json::{Value, json};
use spray_core::cc::CcKind;
use spray_core::path::BalancerKind;
use spray_experiments::results::{align, documentation};
use spray_experiments::scenario::Settings;
use spray_experiments::specs::of_host_scheme;
use spray_fabric::Scheme;
use spray_settings::{Meanings, Setting, Word, did_you_mean, file_schema, markdown};
use spray_tools::failure::{Failure, Outcome};
use spray_tools::say;

use crate::lab::args;

static SPECS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../docs/specs");

pub fn explain(arguments: &args::Explain) -> Outcome {
    let meanings = Meanings::of::<Settings>();
    let name = match arguments.name.as_deref() {
        None => return list(&meanings),
        Some("schema") => return schema(),
        Some("settings") => return document(&format!("{SETTINGS}{}", markdown::<Settings>())),
        Some("results") => return document(&documentation()),
        Some(name) => name,
    };
    let mut found: Vec<Explained> = schemes(name, &meanings).into_iter().chain(setting(name, &meanings)).collect();
    if found.is_empty() {
        found = words(name, &meanings);
    }
    if found.is_empty() {
        let settings = meanings.named(name).into_iter().filter_map(|path| setting(&path, &meanings));
        found = glossary(name).into_iter().chain(settings).collect();
    }
    if found.is_empty() {
        found.extend(specification(name));
    }
    if found.is_empty() {
        let all = names(&meanings);
        let near = did_you_mean(name, &all.iter().map(String::as_str).collect::<Vec<_>>());
        return Err(Failure::refused(format!("unknown name `{name}`{near}; `spray explain` lists all names")));
    }
    say::object(&found.iter().map(Explained::object).collect::<Vec<_>>())?;
    for (index, one) in found.iter().enumerate() {
        say!("{}{}", if index > 0 { "\n" } else { "" }, one.text());
    }
    // Schemes of one name may share a specification.
    let mut specs: Vec<&str> = found.iter().filter_map(|one| one.spec).collect();
    specs.dedup();
    specs.iter().for_each(|spec| say!("\n{}", spec_text(spec)));
    Ok(())
}

const SETTINGS: &str = "# Settings of a scenario

`--set transport.reps.buffer=4` sets any of these on the command line. Where `\"auto\"` is the default, the value is derived, as the last column describes.
";

fn document(text: &str) -> Outcome {
    say::object(&json!({ "text": text }))?;
    say!("{}", text.trim_end());
    Ok(())
}

/// Prints the JSON Schema of scenarios, for completion and checks in editors.
fn schema() -> Outcome {
    let schema = file_schema::<Settings>();
    say::object(&schema)?;
    say!("{}", serde_json::to_string_pretty(&schema).map_err(Failure::failed)?);
    Ok(())
}

#[derive(Default)]
struct Explained {
    name: String,
    /// The kind of entry, with an article.
    kind: &'static str,
    about: String,
    /// Names and values, such as how to select it.
    facts: Vec<(&'static str, String)>,
    /// Settings by table.
    settings: Vec<(String, Vec<Setting>)>,
    /// File name of the specification, without extension.
    spec: Option<&'static str>,
}

impl Explained {
    fn text(&self) -> String {
        let Self { name, kind, about, facts, settings, .. } = self;
        let mut text = format!("{name}: {kind}\n  {about}\n");
        facts.iter().for_each(|(name, value)| text += &format!("  {name}: {value}\n"));
        for (table, settings) in settings.iter().filter(|(_, settings)| !settings.is_empty()) {
            text += &format!("\nSettings in [{table}], or with --set {table}.NAME=VALUE\n");
            let row = |setting: &Setting| {
                let Setting { name, default, allowed, meaning, .. } = setting;
                let default = if default.is_empty() { "-".into() } else { default.clone() };
                vec![format!("  {name}"), default, shortened(allowed), meaning.clone()]
            };
            let head = ["  name", "default", "allowed", "meaning"];
            text += &align(&head, 4, &settings.iter().map(row).collect::<Vec<_>>());
        }
        text.trim_end().to_string()
    }

    fn object(&self) -> Value {
        let facts: serde_json::Map<String, Value> =
            self.facts.iter().map(|(name, value)| (name.replace(' ', "_"), json!(value))).collect();
        json!({
            "name": self.name,
            "kind": self.kind,
            "about": self.about,
            "facts": facts,
            "settings": self.settings.iter().flat_map(|(_, settings)| settings).collect::<Vec<_>>(),
            "specification": self.spec.map(spec_text),
        })
    }
}

/// Truncates a list of allowed values. The entry of the setting shows it in full.
fn shortened(allowed: &str) -> String {
    const MOST: usize = 40;
    match allowed.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}..", &allowed[..end]),
        None => allowed.to_string(),
    }
}

fn in_table(table: String, meanings: &Meanings) -> (String, Vec<Setting>) {
    let settings = meanings.settings(&table);
    (table, settings)
}

/// Returns balancers, congestion controls and switch schemes with this name.
fn schemes(name: &str, meanings: &Meanings) -> Vec<Explained> {
    let host = |name: &str, kind, about: &str, state_bytes: usize, own: &[&str], option: &str| {
        let field = option.trim_start_matches('-');
        Explained {
            name: name.into(),
            kind,
            about: about.into(),
            facts: vec![
                ("use", format!("{option} {name}, or {field} = \"{name}\" in [transport] of a scenario")),
                ("state of a connection", format!("{state_bytes} bytes")),
            ],
            settings: own.iter().map(|own| in_table(format!("transport.{own}"), meanings)).collect(),
            spec: of_host_scheme(name, &spec_names()),
        }
    };
    let balancer = BalancerKind::named(name).map(|kind| {
        host(kind.name(), "a balancer", kind.about(), kind.state_bytes(), kind.settings_names(), "--balancer")
    });
    let cc = CcKind::named(name).map(|kind| {
        host(kind.name(), "a congestion control", kind.about(), kind.state_bytes(), kind.settings_names(), "--cc")
    });
    let has_name = |scheme: &Scheme| scheme.name() == name || scheme.alias() == Some(name);
    let switch = Scheme::ALL.into_iter().find(has_name).map(|scheme| Explained {
        name: scheme.name().into(),
        kind: "a switch scheme",
        about: scheme.about().into(),
        facts: vec![("use", format!("--switch {scheme}, or scheme = \"{scheme}\" in [switch] of a scenario"))],
        settings: Vec::new(),
        spec: Some(scheme.spec()),
    });
    [balancer, cc, switch].into_iter().flatten().collect()
}

fn setting(path: &str, meanings: &Meanings) -> Option<Explained> {
    let Setting { name: _, unit, default, allowed, meaning } = meanings.setting(path)?;
    let facts = [("unit", unit.to_string()), ("default", default), ("allowed", allowed)];
    Some(Explained {
        name: path.into(),
        kind: "a setting of a scenario",
        about: meaning,
        facts: facts.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
        settings: vec![in_table(path.into(), meanings)],
        spec: None,
    })
}

/// Returns values of settings with this name, such as `poisson` and `flap`.
fn words(name: &str, meanings: &Meanings) -> Vec<Explained> {
    let word = |own: Word| {
        let (table, field) = own.path.rsplit_once('.').unwrap_or(("", &own.path));
        Explained {
            name: own.word.clone(),
            kind: if own.is_kind { "a kind of a table of a scenario" } else { "a value of a setting" },
            about: own.meaning,
            facts: vec![("use", format!("{field} = \"{}\" in [{table}] of a scenario", own.word))],
            settings: vec![(table.into(), own.settings)],
            spec: None,
        }
    };
    meanings.words().into_iter().filter(|own| own.word == name).map(word).collect()
}

static README: &str = include_str!("../../../README.md");

/// Returns the glossary in the README: terms, with short forms in brackets, and explanations.
fn glossary_rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    let section = README.split("## Glossary").nth(1).unwrap_or_default();
    let rows = section
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    rows.filter(|(word, _)| !word.is_empty())
}

/// Splits a title: `entropy value (EV)` and `leaf, spine` have two terms each.
fn glossary_words(title: &'static str) -> impl Iterator<Item = &'static str> {
    title.split([',', '(', ')']).map(str::trim).filter(|word| !word.is_empty())
}

fn glossary(name: &str) -> Option<Explained> {
    let is_meant = |title: &'static str| glossary_words(title).any(|word| word.eq_ignore_ascii_case(name));
    let (title, about) = glossary_rows().find(|(title, _)| is_meant(title))?;
    Some(Explained { name: title.into(), kind: "a word of the glossary", about: about.into(), ..Explained::default() })
}

fn specification(name: &str) -> Option<Explained> {
    let name = spec_names().into_iter().find(|file| *file == name)?;
    Some(Explained {
        name: name.into(),
        kind: "a specification",
        about: spec_title(name).into(),
        spec: Some(name),
        ..Explained::default()
    })
}

fn list(meanings: &Meanings) -> Outcome {
    let pair = |name: &str, about: &str| [name.to_string(), about.to_string()];
    let top = meanings.top().into_iter().map(|name| pair(name, &meanings.get(name).unwrap_or_default()));
    let kinds = meanings.words().into_iter().filter(|own| own.is_kind).map(|own| [own.word, own.meaning]);
    let groups: [(&str, Vec<[String; 2]>); 7] = [
        ("balancers", BalancerKind::ALL.map(|kind| pair(kind.name(), kind.about())).into()),
        ("congestion controls", CcKind::ALL.map(|kind| pair(kind.name(), kind.about())).into()),
        ("schemes of switches", Scheme::ALL.map(|scheme| pair(scheme.name(), scheme.about())).into()),
        ("settings", top.collect()),
        ("kinds of topologies, workloads, failures", kinds.collect()),
        ("glossary", glossary_rows().map(|(word, about)| pair(word, about)).collect()),
        ("specifications", spec_names().into_iter().map(|name| pair(name, spec_title(name))).collect()),
    ];
    let mut all = serde_json::Map::new();
    for (title, names) in groups {
        let rows: Vec<Vec<String>> =
            names.iter().map(|[name, about]| vec![format!("  {name}"), about.clone()]).collect();
        say!("{}", align(&[title, ""], 2, &rows));
        let names = names.iter().map(|[name, about]| json!({ "name": name, "about": about }));
        all.insert(title.replace(", ", "_").replace(' ', "_"), names.collect());
    }
    say::object(&all)
}

fn names(meanings: &Meanings) -> Vec<String> {
    let schemes = BalancerKind::ALL.iter().map(|kind| kind.name()).chain(CcKind::ALL.iter().map(|kind| kind.name()));
    let schemes = schemes.chain(Scheme::ALL.iter().map(|scheme| scheme.name())).chain(spec_names());
    let settings = meanings.top().into_iter().flat_map(|table| {
        let inner = meanings.settings(table).into_iter().map(move |setting| format!("{table}.{}", setting.name));
        std::iter::once(table.to_string()).chain(inner)
    });
    let words = meanings.words().into_iter().map(|own| own.word);
    let words = words.chain(glossary_rows().flat_map(|(title, _)| glossary_words(title)).map(String::from));
    schemes.map(String::from).chain(settings).chain(words).collect()
}

fn spec_names() -> Vec<&'static str> {
    let mut names: Vec<_> = SPECS.files().filter_map(|file| file.path().file_stem()?.to_str()).collect();
    names.sort_unstable();
    names
}

fn spec_text(name: &str) -> &'static str {
    let file = SPECS.get_file(Path::new(name).with_extension("md"));
    file.and_then(|file| file.contents_utf8()).unwrap_or_default().trim_end()
}

fn spec_title(name: &str) -> &'static str {
    spec_text(name).lines().next().unwrap_or_default().trim_start_matches("# ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_has_a_specification_and_every_specification_a_title() {
        let meanings = Meanings::of::<Settings>();
        let all = BalancerKind::ALL.iter().map(|kind| kind.name()).chain(CcKind::ALL.iter().map(|kind| kind.name()));
        for name in all.chain(Scheme::ALL.iter().map(|scheme| scheme.name())) {
            let found = schemes(name, &meanings);
            assert!(!found.is_empty(), "{name}");
            for one in found {
                assert!(one.spec.is_some_and(|spec| spec_names().contains(&spec)), "{name}: {:?}", one.spec);
            }
        }
        assert!(spec_names().len() > 30);
        assert!(spec_names().into_iter().all(|name| !spec_title(name).is_empty()));
    }

    #[test]
    fn kinds_words_of_the_glossary_and_settings_by_their_last_name_are_found() {
        let meanings = Meanings::of::<Settings>();
        let poisson = &words("poisson", &meanings)[0];
        assert!(
            poisson.about.starts_with("Every host sends messages") && poisson.settings[0].0 == "workload",
            "{}",
            poisson.about
        );
        assert!(poisson.settings[0].1.iter().any(|setting| setting.name == "load"));
        for name in ["flap", "all-reduce", "leaf-spine"] {
            assert!(words(name, &meanings).iter().all(|own| !own.about.is_empty()), "{name}");
            assert!(!words(name, &meanings).is_empty(), "{name}");
        }
        let rows: Vec<_> = glossary_rows().collect();
        assert!(rows.len() >= 12, "{rows:?}");
        for word in rows.iter().flat_map(|(title, _)| glossary_words(title)) {
            assert!(glossary(word).is_some_and(|own| own.about.len() > 10), "{word}");
        }
        assert_eq!(glossary("ev").unwrap().name, "entropy value (EV)");
        assert_eq!(meanings.named("dilation"), ["emulation.dilation"]);
    }

    #[test]
    fn a_shared_name_gives_both_and_settings_are_found_by_path() {
        let meanings = Meanings::of::<Settings>();
        assert_eq!(schemes("ecmp", &meanings).len(), 2);
        let found = setting("transport.reps.buffer", &meanings).unwrap();
        assert!(found.facts.iter().any(|(name, value)| *name == "default" && value == "8"), "{:?}", found.facts);
        assert!(setting("topology", &meanings).unwrap().settings[0].1.iter().any(|setting| setting.name == "leaves"));
        assert!(setting("transport.nonsense", &meanings).is_none());
    }
}
