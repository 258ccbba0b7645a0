//! The rows and figures of a result about failures and the hosts' reactions. Both engines use them.

use spray_core::event::Event;

use super::{EventKind, EventRow};
use spray_fabric::{LinkAction, LinkEvent, Network, PortOutcome};

/// A row for the beginning and one for the end of each link event.
pub(crate) fn link_rows(events: &[LinkEvent]) -> Vec<EventRow> {
    let mut rows = Vec::new();
    for event in events {
        let (kind, detail) = (event.action.name(), event.action.detail());
        let row = |ps: u64, kind, detail: String| EventRow {
            time_us: ps as f64 / 1e6,
            kind,
            subject: event.name.clone(),
            detail,
        };
        rows.push(row(event.at_ps, EventKind::Failure, format!("{kind}{detail}")));
        rows.extend(event.until_ps.map(|until| row(until, EventKind::Recovered, kind.into())));
    }
    rows
}

/// The row of a routing epoch that begins.
pub(crate) fn reroute_row(time_us: f64) -> EventRow {
    EventRow { time_us, kind: EventKind::Reroute, subject: "routing".into(), detail: String::new() }
}

/// The kind and detail of the row for a host's event; `None` if the event has no row.
pub(crate) fn reported(event: Event) -> Option<(EventKind, String)> {
    match event {
        Event::FreezeEntered => Some((EventKind::FreezeEntered, String::new())),
        Event::FreezeExited => Some((EventKind::FreezeExited, String::new())),
        Event::Timeout { psn } => Some((EventKind::Timeout, format!("packet {psn}"))),
        _ => None,
    }
}

/// The last frame that a failing link dropped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LastDrop {
    /// The link's name.
    port: String,
    /// When, in us.
    at_us: f64,
    /// How long after the link first failed, in us: the run's recovery.
    pub after_us: f64,
}

impl LastDrop {
    /// The latest drop of the links behind `ports`; `None` if none dropped a frame.
    pub fn of(network: &Network, events: &[LinkEvent], ports: &[PortOutcome]) -> Option<Self> {
        let dropped = ports.iter().filter(|port| port.counters.last_link_drop_ps > 0);
        let drops = dropped.map(|port| (port.name.as_str(), port.counters.last_link_drop_ps as f64 / 1e6));
        let (port, at_us) = drops.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let hits = |event: &&LinkEvent| {
            event.links.iter().any(|link| network.links[*link].name == port)
                && !matches!(event.action, LinkAction::Rate { .. })
        };
        let begun_ps = events.iter().filter(hits).map(|event| event.at_ps).min()?;
        Some(Self { port: port.into(), at_us, after_us: at_us - begun_ps as f64 / 1e6 })
    }

    pub fn row(&self) -> EventRow {
        EventRow {
            time_us: self.at_us,
            kind: EventKind::LastDrop,
            subject: self.port.clone(),
            detail: format!("{:.1} us after the failure began", self.after_us),
        }
    }
}
