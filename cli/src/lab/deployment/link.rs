//! `spray link`: state and counters of links, and changes of their state.

use serde_json::json;
use spray_tools::failure::Outcome;
use spray_tools::say;

use super::protocol::{LinkRow, Request, Response, own_fabric, send, unexpected};
use crate::lab::args;

/// Lists links, after changing them if requested.
pub fn link(arguments: &args::Link) -> Outcome {
    let name = own_fabric(arguments.name.as_deref())?;
    let request = match &arguments.links {
        Some(links) if !arguments.changes.is_empty() => {
            Request::Change(links.clone(), arguments.changes.iter().map(|change| change.text()).collect())
        }
        links => Request::Links(links.clone()),
    };
    let rows = match send(&name, &request)? {
        Response::Links(rows) => rows,
        other => return Err(unexpected(&other)),
    };
    table(rows.iter());
    say::object(&json!({ "name": name, "links": rows }))
}

pub(super) fn table<'a>(rows: impl Iterator<Item = &'a LinkRow> + Clone) {
    let width = rows.clone().map(|row| row.state.len()).fold(14, usize::max);
    say!("link                  Mb/s  {:<width$}    frames         MB  longest queue    marks  drops", "state");
    rows.for_each(|row| say!("{}", line(row, width)));
}

fn line(row: &LinkRow, width: usize) -> String {
    let drops: Vec<_> =
        row.drops().iter().filter(|(_, count)| *count > 0).map(|(cause, count)| format!("{count} {cause}")).collect();
    let trims = if row.trims > 0 { format!("; {} trimmed", row.trims) } else { String::new() };
    format!(
        "{:<18} {:>7}  {:<width$} {:>9} {:>10.1} {:>11.1} kB {:>8}  {}{trims}",
        row.link,
        row.mbps,
        row.state,
        row.frames,
        row.bytes as f64 / 1e6,
        row.queue_max_bytes as f64 / 1e3,
        row.marks,
        if drops.is_empty() { "0".into() } else { drops.join(", ") },
    )
}
