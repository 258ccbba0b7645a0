//! `docs/reference/schemes.md`: every balancer and congestion control, from the code's own words.

use std::fmt::Write;

use spray_core::cc::CcKind;
use spray_core::path::BalancerKind;
use spray_experiments::scenario::Settings;
use spray_experiments::specs::of_host_scheme;
use spray_fabric::Scheme;
use spray_pipeline::scheme::{Layout, Pointers, Size};
use spray_settings::Meanings;

/// A specification: the name of its file in `docs/specs` without the suffix, and its title.
type Spec = (String, String);

const HEAD: &str = "# Schemes

Generated from the code by `UPDATE_DOCS=1 cargo test -p spray-experiments documentation`; do not edit. Any balancer runs with any
congestion control on any engine: `balancer` and `cc` in a scenario, `--balancer` and `--cc` on the command line. A scheme's settings
stand in the table of its name, `[transport.flowcut] rtt_ratio = 4`, or `--set transport.flowcut.rtt_ratio=4` on the command line;
[settings.md](settings.md) has their units, defaults, ranges and meaning. State is what a NIC keeps per connection, settings left out.
How the schemes compare is in [results/host-schemes.md](../results/host-schemes.md) and [results/papers.md](../results/papers.md).
";

/// The beginning of the part on switches.
const SWITCHES: &str = "
## Schemes of switches

What a switch does with a frame that several ports of equal cost could take. Any of them runs on both engines, but for `reunion` and `conweave`, which only the simulator has, in all tiers or in one (`[switch]` in a
scenario, `--switch NAME` and `--switch tor=NAME` on the command line), under any balancer but `host-dr`. The rules are in
[switching](../specs/switching.md); how they compare is in [results/papers.md](../results/papers.md).

| scheme | which port a frame takes | memory of a switch |
|---|---|---|
";

/// What a switch that holds frames keeps, as types of the scheme.
const HELD: &str = "282 KiB in types of its own ([CWV-17](../specs/conweave.md))";

/// What a switch keeps for a scheme.
fn memory(scheme: Scheme) -> String {
    let Layout { pointers, orders, .. } = scheme.layout();
    let words = |leaves| scheme.words(&Size { leaves, uplinks: 16 });
    let (own, leaf) = (words(0), words(1) - words(0));
    let kib = own * 8 / 1024;
    match pointers {
        Pointers::None if scheme.holds() && own == 0 => HELD.into(),
        Pointers::None if scheme.holds() => format!("{kib} KiB, and {HELD}"),
        Pointers::None if own == 0 => "none".into(),
        Pointers::None if leaf == 0 => format!("{kib} KiB"),
        Pointers::None => format!("{kib} KiB, and {} bytes for each leaf with 16 uplinks", leaf * 8),
        Pointers::Ports if orders > 1 => format!("16 bytes for each set of ports, {orders} orders of it"),
        Pointers::Ports if scheme == Scheme::Drill => "8 bytes for each set of ports".into(),
        Pointers::Ports => "16 bytes for each set of ports".into(),
        Pointers::Destination => "16 bytes for each other edge switch (at edges) or pod (above)".into(),
    }
}

#[test]
fn the_documentation_of_schemes_is_that_of_the_code() {
    let docs = spray_test_support::root().join("docs");
    let mut specs: Vec<Spec> = Vec::new();
    for entry in std::fs::read_dir(docs.join("specs")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let title = text.lines().next().and_then(|line| line.strip_prefix("# "));
        let name = path.file_stem().unwrap().to_str().unwrap().to_string();
        specs.push((name, title.unwrap_or_else(|| panic!("{path:?} begins without a title")).into()));
    }
    specs.sort();
    let (file, text) = (docs.join("reference/schemes.md"), markdown(&specs).unwrap());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == text, "docs/reference/schemes.md is behind the code (UPDATE_DOCS=1 writes it anew)");
}

/// The document; `specs` are all that there are, in the order of their names.
///
/// # Errors
/// The name of a scheme that no specification is known of.
fn markdown(specs: &[Spec]) -> Result<String, String> {
    let mut text = HEAD.to_string();
    text += "\n## Balancers\n\n| balancer | what it does | specification | settings | state bytes |\n|---|---|---|---|--:|\n";
    let meanings = Meanings::of::<Settings>();
    for kind in BalancerKind::ALL {
        let settings = settings_of(kind.name(), kind.settings_names(), &meanings);
        line(&mut text, kind.name(), [kind.about(), &settings], kind.state_bytes(), specs)?;
    }
    text += "\n## Congestion controls\n\n\
             | congestion control | what it does | specification | settings | state bytes |\n|---|---|---|---|--:|\n";
    for kind in CcKind::ALL {
        let settings = settings_of(kind.name(), kind.settings_names(), &meanings);
        line(&mut text, kind.name(), [kind.about(), &settings], kind.state_bytes(), specs)?;
    }
    text += SWITCHES;
    for scheme in Scheme::ALL {
        let alias = scheme.alias().map_or(String::new(), |alias| format!(", `{alias}`"));
        let _ = writeln!(text, "| `{scheme}`{alias} | {} | {} |", scheme.about(), memory(scheme));
    }
    text += "\n## Specifications\n\n";
    for (file, title) in specs {
        let _ = writeln!(text, "- [{file}](../specs/{file}.md): {title}");
    }
    Ok(text)
}

fn line(
    text: &mut String,
    name: &str,
    [about, settings]: [&str; 2],
    state_bytes: usize,
    specs: &[Spec],
) -> Result<(), String> {
    let files: Vec<&str> = specs.iter().map(|(file, _)| file.as_str()).collect();
    let spec = of_host_scheme(name, &files).ok_or_else(|| format!("no specification of {name} in docs/specs"))?;
    let _ = writeln!(text, "| `{name}` | {about} | [{spec}](../specs/{spec}.md) | {settings} | {state_bytes} |");
    Ok(())
}

/// The settings in the tables of these names; those of a preset are its scheme's, those of a pair both schemes'.
fn settings_of(name: &str, tables: &[&str], meanings: &Meanings) -> String {
    let quoted =
        |names: &[&str], between| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(between);
    let settings: Vec<_> = tables.iter().flat_map(|table| meanings.settings(&format!("transport.{table}"))).collect();
    let names: Vec<&str> = settings.iter().map(|setting| setting.name.as_str()).collect();
    match tables {
        _ if names.is_empty() => String::new(),
        [own] if *own == name => quoted(&names, ", "),
        others => format!("those of {}", quoted(others, " and ")),
    }
}
