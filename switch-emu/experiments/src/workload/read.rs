//! The workload's table of a scenario.

use super::{Each, Flow, Matrix, Pattern, Payload, Workload, can_cross, parse_matrix};
use crate::scenario::reader::Table;
use crate::scenario::sections::list;
use crate::scenario::{ScenarioError, fields};
use spray_fabric::Network;
use spray_fabric::Node;

/// Most flows of a run: their results fit into a report.
const MAX_FLOWS: usize = 100_000;

impl Workload {
    /// Reads `table` for `network`, and the files that it names.
    pub(crate) fn read(table: &Table<'_>, network: &Network) -> Result<Self, ScenarioError> {
        let kind = table.choice("kind")?.ok_or_else(|| table.missing("kind"))?;
        table.check_kind("kind", kind)?;
        let payload = payload(table)?;
        let pattern = match kind {
            "flows" => Pattern::Flows(flows(table, network, &payload)?),
            "matrix" => Pattern::Matrix(matrix(table, network)?),
            _ => pattern(table, network, kind, &payload)?,
        };
        Ok(Self { pattern, payload })
    }
}

fn payload(table: &Table<'_>) -> Result<Payload, ScenarioError> {
    let Some((name, _)) = table.text("payload")? else { return Ok(Payload::Generated) };
    let mut workload = Workload { pattern: Pattern::Flows(Vec::new()), payload: Payload::Generated };
    let path = table.source.folder().join(name);
    let read = workload.set_payload_file(path.clone(), false);
    read.map_err(|error| {
        table.error("payload", format!("`{}`: {error}; allowed: a file that is not empty", path.display()))
    })?;
    Ok(workload.payload)
}

fn bytes(table: &Table<'_>, payload: &Payload) -> Result<u64, ScenarioError> {
    match (table.bytes("bytes")?, payload) {
        (Some(bytes), _) => Ok(bytes),
        (None, Payload::File { bytes, .. }) => Ok(bytes.len() as u64),
        (None, Payload::Generated) => Err(table.missing("bytes")),
    }
}

fn pattern(table: &Table<'_>, network: &Network, kind: &str, payload: &Payload) -> Result<Pattern, ScenarioError> {
    let each = Each { bytes: bytes(table, payload)?, start_ps: table.time("start_us")?.unwrap_or(0) };
    Ok(match kind {
        "cross-leaf-permutation" if !can_cross(network) => {
            let message = "one leaf has more than half of the hosts; allowed: `permutation`, or another topology";
            return Err(table.error("kind", message));
        }
        "cross-leaf-permutation" => Pattern::CrossLeafPermutation(each),
        "permutation" => Pattern::Permutation(each),
        "tornado" => Pattern::Tornado(each),
        _ => incast(table, network, each)?,
    })
}

fn incast(table: &Table<'_>, network: &Network, each: Each) -> Result<Pattern, ScenarioError> {
    let receiver = if table.text("receiver")?.is_some() { host(table, network, "receiver")? } else { 0 };
    let others = network.hosts.len() - 1;
    let senders = table.integer("senders")?.map_or(others, |senders| senders as usize);
    if senders > others {
        return Err(
            table.error("senders", format!("`senders` is {senders}; allowed: at most the {others} other hosts"))
        );
    }
    Ok(Pattern::Incast { senders, receiver, each })
}

/// The host that field `name` means.
fn host(table: &Table<'_>, network: &Network, name: &str) -> Result<usize, ScenarioError> {
    let (text, _) = table.text(name)?.ok_or_else(|| table.missing(name))?;
    match network.node(text) {
        Some(Node::Host(host)) => Ok(host),
        _ => {
            let names = list(network.hosts.iter().map(String::as_str));
            Err(table.error(name, format!("there is no host `{text}`; allowed: {names}")))
        }
    }
}

fn flows(table: &Table<'_>, network: &Network, payload: &Payload) -> Result<Vec<Flow>, ScenarioError> {
    let tables = table.tables("flow", &fields::FLOW)?;
    if tables.is_empty() {
        return Err(table.missing("flow"));
    }
    let read = |(flow, table): (usize, &Table<'_>)| {
        let (src, dst) = (host(table, network, "src")?, host(table, network, "dst")?);
        if src == dst {
            return Err(table.error("dst", "a host sends to itself; allowed: another host"));
        }
        let start_ps = table.time("start_us")?.unwrap_or(0);
        Ok(Flow { flow: flow as u32, src, dst, bytes: bytes(table, payload)?, start_ps })
    };
    tables.iter().enumerate().map(read).collect()
}

fn matrix(table: &Table<'_>, network: &Network) -> Result<Matrix, ScenarioError> {
    let (name, _) = table.text("file")?.ok_or_else(|| table.missing("file"))?;
    let file = table.source.folder().join(name);
    let text = std::fs::read_to_string(&file).map_err(|error| {
        table.error("file", format!("`{}` cannot be read: {error}; allowed: a .cm file", file.display()))
    })?;
    let mut matrix = parse_matrix(&text, network.hosts.len()).map_err(|error| ScenarioError {
        file: file.clone(),
        line: error.line,
        column: error.column,
        message: error.message,
    })?;
    let flows = matrix.flows.len();
    if flows > MAX_FLOWS {
        return Err(table.error("file", format!("{flows} flows; allowed: at most {MAX_FLOWS}")));
    }
    matrix.warnings.iter_mut().for_each(|warning| *warning = format!("{}: {warning}", file.display()));
    Ok(matrix)
}
