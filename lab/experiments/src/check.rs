//! `spray check`: what an input file is, whether it is read, and what it contains.

use std::path::Path;

use serde::Serialize;
use spray_fabric::limits::{MAX_FILE_BYTES, MAX_HOSTS, MAX_MESSAGE_BYTES};
use spray_fabric::{FailureFile, Network, TopoFile};
use spray_settings::{Document, Error};

use crate::scenario::{Scenario, parse_file, rename_settings};
use crate::workload::{Distribution, Flow, Plan, parse_matrix};

/// A kind of input file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputKind {
    /// A scenario (TOML).
    Scenario,
    /// A `.topo` topology.
    Topology,
    /// A `.cm` connection matrix.
    Matrix,
    /// A failure file.
    Failures,
    /// A distribution of message sizes.
    Sizes,
}

impl std::fmt::Display for InputKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// The content of an input file. Fields that its kind lacks are `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Contents {
    /// Number of hosts.
    pub hosts: Option<usize>,
    /// Number of switches.
    pub switches: Option<usize>,
    /// Number of unidirectional links.
    pub links: Option<usize>,
    /// The highest rate of a link in bits per second.
    pub rate_bps: Option<u64>,
    /// Number of flows of the first run.
    pub flows: Option<usize>,
    /// Payload of these flows in bytes.
    pub bytes: Option<u64>,
    /// Number of runs, without balancers.
    pub runs: Option<usize>,
    /// Mean message size in bytes.
    pub mean_bytes: Option<f64>,
    /// Parts of the file that are ignored.
    pub warnings: Vec<String>,
}

/// Returns the kind of `file` by its text, and its contents.
///
/// # Errors
/// Returns the place of the first invalid word and what is allowed there; for a format that is not
/// read, its name and what to use instead.
pub fn check(file: &Path) -> Result<(InputKind, Contents), Error> {
    if file.extension().is_some_and(|extension| extension == "toml") {
        let mut document = Document::load(file)?;
        let warnings = rename_settings(&mut document);
        return Ok((InputKind::Scenario, of_scenarios(&Scenario::read_all(&document)?, warnings)));
    }
    let error = |message| Error { location: file.display().to_string(), message };
    let text = spray_settings::read_file(file, MAX_FILE_BYTES)
        .map_err(|cause| error(format!("it cannot be read: {cause}")))?;
    let kind = kind(&text).map_err(error)?;
    let contents = parse_file(file, &text, "an input file", |text| match kind {
        InputKind::Topology => TopoFile::parse(text).map(|file| of_network(&file.network())),
        InputKind::Matrix => parse_matrix(text, MAX_HOSTS).map(|matrix| of_flows(&matrix.flows, matrix.warnings)),
        InputKind::Failures => FailureFile::parse(text).map(|_| Contents::default()),
        InputKind::Sizes | InputKind::Scenario => Distribution::parse(text, MAX_MESSAGE_BYTES)
            .map(|sizes| Contents { mean_bytes: Some(sizes.mean_bytes()), ..Contents::default() }),
    })?;
    Ok((kind, contents))
}

fn of_network(network: &Network) -> Contents {
    Contents {
        hosts: Some(network.hosts.len()),
        switches: Some(network.switches.len()),
        links: Some(network.links.len()),
        rate_bps: network.links.iter().map(|link| link.rate_bps).max(),
        ..Contents::default()
    }
}

fn of_flows(flows: &[Flow], warnings: Vec<String>) -> Contents {
    let hosts = flows.iter().map(|flow| 1 + flow.src.max(flow.dst)).max();
    let bytes = flows.iter().map(|flow| flow.bytes).sum();
    Contents { hosts, flows: Some(flows.len()), bytes: Some(bytes), warnings, ..Contents::default() }
}

fn of_scenarios(scenarios: &[Scenario], mut warnings: Vec<String>) -> Contents {
    let Some(first) = scenarios.first() else { return Contents::default() };
    let plan = Plan::new(&first.workloads, &first.network, first.seed);
    warnings.extend(first.workloads.iter().flat_map(|workload| workload.warnings().iter().cloned()));
    let Contents { flows, bytes, warnings, .. } = of_flows(&plan.flows, warnings);
    let runs = scenarios.iter().map(|scenario| scenario.seeds.len()).sum();
    Contents { flows, bytes, warnings, runs: Some(runs), ..of_network(&first.network) }
}

/// Returns the lines of words outside comments, with commas as separators.
fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(words).filter(|words| !words.is_empty())
}

fn words(line: &str) -> Vec<&str> {
    let code = line.split('#').next().unwrap_or_default();
    code.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()).collect()
}

/// Returns the kind of a text other than a scenario, by its first lines.
///
/// # Errors
/// Returns the name of a format that is not read, and what to use instead.
pub fn kind(text: &str) -> Result<InputKind, String> {
    let lines: Vec<Vec<&str>> = lines(text).take(64).collect();
    let Some(first) = lines.first() else { return Err("it is empty; allowed: an input file".into()) };
    let is_number = |word: &&str| word.parse::<f64>().is_ok();
    let (key, width) = (first[0].to_ascii_lowercase(), lines.iter().map(Vec::len).max().unwrap_or_default());
    let begins = |names: &[&str]| lines.iter().any(|line| names.iter().any(|name| line[0].eq_ignore_ascii_case(name)));
    if lines.iter().any(|line| line[0].contains("->")) || begins(&["connections"]) {
        return Ok(InputKind::Matrix);
    }
    if begins(&["tiers", "podsize", "tier"]) {
        return Ok(InputKind::Topology);
    }
    if begins(&["link_speed_global_gbps"]) || lines.iter().any(|line| line[..] == ["topology", "dragonfly"]) {
        return Err(
            "a dragonfly or Slim Fly file is not read; allowed: kind \"dragonfly\" in `[topology]` of a scenario"
                .into(),
        );
    }
    if begins(&["num_ranks", "rank"]) {
        return Err("a GOAL trace is not read; allowed: its flows as a `.cm` matrix with triggers".into());
    }
    if key == "name:" && begins(&["topology:"]) {
        return Err("a containerlab topology is not read; allowed: a scenario with `[topology]` of its nodes and links, or `spray up --host`".into());
    }
    let is_flow = |line: &Vec<&str>| (5..=6).contains(&line.len()) && line.iter().all(is_number);
    if first.len() == 1 && is_number(&first[0]) && lines.get(1).is_some_and(is_flow) {
        return Err(
            "a flow list of HPCC or ConWeave is not read; allowed: a `.cm` matrix, or `[[workload.flow]]`".into()
        );
    }
    if lines.iter().all(|line| line.iter().all(is_number)) {
        return match (first.len(), width) {
            (1..=2, 2) => Ok(InputKind::Sizes),
            (1..=3, 3) => Err("three columns (size, index, share) are not read; allowed: bytes and share".into()),
            _ => Err("numbers alone are of no kind that is read; allowed: sizes and shares, two to a line".into()),
        };
    }
    if first.iter().all(is_number) && lines.iter().any(|line| line.len() == 5 && line[2].ends_with("bps")) {
        return Err(
            "a topology of HPCC or ConWeave is not read; allowed: a `.topo` file, or a scenario with `[topology]`"
                .into(),
        );
    }
    if lines.iter().all(|line| line[0].contains(':')) {
        return Ok(InputKind::Failures);
    }
    if width == 2 && lines.iter().skip(1).all(|line| line.iter().all(is_number)) {
        return Ok(InputKind::Sizes);
    }
    Err("it is of no kind that is read; allowed: a scenario (.toml), a topology (.topo), a matrix (.cm), a failure file, or sizes and shares".into())
}

#[cfg(test)]
mod tests {
    use spray_test_support::Folder;

    use super::*;

    #[test]
    fn each_kind_is_found_by_its_text() {
        let folder = Folder::new();
        let check = |text: &str| super::check(Path::new(&folder.file("x", text)));
        let (kind, contents) = check("Nodes 16\nConnections 9\n1->0 id 1 start 1.5e6 size 2000000\n").unwrap();
        assert_eq!(
            (kind, contents.hosts, contents.flows, contents.bytes),
            (InputKind::Matrix, Some(2), Some(1), Some(2_000_000))
        );
        assert_eq!(contents.warnings.len(), 1);
        let topology = "Nodes 4\nTiers 2\nPodsize 4\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 2\nRadix_Up 2\n\
                        Tier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\n";
        let (kind, contents) = check(topology).unwrap();
        assert_eq!((kind, contents.hosts, contents.switches), (InputKind::Topology, Some(4), Some(4)));
        assert_eq!((contents.links, contents.rate_bps), (Some(16), Some(200_000_000_000)));
        assert_eq!(check("Cable-Fail: ON\nNIC-Fail:OFF\n").unwrap().0, InputKind::Failures);
        let (kind, contents) = check("0 0\n1000 100\n").unwrap();
        assert_eq!((kind, contents.mean_bytes), (InputKind::Sizes, Some(500.5)));
        assert_eq!(check("bytes,share\n1000,1\n").unwrap().0, InputKind::Sizes);
    }

    #[test]
    fn private_files_are_not_quoted_to_root() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new();
        let file = folder.file("x.cm", "0->1 start 0 size secret\n");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let message = check(Path::new(&file)).unwrap_err().message;
        assert_eq!(message.contains("secret"), !spray_test_support::has_root(), "{message}");
    }

    #[test]
    fn other_formats_are_named_with_what_to_use_instead() {
        let folder = Folder::new();
        for (text, expected) in [
            ("num_ranks 2\nrank 0 {\nl1: send 8b to 1\n}\n", "a GOAL trace"),
            ("name: lab\ntopology:\n  nodes:\n", "containerlab"),
            ("3\n0 1 3 100 1000 2\n1 2 3 100 1000 2.5\n\nFlow: source, sink\n", "flow list of HPCC"),
            ("p 2\na 4\nh 2\nLink_speed_global_Gbps 400\n", "a dragonfly"),
            ("4 1 3\n3\n0 3 100Gbps 1000ns 0\n1 3 100Gbps 1000ns 0\n", "topology of HPCC"),
            ("6 1 0\n6 1 0.5\n13 1 1\n", "three columns"),
            ("", "empty"),
            ("Lorem ipsum dolor\n", "no kind"),
        ] {
            let error = check(Path::new(&folder.file("x", text))).unwrap_err();
            assert!(error.message.contains(expected) && error.message.contains("allowed: "), "{text}: {error:?}");
        }
        let error = check(Path::new(&folder.file("x", "Nodes 4\nConnections 1\n0->x start 0 size 1\n"))).unwrap_err();
        assert!(error.location.ends_with("x:3:1"), "{error:?}");
    }
}
