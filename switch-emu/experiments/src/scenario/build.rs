//! From the text of a scenario to its checked form, table by table.

use toml::de::DeTable;

use super::Scenario;
use super::error::{ScenarioError, Source};
use super::fields;
use super::reader::Table;
use super::sections::{emulation, link_events, network, queue};
use super::transport::transport;
use crate::workload::Workload;
use spray_fabric::{CompileError, preload};

/// Time between samples, unless the scenario says otherwise.
const SAMPLE_PS: u64 = 20_000_000;

pub(super) fn scenario(source: &Source<'_>) -> Result<Scenario, ScenarioError> {
    let document = DeTable::parse(source.text).map_err(|error| {
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        source.error(&error.span().unwrap_or(0..0), format!("{message}; allowed: TOML"))
    })?;
    let top = Table::open(source, &fields::TOP, document.get_ref(), 0..0)?;
    let (name, _) = top.text("name")?.ok_or_else(|| top.missing("name"))?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.chars().all(plain) || name.starts_with('.') {
        let rule = "letters, digits, `-`, `_` and `.`, no `.` first, since a folder is named so";
        return Err(top.error("name", format!("`name` is `{name}`; allowed: {rule}")));
    }
    let topology = top.table("topology", &fields::TOPOLOGY)?.ok_or_else(|| top.missing("topology"))?;
    let network = network(&topology)?;
    let workload_table = top.table("workload", &fields::WORKLOAD)?.ok_or_else(|| top.missing("workload"))?;
    let workload = Workload::read(&workload_table, &network)?;
    let transport = transport(top.table("transport", &fields::TRANSPORT)?)?;
    let events = top.tables("link_event", &fields::LINK_EVENT)?;
    let link_events = link_events(&events, &network)?;
    let queue_table = top.table("queue", &fields::QUEUE)?;
    let scenario = Scenario {
        name: name.to_string(),
        condition: top.text("condition")?.map_or_else(|| Scenario::describe(&link_events), |(text, _)| text.into()),
        seed: top.integer("seed")?.unwrap_or(1),
        time_limit_ps: top.time("time_limit_us")?,
        sample_ps: top.time("sample_us")?.unwrap_or(SAMPLE_PS),
        network,
        workload,
        transport,
        queue: queue(queue_table.as_ref())?,
        link_events,
        emulation: emulation(top.table("emulation", &fields::EMULATION)?)?,
    };
    check_queue(&scenario, &top, queue_table.as_ref())?;
    check_events(&scenario, &events)?;
    Ok(scenario)
}

/// Checks the thresholds against each other, in bytes, at the fabric's own rates.
fn check_queue(scenario: &Scenario, top: &Table<'_>, table: Option<&Table<'_>>) -> Result<(), ScenarioError> {
    let error = |name: &str, message: String| match table {
        Some(table) => table.error(name, message),
        None => top.error("topology", message),
    };
    let (base_rtt_ps, packet_bytes) = (scenario.base_rtt_ps(), scenario.packet_bytes());
    for link in &scenario.network.links {
        let queue = scenario.queue.config(link.rate_bps, base_rtt_ps, packet_bytes);
        // What does not fit is cut to this.
        if queue.limit_bytes == u32::MAX {
            let message = format!("`limit` is 4 GiB or more at {}; allowed: less", link.name);
            return Err(error("limit", message));
        }
        if queue.mark_min_bytes > queue.mark_max_bytes || queue.mark_max_bytes > queue.limit_bytes {
            let (min, max, limit) = (queue.mark_min_bytes, queue.mark_max_bytes, queue.limit_bytes);
            let message = format!(
                "`mark_min`, `mark_max` and `limit` are {min}, {max} and {limit} bytes at {}; allowed: ascending",
                link.name
            );
            return Err(error("mark_max", message));
        }
    }
    Ok(())
}

/// Checks that all events together can be preloaded into the switches.
fn check_events(scenario: &Scenario, tables: &[Table<'_>]) -> Result<(), ScenarioError> {
    let Err(error) = preload(&scenario.network, &scenario.link_events) else { return Ok(()) };
    let about = match &error {
        CompileError::HostLink(link) | CompileError::Periodic(link) | CompileError::Changes { link, .. } => {
            scenario.network.links_named(link)
        }
        CompileError::Reroutes(_) => None,
    };
    // The last event of the link is the one too many.
    let culprit = scenario.link_events.iter().rposition(|event| match &about {
        Some(links) => links.iter().any(|link| event.links.contains(link)),
        None => matches!(event.action, spray_fabric::LinkAction::Down { .. }),
    });
    Err(tables[culprit.unwrap_or(0)].error("link", error.to_string()))
}
