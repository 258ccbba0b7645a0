//! `docs/schemes.md`: every balancer and congestion control, from the code's own words.

use std::fmt::Write;

use spray_core::cc::CcKind;
use spray_core::path::BalancerKind;

use crate::scenario::all_params;

/// A specification: the name of its file in `docs/specs` without the suffix, and its title.
pub type Spec = (String, String);

const HEAD: &str = "# Schemes

Generated from the code by `UPDATE_DOCS=1 cargo test -p spray-experiments documentation`; do not edit. Any balancer runs with any congestion
control on any engine: `balancer` and `cc` in a scenario ([scenario.md](scenario.md#transport)), `--balancer` and `--cc` on the command
line. Parameters are set under the scheme's name (`--param flowcut.rtt_ratio=4`); [scenario.md](scenario.md#transport) has their units,
defaults, ranges and meaning. State is what a NIC keeps per connection, settings left out. How the schemes compare is in
[results/host-schemes.md](results/host-schemes.md).
";

/// Specifications of schemes whose own name no file has.
const ELSEWHERE: [(&str, &str); 5] =
    [("ecmp", "reps"), ("ops", "reps"), ("mptcp", "subflow"), ("fixed-rate", "transport"), ("host-dr", "drb")];

/// The document; `specs` are all that there are, in the order of their names.
///
/// # Errors
/// The name of a scheme that no specification is known of.
pub fn markdown(specs: &[Spec]) -> Result<String, String> {
    let mut text = HEAD.to_string();
    text += "\n## Balancers\n\n| balancer | what it does | specification | parameters | state bytes |\n|---|---|---|---|--:|\n";
    for kind in BalancerKind::ALL {
        line(&mut text, kind.name(), kind.about(), kind.state_bytes(), specs)?;
    }
    text += "\n## Congestion controls\n\n| congestion control | what it does | specification | parameters | state bytes |\n|---|---|---|---|--:|\n";
    for kind in CcKind::ALL {
        line(&mut text, kind.name(), kind.about(), kind.state_bytes(), specs)?;
    }
    text += "\n## Specifications\n\n";
    for (file, title) in specs {
        let _ = writeln!(text, "- [{file}](specs/{file}.md): {title}");
    }
    Ok(text)
}

fn line(text: &mut String, name: &str, about: &str, state_bytes: usize, specs: &[Spec]) -> Result<(), String> {
    let spec = spec_of(name, specs).ok_or_else(|| format!("no specification of {name} in docs/specs"))?;
    let params = params_of(name);
    let _ = writeln!(text, "| `{name}` | {about} | [{spec}](specs/{spec}.md) | {params} | {state_bytes} |");
    Ok(())
}

/// The file of its own name, the one that is known to hold it, or that of the scheme it is a variant of.
fn spec_of<'a>(name: &str, specs: &'a [Spec]) -> Option<&'a str> {
    let elsewhere = ELSEWHERE.iter().find(|(scheme, _)| *scheme == name).map(|(_, file)| *file);
    let named = |wanted: &str| specs.iter().map(|(file, _)| file.as_str()).find(|file| *file == wanted);
    let variant = || specs.iter().map(|(file, _)| file.as_str()).find(|file| name.starts_with(&format!("{file}-")));
    named(name).or_else(|| named(elsewhere?)).or_else(variant)
}

fn params_of(name: &str) -> String {
    let all = all_params();
    let of = |name: &str| all.iter().find(|(scheme, _)| *scheme == name).map(|(_, params)| *params);
    let list = |params: &[spray_core::params::Param]| {
        params.iter().map(|param| format!("`{}`", param.name)).collect::<Vec<_>>().join(", ")
    };
    match (of(name), name.split('-').next().filter(|stem| *stem != name && of(stem).is_some())) {
        (Some(params), _) => list(params),
        (None, Some(stem)) => format!("those of `{stem}`"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_documentation_of_schemes_is_that_of_the_code() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let mut specs: Vec<Spec> = Vec::new();
        for entry in std::fs::read_dir(docs.join("specs")).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let title = text.lines().next().and_then(|line| line.strip_prefix("# "));
            let name = path.file_stem().unwrap().to_str().unwrap().to_string();
            specs.push((name, title.unwrap_or_else(|| panic!("{path:?} begins without a title")).into()));
        }
        specs.sort();
        let (file, text) = (docs.join("schemes.md"), markdown(&specs).unwrap());
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(found == text, "docs/schemes.md is behind the code (UPDATE_DOCS=1 writes it anew)");
    }
}
