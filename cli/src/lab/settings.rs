//! Flags that are short forms of scenario settings.

use std::path::Path;

use spray_core::units::Ratio;
use spray_experiments::scenario::{Document, Settings, rename_settings};
use spray_fabric::LinkPattern;
use spray_settings::{MAX_SETTINGS_BYTES, Meanings, read_text};
use spray_tools::failure::{Failure, Outcome};
use spray_tools::note;
use spray_tools::settings::{Expand, FILE, Flags, ShortForm, Switch, Value, quoted};

pub type Overrides = spray_tools::settings::Overrides<OfScenario>;

#[derive(Clone, Debug, Default)]
pub struct OfScenario;

impl Flags for OfScenario {
    const VALUES: &'static [Value] = &[
        ("queue", "LENGTH", "queue.limit"),
        ("mark-min", "LENGTH", "queue.mark_min"),
        ("mark-max", "LENGTH", "queue.mark_max"),
        ("dilation", "FACTOR", "emulation.dilation"),
        ("sample-us", "US", "sample_us"),
        ("time-limit-us", "US", "time_limit_us"),
        ("fail-cables", "PERCENT", "simulation.dead_cables_percent"),
        ("failures", FILE, "simulation.failures"),
        ("convergence-us", "US", "routing.convergence_us"),
        ("workload-payload", FILE, "workload.payload"),
    ];
    const SWITCHES: &'static [Switch] = &[
        ("erasure", "transport.erasure", "true"),
        ("no-trim", "queue.trimming", "false"),
        ("no-marking", "queue.marking", "false"),
        ("acked", "simulation.fct_end", "acked"),
    ];
    const SHORT_FORMS: &'static [ShortForm] = &[
        (
            "switch",
            "NAME|TIER=NAME",
            "Load balancing of switches among equal-cost ports, for all tiers or one: tor (or leaf), agg (or spine), core; may be repeated",
            switch,
        ),
        (
            "topology",
            "F.topo|COUNTS",
            "Fabric: a `.topo` file, or counts: leaf-spine:LEAVESxSPINESxHOSTS, fat-tree:PODSxTORSxAGGSxCORESxHOSTS, \
            dragonfly:GROUPSxROUTERSxHOSTSxCABLES, each followed by @GBPS for a rate other than 400",
            topology,
        ),
        (
            "matrix",
            "F.cm|PATTERN",
            "Flows: a `.cm` file, or permutation:BYTES, cross-leaf-permutation:BYTES, cross-pod-permutation:BYTES, all-to-all:BYTES, \
             tornado:BYTES, incast:SENDERS:BYTES",
            matrix,
        ),
        (
            "link-rate",
            "LINK=SHARE",
            "Reduce links to a share of their rate, as in `leaf0->spine0=50%`; `leaf0-spine0` means both directions, `leaf*->spine0` the \
            links of all leaves, `spine0` all links of a switch; may be repeated",
            link_rate,
        ),
        (
            "fail",
            "LINK@FROM..TO",
            "Drop every frame on links silently between two times in us, as in `leaf0-spine1@100..200`, or permanently, as in \
            `spine*@100..`; may be repeated",
            fail,
        ),
    ];

    fn meanings() -> Meanings {
        Meanings::of::<Settings>()
    }
}

/// Returns the overrides of `--topology` and `--matrix`.
pub fn fabric(of: &str, flows: &str) -> Outcome<Overrides> {
    let mut overrides = Overrides::default();
    for (name, text, expand) in [("topology", of, topology as Expand), ("matrix", flows, matrix)] {
        overrides.expand(name, text, expand).map_err(Failure::refused)?;
    }
    Ok(overrides)
}

pub fn load(overrides: &Overrides, file: &Path) -> Outcome<Document> {
    let mut document = match file {
        file if file == Path::new("-") => from_stdin(file)?,
        file => Document::load(file).map_err(Failure::refused)?,
    };
    overrides.apply(&mut document)?;
    rename_settings(&mut document).iter().for_each(|warning| note!("{warning}"));
    Ok(document)
}

/// Relative paths in the scenario start at the working directory.
fn from_stdin(file: &Path) -> Outcome<Document> {
    let text = read_text(std::io::stdin(), MAX_SETTINGS_BYTES);
    let text = text.map_err(|error| {
        Failure::refused(format!("standard input cannot be read: {error}; allowed: a scenario in TOML"))
    })?;
    Document::parse(file, &text).map_err(Failure::refused)
}

const TOPOLOGIES: &str = "a .topo file, leaf-spine:LEAVESxSPINESxHOSTS, fat-tree:PODSxTORSxAGGSxCORESxHOSTS or \
           dragonfly:GROUPSxROUTERSxHOSTSxCABLES, with @GBPS after the counts for a rate other than 400";
const PATTERNS: &str = "a .cm file, permutation:BYTES, cross-leaf-permutation:BYTES, cross-pod-permutation:BYTES, all-to-all:BYTES, \
                        tornado:BYTES or \
                        incast:SENDERS:BYTES, with bytes as in 8388608, 8MiB or 2kB";

fn topology(text: &str) -> Result<Vec<(&'static str, String)>, String> {
    let table = match text.split_once(':') {
        Some((kind @ ("leaf-spine" | "fat-tree" | "dragonfly"), counts)) => by_counts(kind, counts)?,
        _ if Path::new(text).is_file() => format!("{{kind = \"file\", file = {}}}", quoted(text)),
        _ => return Err(format!("no such file; allowed: {TOPOLOGIES}")),
    };
    Ok(vec![("topology", table)])
}

fn by_counts(kind: &str, text: &str) -> Result<String, String> {
    let (counts, gbps) = text.split_once('@').unwrap_or((text, "400"));
    let names: &[&str] = match kind {
        "leaf-spine" => &["leaves", "spines", "hosts_per_leaf"],
        "fat-tree" => &["pods", "tors_per_pod", "aggs_per_pod", "cores", "hosts_per_tor"],
        _ => &["groups", "routers_per_group", "hosts_per_router", "global_cables"],
    };
    let counts: Vec<&str> = counts.split('x').collect();
    let number = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
    if counts.len() != names.len() || !counts.iter().all(|count| count.parse::<u32>().is_ok()) || !number(gbps) {
        return Err(format!("allowed: {TOPOLOGIES}"));
    }
    let counts: String = names.iter().zip(counts).map(|(name, count)| format!("{name} = {count}, ")).collect();
    Ok(format!("{{kind = \"{kind}\", {counts}host_gbps = {gbps}}}"))
}

fn matrix(text: &str) -> Result<Vec<(&'static str, String)>, String> {
    let table = match text.split(':').collect::<Vec<_>>()[..] {
        [
            kind @ ("permutation" | "cross-leaf-permutation" | "cross-pod-permutation" | "all-to-all" | "tornado"),
            bytes,
        ] => {
            format!("{{kind = \"{kind}\", bytes = {}}}", quoted(bytes))
        }
        ["incast", senders, bytes] if senders.parse::<u32>().is_ok() => {
            format!("{{kind = \"incast\", senders = {senders}, bytes = {}}}", quoted(bytes))
        }
        _ if Path::new(text).is_file() => format!("{{kind = \"matrix\", file = {}}}", quoted(text)),
        _ => return Err(format!("no such file; allowed: {PATTERNS}")),
    };
    let stem = Path::new(text).file_stem().and_then(|stem| stem.to_str()).unwrap_or("sim");
    let name = stem.replace(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c), "-");
    Ok(vec![("name", quoted(&name)), ("workload", table)])
}

fn switch(text: &str) -> Result<Vec<(&'static str, String)>, String> {
    let (path, scheme) = match text.split_once('=') {
        None => ("switch.scheme", text),
        Some(("tor" | "leaf" | "edge", scheme)) => ("switch.tor", scheme),
        Some(("agg" | "spine", scheme)) => ("switch.agg", scheme),
        Some(("core", scheme)) => ("switch.core", scheme),
        Some((tier, _)) => {
            return Err(format!("unknown tier `{tier}`; allowed: tor (or leaf), agg (or spine), core"));
        }
    };
    Ok(vec![(path, quoted(scheme))])
}

fn link_rate(text: &str) -> Result<Vec<(&'static str, String)>, String> {
    const ALLOWED: &str = "allowed: LINK=SHARE with a share from 0.1% to 99.9%, such as leaf0->spine0=50%";
    let (link, share) = text.rsplit_once('=').ok_or(ALLOWED)?;
    share.parse::<Ratio>().map_err(|_| ALLOWED)?;
    Ok(vec![("link_event.+", format!("{{{}, action = \"rate\", factor = {}}}", named(link), quoted(share)))])
}

fn named(name: &str) -> String {
    let field = if LinkPattern::new(name).is_node() { "node" } else { "link" };
    format!("{field} = {}", quoted(name))
}

fn fail(text: &str) -> Result<Vec<(&'static str, String)>, String> {
    const ALLOWED: &str = "allowed: LINK@FROM..TO in microseconds, such as leaf0-spine1@100..200 or spine1@100..";
    let (link, times) = text.rsplit_once('@').ok_or(ALLOWED)?;
    let (from, to) = times.split_once("..").ok_or(ALLOWED)?;
    let us = |text: &str| text.parse::<f64>().map(|us| format!("{us:?}")).map_err(|_| ALLOWED);
    let until = if to.is_empty() { String::new() } else { format!(", until_us = {}", us(to)?) };
    let link = named(link);
    Ok(vec![("link_event.+", format!("{{{link}, action = \"silent-drop\", at_us = {}{until}}}", us(from)?))])
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command};

    use super::*;

    #[test]
    fn short_forms_become_settings() {
        let one = |expand: Expand, text: &str| expand(text).map(|all| all.into_iter().last().unwrap());
        let table = "{kind = \"leaf-spine\", leaves = 4, spines = 2, hosts_per_leaf = 8, host_gbps = 100}";
        assert_eq!(one(topology, "leaf-spine:4x2x8@100").unwrap(), ("topology", table.into()));
        let event = one(fail, "leaf0-spine1#2@1.5..20").unwrap().1;
        assert_eq!(event, "{link = \"leaf0-spine1#2\", action = \"silent-drop\", at_us = 1.5, until_us = 20.0}");
        let event = one(link_rate, "leaf0->spine0=50%").unwrap().1;
        assert_eq!(event, "{link = \"leaf0->spine0\", action = \"rate\", factor = \"50%\"}");
        let event = one(fail, "spine*@1..").unwrap().1;
        assert_eq!(event, "{node = \"spine*\", action = \"silent-drop\", at_us = 1.0}");
        assert_eq!(matrix("incast:3:2kB").unwrap()[0], ("name", "\"incast-3-2kB\"".into()));
        for (expand, text) in [
            (topology as Expand, "leaf-spine:4x2"),
            (topology, "leaf-spine:4x-2x8"),
            (topology, "leaf-spine:4x2x8@inf"),
            (matrix, "storm:8"),
            (matrix, "incast:x:8"),
            (link_rate, "leaf0->spine0"),
            (link_rate, "a-b=x"),
            (link_rate, "a-b=0.5"),
            (fail, "a-b"),
            (fail, "a-b@1"),
            (fail, "a-b@..5"),
            (fail, "a-b@x..y"),
        ] {
            assert!(expand(text).unwrap_err().contains("allowed: "), "{text}");
        }
    }

    fn help(flag: &str) -> String {
        let mut command = Overrides::augment_args(Command::new("run"));
        command.build();
        let argument = command.get_arguments().find(|argument| argument.get_long() == Some(flag)).unwrap();
        argument.get_help().unwrap().to_string()
    }

    #[test]
    fn help_describes_the_flag() {
        assert!(
            help("workload-payload").starts_with("A file whose bytes every flow carries"),
            "{}",
            help("workload-payload")
        );
        assert_eq!(help("no-trim"), "Sets queue.trimming to false");
    }

    #[test]
    fn every_flag_is_short_for_an_existing_setting() {
        let meanings = OfScenario::meanings();
        for path in
            OfScenario::VALUES.iter().map(|flag| flag.2).chain(OfScenario::SWITCHES.iter().map(|switch| switch.1))
        {
            assert!(meanings.get(path).is_some_and(|about| !about.is_empty()), "{path}");
        }
    }
}
