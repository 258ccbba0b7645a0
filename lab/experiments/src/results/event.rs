//! Events of a run.

use serde::Serialize;

use super::statistics::round3;

/// An event of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventRow {
    /// Time of the event.
    pub time_us: f64,
    /// Kind of the event.
    pub kind: EventKind,
    /// The port, host or flow concerned.
    pub subject: String,
    /// The link's behaviour as in `[[link_event]]`; `given-up` of a connection; otherwise empty.
    pub action: &'static str,
    /// Value of the action: share of the remaining rate, of lost frames, or of the time down.
    pub value: Option<f64>,
    /// The end of a failure; the start of the failure for a last drop.
    pub until_us: Option<f64>,
    /// Sequence number of the packet of a timeout.
    pub packet: Option<u64>,
    /// Further details; may be empty.
    pub detail: String,
}

impl EventRow {
    /// Describes the event.
    pub fn words(&self) -> String {
        let percent = self.value.map(|share| format!("{} %", round3(share * 100.0)));
        let action = match (self.action, percent) {
            (action, None) => action.into(),
            ("rate", Some(percent)) => format!("rate: {percent} left"),
            ("flap", Some(percent)) => format!("flap: down {percent} of the time"),
            (action, Some(percent)) => format!("{action}: {percent}"),
        };
        let until = match (self.kind, self.until_us) {
            (EventKind::LastDrop, Some(began)) => format!("{:.1} us after the failure began", self.time_us - began),
            _ => String::new(),
        };
        let packet = self.packet.map_or_else(String::new, |packet| format!("packet {packet}"));
        let parts = [action, until, packet, self.detail.clone()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// The kinds of [`EventRow`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A link began to fail (down, dropping, slow, lossy or flapping), or a connection gave up.
    #[default]
    Failure,
    /// Paused links wait for each other in a cycle.
    Deadlock,
    /// A sender's balancer entered freezing mode (REPS §3.2).
    FreezeEntered,
    /// A sender's balancer left freezing mode.
    FreezeExited,
    /// The last frame dropped by a failure.
    LastDrop,
    /// A failed link recovered.
    Recovered,
    /// Routing changed.
    Reroute,
    /// A retransmission timer expired.
    Timeout,
}

impl std::fmt::Display for EventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}
