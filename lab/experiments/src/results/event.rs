//! What happened at one moment of a run.

use super::statistics::round3;

/// Something that happened at one moment of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventRow {
    /// When.
    pub time_us: f64,
    /// What happened.
    pub kind: EventKind,
    /// The port, host or flow that it happened to.
    pub subject: String,
    /// What a link does, as in `[[link_event]]`; `given-up` of a connection; otherwise empty.
    pub action: &'static str,
    /// The action's figure: the share of the rate that is left, of frames that are lost, or of the time that the link is down.
    pub value: Option<f64>,
    /// Of a failure: when it ends. Of the last drop: when the failure began.
    pub until_us: Option<f64>,
    /// Of a timeout: the packet's sequence number.
    pub packet: Option<u64>,
    /// What the other fields do not say; may be empty.
    pub detail: String,
}

impl EventRow {
    /// What the fields say, in words.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A link began to fail: down, dropping, slow, lossy or flapping. Or a connection was given up.
    #[default]
    Failure,
    /// Links that pause wait for each other.
    Deadlock,
    /// A sender's balancer entered freezing mode (REPS §3.2).
    FreezeEntered,
    /// A sender's balancer left freezing mode.
    FreezeExited,
    /// The last frame that a failure dropped.
    LastDrop,
    /// A failed link works again.
    Recovered,
    /// Routing changed.
    Reroute,
    /// A retransmission timer ran out.
    Timeout,
}

impl std::fmt::Display for EventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Failure => "failure",
            Self::Deadlock => "deadlock",
            Self::FreezeEntered => "freeze_entered",
            Self::FreezeExited => "freeze_exited",
            Self::LastDrop => "last_drop",
            Self::Recovered => "recovered",
            Self::Reroute => "reroute",
            Self::Timeout => "timeout",
        })
    }
}
